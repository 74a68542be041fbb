"""Reads the ELF header and the program headers, and maps addresses to the file. It follows none of them.

Source: gABI "ELF Header" and "Program Header"; PN_XNUM from <elf.h>. What glibc refuses here (elf/dl-load.c,
open_verify: class, byte order, versions, e_phentsize) is malformed. The section headers' place is only noted: ld.so
does not look at it (link_view.py does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import Span
from linkcheck.elf.layout import find_layout
from linkcheck.elf.limits import MAX_SEGMENTS
from linkcheck.errors import NotAnImageError
from linkcheck.model import Target
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.layout import ByteOrder, Layout

_MAGIC = b"\x7fELF"
_IDENT_SIZE = 16
_CLASSES = {1: 32, 2: 64}
_BYTE_ORDERS: dict[int, ByteOrder] = {1: "little", 2: "big"}

ET_REL = 1
ET_EXEC = 2
ET_DYN = 3
ET_CORE = 4
#: What a linker has finished. Only of these the program headers are read: a core dump may have a million.
LINKED_TYPES = frozenset({ET_EXEC, ET_DYN})

PT_LOAD = 1
PT_DYNAMIC = 2
PT_INTERP = 3
PT_NOTE = 4
PT_TLS = 7
PT_GNU_STACK = 0x6474E551
PT_GNU_RELRO = 0x6474E552
PF_X = 1
PF_W = 2
#: PT_GNU_EH_FRAME and PT_GNU_PROPERTY are kept only because they say where something begins (count.py).
_FOLLOWED_TYPES = frozenset(
    {PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_TLS, PT_GNU_STACK, PT_GNU_RELRO, 0x6474E550, 0x6474E553}
)
#: e_phnum of a file whose real count stands in a section header, where neither ld.so nor Linux looks.
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
    """The ELF header's facts, the program headers to follow, in file order, and the section headers' place.

    What is said of section headers is as the file has it (e_shoff, e_shnum, e_shentsize, e_shstrndx), unchecked.
    """

    layout: Layout
    machine: int
    #: EI_OSABI and EI_ABIVERSION.
    os_abi: int
    abi_version: int
    type: int
    segments: tuple[Segment, ...]
    section_offset: int
    section_count: int
    section_entry_size: int
    section_names: int

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

    Raises NotAnImageError when it is not ELF, and MalformedElfError when the headers do not fit the file.
    """
    head = file.load_head()
    if head[:4] != _MAGIC:
        raise NotAnImageError(file.path, "an empty file" if not head else f"it starts with {head[:4].hex(' ')}")
    layout = _judge_ident(file, head)
    size = _IDENT_SIZE + layout.header.size
    if len(head) < size:
        raise file.malformed(f"truncated: it has {len(head)} bytes, and the ELF header takes {size}")
    fields = layout.header.unpack_from(head, _IDENT_SIZE)
    type_, machine, version, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, names = fields
    if version != 1:
        raise file.malformed(f"e_version is {version}, and only 1 is defined")
    segments = _read_segments(file, layout, phoff, phnum, phentsize) if type_ in LINKED_TYPES else ()
    return Header(layout, machine, head[7], head[8], type_, segments, shoff, shnum, shentsize, names)


def _judge_ident(file: BoundedFile, head: bytes) -> Layout:
    if len(head) < _IDENT_SIZE:
        raise file.malformed(f"truncated: it has {len(head)} bytes, and the ELF identification takes {_IDENT_SIZE}")
    bits = _CLASSES.get(head[4])
    order = _BYTE_ORDERS.get(head[5])
    if bits is None:
        raise file.malformed(f"EI_CLASS is {head[4]}, which is neither 1 (32-bit) nor 2 (64-bit)")
    if order is None:
        raise file.malformed(f"EI_DATA is {head[5]}, which is neither 1 (little-endian) nor 2 (big-endian)")
    if head[6] != 1:
        raise file.malformed(f"EI_VERSION is {head[6]}, and only 1 is defined")
    return find_layout(bits, order)


def _read_segments(file: BoundedFile, layout: Layout, phoff: int, phnum: int, phentsize: int) -> tuple[Segment, ...]:
    record = layout.program_header
    if phnum == 0:
        raise file.malformed("it has no program headers, so nothing of it can be loaded")
    if phnum == _PN_XNUM:
        raise file.malformed("e_phnum is PN_XNUM (more than 65534 program headers), which ld.so does not read")
    if phentsize != record.size:
        raise file.malformed(f"e_phentsize is {phentsize}, not {record.size}")
    raw = file.read(phoff, phnum * record.size, f"the program header table (e_phoff, {phnum} program headers)")
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
