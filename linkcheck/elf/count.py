"""Finds how many dynamic symbols a file has, which no header of the loader's view says outright. It reads no name.

In order: the chain words of DT_HASH; the last chain of DT_GNU_HASH; DT_MIPS_SYMTABNO; the section header of the
table; the next thing that begins after the table. The last two are checked against the largest symbol index that a
relocation names, and the last one against what a symbol can look like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.dynamic import (
    DT_FINI,
    DT_FINI_ARRAY,
    DT_GNU_HASH,
    DT_HASH,
    DT_INIT,
    DT_INIT_ARRAY,
    DT_JMPREL,
    DT_MIPS_SYMTABNO,
    DT_PLTGOT,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_PREINIT_ARRAY,
    DT_REL,
    DT_RELA,
    DT_RELASZ,
    DT_RELR,
    DT_RELSZ,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERNEED,
    DT_VERSYM,
    EM_MIPS,
)
from linkcheck.elf.limits import BLOCK_SIZE, MAX_RELOCATION_BYTES, MAX_SYMBOLS
from linkcheck.elf.sections import SHT_DYNSYM, read_sections
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.hashes import GnuHash, SysvHash
    from linkcheck.elf.layout import Layout

#: Tags whose value is an address, so that the symbol table ends before the next of them.
_ADDRESS_TAGS = (
    DT_FINI,
    DT_FINI_ARRAY,
    DT_GNU_HASH,
    DT_HASH,
    DT_INIT,
    DT_INIT_ARRAY,
    DT_JMPREL,
    DT_PLTGOT,
    DT_PREINIT_ARRAY,
    DT_REL,
    DT_RELA,
    DT_RELR,
    DT_STRTAB,
    DT_VERDEF,
    DT_VERNEED,
    DT_VERSYM,
)
#: st_info nibbles that some system has a meaning for (<elf.h>): generic, GNU, and the processor's own from 13 on.
_KNOWN_TYPES = frozenset((0, 1, 2, 3, 4, 5, 6, 10, 13, 14, 15))
_KNOWN_BINDINGS = frozenset((0, 1, 2, 10, 13, 14, 15))
_SHN_LORESERVE = 0xFF00


class SymbolCount(Value):
    """How many entries of the table can be seen, the null entry included, and why not all of them, or None."""

    visible: int
    unseen: str | None = None


def count_symbols(
    file: BoundedFile, dynamic: DynamicSection, table: Span, sysv: SysvHash | None, gnu: GnuHash | None
) -> SymbolCount:
    """The number of entries of the dynamic symbol `table`.

    Raises MalformedElfError when the file says more than the table's segment holds, or more than MAX_SYMBOLS.
    """
    known = sysv.symbol_count if sysv is not None else None
    if known is None and gnu is not None:
        known = gnu.count_symbols(file)
    if known is None and dynamic.header.machine == EM_MIPS:
        known = dynamic.values.get(DT_MIPS_SYMTABNO)
    if known is not None:
        return SymbolCount(_judge(file, dynamic.header.layout, table, known))
    least = _find_largest_index(file, dynamic) + 1
    if gnu is not None:
        # ld writes 1 for the first hashed symbol of an empty table, lld the real number of entries.
        least = max(least, min(gnu.first, table.size // dynamic.header.layout.symbol.size))
    known = _read_section_count(file, dynamic)
    if known is not None and known >= least:
        return SymbolCount(_judge(file, dynamic.header.layout, table, known))
    return _count_up_to_next(file, dynamic, table, least)


def _judge(file: BoundedFile, layout: Layout, table: Span, count: int) -> int:
    if count > MAX_SYMBOLS:
        raise file.malformed(f"{count} dynamic symbols; more than {MAX_SYMBOLS} are not read")
    if count * layout.symbol.size > table.size:
        raise file.malformed(
            f"{count} dynamic symbols take {count * layout.symbol.size:#x} bytes, "
            f"but {table.size:#x} are left in the segment of DT_SYMTAB"
        )
    return count


def _read_section_count(file: BoundedFile, dynamic: DynamicSection) -> int | None:
    size = dynamic.header.layout.symbol.size
    for section in read_sections(file, dynamic.header):
        if section.type == SHT_DYNSYM and section.address == dynamic.values[DT_SYMTAB]:
            return section.size // size if section.entry_size == size else None
    return None


def _count_up_to_next(file: BoundedFile, dynamic: DynamicSection, table: Span, least: int) -> SymbolCount:
    layout = dynamic.header.layout
    start = dynamic.values[DT_SYMTAB]
    begins = [dynamic.values[tag] for tag in _ADDRESS_TAGS if tag in dynamic.values]
    begins += [segment.address for segment in dynamic.header.segments]
    size = min([address - start for address in begins if address > start] + [table.size])
    most = min(size // layout.symbol.size, MAX_SYMBOLS)
    seen = _count_plausible(file, dynamic, table, most)
    if seen == most >= least:
        return SymbolCount(seen)
    return SymbolCount(
        seen,
        "no hash table and no section header says how many dynamic symbols there are: "
        f"{seen} look like symbols, a relocation or DT_GNU_HASH speaks of {least}, and there is room for {most}",
    )


def _count_plausible(file: BoundedFile, dynamic: DynamicSection, table: Span, most: int) -> int:
    """How many entries from the first on can be symbols, up to `most`."""
    layout = dynamic.header.layout
    size = layout.symbol.size
    names_end = dynamic.string_table(file).size
    per_block = BLOCK_SIZE // size
    for first in range(0, most, per_block):
        raw = table.read(file, first * size, min(per_block, most - first) * size)
        for number, fields in enumerate(layout.symbol.iter_unpack(raw), first):
            name, info, section = (
                (fields[0], fields[1], fields[3]) if layout.bits == 64 else (fields[0], fields[3], fields[5])
            )
            null = number > 0 or not any(fields)
            if not (
                null
                and name < names_end
                and info & 0xF in _KNOWN_TYPES
                and info >> 4 in _KNOWN_BINDINGS
                and (section < _SHN_LORESERVE or section >= 0xFFF1)
            ):
                return number
    return most


def _find_largest_index(file: BoundedFile, dynamic: DynamicSection) -> int:
    """The largest symbol index that a relocation names, as far as MAX_RELOCATION_BYTES go; 0 without any."""
    values = dynamic.values
    kinds = [(DT_RELA, DT_RELASZ, True), (DT_REL, DT_RELSZ, False)]
    kinds.append((DT_JMPREL, DT_PLTRELSZ, values.get(DT_PLTREL) == DT_RELA))
    largest = 0
    left = MAX_RELOCATION_BYTES
    for tag, size_tag, with_addend in kinds:
        span = dynamic.table(file, tag, "the relocation table")
        if span is None:
            continue
        size = min(values.get(size_tag, 0), span.size, left)
        left -= size
        largest = max(largest, _find_largest_in(file, dynamic, span, size, with_addend))
    return largest


def _find_largest_in(file: BoundedFile, dynamic: DynamicSection, span: Span, size: int, with_addend: bool) -> int:
    layout = dynamic.header.layout
    entry_words = 3 if with_addend else 2
    entry_size = entry_words * layout.address_size
    largest = 0
    per_block = BLOCK_SIZE // entry_size * entry_size
    end = size // entry_size * entry_size
    for at in range(0, end, per_block):
        words = layout.words(span.read(file, at, min(per_block, end - at)))
        if layout.bits == 32:
            largest = max(largest, max(words[1::entry_words]) >> 8)  # ELF32_R_SYM
        else:
            # ELF64_R_SYM is the high half of r_info; 64-bit MIPS always has it in the first four bytes.
            high_first = layout.byte_order == "big" or dynamic.header.machine == EM_MIPS
            largest = max(largest, max(words[2 if high_first else 3 :: 2 * entry_words]))
    return largest
