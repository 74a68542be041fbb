"""Walks DT_GNU_HASH and DT_HASH: which symbol indices could bear a name. It reads no symbol and compares no name.

Source: gABI "Hash Table" for DT_HASH; glibc elf/dl-setup_hash.c and dl-lookup.c (do_lookup_x) for DT_GNU_HASH.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from linkcheck.elf.dynamic import DT_GNU_HASH, DT_HASH
from linkcheck.elf.limits import BLOCK_SIZE, MAX_CHAIN_LENGTH, MAX_HASH_BUCKETS, MAX_SYMBOLS
from linkcheck.value import Value

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.layout import Layout

    #: The words of the Bloom filter, the buckets and the chain words.
    HashColumns = tuple[array[int], array[int], array[int]]

#: Machines whose 64-bit DT_HASH has 64-bit entries: Alpha and s390 (glibc: bits/elfclass.h of both).
_WIDE_HASH_MACHINES = frozenset({22, 0x9026})


@lru_cache(maxsize=1024)
def gnu_hash(name: bytes) -> int:
    """The hash of DT_GNU_HASH. Cached: a load set asks for one name in every image."""
    return compute_gnu_hash(name)


def compute_gnu_hash(name: bytes) -> int:
    """The hash of DT_GNU_HASH (glibc: elf/dl-new-hash.h)."""
    # 5381, and then the name's bytes, are the coefficients of a polynomial in 33. A byte is 33 * quotient + remainder,
    # and int() reads a number in base 33: a sixth of the time that going through the bytes takes.
    if 0 < len(name) < len(_POWERS):
        value = int(name.translate(_REMAINDERS), 33) + 33 * int(name.translate(_QUOTIENTS), 33)
        return (value + 5381 * _POWERS[len(name)]) & 0xFFFFFFFF
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


#: 33 to the power of the index, modulo 2**32; long enough for nearly all names, and int() is quadratic.
_POWERS = [1]
for _ in range(256):
    _POWERS.append(_POWERS[-1] * 33 & 0xFFFFFFFF)
_DIGITS = b"0123456789abcdefghijklmnopqrstuvw"
#: Byte -> the digit in base 33 of its remainder and of its quotient.
_REMAINDERS = (8 * _DIGITS)[:256]
_QUOTIENTS = b"".join([33 * _DIGITS[digit : digit + 1] for digit in range(8)])[:256]


def sysv_hash(name: bytes) -> int:
    """The hash of DT_HASH (gABI "Hash Table")."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


class GnuHash(Value):
    """A DT_GNU_HASH table: a Bloom filter, buckets, and chains of hashes for the symbols from `first` on."""

    span: Span
    layout: Layout
    bucket_count: int
    #: The lowest symbol index that the table can find.
    first: int
    filter_words: int
    filter_shift: int

    @property
    def _buckets_at(self) -> int:
        return 16 + self.filter_words * self.layout.address_size

    @property
    def _chains_at(self) -> int:
        return self._buckets_at + 4 * self.bucket_count

    def may_hold(self, file: BoundedFile, value: int) -> bool:
        """Whether the Bloom filter lets the hash `value` through; most libraries are ruled out here."""
        bits = self.layout.bits
        at = 16 + (value // bits & (self.filter_words - 1)) * self.layout.address_size
        return self._passes(
            int.from_bytes(self.span.read(file, at, self.layout.address_size), self.layout.byte_order), value
        )

    def load_filter(self, file: BoundedFile) -> array[int]:
        """The words of the Bloom filter, for `may_hold_in`."""
        return self.layout.addresses(self.span.read(file, 16, self.filter_words * self.layout.address_size))

    def size_with_chains(self, count: int) -> int:
        """Bytes of the table of a file with `count` symbols."""
        return self._chains_at + 4 * max(0, count - self.first)

    def load(self, file: BoundedFile, size: int) -> HashColumns:
        """The words of the Bloom filter, the buckets and the chain words, in the first `size` bytes of the table."""
        raw = self.span.read(file, 0, size)
        chains = raw[self._chains_at : self._chains_at + (size - self._chains_at) // 4 * 4]
        return (
            self.layout.addresses(raw[16 : self._buckets_at]),
            self.layout.words(raw[self._buckets_at : self._chains_at]),
            self.layout.words(chains),
        )

    def may_hold_in(self, filter_: array[int], value: int) -> bool:
        """The same as `may_hold`, with the filter's words at hand."""
        return self._passes(filter_[value // self.layout.bits & (self.filter_words - 1)], value)

    def _passes(self, word: int, value: int) -> bool:
        bits = self.layout.bits
        return bool((word >> (value % bits)) & (word >> ((value >> self.filter_shift) % bits)) & 1)

    def find(self, file: BoundedFile, value: int) -> Iterator[int]:
        """Indices of the symbols whose stored hash is `value`, its lowest bit aside: that one ends a chain."""
        if not self.bucket_count or not self.may_hold(file, value):
            return
        bucket = self._buckets_at + 4 * (value % self.bucket_count)
        (index,) = self.layout.word.unpack(self.span.read(file, bucket, 4))
        if index == 0:
            return
        for index, word in self._chain(file, index):  # noqa: B020 - the bucket's index is where the chain begins
            if (word ^ value) >> 1 == 0:
                yield index

    def count_symbols(self, file: BoundedFile) -> int | None:
        """One more than the largest index of the last chain; None when every bucket is empty.

        An empty table says nothing: linkers write 1 for `first` then, however many imports there are.
        """
        last = max((find_largest(raw, self.layout) for raw in self._read_buckets(file)), default=0)
        if last == 0:
            return None
        for index, _ in self._chain(file, last):
            last = index
        return last + 1

    def _read_buckets(self, file: BoundedFile) -> Iterator[bytes]:
        at, end = self._buckets_at, self._chains_at
        while at < end:
            size = min(BLOCK_SIZE, end - at)
            yield self.span.read(file, at, size)
            at += size

    def _chain(self, file: BoundedFile, index: int) -> Iterator[tuple[int, int]]:
        """Symbol indices from `index` on with their words, up to the one whose lowest bit ends the chain."""
        if index < self.first:
            raise file.malformed(f"a bucket of DT_GNU_HASH holds {index}, but its first symbol is {self.first}")
        steps = 0
        size = 16
        while steps < MAX_CHAIN_LENGTH:
            at = self._chains_at + 4 * (index - self.first)
            count = min(size, (self.span.size - at) // 4)
            if count <= 0:
                raise file.malformed(f"a chain of DT_GNU_HASH runs past its segment at symbol {index}")
            for word in self.layout.words(self.span.read(file, at, 4 * count)):
                yield index, word
                if word & 1:
                    return
                index += 1
            steps += count
            size = 1024
        raise file.malformed(f"a chain of DT_GNU_HASH has more than {MAX_CHAIN_LENGTH} entries")


def find_largest(raw: bytes, layout: Layout) -> int:
    """The largest of the 32-bit words in `raw`, 0 without any.

    Bytes are searched faster than numbers are made: only the words from the first to the last with the largest of the
    highest bytes that are not all zero are decoded. Linkers sort symbols by bucket, so that these stand together.
    """
    start, end = 0, len(raw)
    for column in (3, 2) if layout.byte_order == "little" else (0, 1):
        digits = raw[column::4]
        largest = max(set(digits.translate(None, b"\0")), default=0)
        if largest:
            start, end = 4 * digits.index(largest), 4 * digits.rindex(largest) + 4
            break
    return max(layout.words(raw[start:end]), default=0)


class SysvHash(Value):
    """A DT_HASH table: buckets and one chain word for every dynamic symbol."""

    span: Span
    layout: Layout
    entry_size: int  # bytes: 4, or 8 on Alpha and s390
    bucket_count: int
    #: Its number of chain words is the number of dynamic symbols.
    symbol_count: int

    def find(self, file: BoundedFile, value: int) -> Iterator[int]:
        """Indices of the symbols in the bucket of the hash `value`; the table stores no hashes to compare."""
        if not self.bucket_count:
            return
        index = self._read_entry(file, 2 + value % self.bucket_count)
        for _ in range(min(MAX_CHAIN_LENGTH, self.symbol_count)):
            if index == 0:
                return
            if index >= self.symbol_count:
                raise file.malformed(f"DT_HASH names symbol {index}, but has {self.symbol_count} chain words")
            yield index
            index = self._read_entry(file, 2 + self.bucket_count + index)
        if index:
            raise file.malformed("a chain of DT_HASH loops, or is longer than the table")

    def _read_entry(self, file: BoundedFile, number: int) -> int:
        raw = self.span.read(file, number * self.entry_size, self.entry_size)
        return int.from_bytes(raw, self.layout.byte_order)


def read_gnu_hash(file: BoundedFile, dynamic: DynamicSection) -> GnuHash | None:
    """The DT_GNU_HASH table; None without one. Raises MalformedElfError when its head does not fit the file."""
    span = dynamic.table(file, DT_GNU_HASH, "DT_GNU_HASH")
    if span is None:
        return None
    layout = dynamic.header.layout
    bucket_count, first, filter_words, shift = layout.compile("IIII").unpack(span.read(file, 0, 16))
    if filter_words == 0 or filter_words & (filter_words - 1):
        raise file.malformed(f"DT_GNU_HASH has {filter_words} Bloom filter words, which is not a power of two")
    if bucket_count > MAX_HASH_BUCKETS:
        raise file.malformed(f"DT_GNU_HASH has {bucket_count} buckets; more than {MAX_HASH_BUCKETS} are not read")
    size = 16 + filter_words * layout.address_size + 4 * bucket_count
    if size > span.size:
        raise file.malformed(f"DT_GNU_HASH has {size:#x} bytes before its chains, but its segment ends before that")
    return GnuHash(span, layout, bucket_count, first, filter_words, shift)


def read_sysv_hash(file: BoundedFile, dynamic: DynamicSection) -> SysvHash | None:
    """The DT_HASH table; None without one. Raises MalformedElfError when it does not fit the file."""
    span = dynamic.table(file, DT_HASH, "DT_HASH")
    if span is None:
        return None
    header = dynamic.header
    size = 8 if header.layout.bits == 64 and header.machine in _WIDE_HASH_MACHINES else 4
    record = header.layout.compile("QQ" if size == 8 else "II")
    bucket_count, symbol_count = record.unpack(span.read(file, 0, record.size))
    if bucket_count > MAX_HASH_BUCKETS:
        raise file.malformed(f"DT_HASH has {bucket_count} buckets; more than {MAX_HASH_BUCKETS} are not read")
    if symbol_count > MAX_SYMBOLS:
        raise file.malformed(f"DT_HASH has {symbol_count} chain words; more than {MAX_SYMBOLS} are not read")
    if (2 + bucket_count + symbol_count) * size > span.size:
        raise file.malformed(
            f"DT_HASH has {bucket_count} buckets and {symbol_count} chain words, more than its segment holds"
        )
    return SysvHash(span, header.layout, size, bucket_count, symbol_count)
