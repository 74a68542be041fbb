"""Reads PT_DYNAMIC into tags and values, up to DT_NULL. It follows the values only as far as finding their tables.

Source: gABI "Dynamic Section"; GNU and MIPS tags from <elf.h>. Where a tag occurs twice the last one counts, as in
glibc's elf_get_dynamic_info; DT_NEEDED, DT_FILTER and DT_AUXILIARY are lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import Span
from linkcheck.elf.header import PT_DYNAMIC
from linkcheck.elf.limits import MAX_DYNAMIC_ENTRIES, MAX_NEEDED, MAX_STRING_TABLE
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.header import Header

DT_NULL = 0
DT_NEEDED = 1
DT_PLTRELSZ = 2
DT_PLTGOT = 3
DT_HASH = 4
DT_STRTAB = 5
DT_SYMTAB = 6
DT_RELA = 7
DT_RELASZ = 8
DT_STRSZ = 10
DT_SYMENT = 11
DT_INIT = 12
DT_FINI = 13
DT_SONAME = 14
DT_RPATH = 15
DT_SYMBOLIC = 16
DT_REL = 17
DT_RELSZ = 18
DT_PLTREL = 20
DT_TEXTREL = 22
DT_JMPREL = 23
DT_INIT_ARRAY = 25
DT_FINI_ARRAY = 26
DT_RUNPATH = 29
DT_FLAGS = 30
DT_PREINIT_ARRAY = 32
DT_RELR = 36
DT_GNU_HASH = 0x6FFFFEF5
DT_VERSYM = 0x6FFFFFF0
DT_FLAGS_1 = 0x6FFFFFFB
DT_VERDEF = 0x6FFFFFFC
DT_VERNEED = 0x6FFFFFFE
DT_MIPS_SYMTABNO = 0x70000011
DT_MIPS_XHASH = 0x70000036
DT_AUXILIARY = 0x7FFFFFFD
DT_FILTER = 0x7FFFFFFF

EM_MIPS = 8


class DynamicSection(Value):
    """The dynamic entries of one file and the segments that their addresses lie in."""

    header: Header
    values: dict[int, int]
    #: String table offsets of DT_NEEDED, in order.
    needed: tuple[int, ...]
    #: The same of DT_FILTER and DT_AUXILIARY.
    filters: tuple[int, ...]

    def table(self, file: BoundedFile, tag: int, what: str) -> Span | None:
        """From the address that `tag` holds to the end of its segment's file-backed part; None without the tag.

        Raises MalformedElfError when no file-backed part of a PT_LOAD holds the address.
        """
        address = self.values.get(tag)
        if address is None:
            return None
        span = self.header.locate(address, what)
        if span is None:
            raise file.malformed(f"{what} is at address {address:#x}, which no PT_LOAD backs with file bytes")
        return span

    def string_table(self, file: BoundedFile) -> Span:
        """The string table, DT_STRSZ bytes long; MalformedElfError when it is missing or does not fit its segment."""
        what = "the dynamic string table (DT_STRTAB)"
        span = self.table(file, DT_STRTAB, what)
        if span is None:
            raise file.malformed("PT_DYNAMIC names strings, but there is no DT_STRTAB")
        size = self.values.get(DT_STRSZ, span.size)
        if size > span.size:
            raise file.malformed(f"DT_STRSZ is {size:#x}, but {span.size:#x} bytes are left in its segment")
        if size > MAX_STRING_TABLE:
            raise file.malformed(f"{what} has {size} bytes; more than {MAX_STRING_TABLE} are not read")
        return Span(span.offset, size, what)


def read_dynamic(file: BoundedFile, header: Header) -> DynamicSection | None:
    """The dynamic section; None when there is no PT_DYNAMIC.

    Raises MalformedElfError when it is not where its segment says, when DT_NULL does not end it, and when it has more
    than MAX_NEEDED DT_NEEDED entries.
    """
    segment = header.last(PT_DYNAMIC)
    if segment is None:
        return None
    span = header.locate(segment.address, "PT_DYNAMIC")
    if span is None or segment.file_size == 0:
        raise file.malformed(f"PT_DYNAMIC is at address {segment.address:#x}, which no PT_LOAD backs with file bytes")
    record = header.layout.dynamic_entry
    # ld.so reads up to DT_NULL whatever p_filesz says; a table that leaves its segment is one it would crash on.
    available = min(span.size, segment.file_size) // record.size
    entries: dict[int, int] = {}
    needed: list[int] = []
    filters: list[int] = []
    read = 0
    while read < available:
        if read >= MAX_DYNAMIC_ENTRIES:
            raise file.malformed(f"PT_DYNAMIC has no DT_NULL among its first {MAX_DYNAMIC_ENTRIES} entries")
        count = min(available - read, 64 if read == 0 else 4096)
        for tag, value in record.iter_unpack(span.read(file, read * record.size, count * record.size)):
            if tag == DT_NULL:
                return DynamicSection(header, entries, tuple(needed), tuple(filters))
            if tag == DT_NEEDED:
                needed.append(value)
                if len(needed) > MAX_NEEDED:
                    raise file.malformed(f"more than {MAX_NEEDED} DT_NEEDED entries, which are not read")
            elif tag in (DT_FILTER, DT_AUXILIARY):
                filters.append(value)
            entries[tag] = value
        read += count
    raise file.malformed(f"no DT_NULL ends PT_DYNAMIC ({available} entries in {segment.file_size:#x} bytes)")
