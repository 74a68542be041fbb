"""Reads the ELF header and the program headers, and maps addresses to the file. It follows none of them.

Source: gABI "ELF Header" and "Program Header"; PN_XNUM from <elf.h>. What glibc refuses here (elf/dl-load.c,
open_verify: class, byte order, versions, e_phentsize) is malformed; a file of another purpose is no image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import Span
from linkcheck.elf.layout import find_layout
from linkcheck.elf.limits import MAX_PROGRAM_HEADERS, MAX_SEGMENTS
from linkcheck.errors import NotAnImageError
from linkcheck.model import FileKind, Target
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.layout import ByteOrder, Layout

_MAGIC = b"\x7fELF"
_IDENT_SIZE = 16
_CLASSES = {1: 32, 2: 64}
_BYTE_ORDERS: dict[int, ByteOrder] = {1: "little", 2: "big"}

ET_EXEC = 2
ET_DYN = 3
_OTHER_KINDS = {1: FileKind.RELOCATABLE, 4: FileKind.CORE}

PT_LOAD = 1
PT_DYNAMIC = 2
PT_INTERP = 3
PT_NOTE = 4
PT_TLS = 7
PT_GNU_STACK = 0x6474E551
PF_X = 1
#: PT_GNU_EH_FRAME and PT_GNU_PROPERTY are kept only because they say where something begins (count.py).
_FOLLOWED_TYPES = frozenset({PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_TLS, PT_GNU_STACK, 0x6474E550, 0x6474E553})
#: e_phnum of a file whose real count stands in sh_info of section header 0.
_PN_XNUM = 0xFFFF


class Segment(Value):
    """One program header; offsets and sizes in bytes."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    alignment: int


class Header(Value):
    """The ELF header's facts, the program headers to follow, in file order, and the section headers' place."""

    layout: Layout
    machine: int
    #: EI_OSABI and EI_ABIVERSION.
    os_abi: int
    abi_version: int
    type: int
    segments: tuple[Segment, ...]
    section_offset: int
    section_count: int

    @property
    def target(self) -> Target:
        """What the file was built for."""
        return Target(self.machine, self.layout.bits, self.layout.byte_order)

    def last(self, type_: int) -> Segment | None:
        """The last program header of `type_`, which is the one that ld.so keeps (_dl_map_object_from_fd)."""
        return next((segment for segment in reversed(self.segments) if segment.type == type_), None)

    def locate(self, address: int, what: str) -> Span | None:
        """The file bytes from `address` to the end of its segment's file-backed part; None when there are none.

        The part of a segment between p_filesz and p_memsz is zeros made at load time, so no table can lie there.
        """
        for segment in self.segments:
            into = address - segment.address
            if segment.type == PT_LOAD and 0 <= into < segment.file_size:
                return Span(segment.offset + into, segment.file_size - into, what)
        return None


def read_header(file: BoundedFile) -> Header:
    """The header of `file`.

    Raises NotAnImageError when it is not ELF, or an ELF file that is neither ET_EXEC nor ET_DYN, and
    MalformedElfError when the headers do not fit the file.
    """
    head = file.load_head()
    if head[:4] != _MAGIC:
        raise NotAnImageError(file.path, "an empty file" if not head else f"it starts with {head[:4].hex(' ')}")
    layout = _judge_ident(file, head)
    size = _IDENT_SIZE + layout.header.size
    if len(head) < size:
        raise file.malformed(f"it ends after {len(head)} of the {size} bytes of the ELF header")
    fields = layout.header.unpack_from(head, _IDENT_SIZE)
    type_, machine, version, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, _ = fields
    if type_ not in (ET_EXEC, ET_DYN):
        kind = _OTHER_KINDS.get(type_, FileKind.OTHER_ELF)
        raise NotAnImageError(file.path, f"{kind.value} (e_type {type_})", kind)
    if version != 1:
        raise file.malformed(f"e_version is {version}, and only 1 is defined")
    if shoff == 0 or shentsize != layout.section_header.size:
        shoff = shnum = 0
    if phnum == _PN_XNUM:
        phnum = _read_extended_count(file, layout, shoff)
    segments = _read_segments(file, layout, phoff, phnum, phentsize) if phnum else ()
    return Header(layout, machine, head[7], head[8], type_, segments, shoff, shnum)


def _judge_ident(file: BoundedFile, head: bytes) -> Layout:
    if len(head) < _IDENT_SIZE:
        raise file.malformed(f"it ends after {len(head)} of the {_IDENT_SIZE} bytes of e_ident")
    bits = _CLASSES.get(head[4])
    order = _BYTE_ORDERS.get(head[5])
    if bits is None:
        raise file.malformed(f"EI_CLASS is {head[4]}, which is neither 1 (32-bit) nor 2 (64-bit)")
    if order is None:
        raise file.malformed(f"EI_DATA is {head[5]}, which is neither 1 (little-endian) nor 2 (big-endian)")
    if head[6] != 1:
        raise file.malformed(f"EI_VERSION is {head[6]}, and only 1 is defined")
    return find_layout(bits, order)


def _read_extended_count(file: BoundedFile, layout: Layout, shoff: int) -> int:
    if shoff == 0:
        raise file.malformed("e_phnum is PN_XNUM (0xffff), but there is no section header to hold the real count")
    raw = file.read(shoff, layout.section_header.size, "section header 0")
    count: int = layout.section_header.unpack(raw)[7]
    return count


def _read_segments(file: BoundedFile, layout: Layout, phoff: int, phnum: int, phentsize: int) -> tuple[Segment, ...]:
    record = layout.program_header
    if phentsize != record.size:
        raise file.malformed(f"e_phentsize is {phentsize}, but a program header has {record.size} bytes")
    if phnum > MAX_PROGRAM_HEADERS:
        raise file.malformed(f"{phnum} program headers; more than {MAX_PROGRAM_HEADERS} are not read")
    raw = file.read(phoff, phnum * record.size, f"the table of {phnum} program headers (e_phoff)")
    segments = []
    for fields in record.iter_unpack(raw):
        if layout.bits == 64:
            type_, flags, offset, address, _, file_size, memory_size, alignment = fields
        else:
            type_, offset, address, _, file_size, memory_size, flags, alignment = fields
        if type_ in _FOLLOWED_TYPES:
            segments.append(Segment(type_, flags, offset, address, file_size, memory_size, alignment))
    if len(segments) > MAX_SEGMENTS:
        raise file.malformed(f"{len(segments)} segments to follow; more than {MAX_SEGMENTS} are not read")
    return tuple(segments)
