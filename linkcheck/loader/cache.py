"""Look-up in ld.so.cache, read from its bytes with every offset checked; it opens no file and writes none.

Source: glibc sysdeps/generic/dl-cache.h (layout) and elf/dl-cache.c (search_cache, _dl_cache_libcmp).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Target

#: More than any real cache; what is beyond is not read.
CACHE_LIMIT = 64 << 20

_OLD_MAGIC = b"ld.so-1.7.0"
_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_EXTENSION_MAGIC = 0xEAA42174
_TAG_GLIBC_HWCAPS = 1
_OLD_HEADER, _OLD_ENTRY = 16, 12
_NEW_HEADER, _NEW_ENTRY = 48, 24
#: Bit 62 of an entry's hwcap: the low half is an index into the glibc-hwcaps names. Bits 32-41: ISA level.
_NAMED = 1 << 30
_ISA_LEVEL_MASK = 0x3FF
_MAX_NAMES = 1024

#: (e_machine, bits) -> flags of an entry that this machine's loader takes; 1 (any ELF) is taken by all. Arm and
#: RISC-V have one value for each floating-point ABI; all are listed, for the header flags are not looked at here.
_FLAGS = {
    (3, 32): (0x003,),
    (62, 64): (0x303,),
    (62, 32): (0x803,),
    (183, 64): (0xA03,),
    (40, 32): (0x003, 0x903, 0xB03),
    (20, 32): (0x003,),
    (21, 64): (0x503,),
    (22, 64): (0x403,),
    (22, 32): (0x003,),
    (8, 32): (0x003, 0x603, 0xC03, 0xD03),
    (8, 64): (0x703, 0xE03),
    (43, 64): (0x103,),
    (50, 64): (0x203,),
    (243, 64): (0xF03, 0x1003),
    (258, 64): (0x1103, 0x1203),
}


class LoaderCache:
    """The entries of one ld.so.cache, for loaders of one target."""

    def __init__(self, data: bytes, target: Target) -> None:
        """`data` is the whole file; of one that glibc would ignore nothing is found, and `unusable` says why."""
        self._flags = frozenset((1, *_FLAGS.get((target.machine, target.bits), (0x003,))))
        self._order = "<" if target.byte_order == "little" else ">"
        self._data = data
        self._count = 0
        self._strings = self._entries = self._entry_size = 0
        self._names: tuple[bytes, ...] = ()
        #: Why the file is not used at all, or None.
        self.unusable: str | None = None
        if data.startswith(_NEW_MAGIC):
            self._use_new(0)
        elif data.startswith(_OLD_MAGIC):
            self._use_old()
        else:
            self.unusable = "no ld.so.cache: the magic is neither ld.so-1.7.0 nor glibc-ld.so.cache1.1"

    @property
    def has_hwcaps(self) -> bool:
        """Whether it names subdirectories of glibc-hwcaps at all, so that it matters which of them are active."""
        return bool(self._names)

    def look_up(self, name: str, hwcaps: Sequence[str] = ()) -> str | None:
        """The path that ld.so would take for `name`, or None.

        `hwcaps` are the active subdirectories of glibc-hwcaps, best first; entries for others are passed over.
        """
        wanted = name.encode("utf-8", "surrogateescape")
        position = self._find(wanted)
        if position is None:
            return None
        ranks = {name.encode(): rank for rank, name in enumerate(hwcaps)}
        best: bytes | None = None
        best_rank = len(ranks)
        for flags, value, hwcap in self._equal_entries(wanted, position):
            if flags not in self._flags or (path := self._string(value)) is None:
                continue
            high = hwcap >> 32
            if high & ~_ISA_LEVEL_MASK == _NAMED:
                index = hwcap & 0xFFFFFFFF
                rank = ranks.get(self._names[index], len(ranks)) if index < len(self._names) else len(ranks)
                if rank < best_rank:
                    best, best_rank = path, rank
                continue
            if best is not None:
                break
            # Other bits are the platform directories that glibc 2.37 gave up.
            if hwcap == 0:
                best = path
                if flags != 1:
                    break
        return None if best is None else best.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Every usable (name, path), in the order of the file."""
        for index in range(self._count):
            flags, key, value, _ = self._entry(index)
            name, path = self._string(key), self._string(value)
            if flags in self._flags and name is not None and path is not None:
                yield name.decode("utf-8", "surrogateescape"), path.decode("utf-8", "surrogateescape")

    def _use_old(self) -> None:
        if len(self._data) < _OLD_HEADER:
            self.unusable = "truncated header"
            return
        (count,) = struct.unpack_from(f"{self._order}I", self._data, 12)
        end = _OLD_HEADER + count * _OLD_ENTRY
        if end > len(self._data):
            self.unusable = f"{count} entries do not fit into {len(self._data)} bytes"
            return
        # ldconfig puts the new format behind the old entries, aligned for its 64-bit fields.
        aligned = (end + 7) & ~7
        if self._data.startswith(_NEW_MAGIC, aligned):
            self._use_new(aligned)
            return
        self._strings = end
        self._entries, self._entry_size, self._count = _OLD_HEADER, _OLD_ENTRY, count

    def _use_new(self, base: int) -> None:
        if len(self._data) < base + _NEW_HEADER:
            self.unusable = "truncated header"
            return
        flags = self._data[base + 28] & 3
        if flags not in (0, 2 if self._order == "<" else 3):
            self.unusable = "written for the other byte order"
            return
        count, _, extensions = struct.unpack_from(f"{self._order}II4xI", self._data, base + 20)
        if base + _NEW_HEADER + count * _NEW_ENTRY > len(self._data):
            self.unusable = f"{count} entries do not fit into {len(self._data)} bytes"
            return
        self._strings = base
        self._entries, self._entry_size, self._count = base + _NEW_HEADER, _NEW_ENTRY, count
        if extensions:
            # Unlike all else, the extensions count from the start of the file, not of the new header.
            self._names = tuple(self._read_names(extensions))

    def _read_names(self, offset: int) -> Iterator[bytes]:
        """Names of the glibc-hwcaps subdirectories, from the extension directory at `offset`."""
        if offset + 8 > len(self._data):
            return
        magic, count = struct.unpack_from(f"{self._order}II", self._data, offset)
        if magic != _EXTENSION_MAGIC or offset + 8 + count * 16 > len(self._data):
            return
        for number in range(min(count, _MAX_NAMES)):
            tag, _, start, size = struct.unpack_from(f"{self._order}IIII", self._data, offset + 8 + number * 16)
            if tag != _TAG_GLIBC_HWCAPS or start + size > len(self._data):
                continue
            for position in range(start, start + min(size, 4 * _MAX_NAMES) - 3, 4):
                (name,) = struct.unpack_from(f"{self._order}I", self._data, position)
                yield self._text(name) or b""
            return

    def _entry(self, index: int) -> tuple[int, int, int, int]:
        """Flags, name offset, path offset and hwcap of entry `index`."""
        position = self._entries + index * self._entry_size
        flags, key, value = struct.unpack_from(f"{self._order}iII", self._data, position)
        hwcap = 0
        if self._entry_size == _NEW_ENTRY:
            (hwcap,) = struct.unpack_from(f"{self._order}Q", self._data, position + 16)
        return flags, key, value, hwcap

    def _string(self, offset: int) -> bytes | None:
        """The name or path of an entry."""
        return self._text(self._strings + offset)

    def _text(self, start: int) -> bytes | None:
        end = self._data.find(b"\0", start, start + 8192) if start < len(self._data) else -1
        return None if end < 0 else self._data[start:end]

    def _find(self, wanted: bytes) -> int | None:
        """Index of the first entry called `wanted`, by the binary search glibc does (the table runs downwards)."""
        left, right = 0, self._count - 1
        while left <= right:
            middle = (left + right) // 2
            name = self._string(self._entry(middle)[1])
            if name is None:
                return None
            order = compare_names(wanted, name)
            if order == 0:
                while middle > 0:
                    before = self._string(self._entry(middle - 1)[1])
                    if before is None or compare_names(wanted, before) != 0:
                        break
                    middle -= 1
                return middle
            if order < 0:
                left = middle + 1
            else:
                right = middle - 1
        return None

    def _equal_entries(self, wanted: bytes, first: int) -> Iterator[tuple[int, int, int]]:
        for index in range(first, self._count):
            flags, key, value, hwcap = self._entry(index)
            name = self._string(key)
            if name is None or compare_names(wanted, name) != 0:
                return
            yield flags, value, hwcap


def compare_names(one: bytes, other: bytes) -> int:
    """Negative, zero or positive as `one` sorts before, with or after `other` (_dl_cache_libcmp).

    Runs of digits compare as numbers, and a digit sorts after every other character.
    """
    if one == other:
        return 0
    left, right = one + b"\0", other + b"\0"
    # Most of a search goes through what names begin with alike; a number that they differ in is compared as a whole.
    i = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    while i > 0 and 48 <= left[i - 1] <= 57:
        i -= 1
    j = i
    while left[i] != 0:
        digit, other_digit = 48 <= left[i] <= 57, 48 <= right[j] <= 57
        if digit and other_digit:
            first, i = _number(left, i)
            second, j = _number(right, j)
            if first != second:
                return first - second
        elif digit or other_digit:
            return 1 if digit else -1
        elif left[i] != right[j]:
            break
        else:
            i, j = i + 1, j + 1
    # char is signed where these caches are made, so bytes above 127 sort first.
    return (left[i] ^ 0x80) - (right[j] ^ 0x80)


def _number(text: bytes, start: int) -> tuple[int, int]:
    end = start
    while 48 <= text[end] <= 57:
        end += 1
    # glibc counts in int; long runs wrap there, and no SONAME has one, so the length is only bounded.
    return int(text[start : min(end, start + 18)]), end
