"""Reads symbol versions: DT_VERNEED, DT_VERDEF, and the meaning of one DT_VERSYM half-word. It matches nothing.

Source: LSB "Symbol Versioning"; glibc elf/dl-version.c for what the loader follows: the chains, never the counts in
DT_VERNEEDNUM and DT_VERDEFNUM, and only records of revision 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from linkcheck.elf.dynamic import DT_VERDEF, DT_VERNEED, DT_VERSYM
from linkcheck.elf.limits import MAX_VERSION_RECORDS
from linkcheck.elf.strings import decode_name
from linkcheck.model import SymbolVersion, VersionNeed
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from struct import Struct

    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.strings import Strings
    from linkcheck.errors import MalformedElfError

#: DT_VERSYM 0 (VER_NDX_LOCAL) and 1 (VER_NDX_GLOBAL) name no version.
_FIRST_NAMED_INDEX = 2
_INDEX_MASK = 0x7FFF
_HIDDEN = 0x8000
_VER_FLG_BASE = 1
_VER_FLG_WEAK = 2
#: Bytes read ahead: the records of one chain follow each other.
_WINDOW = 1024


class Versions:
    """The versions of one file, and what each DT_VERSYM value means in it.

    A definition whose value was copied into an executable (R_*_COPY) has the version of its DT_VERNEED record, so its
    SymbolVersion has a `library`.
    """

    __slots__ = ("_by_index", "_by_value", "definitions", "needs", "table")

    def __init__(
        self,
        definitions: tuple[SymbolVersion, ...] = (),
        needs: tuple[VersionNeed, ...] = (),
        by_index: dict[int, SymbolVersion] | None = None,
        table: Span | None = None,
    ) -> None:
        """Keep what was read; `table` is DT_VERSYM, None when the loader would not look at it."""
        self.definitions = definitions
        self.needs = needs
        self.table = table
        self._by_index = by_index or {}
        self._by_value: dict[int, SymbolVersion | None] = {}

    def meaning(self, file: BoundedFile, value: int, symbol_index: int) -> SymbolVersion | None:
        """The version that the DT_VERSYM `value` of a symbol names, None for an unversioned one.

        Raises MalformedElfError when no record has the index.
        """
        if value in self._by_value:
            return self._by_value[value]
        index = value & _INDEX_MASK
        version = None
        if index >= _FIRST_NAMED_INDEX:
            if index not in self._by_index:
                raise file.malformed(
                    f"DT_VERSYM gives symbol {symbol_index} version index {index}, "
                    "which no DT_VERNEED or DT_VERDEF record has"
                )
            version = self._by_index[index]
            if value & _HIDDEN:
                version = replace(version, hidden=True)
        self._by_value[value] = version
        return version


class _Records:
    """The version records of one table: reads ahead, counts down what may still be read, checks the revision."""

    __slots__ = ("file", "left", "span", "start", "window")

    def __init__(self, file: BoundedFile, span: Span) -> None:
        self.file = file
        self.span = span
        self.left = MAX_VERSION_RECORDS
        self.start = 0
        self.window = b""

    def unpack(self, record: Struct, at: int) -> tuple[int, ...]:
        """The record at `at`, counted from the table's start."""
        self.left -= 1
        into = at - self.start
        if self.left < 0 or into < 0 or into + record.size > len(self.window):
            into = self._move(record, at)
        return record.unpack_from(self.window, into)

    def _move(self, record: Struct, at: int) -> int:
        """Read on from `at`, which is not in the window, and say where in the window it is then."""
        if self.left < 0:
            raise self.file.malformed(f"{self.span.what} has more than {MAX_VERSION_RECORDS} records")
        self.window = self.span.read(self.file, at, max(record.size, min(_WINDOW, self.span.size - at)))
        self.start = at
        return 0

    def chain(self, record: Struct, at: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The records from `at` on, each with its place; the last field is the distance to the next, 0 ends."""
        while True:
            fields = self.unpack(record, at)
            yield at, fields
            if fields[-1] == 0:
                return
            at += fields[-1]

    def bad_revision(self, revision: int) -> MalformedElfError:
        """The error for what glibc refuses, too ("unsupported version … of Verneed record")."""
        return self.file.malformed(f"{self.span.what} has a record of revision {revision}, and only 1 is defined")


def read_versions(file: BoundedFile, dynamic: DynamicSection, strings: Strings) -> Versions:
    """The versions of the file. Raises MalformedElfError when a record or a name does not fit it."""
    by_index: dict[int, SymbolVersion] = {}
    needs = tuple(_read_needs(file, dynamic, strings, by_index))
    definitions = tuple(_read_definitions(file, dynamic, strings, by_index))
    # Without records the loader sets no l_versyms (dl-version.c), so it never looks at DT_VERSYM.
    table = dynamic.table(file, DT_VERSYM, "DT_VERSYM") if needs or definitions else None
    return Versions(definitions, needs, by_index, table)


def _read_needs(
    file: BoundedFile, dynamic: DynamicSection, strings: Strings, by_index: dict[int, SymbolVersion]
) -> Iterator[VersionNeed]:
    span = dynamic.table(file, DT_VERNEED, "DT_VERNEED")
    if span is None:
        return
    records = _Records(file, span)
    need_record = dynamic.header.layout.compile("HHIII")  # Verneed: version, count, file, first Vernaux, next
    version_record = dynamic.header.layout.compile("IHHII")  # Vernaux: hash, flags, index, name, next
    for at, (revision, _, library_at, first, _) in records.chain(need_record, 0):
        if revision != 1:
            raise records.bad_revision(revision)
        library = decode_name(strings.find(library_at, "a file name in DT_VERNEED"))
        versions = []
        for _, (_, flags, index, name_at, _) in records.chain(version_record, at + first):
            name = strings.find(name_at, "a version name in DT_VERNEED")
            version = _make_version(name, library, flags & _VER_FLG_WEAK)
            versions.append(version)
            by_index[index & _INDEX_MASK] = version
        yield VersionNeed(library, tuple(versions))


def _read_definitions(
    file: BoundedFile, dynamic: DynamicSection, strings: Strings, by_index: dict[int, SymbolVersion]
) -> Iterator[SymbolVersion]:
    span = dynamic.table(file, DT_VERDEF, "DT_VERDEF")
    if span is None:
        return
    records = _Records(file, span)
    # Verdef: version, flags, index, count, hash, first Verdaux, next. Verdaux: name, next; the first one names the
    # version, the others its parents.
    definition_record = dynamic.header.layout.compile("HHHHIII")
    name_record = dynamic.header.layout.compile("II")
    for at, (revision, flags, index, _, _, first, _) in records.chain(definition_record, 0):
        if revision != 1:
            raise records.bad_revision(revision)
        name_at, _ = records.unpack(name_record, at + first)
        name = strings.find(name_at, "a version name in DT_VERDEF")
        version = _make_version(name, None, flags & (_VER_FLG_WEAK | _VER_FLG_BASE))
        by_index[index & _INDEX_MASK] = version
        yield version


@lru_cache(maxsize=1024)
def _make_version(name: bytes, library: str | None, flags: int) -> SymbolVersion:
    """Every file of a process needs the same few versions of libc."""
    return SymbolVersion(decode_name(name), False, library, bool(flags & _VER_FLG_WEAK), bool(flags & _VER_FLG_BASE))
