"""The dynamic symbol table of one file, read when asked (model.SymbolTable). It decides no binding between files.

The loader finds definitions through a hash table and nowhere else: DT_GNU_HASH when there is one, else DT_HASH
(glibc elf/dl-setup_hash.c). With neither it can look nothing up, so nothing is exported.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.count import SymbolCount, count_symbols
from linkcheck.elf.deep import list_symtab_names, list_symtab_names_with, may_name_in_symtab
from linkcheck.elf.dynamic import DT_MIPS_XHASH, DT_SYMENT, DT_SYMTAB, EM_MIPS
from linkcheck.elf.entry import can_be_bound, find_imports, make_symbol, unpack_entry
from linkcheck.elf.hashes import gnu_hash, read_gnu_hash, read_sysv_hash, sysv_hash
from linkcheck.elf.limits import (
    BLOCK_SIZE,
    MAX_CANDIDATES,
    MAX_INDEXED_IMPORT_BYTES,
    MAX_INDEXED_IMPORTS,
    MAX_NAME_PLACES,
    MAX_RESIDENT_IMPORT_STRINGS,
    MAX_RESIDENT_STRINGS,
    MAX_SYMBOL_NAME_BYTES,
)
from linkcheck.elf.strings import Strings, encode_name
from linkcheck.model import unique
from linkcheck.value import Value

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Collection, Iterator

    from linkcheck.elf.bounded_file import Span
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.entry import Entry
    from linkcheck.elf.hashes import GnuHash, SysvHash
    from linkcheck.elf.layout import Layout
    from linkcheck.elf.versions import Versions
    from linkcheck.model import Demand, Symbol, SymbolVersion
    from linkcheck.opened_file import FileStamp

#: Bytes of a Bloom filter that is kept in memory from the first question to `exported` on, and of one that is after a
#: few: a load set asks every image for every import, a check of one library asks little.
_SMALL_FILTER = 1 << 14
_LARGEST_KEPT_FILTER = 1 << 20
_KEEP_FILTER_AFTER = 8
#: Bytes of a name that make its family. The names of one C++ namespace begin alike (`_ZN10executorch…`), so that one
#: search of the string table answers for all of them, and how many families are searched for before the imports are
#: indexed instead.
_FAMILY_LENGTH = 15
_MOST_SEARCHES = 4
#: Answers that are remembered for each kind of question: the rules ask about the same few names again and again.
_MOST_ANSWERS = 1 << 10


class _Tables(Value):
    """Where the symbols are and what finds them; what a first question establishes."""

    layout: Layout
    symbols: Span
    strings: Span
    gnu: GnuHash | None
    sysv: SysvHash | None


class DynamicSymbols:
    """A model.SymbolTable over a file. It holds no descriptor: a question it cannot answer yet opens the file again.

    Every method raises MalformedElfError when an entry does not fit the file, and UnreadableFileError when the file
    has to be read again and has changed since. Not for use from several threads at once.
    """

    __slots__ = (
        "_copies",
        "_count",
        "_dynamic",
        "_exported",
        "_families",
        "_filter",
        "_import_index",
        "_imported",
        "_open",
        "_private",
        "_questions",
        "_symtab_families",
        "_tables",
        "_too_many_imports",
        "_unseen",
        "_versions",
    )

    def __init__(
        self, path: str, opened_as: str, stamp: FileStamp, dynamic: DynamicSection, versions: Versions
    ) -> None:
        """Remember where to look: `opened_as` is the absolute form of `path`, which messages show."""
        self._open: Callable[[], BoundedFile] = partial(BoundedFile, path, opened_as=opened_as, expected=stamp)
        self._dynamic = dynamic
        self._versions = versions
        self._tables: _Tables | None = None
        self._count: SymbolCount | None = None
        self._copies: frozenset[bytes] | None = None
        self._filter: array[int] | None = None
        self._questions = 0
        self._unseen: str | bool | None = False  # False before the first question
        self._exported: dict[str, tuple[Symbol, ...]] = {}
        self._imported: dict[str, Symbol | None] = {}
        #: Family of names -> whether the string table has it.
        self._families: dict[bytes, bool] = {}
        self._symtab_families: dict[bytes, bool] = {}
        self._private: dict[frozenset[str], tuple[str, ...]] = {}
        #: Name -> index of its first undefined entry; None before the first question, and when there are too many.
        self._import_index: dict[bytes, int] | None = None
        self._too_many_imports = False

    @property
    def unseen(self) -> str | None:
        """See model.SymbolTable.unseen."""
        if isinstance(self._unseen, bool):
            self._unseen = self._judge_unseen()
        return self._unseen

    def _judge_unseen(self) -> str | None:
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return None
            values = self._dynamic.values
            if DT_MIPS_XHASH in values and self._dynamic.header.machine == EM_MIPS and tables.sysv is None:
                return "its exports are hashed by DT_MIPS_XHASH alone, which is not read"
            return self._count_entries(file, tables).unseen

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """See model.SymbolTable.exported; one entry for each version, in the order of the hash chain."""
        known = self._exported.get(name)
        if known is None:
            known = self._find_exports(name)
            if len(self._exported) < _MOST_ANSWERS:
                self._exported[name] = known
        return known

    def _find_exports(self, name: str) -> tuple[Symbol, ...]:
        encoded = encode_name(name)
        if encoded is None or self._is_ruled_out(encoded):
            return ()
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return ()
            found = tuple(
                make_symbol(entry, encoded, self._read_version(file, index))
                for index, entry in self._find_definitions(file, tables, encoded)
            )
            self._keep_filter(file, tables)
            return found

    def _find_definitions(self, file: BoundedFile, tables: _Tables, encoded: bytes) -> Iterator[tuple[int, Entry]]:
        """Index and entry of each definition called `encoded`, as the loader would meet them."""
        if tables.gnu is not None:
            candidates = tables.gnu.find(file, gnu_hash(encoded))
        elif tables.sysv is not None:
            candidates = tables.sysv.find(file, sysv_hash(encoded))
        else:
            return
        strings = self._open_strings(file, tables)
        for number, index in enumerate(candidates):
            if tables.gnu is not None and number >= MAX_CANDIDATES:
                raise file.malformed(f"DT_GNU_HASH has more than {MAX_CANDIDATES} symbols of one hash in a chain")
            entry = self._read_entry(file, tables, index)
            if can_be_bound(entry) and strings.holds(entry.name, encoded, "a symbol's name"):
                yield index, entry

    def imported(self, name: str) -> Symbol | None:
        """See model.SymbolTable.imported.

        The entry may have a value: a program at a fixed address gives the address of its own PLT slot to whoever asks
        for the function's address.
        """
        if name in self._imported:
            return self._imported[name]
        symbol = self._read_import(name)
        if len(self._imported) < _MOST_ANSWERS:
            self._imported[name] = symbol
        return symbol

    def _read_import(self, name: str) -> Symbol | None:
        encoded = encode_name(name)
        if encoded is None or self._families.get(encoded[:_FAMILY_LENGTH]) is False:
            return None
        if self._import_index is not None and encoded not in self._import_index:
            return None
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None or not self._may_mention(file, tables, encoded):
                return None
            index = self._find_import(file, tables, encoded)
            if index is None:
                return None
            entry = self._read_entry(file, tables, index)
            return make_symbol(entry, encoded, self._read_version(file, index))

    def imports(self) -> Iterator[Symbol]:
        """See model.SymbolTable.imports; the loader looks up only what has the default visibility."""
        return self._select(None, imports_only=True)

    def count_imports(self) -> int:
        """See model.SymbolTable.count_imports."""
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return 0
            count = self._count_entries(file, tables).visible
            blocks = self._read_blocks(file, tables, 1, count)
            return sum(1 for _, raw in blocks for _ in find_imports(tables.layout, raw))

    def exports(self) -> Iterator[Symbol]:
        """See model.SymbolTable.exports."""
        with self._open() as file:
            tables = self._read_tables(file)
        if tables is None or (tables.gnu is None and tables.sysv is None):
            return iter(())
        first = tables.gnu.first if tables.gnu is not None else 1
        return self._select(can_be_bound, first=first)

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.private."""
        key = frozenset(names)
        known = self._private.get(key)
        if known is None:
            known = self._private[key] = tuple(name for name in self._list_symtab(key) if not self.exported(name))
        return known

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.private_with."""
        with self._open() as file:
            names = list_symtab_names_with(file, self._dynamic.header, parts)
        return tuple(name for name in names if not self.exported(name))

    def _list_symtab(self, names: frozenset[str]) -> tuple[str, ...]:
        """Those of `names` that `.symtab` defines.

        From the second set of names on, a family that it lacks is looked for once. Not before: what the names of one
        set have in common is longer than a family, and looked for in half the time.
        """
        families = {name.encode("utf-8", "surrogateescape")[:_FAMILY_LENGTH] for name in names if encode_name(name)}
        if len(families) != 1 or not self._private:
            with self._open() as file:
                return list_symtab_names(file, self._dynamic.header, names)
        (family,) = families
        if self._symtab_families.get(family) is False:
            return ()
        with self._open() as file:
            header = self._dynamic.header
            if family not in self._symtab_families:
                self._symtab_families[family] = may_name_in_symtab(file, header, family)
            return list_symtab_names(file, header, names) if self._symtab_families[family] else ()

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.copied."""
        if self._copies is None:
            self._copies = self._read_copies()
        return tuple(name for name in names if encode_name(name) in self._copies)

    def list_copies(self) -> tuple[Symbol, ...]:
        """See model.SymbolTable.list_copies. Nothing is kept."""
        from linkcheck.elf.copies import find_copies

        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return ()
            strings = self._open_strings(file, tables)
            found: dict[bytes, Symbol] = {}
            for index in find_copies(file, self._dynamic):
                entry = self._read_entry(file, tables, index)
                name = strings.find(entry.name, "a symbol's name")
                found[name] = make_symbol(entry, name, self._read_version(file, index))
            return tuple(found.values())

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See model.SymbolTable.referenced. Nothing is kept: only states that several files define are asked for."""
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return ()
            places = {
                index: name
                for name in names
                if (encoded := encode_name(name)) is not None
                for index, _ in self._find_definitions(file, tables, encoded)
            }
            from linkcheck.elf.references import find_references

            found = find_references(file, self._dynamic, frozenset(places))
        return None if found is None else unique(name for index, name in places.items() if index in found)

    def demands(self) -> tuple[Demand, ...] | None:
        """See model.SymbolTable.demands. Nothing is kept."""
        from linkcheck.elf.batch import list_demands

        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return ()
            count = self._count_entries(file, tables).visible
            strings = self._open_strings(file, tables, MAX_RESIDENT_IMPORT_STRINGS)
            return list_demands(file, tables.layout, tables.symbols, count, strings, self._versions)

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """See model.SymbolTable.offers. Nothing is kept but the hashes of the names."""
        from linkcheck.elf.batch import find_offers

        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return {}
            if tables.gnu is not None:
                count = self._count_entries(file, tables).visible
                found_at_once = find_offers(
                    file, tables.layout, tables.symbols, count, tables.strings, self._versions, tables.gnu, names
                )
                if found_at_once is not None:
                    return found_at_once
        found = {name: self.exported(name) for name in names}
        return {
            name: tuple(None if s.version is None or s.version.base else s.version.name for s in symbols)
            for name, symbols in found.items()
            if symbols
        }

    def requested(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See model.SymbolTable.requested. Nothing is kept: only what nobody defines is asked for."""
        wanted = {encoded: name for name in names if (encoded := encode_name(name)) is not None}
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return ()
            places = {index: wanted[name] for index, name in self._walk_imports(file, tables) if name in wanted}
            from linkcheck.elf.references import find_references

            found = find_references(file, self._dynamic, frozenset(places))
        return None if found is None else unique(name for index, name in places.items() if index in found)

    def __iter__(self) -> Iterator[Symbol]:
        return self._select(None)

    # -- reading ------------------------------------------------------------------------------------------------

    def _read_tables(self, file: BoundedFile) -> _Tables | None:
        """The tables; None when the file has no dynamic symbols."""
        if self._tables is None:
            layout = self._dynamic.header.layout
            symbols = self._dynamic.table(file, DT_SYMTAB, "the dynamic symbol table (DT_SYMTAB)")
            if symbols is None:
                return None
            size = self._dynamic.values.get(DT_SYMENT, layout.symbol.size)
            if size != layout.symbol.size:
                raise file.malformed(f"DT_SYMENT is {size}, but a symbol has {layout.symbol.size} bytes")
            self._tables = _Tables(
                layout,
                symbols,
                self._dynamic.string_table(file),
                read_gnu_hash(file, self._dynamic),
                read_sysv_hash(file, self._dynamic),
            )
        return self._tables

    def _count_entries(self, file: BoundedFile, tables: _Tables) -> SymbolCount:
        if self._count is None:
            self._count = count_symbols(file, self._dynamic, tables.symbols, tables.sysv, tables.gnu)
        return self._count

    def _read_copies(self) -> frozenset[bytes]:
        from linkcheck.elf.copies import find_copies

        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return frozenset()
            strings = self._open_strings(file, tables)
            return frozenset(
                strings.find(self._read_entry(file, tables, index).name, "a symbol's name")
                for index in find_copies(file, self._dynamic)
            )

    def _open_strings(self, file: BoundedFile, tables: _Tables, resident_up_to: int = 0) -> Strings:
        return Strings(file, tables.strings, budget=MAX_SYMBOL_NAME_BYTES, resident_up_to=resident_up_to)

    def _read_entry(self, file: BoundedFile, tables: _Tables, index: int) -> Entry:
        size = tables.layout.symbol.size
        return unpack_entry(tables.layout, tables.symbols.read(file, index * size, size))

    def _read_version(self, file: BoundedFile, index: int) -> SymbolVersion | None:
        table = self._versions.table
        if table is None:
            return None
        (value,) = self._dynamic.header.layout.half.unpack(table.read(file, 2 * index, 2))
        return self._versions.meaning(file, value, index)

    # -- passes over the table ----------------------------------------------------------------------------------

    def _select(
        self, wanted: Callable[[Entry], bool] | None, *, first: int = 1, imports_only: bool = False
    ) -> Iterator[Symbol]:
        """The symbols from `first` on whose entries are `wanted`, in table order."""
        with self._open() as file:
            tables = self._read_tables(file)
            if tables is None:
                return
            limit = MAX_RESIDENT_IMPORT_STRINGS if imports_only else MAX_RESIDENT_STRINGS
            strings = self._open_strings(file, tables, limit)
            for index, entry, version in self._walk(file, tables, first, imports_only=imports_only):
                if wanted is None or wanted(entry):
                    name = strings.find(entry.name, "a symbol's name")
                    yield make_symbol(entry, name, self._versions.meaning(file, version, index))

    def _walk(
        self, file: BoundedFile, tables: _Tables, first: int, *, imports_only: bool
    ) -> Iterator[tuple[int, Entry, int]]:
        """Index, entry and DT_VERSYM value of the entries from `first` on."""
        layout = tables.layout
        record = layout.symbol
        count = self._count_entries(file, tables).visible
        for start, raw in self._read_blocks(file, tables, max(first, 1), count):
            length = len(raw) // record.size
            versions = self._read_versions(file, start, length)
            positions = find_imports(layout, raw) if imports_only else range(length)
            for position in positions:
                entry = unpack_entry(layout, raw, position * record.size)
                yield start + position, entry, versions[position] if versions is not None else 1

    def _read_blocks(self, file: BoundedFile, tables: _Tables, first: int, count: int) -> Iterator[tuple[int, bytes]]:
        """The entries from `first` up to `count`, a block at a time, with the index of each block's first entry."""
        size = tables.layout.symbol.size
        per_block = BLOCK_SIZE // size
        for start in range(first, count, per_block):
            yield start, tables.symbols.read(file, start * size, min(per_block, count - start) * size)

    def _read_versions(self, file: BoundedFile, start: int, length: int) -> array[int] | None:
        table = self._versions.table
        if table is None:
            return None
        return self._dynamic.header.layout.halves(table.read(file, 2 * start, 2 * length))

    # -- single names -------------------------------------------------------------------------------------------

    def _is_ruled_out(self, name: bytes) -> bool:
        """Whether the Bloom filter in memory, if any, says that `name` is not exported."""
        return (
            self._filter is not None
            and self._tables is not None
            and self._tables.gnu is not None
            and not self._tables.gnu.may_hold_in(self._filter, gnu_hash(name))
        )

    def _keep_filter(self, file: BoundedFile, tables: _Tables) -> None:
        self._questions += 1
        gnu = tables.gnu
        if self._filter is not None or gnu is None:
            return
        most = _SMALL_FILTER if self._questions < _KEEP_FILTER_AFTER else _LARGEST_KEPT_FILTER
        if gnu.filter_words * tables.layout.address_size <= most:
            self._filter = gnu.load_filter(file)

    def _may_mention(self, file: BoundedFile, tables: _Tables, name: bytes) -> bool:
        """Whether the string table holds the family of `name` at all: most files have nothing to do with a state, and
        one search for bytes tells that ten times as fast as an index of all imports.
        """
        family = name[:_FAMILY_LENGTH]
        known = self._families.get(family)
        if known is None and self._import_index is None and len(self._families) < _MOST_SEARCHES:
            known = self._families[family] = tables.strings.contains(file, family)
        return known is not False

    def _find_import(self, file: BoundedFile, tables: _Tables, name: bytes) -> int | None:
        if self._import_index is None and not self._too_many_imports:
            self._import_index = self._index_imports(file, tables)
            self._too_many_imports = self._import_index is None
        if self._import_index is not None:
            return self._import_index.get(name)
        return self._search_import(file, tables, name)

    def _index_imports(self, file: BoundedFile, tables: _Tables) -> dict[bytes, int] | None:
        """First index by name, so that one pass answers all questions; None when that would take much memory."""
        index: dict[bytes, int] = {}
        left = MAX_INDEXED_IMPORT_BYTES
        for number, name in self._walk_imports(file, tables):
            index.setdefault(name, number)
            left -= len(name)
            if left < 0 or len(index) > MAX_INDEXED_IMPORTS:
                return None
        return index

    def _search_import(self, file: BoundedFile, tables: _Tables, name: bytes) -> int | None:
        """Index of the first import called `name`, without looking at the names of the others.

        The places of the name are searched for as bytes, and then the entries that lead there: a million imports take
        a twentieth of the time that reading their names takes.
        """
        places: set[int] = set()
        if not name:  # it stands at the end of every other one, and no file imports it
            return None
        for place in tables.strings.find_all(file, name + b"\0"):
            places.add(place)
            if len(places) > MAX_NAME_PLACES:
                raise file.malformed(f"one name stands more than {MAX_NAME_PLACES} times in {tables.strings.what}")
        if not places:
            return None
        count = self._count_entries(file, tables).visible
        for start, raw in self._read_blocks(file, tables, 1, count):
            names = tables.layout.words(raw)[:: tables.layout.symbol.size // 4]  # st_name comes first
            if places.isdisjoint(names):
                continue
            for position in find_imports(tables.layout, raw):
                if names[position] in places:
                    return start + position
        return None

    def _walk_imports(self, file: BoundedFile, tables: _Tables) -> Iterator[tuple[int, bytes]]:
        """Index and name of every import, with nothing decoded but the names."""
        strings = self._open_strings(file, tables, MAX_RESIDENT_IMPORT_STRINGS)
        count = self._count_entries(file, tables).visible
        for start, raw in self._read_blocks(file, tables, 1, count):
            places = tables.layout.words(raw)[:: tables.layout.symbol.size // 4]  # st_name comes first
            for position in find_imports(tables.layout, raw):
                yield start + position, strings.find(places[position], "a symbol's name")
