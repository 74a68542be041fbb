"""Which dynamic symbols a file defines only as room for a copy of another file's object (copy relocations).

Such an executable uses the object and does not own it: ld.so copies the initial value out of the library when the
program starts, and from then on everybody uses the executable's room. The symbol table alone shows a definition.
Source: System V ABI processor supplements ("Relocation Types", R_*_COPY) and glibc elf/dl-reloc.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.dynamic import DT_REL, DT_RELA, DT_RELASZ, DT_RELSZ
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
