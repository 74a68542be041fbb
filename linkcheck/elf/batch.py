"""Questions about many dynamic symbols of one file at once, answered from columns of its tables; it binds nothing.

One question by name (symbols.py) opens the file and makes a Symbol, 15 us. Whether everything that a process imports is
defined takes a thousand questions, so here tables are read whole where they are small, and no Symbol is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from linkcheck.elf.entry import find_imports, is_bindable
from linkcheck.elf.hashes import compute_gnu_hash
from linkcheck.elf.limits import (
    BLOCK_SIZE,
    MAX_CHAIN_LENGTH,
    MAX_HASHES_KEPT,
    MAX_INDEXED_IMPORT_BYTES,
    MAX_INDEXED_IMPORTS,
    MAX_RESIDENT_TABLE,
    MAX_TABLE_KEPT,
    MAX_TABLES_KEPT,
)
from linkcheck.elf.strings import decode_name
from linkcheck.model import SymbolBinding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.hashes import GnuHash, HashColumns
    from linkcheck.elf.layout import Layout
    from linkcheck.elf.strings import Strings
    from linkcheck.elf.symbol_entries import SymbolEntries, Tables
    from linkcheck.elf.versions import Versions
    from linkcheck.model import Demand, SymbolVersion

#: Asking for one name takes as long as reading this many bytes.
_BYTES_FOR_A_NAME = 1 << 16
#: So does reading the entry and the name of one symbol by themselves.
BYTES_FOR_A_SYMBOL = 1 << 14
#: Steps along a chain that most names stay far below.
_USUAL_CHAIN_LENGTH = 64
#: Name -> its bytes with a NUL, and its hash; the names that one file imports are looked for in many.
_hashes: dict[str, tuple[bytes, int]] = {}


def list_demands(
    file: BoundedFile, layout: Layout, symbols: Span, count: int, strings: Strings, versions: Versions
) -> tuple[Demand, ...] | None:
    """Name, version and library of each import that is not weak, in table order; None when there are too many to keep.

    `count` is the number of entries. Raises MalformedElfError when an entry does not fit the file.
    """
    found: list[Demand] = []
    meanings: dict[int, tuple[str | None, str | None]] = {}
    size = layout.symbol.size
    left = MAX_INDEXED_IMPORT_BYTES
    per_block = BLOCK_SIZE // size
    for start in range(1, count, per_block):
        length = min(per_block, count - start)
        raw = symbols.read(file, start * size, length * size)
        positions = list(find_imports(layout, raw, weak=False))
        if not positions:
            continue
        places = layout.words(raw)[:: size // 4]  # st_name comes first
        names = strings.find_many([places[p] for p in positions], "a symbol's name", left)
        if names is None or len(found) + len(names) > MAX_INDEXED_IMPORTS:
            return None
        left -= sum(map(len, names))
        if versions.table is None:
            found += [(name, None, None) for name in names]
            continue
        halves = layout.halves(versions.table.read(file, 2 * start, 2 * length))
        values = [halves[p] for p in positions]
        for value in set(values) - meanings.keys():
            meaning = versions.meaning(file, value, start + positions[values.index(value)])
            meanings[value] = _name_version(meaning)
        wanted = map(meanings.__getitem__, values)
        found += [(name, version, library) for name, (version, library) in zip(names, wanted, strict=True)]
    return tuple(found)


def list_copy_demands(
    file: BoundedFile,
    layout: Layout,
    symbols: Span,
    indices: Sequence[int],
    strings: Strings,
    versions: Versions,
    *,
    weak: bool,
) -> tuple[Demand, ...]:
    """What the definitions at `indices`, room for copies, demand of other files, once each; `weak`: also weak ones.

    Raises MalformedElfError when an entry does not fit the file.
    """
    if not indices:
        return ()
    info = 1 if layout.bits == 64 else 3
    found: dict[bytes, Demand] = {}
    numbers = None if versions.table is None else _read_records(file, versions.table, 2, indices)
    for index, entry in zip(indices, _read_records(file, symbols, layout.symbol.size, indices), strict=True):
        fields = layout.symbol.unpack(entry)
        name = strings.find(fields[0], "a symbol's name")
        version = None
        if numbers is not None:
            version = versions.meaning(file, layout.half.unpack(next(numbers))[0], index)
        if weak or fields[info] >> 4 != SymbolBinding.WEAK:
            found[name] = (decode_name(name), *_name_version(version))
    return tuple(found.values())


def _name_version(version: SymbolVersion | None) -> tuple[str | None, str | None]:
    return (None, None) if version is None or version.base else (version.name, version.library)


def _read_records(file: BoundedFile, span: Span, size: int, indices: Sequence[int]) -> Iterator[bytes]:
    """The records of `size` bytes at `indices`, in one read where they are near each other, as linkers put copies."""
    first, end = min(indices) * size, (max(indices) + 1) * size
    if end - first > _BYTES_FOR_A_NAME or end > span.size:
        return (span.read(file, index * size, size) for index in indices)
    raw = span.read(file, first, end - first)
    return (raw[index * size - first : (index + 1) * size - first] for index in indices)


class Offers:
    """What one file defines of many names, asked for one set of names after the other."""

    __slots__ = ("_asked", "_columns", "_entries", "_kept")

    #: Bytes of all hash tables that are kept at the moment.
    all_kept: ClassVar[int] = 0

    def __init__(self, entries: SymbolEntries) -> None:
        """Read nothing yet."""
        self._entries = entries
        self._asked = False
        #: The hash table, kept from the second question on: what many programs load is asked for each of them.
        self._columns: HashColumns | None = None
        self._kept = 0

    def __del__(self) -> None:
        """Make room for the tables of other files."""
        type(self).all_kept -= self._kept

    def _keep(self, columns: HashColumns, size: int) -> None:
        if size <= min(MAX_TABLE_KEPT, MAX_TABLES_KEPT - Offers.all_kept):
            self._columns, self._kept = columns, size
            Offers.all_kept += size

    def find(
        self, file: BoundedFile, tables: Tables, gnu: GnuHash, names: Collection[str]
    ) -> dict[str, tuple[str | None, ...]] | None:
        """Those of `names` that the file defines for others, each with the versions it defines (None: without one).

        None when the tables are so large that asking for each name reads less. Raises MalformedElfError when an entry
        does not fit the file.
        """
        layout, symbols, strings, versions = tables.layout, tables.symbols, tables.strings, self._entries.versions
        count = self._entries.count(file, tables).visible
        size = layout.symbol.size
        hash_size = min(gnu.size_with_chains(count), gnu.span.size)
        if max(count * size, hash_size, strings.size) > MAX_RESIDENT_TABLE:
            return None
        if self._columns is None and hash_size > len(names) * _BYTES_FOR_A_NAME:
            return None
        columns = self._columns or gnu.load(file, hash_size)
        if self._asked and self._columns is None:
            self._keep(columns, hash_size)
        self._asked = True
        alike = _find_alike(file, gnu, columns, count, names)
        whole = count * size + strings.size <= len(alike) * BYTES_FOR_A_SYMBOL
        table = versions.table
        entries = symbols.read(file, 0, count * size) if whole else b""
        texts = strings.read(file, 0, strings.size) if whole else b""
        numbers = layout.halves(table.read(file, 0, 2 * count)) if whole and table is not None else None
        wide, unpack = layout.bits == 64, layout.symbol.unpack_from
        found: dict[str, tuple[str | None, ...]] = {}
        own_versions: dict[int, tuple[str | None]] = {}
        own: tuple[str | None] = (None,)
        for name, encoded, index in alike:
            entry, at = (entries, index * size) if whole else (symbols.read(file, index * size, size), 0)
            if wide:
                place, info, other, section, address, _ = unpack(entry, at)
            else:
                place, address, _, info, other, section = unpack(entry, at)
            if not is_bindable(info, other, section, address):
                continue
            if not (texts.startswith(encoded, place) if whole else _stands_at(file, strings, place, encoded)):
                continue
            if table is not None:
                number = layout.halves(table.read(file, 2 * index, 2))[0] if numbers is None else numbers[index]
                if number not in own_versions:
                    own_versions[number] = _name_version(versions.meaning(file, number, index))[:1]
                own = own_versions[number]
            found[name] = (*found[name], *own) if name in found else own
        return found


def _find_alike(
    file: BoundedFile, gnu: GnuHash, columns: HashColumns, count: int, names: Collection[str]
) -> list[tuple[str, bytes, int]]:
    """The symbols that the hash table, of which `columns` were read, gives for `names`, by their hashes: the name, its
    bytes with a NUL, and the symbol's index.
    """
    filter_, buckets, chains = columns
    if not buckets:
        return []
    known_hash = _hashes.get
    if len(chains) < len(names):
        stored = {word | 1 for word in chains}
        names = [name for name in names if (known_hash(name) or _remember_hash(name))[1] | 1 in stored]
    first, bits, mask, shift, bucket_count = (
        gnu.first,
        gnu.layout.bits,
        gnu.filter_words - 1,
        gnu.filter_shift,
        len(buckets),
    )
    end = min(len(chains), max(0, count - first))
    left = MAX_CHAIN_LENGTH + len(names) * _USUAL_CHAIN_LENGTH
    found = []
    for name in names:
        encoded, value = known_hash(name) or _remember_hash(name)
        start = at = buckets[value % bucket_count] - first
        if at < 0:
            if at == -first:  # an empty bucket
                continue
            raise file.malformed(f"a bucket of DT_GNU_HASH holds {at + first}, but its first symbol is {first}")
        while at < end:
            word = chains[at]
            if word ^ value < 2:  # the lowest bit only says where a chain ends
                # The loader looks into the Bloom filter first, which here takes longer than a chain.
                bloom = filter_[value // bits & mask]
                if (bloom >> value % bits) & (bloom >> (value >> shift) % bits) & 1:
                    found.append((name, encoded, first + at))
            if word & 1:
                break
            at += 1
        else:
            raise file.malformed(f"a chain of DT_GNU_HASH runs past its table at symbol {first + at}")
        left -= at - start
        if left < 0:
            raise file.malformed(f"the chains of DT_GNU_HASH have more than {MAX_CHAIN_LENGTH} entries")
    return found


def _stands_at(file: BoundedFile, strings: Span, place: int, encoded: bytes) -> bool:
    size = len(encoded)
    return place + size <= strings.size and strings.read(file, place, size) == encoded


def _remember_hash(name: str) -> tuple[bytes, int]:
    """`name` as it stands in a string table, with its NUL, and its hash. Names come from files, so they encode."""
    encoded = name.encode("utf-8", "surrogateescape")
    known = (encoded + b"\0", compute_gnu_hash(encoded))
    if len(_hashes) >= MAX_HASHES_KEPT:
        _hashes.clear()
    _hashes[name] = known
    return known
