"""Which dynamic symbols the relocations of one file refer to, and for which it only makes room for a copy.

A use that no relocation stands for was bound by the compiler or the linker (-fno-semantic-interposition, inlining,
-Bsymbolic-functions), and ld.so cannot lead it to another file's definition. An executable with a copy relocation uses
the object of another file and does not own it: ld.so copies the initial value out of the library when the program
starts, and from then on everybody uses the executable's room. The symbol table alone shows a definition.

Source: gABI "Relocation" and "Dynamic Section"; glibc elf/dynamic-link.h for the tables that ld.so goes through. For
copies the System V ABI processor supplements ("Relocation Types", R_*_COPY) and glibc elf/dl-reloc.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.dynamic import DT_JMPREL, DT_PLTREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELSZ, EM_MIPS
from linkcheck.elf.limits import BLOCK_SIZE, MAX_RELOCATION_BYTES

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.dynamic import DynamicSection

_DT_RELACOUNT = 0x6FFFFFF9
_DT_RELCOUNT = 0x6FFFFFFA
#: e_machine -> R_*_COPY.
_COPY_TYPES = {3: 5, 62: 5, 40: 20, 183: 1024, 20: 19, 21: 19, 22: 9, 2: 19, 43: 19, 243: 4, 258: 4}
#: Tables in Android's packed format (bionic's linker.h), which are not read.
_PACKED = frozenset({0x6000000F, 0x60000011})
#: Up to so many indices are searched for one after the other; a set of all that a block names is faster for more.
_SEARCHED_ONE_BY_ONE = 4


def find_references(file: BoundedFile, dynamic: DynamicSection, wanted: frozenset[int]) -> frozenset[int] | None:
    """Those of the symbol indices `wanted` that a relocation names; None when that cannot be told.

    It cannot for MIPS, whose GOT refers to symbols without relocations, and when a table has more than
    MAX_RELOCATION_BYTES behind the relative relocations and what was read does not name all that is wanted. DT_RELR
    names no symbol. Raises MalformedElfError when a table does not fit the file.
    """
    if dynamic.header.machine == EM_MIPS or _PACKED & dynamic.values.keys():
        return None
    found: set[int] = set()
    whole = True
    for span, start, size, words in _list_tables(file, dynamic):
        stop = min(size, start + MAX_RELOCATION_BYTES)
        whole = whole and stop == size
        for symbols in _read_symbols(file, dynamic, span, range(start, stop), words):
            if len(wanted) > _SEARCHED_ONE_BY_ONE:
                found |= wanted.intersection(symbols)
            else:
                found.update(index for index in wanted - found if index in symbols)
            if found == wanted:
                return wanted
    return frozenset(found) if whole else None


def _list_tables(file: BoundedFile, dynamic: DynamicSection) -> Iterator[tuple[Span, int, int, int]]:
    """Each relocation table, the byte at which its symbols start, its size in bytes, and the words of an entry."""
    values = dynamic.values
    plt_words = 2 if values.get(DT_PLTREL) == DT_REL else 3
    for tag, size_tag, relative_tag, words in (
        (DT_JMPREL, DT_PLTRELSZ, None, plt_words),
        (DT_RELA, DT_RELASZ, _DT_RELACOUNT, 3),
        (DT_REL, DT_RELSZ, _DT_RELCOUNT, 2),
    ):
        span = dynamic.table(file, tag, "the relocation table")
        if span is not None:
            entry_size = words * dynamic.header.layout.address_size
            size = min(values.get(size_tag, 0), span.size) // entry_size * entry_size
            relative = 0 if relative_tag is None else values.get(relative_tag, 0)
            yield span, min(relative * entry_size, size), size, words


def _read_symbols(
    file: BoundedFile, dynamic: DynamicSection, span: Span, where: range, words: int
) -> Iterator[array[int]]:
    """The symbol indices of the entries in the bytes `where` of the table, a block at a time."""
    layout = dynamic.header.layout
    entry_size = words * layout.address_size
    per_block = BLOCK_SIZE // entry_size * entry_size
    for at in range(where.start, where.stop, per_block):
        raw = span.read(file, at, min(per_block, where.stop - at))
        if layout.bits == 64:
            # r_info is the second word of an entry, and the symbol its high half.
            yield layout.words(raw)[3 if layout.byte_order == "little" else 2 :: 2 * words]
        else:
            infos = layout.words(raw)[1::words]
            for number, info in enumerate(infos):
                infos[number] = info >> 8
            yield infos


def find_copies(file: BoundedFile, dynamic: DynamicSection) -> Iterator[int]:
    """Indices of the symbols that copy relocations name; MalformedElfError when a table does not fit the file.

    The first MAX_RELOCATION_BYTES are read, after the relative relocations, which name no symbol.
    """
    wanted = _COPY_TYPES.get(dynamic.header.machine)
    if wanted is None:
        return
    kinds = ((DT_RELA, DT_RELASZ, _DT_RELACOUNT, 3), (DT_REL, DT_RELSZ, _DT_RELCOUNT, 2))
    for tag, size_tag, relative_tag, words in kinds:
        span = dynamic.table(file, tag, "the relocation table")
        if span is None:
            continue
        entry_size = words * dynamic.header.layout.address_size
        size = min(dynamic.values.get(size_tag, 0), span.size) // entry_size * entry_size
        start = min(dynamic.values.get(relative_tag, 0) * entry_size, size)
        yield from _find_in(file, dynamic, span, range(start, min(size, start + MAX_RELOCATION_BYTES)), words, wanted)


def _find_in(
    file: BoundedFile, dynamic: DynamicSection, span: Span, where: range, words: int, wanted: int
) -> Iterator[int]:
    layout = dynamic.header.layout
    entry_size = words * layout.address_size
    per_block = BLOCK_SIZE // entry_size * entry_size
    for at in range(where.start, where.stop, per_block):
        raw = span.read(file, at, min(per_block, where.stop - at) // entry_size * entry_size)
        if layout.bits == 64:
            # r_info is the second of three words: the type is its low half, the symbol its high half.
            halves = layout.words(raw)
            low, high = (2, 3) if layout.byte_order == "little" else (3, 2)
            symbols = halves[high :: 2 * words]
            yield from (symbols[position] for position in _positions(halves[low :: 2 * words], wanted))
        else:
            infos = layout.words(raw)[1::words]
            yield from (info >> 8 for info in infos if info & 0xFF == wanted)


def _positions(values: array[int], wanted: int) -> Iterator[int]:
    at = -1
    while True:
        try:
            at = values.index(wanted, at + 1)
        except ValueError:
            return
        yield at
