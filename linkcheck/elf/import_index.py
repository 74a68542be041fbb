"""Finds the imports of one file by name, which no hash table of the file does. Which are imports is entry.py's word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.entry import find_imports
from linkcheck.elf.limits import MAX_INDEXED_IMPORT_BYTES, MAX_INDEXED_IMPORTS, MAX_NAME_PLACES
from linkcheck.elf.strings import FAMILY_LENGTH

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.symbol_entries import SymbolEntries, Tables

#: Families of names that are searched for before the imports are indexed instead.
_MOST_SEARCHES = 4


class ImportIndex:
    """What is known of the imports of one table: families of names that it has, and after a few questions an index."""

    __slots__ = ("_entries", "_families", "_index", "_too_many")

    def __init__(self, entries: SymbolEntries) -> None:
        """Know nothing yet."""
        self._entries = entries
        #: Family of names -> whether the string table has it.
        self._families: dict[bytes, bool] = {}
        #: Name -> index of its first undefined entry; None before the first question, and when there are too many.
        self._index: dict[bytes, int] | None = None
        self._too_many = False

    def rules_out(self, name: bytes) -> bool:
        """Whether it is known without the file that there is no import called `name`."""
        if self._families.get(name[:FAMILY_LENGTH]) is False:
            return True
        return self._index is not None and name not in self._index

    def _may_mention(self, file: BoundedFile, tables: Tables, name: bytes) -> bool:
        """Whether the string table holds the family of `name` at all: most files have nothing to do with a state, and
        one search for bytes tells that ten times as fast as an index of all imports.
        """
        family = name[:FAMILY_LENGTH]
        known = self._families.get(family)
        if known is None and self._index is None and len(self._families) < _MOST_SEARCHES:
            known = self._families[family] = tables.strings.contains(file, family)
        return known is not False

    def find(self, file: BoundedFile, tables: Tables, name: bytes) -> int | None:
        """Index of the first import called `name`, or None."""
        if not self._may_mention(file, tables, name):
            return None
        if self._index is None and not self._too_many:
            self._index = self._make_index(file, tables)
            self._too_many = self._index is None
        if self._index is not None:
            return self._index.get(name)
        return self._search(file, tables, name)

    def _make_index(self, file: BoundedFile, tables: Tables) -> dict[bytes, int] | None:
        """First index by name, so that one pass answers all questions; None when that would take much memory."""
        index: dict[bytes, int] = {}
        left = MAX_INDEXED_IMPORT_BYTES
        for number, name in self._entries.walk_imports(file, tables):
            index.setdefault(name, number)
            left -= len(name)
            if left < 0 or len(index) > MAX_INDEXED_IMPORTS:
                return None
        return index

    def _search(self, file: BoundedFile, tables: Tables, name: bytes) -> int | None:
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
        count = self._entries.count(file, tables).visible
        for start, raw in self._entries.read_blocks(file, tables, 1, count):
            names = tables.layout.words(raw)[:: tables.layout.symbol.size // 4]  # st_name comes first
            if places.isdisjoint(names):
                continue
            for position in find_imports(tables.layout, raw):
                if names[position] in places:
                    return start + position
        return None
