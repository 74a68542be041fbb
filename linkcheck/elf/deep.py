"""Looks into `.symtab` for definitions that the dynamic symbol table does not show: extra evidence, never a verdict.

The loader never sees these symbols, and a stripped file has none. Every unstripped program is asked, so this is on the
hot path: pyelftools, which could do it too, takes longer to import than a whole check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import Span
from linkcheck.elf.entry import make_symbol, unpack_entry
from linkcheck.elf.limits import (
    BLOCK_SIZE,
    MAX_DEEP_CANDIDATES,
    MAX_DEEP_MATCHES,
    MAX_DEEP_NAME,
    MAX_SYMTAB_SIZE,
    MAX_SYMTAB_STRINGS,
)
from linkcheck.elf.sections import SHT_SYMTAB, find_with_linked
from linkcheck.elf.strings import FAMILY_LENGTH, encode_name
from linkcheck.errors import MalformedElfError
from linkcheck.model import SymbolType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.header import Header
    from linkcheck.model import Symbol


def list_symtab_names(file: BoundedFile, header: Header, names: Collection[str]) -> tuple[str, ...]:
    """Those of `names` that `.symtab` defines, whatever their binding and visibility, sorted.

    () also when it cannot be seen: a stripped file, section headers that make no sense, more than the limits allow.
    Raises UnreadableFileError when the system refuses a read.
    """
    wanted = {encoded for name in names if (encoded := encode_name(name))}
    try:
        tables = _find_tables(file, header)
        return () if tables is None else _sorted_names(_find_definitions(file, header, *tables, wanted))
    except MalformedElfError:
        return ()


def list_symtab_definitions(file: BoundedFile, header: Header, name: str) -> tuple[Symbol, ...]:
    """The definitions of `name` in `.symtab`, in table order; () where list_symtab_names gives that."""
    encoded = encode_name(name)
    try:
        tables = _find_tables(file, header)
        wanted = () if encoded is None else (encoded,)
        return () if tables is None else tuple(_find_definitions(file, header, *tables, wanted))
    except MalformedElfError:
        return ()


def list_symtab_names_with(file: BoundedFile, header: Header, parts: Collection[str]) -> tuple[str, ...]:
    """The names that `.symtab` defines and that hold every one of `parts`, sorted; () for no parts, and as above.

    The longest part is looked for in the table of names, so that a table without it costs one search. Names longer
    than MAX_DEEP_NAME are passed over.
    """
    pieces = sorted((part.encode("utf-8", "surrogateescape") for part in parts if part), key=len, reverse=True)
    try:
        tables = _find_tables(file, header)
        if tables is None or not pieces:
            return ()
        found: set[bytes] = set()
        for name in _find_names_around(file, tables[1], pieces[0]):
            if all(piece in name for piece in pieces):
                found.add(name)
                if len(found) > MAX_DEEP_CANDIDATES:
                    return ()
        return _sorted_names(_find_definitions(file, header, *tables, found))
    except MalformedElfError:
        return ()


def _sorted_names(symbols: Iterator[Symbol]) -> tuple[str, ...]:
    return tuple(sorted({symbol.name for symbol in symbols}))


class SymtabNames:
    """What `.symtab` of one file defines, asked for one set of names after the other."""

    __slots__ = ("_asked", "_families", "_header", "_open")

    def __init__(self, open_file: Callable[[], BoundedFile], header: Header) -> None:
        """Remember how to open the file."""
        self._open = open_file
        self._header = header
        self._asked = False
        #: Family of names -> whether the names of `.symtab` hold it.
        self._families: dict[bytes, bool] = {}

    def find(self, names: frozenset[str]) -> tuple[str, ...]:
        """As list_symtab_names.

        From the second set of names on, a family that it lacks is looked for once. Not before: what the names of one
        set have in common is longer than a family, and looked for in half the time.
        """
        families = {name.encode("utf-8", "surrogateescape")[:FAMILY_LENGTH] for name in names if encode_name(name)}
        if len(families) != 1 or not self._asked:
            with self._open() as file:
                found = list_symtab_names(file, self._header, names)
            self._asked = True
            return found
        (family,) = families
        if self._families.get(family) is False:
            return ()
        with self._open() as file:
            if family not in self._families:
                self._families[family] = _may_name(file, self._header, family)
            return list_symtab_names(file, self._header, names) if self._families[family] else ()


def _find_names_around(file: BoundedFile, names: Span, piece: bytes) -> Iterator[bytes]:
    """The names of the table that hold `piece`."""
    for start in range(0, names.size, BLOCK_SIZE):
        first = max(start - MAX_DEEP_NAME, 0)
        raw = names.read(file, first, min(start + BLOCK_SIZE + MAX_DEEP_NAME, names.size) - first)
        at = raw.find(piece, start - first)
        while 0 <= at < start - first + BLOCK_SIZE:
            before, end = raw.rfind(b"\0", 0, at), raw.find(b"\0", at)
            if end < 0:
                break
            if before >= 0 and end - before <= MAX_DEEP_NAME:
                yield raw[before + 1 : end]
            at = raw.find(piece, end)


def _may_name(file: BoundedFile, header: Header, start: bytes) -> bool:
    """Whether the names of `.symtab` hold `start` anywhere; false also when they cannot be seen."""
    try:
        tables = _find_tables(file, header)
        return tables is not None and tables[1].contains(file, start)
    except MalformedElfError:
        return False


def _find_tables(file: BoundedFile, header: Header) -> tuple[Span, Span] | None:
    """Where `.symtab` and its names are; None when there is none, or none within the limits."""
    found = find_with_linked(file, header, SHT_SYMTAB)
    if found is None:
        return None
    table, names = found
    fits = table.size <= MAX_SYMTAB_SIZE and names.size <= MAX_SYMTAB_STRINGS
    if not fits or table.entry_size != header.layout.symbol.size:
        return None
    return Span(table.offset, table.size, ".symtab"), Span(names.offset, names.size, "the names of .symtab")


def _find_definitions(
    file: BoundedFile, header: Header, entries: Span, names: Span, wanted: Collection[bytes]
) -> Iterator[Symbol]:
    places = _find_places(file, names, wanted)
    layout = header.layout
    size = layout.symbol.size
    per_block = BLOCK_SIZE // size
    matches = 0
    for first in range(0, entries.size // size, per_block) if places else ():
        length = min(per_block, entries.size // size - first)
        raw = entries.read(file, first * size, length * size)
        # Only the column of st_name is looked at: decoding every entry of a big table takes a minute.
        column = layout.words(raw)[:: size // 4]
        if places.keys().isdisjoint(column):
            continue
        for position, place in enumerate(column):
            if place in places:
                symbol = make_symbol(unpack_entry(layout, raw, position * size), places[place])
                if symbol.defined and symbol.type not in (SymbolType.FILE, SymbolType.SECTION):
                    matches += 1
                    if matches > MAX_DEEP_MATCHES:
                        raise file.malformed(f".symtab has more than {MAX_DEEP_MATCHES} definitions of these names")
                    yield symbol


def _find_places(file: BoundedFile, names: Span, wanted: Collection[bytes]) -> dict[int, bytes]:
    """Every offset in `names` at which one of `wanted` stands, the ends of longer names included."""
    places: dict[int, bytes] = {}
    overlap = max(map(len, wanted), default=0) + 1
    # C++ names of one library begin alike, so one look for that tells most files that none of the names is there.
    start_of_all = _common_start(wanted)
    for start in range(0, names.size, BLOCK_SIZE):
        raw = names.read(file, start, min(BLOCK_SIZE + overlap, names.size - start))
        for name in wanted if start_of_all in raw else ():
            at = raw.find(name + b"\0")
            while at >= 0:
                places[start + at] = name
                if len(places) > MAX_DEEP_MATCHES:
                    raise file.malformed(f".symtab has more than {MAX_DEEP_MATCHES} names that end in these")
                at = raw.find(name + b"\0", at + 1)
    return places


def _common_start(names: Collection[bytes]) -> bytes:
    """What all of `names` begin with."""
    first, last = min(names, default=b""), max(names, default=b"")
    return first[: next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)]
