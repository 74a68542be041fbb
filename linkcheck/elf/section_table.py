"""The section header table as linkers read it: a fault in it is a fault of the file. Not what loaders look at.

For evidence about a file that loads, where such a fault says nothing, see sections.py.
Source: gABI "Sections", with its escapes for more than 0xff00 sections; what linkers refuse was asked of GNU ld 2.40
and gold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.header import Header

SHN_XINDEX = 0xFFFF
#: How much of a section table and its names is looked at. A linked file has some forty sections; a compiler puts its
#: LTO sections first.
MOST_SECTIONS = 1024
MOST_NAME_BYTES = 1 << 16

_WHAT = "the section header table (e_shoff)"


class TableEntry(Value):
    """One section header, as far as anybody asks."""

    name: int  # an offset into the section names
    type: int
    flags: int
    offset: int
    size: int


def read_table(file: BoundedFile, header: Header) -> tuple[TableEntry, ...]:
    """The first MOST_SECTIONS section headers; none when the file has no table.

    Raises MalformedElfError when the table does not fit the file, or the header contradicts itself about it.
    """
    record = header.layout.section_header
    offset, count, names = header.section_offset, header.section_count, header.section_names
    if offset == 0:
        if count or names:
            raise file.malformed(f"e_shoff is 0, but e_shnum is {count} and e_shstrndx {names}")
        return ()
    if header.section_entry_size != record.size:
        raise file.malformed(f"e_shentsize is {header.section_entry_size}, not {record.size}")
    first = record.unpack(file.read(offset, record.size, _WHAT))
    if count == 0:
        count = first[5]  # sh_size, when e_shnum cannot hold the number
        if count == 0:
            raise file.malformed("e_shnum is 0, and so is sh_size of section 0, which then holds the number")
    file.require(offset, count * record.size, _WHAT)
    if names == SHN_XINDEX:
        names = first[6]  # sh_link
    if names >= count:
        raise file.malformed(f"e_shstrndx names section {names} of {count}")
    raw = file.read(offset, min(count, MOST_SECTIONS) * record.size, _WHAT)
    return tuple(TableEntry(name=f[0], type=f[1], flags=f[2], offset=f[4], size=f[5]) for f in record.iter_unpack(raw))


def read_names(file: BoundedFile, header: Header, sections: tuple[TableEntry, ...]) -> tuple[bytes, ...]:
    """The names of `sections`, which `read_table` gave; a name beyond MOST_NAME_BYTES comes out empty.

    Raises MalformedElfError when the names do not lie in the file.
    """
    record = header.layout.section_header
    number = header.section_names
    if not sections or number == 0:
        return ()
    if number == SHN_XINDEX:
        number = record.unpack(file.read(header.section_offset, record.size, _WHAT))[6]
    # Its header is mostly the last one, and so beyond MOST_SECTIONS in an object of many functions.
    fields = record.unpack(file.read(header.section_offset + number * record.size, record.size, _WHAT))
    text = file.read(fields[4], min(fields[5], MOST_NAME_BYTES), "the table of section names")
    return tuple(text[s.name : s.name + 64].partition(b"\0")[0] for s in sections)
