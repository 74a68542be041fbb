"""Reads section headers as extra evidence: the loader ignores them, so nothing here is ever a fault of the file.

Source: gABI "Sections". Names are not read: what matters is told by sh_type, sh_flags and sh_addr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.header import PT_DYNAMIC
from linkcheck.elf.limits import MAX_SECTION_HEADERS
from linkcheck.errors import MalformedElfError
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.header import Header

SHT_PROGBITS = 1
SHT_SYMTAB = 2
SHT_NOBITS = 8
SHT_DYNSYM = 11
SHF_ALLOC = 2
SHF_EXECINSTR = 4
SHF_TLS = 0x400


class Section(Value):
    """One section header; sizes in bytes."""

    type: int
    flags: int
    address: int
    offset: int
    size: int
    #: Index of another section: for SHT_SYMTAB, of the one with its names.
    link: int
    entry_size: int


def read_sections(file: BoundedFile, header: Header) -> tuple[Section, ...]:
    """The section headers; empty when the file has none, or none that fit it."""
    return tuple(map(_make_section, _read_records(file, header)))


def find_with_linked(file: BoundedFile, header: Header, type_: int) -> tuple[Section, Section] | None:
    """The first section of `type_` and the one that its sh_link names; None when there is no such pair."""
    records = _read_records(file, header)
    for record in records:
        if record[1] == type_:
            section = _make_section(record)
            return (section, _make_section(records[section.link])) if section.link < len(records) else None
    return None


def _make_section(record: tuple[int, ...]) -> Section:
    _, type_, flags, address, offset, size, link, _, _, entry_size = record
    return Section(type_, flags, address, offset, size, link, entry_size)


def _read_records(file: BoundedFile, header: Header) -> Sequence[tuple[int, ...]]:
    """The fields of every section header, in the order of the file."""
    record = header.layout.section_header
    offset, count = header.section_offset, header.section_count
    if offset == 0 or header.section_entry_size != record.size:
        return ()
    try:
        if count == 0:  # more than 0xff00 sections: the real count is sh_size of header 0
            count = record.unpack(file.read(offset, record.size, "section header 0"))[5]
        if count > MAX_SECTION_HEADERS:
            return ()
        raw = file.read(offset, count * record.size, "section headers")
    except MalformedElfError:
        return ()
    return tuple(record.iter_unpack(raw))


def is_debug_companion(file: BoundedFile, header: Header) -> bool:
    """Whether the file holds only debugging information for another one (objcopy --only-keep-debug, eu-strip -f).

    Such a file keeps the program headers of the original while the contents are gone, so what PT_DYNAMIC points at
    is not there or is something else. Its section headers tell: .dynamic, or all code, has become SHT_NOBITS.
    """
    # .tbss has no contents either, and its address is that of whatever follows the thread-local data.
    loaded = [
        section
        for section in read_sections(file, header)
        if section.flags & SHF_ALLOC and not section.flags & SHF_TLS and section.size
    ]
    dynamic = header.last(PT_DYNAMIC)
    if dynamic is not None:
        return any(s.type == SHT_NOBITS and s.address == dynamic.address for s in loaded)
    code_types = {section.type for section in loaded if section.flags & SHF_EXECINSTR}
    # A healthy file may have some code without contents (the .plt of old 32-bit PowerPC), but not all of it.
    return code_types == {SHT_NOBITS}
