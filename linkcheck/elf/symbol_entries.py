"""The entries of one file's dynamic symbol table: where they are, one by one and in passes. It answers no question.

The loader finds definitions through a hash table and nowhere else: DT_GNU_HASH when there is one, else DT_HASH
(glibc elf/dl-setup_hash.c). With neither it can look nothing up, so nothing is exported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.count import SymbolCount, count_symbols
from linkcheck.elf.dynamic import DT_SYMENT, DT_SYMTAB
from linkcheck.elf.entry import can_be_bound, find_imports, make_symbol, unpack_entry
from linkcheck.elf.hashes import gnu_hash, read_gnu_hash, read_sysv_hash, sysv_hash
from linkcheck.elf.limits import (
    BLOCK_SIZE,
    MAX_CANDIDATES,
    MAX_RESIDENT_IMPORT_STRINGS,
    MAX_RESIDENT_STRINGS,
    MAX_SYMBOL_NAME_BYTES,
)
from linkcheck.elf.strings import Strings
from linkcheck.model.symbols import is_object
from linkcheck.value import Value

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Collection, Iterator

    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.entry import Entry
    from linkcheck.elf.hashes import GnuHash, SysvHash
    from linkcheck.elf.layout import Layout
    from linkcheck.elf.versions import Versions
    from linkcheck.model import Symbol, SymbolVersion


class Tables(Value):
    """Where the symbols are and what finds them; what a first question establishes."""

    layout: Layout
    symbols: Span
    strings: Span
    gnu: GnuHash | None
    sysv: SysvHash | None


class SymbolEntries:
    """The entries of one table. What it is asked about is read from the file that each call is given.

    Every method raises MalformedElfError when an entry does not fit the file.
    """

    __slots__ = ("_counted", "dynamic", "tables", "versions")

    def __init__(self, dynamic: DynamicSection, versions: Versions) -> None:
        """Read nothing yet."""
        self.dynamic = dynamic
        self.versions = versions
        #: None before they are located, and in a file without dynamic symbols.
        self.tables: Tables | None = None
        self._counted: SymbolCount | None = None

    def locate(self, file: BoundedFile) -> Tables | None:
        """The tables; None when the file has no dynamic symbols."""
        if self.tables is None:
            layout = self.dynamic.header.layout
            symbols = self.dynamic.table(file, DT_SYMTAB, "the dynamic symbol table (DT_SYMTAB)")
            if symbols is None:
                return None
            size = self.dynamic.values.get(DT_SYMENT, layout.symbol.size)
            if size != layout.symbol.size:
                raise file.malformed(f"DT_SYMENT is {size}, but a symbol has {layout.symbol.size} bytes")
            self.tables = Tables(
                layout,
                symbols,
                self.dynamic.string_table(file),
                read_gnu_hash(file, self.dynamic),
                read_sysv_hash(file, self.dynamic),
            )
        return self.tables

    def count(self, file: BoundedFile, tables: Tables) -> SymbolCount:
        """How many entries there are; counted once."""
        if self._counted is None:
            self._counted = count_symbols(file, self.dynamic, tables.symbols, tables.sysv, tables.gnu)
        return self._counted

    def open_strings(self, file: BoundedFile, tables: Tables, resident_up_to: int = 0) -> Strings:
        """The names of the symbols, kept in memory up to a size of `resident_up_to` bytes."""
        return Strings(file, tables.strings, budget=MAX_SYMBOL_NAME_BYTES, resident_up_to=resident_up_to)

    def read_entry(self, file: BoundedFile, tables: Tables, index: int) -> Entry:
        """The entry at `index`."""
        size = tables.layout.symbol.size
        return unpack_entry(tables.layout, tables.symbols.read(file, index * size, size))

    def read_version(self, file: BoundedFile, index: int) -> SymbolVersion | None:
        """What DT_VERSYM says of the entry at `index`."""
        table = self.versions.table
        if table is None:
            return None
        (value,) = self.dynamic.header.layout.half.unpack(table.read(file, 2 * index, 2))
        return self.versions.meaning(file, value, index)

    def find_definitions(self, file: BoundedFile, tables: Tables, encoded: bytes) -> Iterator[tuple[int, Entry]]:
        """Index and entry of each definition called `encoded`, as the loader would meet them."""
        if tables.gnu is not None:
            candidates = tables.gnu.find(file, gnu_hash(encoded))
        elif tables.sysv is not None:
            candidates = tables.sysv.find(file, sysv_hash(encoded))
        else:
            return
        strings = self.open_strings(file, tables)
        for number, index in enumerate(candidates):
            if tables.gnu is not None and number >= MAX_CANDIDATES:
                raise file.malformed(f"DT_GNU_HASH has more than {MAX_CANDIDATES} symbols of one hash in a chain")
            entry = self.read_entry(file, tables, index)
            if can_be_bound(entry) and strings.holds(entry.name, encoded, "a symbol's name"):
                yield index, entry

    def select(
        self,
        file: BoundedFile,
        wanted: Callable[[Entry], bool] | None = None,
        *,
        first: int = 1,
        imports_only: bool = False,
    ) -> Iterator[Symbol]:
        """The symbols from `first` on whose entries are `wanted`, in table order."""
        tables = self.locate(file)
        if tables is None:
            return
        limit = MAX_RESIDENT_IMPORT_STRINGS if imports_only else MAX_RESIDENT_STRINGS
        strings = self.open_strings(file, tables, limit)
        for index, entry, version in self._walk(file, tables, first, imports_only=imports_only):
            if wanted is None or wanted(entry):
                name = strings.find(entry.name, "a symbol's name")
                yield make_symbol(entry, name, self.versions.meaning(file, version, index))

    def _walk(
        self, file: BoundedFile, tables: Tables, first: int, *, imports_only: bool
    ) -> Iterator[tuple[int, Entry, int]]:
        """Index, entry and DT_VERSYM value of the entries from `first` on."""
        layout = tables.layout
        record = layout.symbol
        count = self.count(file, tables).visible
        for start, raw in self.read_blocks(file, tables, max(first, 1), count):
            length = len(raw) // record.size
            versions = self._read_versions(file, start, length)
            positions = find_imports(layout, raw) if imports_only else range(length)
            for position in positions:
                entry = unpack_entry(layout, raw, position * record.size)
                yield start + position, entry, versions[position] if versions is not None else 1

    def walk_imports(self, file: BoundedFile, tables: Tables) -> Iterator[tuple[int, bytes]]:
        """Index and name of every import, with nothing decoded but the names."""
        strings = self.open_strings(file, tables, MAX_RESIDENT_IMPORT_STRINGS)
        count = self.count(file, tables).visible
        for start, raw in self.read_blocks(file, tables, 1, count):
            places = tables.layout.words(raw)[:: tables.layout.symbol.size // 4]  # st_name comes first
            for position in find_imports(tables.layout, raw):
                yield start + position, strings.find(places[position], "a symbol's name")

    def find_objects_at(
        self, file: BoundedFile, tables: Tables, wanted: Collection[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Address and name of each object for others to bind to that is at one of the addresses `wanted`."""
        layout = tables.layout
        size = layout.symbol.size
        strings = self.open_strings(file, tables)
        for _, raw in self.read_blocks(file, tables, 1, self.count(file, tables).visible):
            places = layout.addresses(raw)[1 :: size // layout.address_size]  # st_value is the second word
            for position in (p for p, place in enumerate(places) if place in wanted):
                entry = unpack_entry(layout, raw, position * size)
                if can_be_bound(entry) and is_object(entry.info & 0xF, entry.size):
                    yield entry.value, strings.find(entry.name, "a symbol's name")

    def read_blocks(self, file: BoundedFile, tables: Tables, first: int, count: int) -> Iterator[tuple[int, bytes]]:
        """The entries from `first` up to `count`, a block at a time, with the index of each block's first entry."""
        size = tables.layout.symbol.size
        per_block = BLOCK_SIZE // size
        for start in range(first, count, per_block):
            yield start, tables.symbols.read(file, start * size, min(per_block, count - start) * size)

    def _read_versions(self, file: BoundedFile, start: int, length: int) -> array[int] | None:
        table = self.versions.table
        if table is None:
            return None
        return self.dynamic.header.layout.halves(table.read(file, 2 * start, 2 * length))
