"""The dynamic symbol table of one file, read when asked (model.SymbolTable). It decides no binding between files.

Here are the questions and the answers that are kept; symbol_entries.py reads the table.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.deep import SymtabNames, list_symtab_names_with
from linkcheck.elf.dynamic import DT_MIPS_XHASH, EM_MIPS
from linkcheck.elf.entry import can_be_bound, find_imports, make_symbol
from linkcheck.elf.hashes import gnu_hash
from linkcheck.elf.import_index import ImportIndex
from linkcheck.elf.limits import MAX_RESIDENT_IMPORT_STRINGS
from linkcheck.elf.strings import decode_name, encode_name
from linkcheck.elf.symbol_entries import SymbolEntries
from linkcheck.model import list_versions
from linkcheck.text import unique

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Collection, Iterator

    from linkcheck.elf.batch import Offers
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.entry import Entry
    from linkcheck.elf.symbol_entries import Tables
    from linkcheck.elf.versions import Versions
    from linkcheck.model import Demand, Symbol
    from linkcheck.opened_file import FileStamp

#: Bytes of a Bloom filter that is kept in memory from the first question to `exported` on, and of one that is after a
#: few: a load set asks every image for every import, a check of one library asks little.
_SMALL_FILTER = 1 << 14
_LARGEST_KEPT_FILTER = 1 << 20
_KEEP_FILTER_AFTER = 8
#: Names that are looked for in the Bloom filter in memory before a file is opened for them.
_FEW_NAMES = 16
#: Answers that are remembered for each kind of question: the rules ask about the same few names again and again.
_MOST_ANSWERS = 1 << 10


class DynamicSymbols:
    """A model.SymbolTable over a file. It holds no descriptor: a question it cannot answer yet opens the file again.

    Every method raises MalformedElfError when an entry does not fit the file, and UnreadableFileError when the file
    has to be read again and has changed since. Not for use from several threads at once.
    """

    __slots__ = (
        "_copies",
        "_entries",
        "_exported",
        "_filter",
        "_imported",
        "_index",
        "_offers",
        "_open",
        "_private",
        "_questions",
        "_symtab",
        "_unseen",
    )

    def __init__(
        self, path: str, opened_as: str, stamp: FileStamp, dynamic: DynamicSection, versions: Versions
    ) -> None:
        """Remember where to look: `opened_as` is the absolute form of `path`, which messages show."""
        self._open: Callable[[], BoundedFile] = partial(BoundedFile, path, opened_as=opened_as, expected=stamp)
        self._entries = SymbolEntries(dynamic, versions)
        self._index = ImportIndex(self._entries)
        self._offers: Offers | None = None
        self._symtab = SymtabNames(self._open, dynamic.header)
        self._copies: dict[bytes, bytes] | None = None  # name -> the one that the relocation names
        self._filter: array[int] | None = None
        self._questions = 0
        self._unseen: str | bool | None = False  # False before the first question
        self._exported: dict[str, tuple[Symbol, ...]] = {}
        self._imported: dict[str, Symbol | None] = {}
        self._private: dict[frozenset[str], tuple[str, ...]] = {}

    @property
    def unseen(self) -> str | None:
        """See model.SymbolTable.unseen."""
        if isinstance(self._unseen, bool):
            self._unseen = self._judge_unseen()
        return self._unseen

    def _judge_unseen(self) -> str | None:
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return None
            values = self._entries.dynamic.values
            if DT_MIPS_XHASH in values and self._entries.dynamic.header.machine == EM_MIPS and tables.sysv is None:
                return "its exports are hashed by DT_MIPS_XHASH alone, which is not read"
            return self._entries.count(file, tables).unseen

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
            tables = self._entries.locate(file)
            if tables is None:
                return ()
            found = tuple(
                make_symbol(entry, encoded, self._entries.read_version(file, index))
                for index, entry in self._entries.find_definitions(file, tables, encoded)
            )
            self._keep_filter(file, tables)
            return found

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
        if encoded is None or self._index.rules_out(encoded):
            return None
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return None
            index = self._index.find(file, tables, encoded)
            if index is None:
                return None
            entry = self._entries.read_entry(file, tables, index)
            return make_symbol(entry, encoded, self._entries.read_version(file, index))

    def imports(self) -> Iterator[Symbol]:
        """See model.SymbolTable.imports; the loader looks up only what has the default visibility."""
        return self._select(None, imports_only=True)

    def count_imports(self) -> int:
        """See model.SymbolTable.count_imports."""
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return 0
            count = self._entries.count(file, tables).visible
            blocks = self._entries.read_blocks(file, tables, 1, count)
            return sum(1 for _, raw in blocks for _ in find_imports(tables.layout, raw))

    def exports(self) -> Iterator[Symbol]:
        """See model.SymbolTable.exports."""
        with self._open() as file:
            tables = self._entries.locate(file)
        if tables is None or (tables.gnu is None and tables.sysv is None):
            return iter(())
        first = tables.gnu.first if tables.gnu is not None else 1
        return self._select(can_be_bound, first=first)

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.private."""
        key = frozenset(names)
        known = self._private.get(key)
        if known is None:
            known = self._private[key] = tuple(name for name in self._symtab.find(key) if not self.exported(name))
        return known

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.private_with."""
        with self._open() as file:
            names = list_symtab_names_with(file, self._entries.dynamic.header, parts)
        return tuple(name for name in names if not self.exported(name))

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.copied."""
        return tuple(name for name in names if self.copied_as(name) is not None)

    def copied_as(self, name: str) -> str | None:
        """See model.SymbolTable.copied_as."""
        if self._copies is None:
            self._copies = self._read_copies()
        asked = self._copies.get(encode_name(name) or b"") if self._copies else None
        return None if asked is None else decode_name(asked)

    def objects_at(self, address: int) -> tuple[str, ...]:
        """See model.SymbolTable.objects_at. Nothing is kept: only what a program has a copy of is asked for."""
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return ()
            found = [name for _, name in self._entries.find_objects_at(file, tables, (address,))]
        return unique(map(decode_name, found))

    def copy_demands(self, *, weak: bool) -> tuple[Demand, ...]:
        """See model.SymbolTable.copy_demands. Nothing is kept."""
        from linkcheck.elf.batch import BYTES_FOR_A_SYMBOL, list_copy_demands
        from linkcheck.elf.relocations import find_copies

        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return ()
            copies = tuple(find_copies(file, self._entries.dynamic))
            resident = min(len(copies) * BYTES_FOR_A_SYMBOL, MAX_RESIDENT_IMPORT_STRINGS)
            strings = self._entries.open_strings(file, tables, resident)
            versions = self._entries.versions
            return list_copy_demands(file, tables.layout, tables.symbols, copies, strings, versions, weak=weak)

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See model.SymbolTable.referenced. Nothing is kept: only states that several files define are asked for."""
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return ()
            places = {
                index: name
                for name in names
                if (encoded := encode_name(name)) is not None
                for index, _ in self._entries.find_definitions(file, tables, encoded)
            }
            from linkcheck.elf.relocations import find_references

            found = find_references(file, self._entries.dynamic, frozenset(places))
        return None if found is None else unique(name for index, name in places.items() if index in found)

    def reaches_own_data(self, function: str) -> bool | None:
        """See model.SymbolTable.reaches_own_data. Nothing is kept: only what several files define is asked for."""
        from linkcheck.elf.deep import list_symtab_definitions
        from linkcheck.elf.direct_data import reaches_own_data

        exported = self.exported(function)
        with self._open() as file:
            found = exported or list_symtab_definitions(file, self._entries.dynamic.header, function)
            return reaches_own_data(file, self._entries.dynamic, found) if found else None

    def reaches_object(self, address: int, size: int) -> bool | None:
        """See model.SymbolTable.reaches_object. Nothing is kept: only what a program has a copy of is asked for."""
        from linkcheck.elf.direct_uses import reaches_object

        with self._open() as file:
            return reaches_object(file, self._entries.dynamic, address, size)

    def demands(self) -> tuple[Demand, ...] | None:
        """See model.SymbolTable.demands. Nothing is kept."""
        from linkcheck.elf.batch import list_demands

        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return ()
            count = self._entries.count(file, tables).visible
            strings = self._entries.open_strings(file, tables, MAX_RESIDENT_IMPORT_STRINGS)
            return list_demands(file, tables.layout, tables.symbols, count, strings, self._entries.versions)

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """See model.SymbolTable.offers. Answers are not kept."""
        if len(names) <= _FEW_NAMES:  # what nobody defines is asked of every file
            names = [name for name in names if not self._is_ruled_out(encode_name(name) or b"")]
            if not names:
                return {}
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return {}
            if tables.gnu is not None:
                if self._offers is None:
                    from linkcheck.elf.batch import Offers

                    self._offers = Offers(self._entries)
                found_at_once = self._offers.find(file, tables, tables.gnu, names)
                if found_at_once is not None:
                    return found_at_once
        return list_versions({name: self.exported(name) for name in names})

    def requested(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See model.SymbolTable.requested. Nothing is kept: only what nobody defines is asked for."""
        wanted = {encoded: name for name in names if (encoded := encode_name(name)) is not None}
        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return ()
            places = {index: wanted[name] for index, name in self._entries.walk_imports(file, tables) if name in wanted}
            from linkcheck.elf.relocations import find_references

            found = find_references(file, self._entries.dynamic, frozenset(places))
        return None if found is None else unique(name for index, name in places.items() if index in found)

    def __iter__(self) -> Iterator[Symbol]:
        return self._select(None)

    def _read_copies(self) -> dict[bytes, bytes]:
        from linkcheck.elf.relocations import find_copies

        with self._open() as file:
            tables = self._entries.locate(file)
            if tables is None:
                return {}
            strings = self._entries.open_strings(file, tables)
            named: dict[bytes, bytes] = {}
            rooms: dict[int, bytes] = {}
            for index in find_copies(file, self._entries.dynamic):
                entry = self._entries.read_entry(file, tables, index)
                name = strings.find(entry.name, "a symbol's name")
                named[name] = rooms[entry.value] = name
            if not rooms:
                return {}
            found = self._entries.find_objects_at(file, tables, rooms)
            return {name: rooms[address] for address, name in found} | named

    def _select(
        self, wanted: Callable[[Entry], bool] | None, *, first: int = 1, imports_only: bool = False
    ) -> Iterator[Symbol]:
        with self._open() as file:
            yield from self._entries.select(file, wanted, first=first, imports_only=imports_only)

    def _is_ruled_out(self, name: bytes) -> bool:
        """Whether the Bloom filter in memory, if any, says that `name` is not exported."""
        return (
            self._filter is not None
            and self._entries.tables is not None
            and self._entries.tables.gnu is not None
            and not self._entries.tables.gnu.may_hold_in(self._filter, gnu_hash(name))
        )

    def _keep_filter(self, file: BoundedFile, tables: Tables) -> None:
        self._questions += 1
        gnu = tables.gnu
        if self._filter is not None or gnu is None:
            return
        most = _SMALL_FILTER if self._questions < _KEEP_FILTER_AFTER else _LARGEST_KEPT_FILTER
        if gnu.filter_words * tables.layout.address_size <= most:
            self._filter = gnu.load_filter(file)
