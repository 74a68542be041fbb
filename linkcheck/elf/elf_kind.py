"""What kind of ELF file this is, from its header, its segments and its section table. Reads no symbol and no string
of the dynamic section: that is reader.py.

Sources: gABI "ELF Header", "Program Header", "Sections"; <elf.h>; glibc elf/dl-load.c for what ld.so refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.layout import find_layout
from linkcheck.elf.pie import judge_et_dyn
from linkcheck.model import DF_1_PIE, FileIdentity, FileKind, Target
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.elf.contents import Contents
    from linkcheck.elf.layout import Layout

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
SHT_PROGBITS, SHT_NOTE, SHT_NOBITS = 1, 7, 8
SHF_ALLOC = 0x2
DT_NULL, DT_SONAME, DT_FLAGS_1 = 0, 14, 0x6FFFFFFB
#: e_phnum of a file with more program headers than the field can count; glibc knows no such file.
PN_XNUM = 0xFFFF

#: How much of a section table and its names is read to tell debug-only and LTO files. A linked file has some forty
#: sections; a compiler puts its LTO sections first.
MOST_SECTIONS = 1024
MOST_NAME_BYTES = 1 << 16
#: Dynamic entries read to find two tags; linkers write a few dozen.
MOST_DYNAMIC_ENTRIES = 4096


class _Header(Value):
    """The ELF header's fields that say where the two tables are."""

    target: Target
    type: int
    program_offset: int
    program_entry_size: int
    program_count: int
    section_offset: int
    section_entry_size: int
    section_count: int
    section_names: int

    @property
    def layout(self) -> Layout:
        """How the file's records look."""
        return find_layout(self.target.bits, self.target.byte_order)


class _Segment(Value):
    type: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    alignment: int


class _Section(Value):
    name: int
    type: int
    flags: int
    offset: int
    size: int


class _NotFittingError(Exception):
    """What does not fit the file; caught in this module and turned into MALFORMED_ELF."""


def identify_elf(contents: Contents) -> FileIdentity:
    """Say what kind of ELF file `contents` is; MALFORMED_ELF with the broken bound when it does not fit itself.

    A file whose section table is cut off counts as malformed although ld.so would still load it: every linker
    refuses it.
    Raises OSError when the file cannot be read.
    """
    path = contents.path
    target: Target | None = None
    try:
        header = _read_header(contents)
        target = header.target
        kind, detail = _kind_and_detail(contents, header)
    except _NotFittingError as error:
        return FileIdentity(path, FileKind.MALFORMED_ELF, str(error), target=target)
    return FileIdentity(path, kind, detail, target=target)


def _read_header(contents: Contents) -> _Header:
    head = contents.head
    if len(head) < 16:
        raise _NotFittingError(f"truncated: it has {len(head)} bytes, and the ELF identification alone takes 16")
    if head[4] not in (1, 2):
        raise _NotFittingError(f"EI_CLASS is {head[4]}, neither 1 (32-bit) nor 2 (64-bit)")
    if head[5] not in (1, 2):
        raise _NotFittingError(f"EI_DATA is {head[5]}, neither 1 (little-endian) nor 2 (big-endian)")
    if head[6] != 1:
        raise _NotFittingError(f"EI_VERSION is {head[6]}, and the only ELF version is 1")
    bits = 64 if head[4] == 2 else 32
    byte_order = "little" if head[5] == 1 else "big"
    layout = find_layout(bits, byte_order).header
    if len(head) < 16 + layout.size:
        raise _NotFittingError(f"truncated: it has {len(head)} bytes, and the ELF header takes {16 + layout.size}")
    fields = layout.unpack_from(head, 16)
    target = Target(machine=fields[1], bits=bits, byte_order=byte_order)
    if fields[2] != 1:
        raise _NotFittingError(f"e_version is {fields[2]}, and the only ELF version is 1")
    return _Header(
        target=target,
        type=fields[0],
        program_offset=fields[4],
        program_entry_size=fields[8],
        program_count=fields[9],
        section_offset=fields[5],
        section_entry_size=fields[10],
        section_count=fields[11],
        section_names=fields[12],
    )


def _kind_and_detail(contents: Contents, header: _Header) -> tuple[FileKind, str]:
    machine = header.target.machine_name
    if header.type == ET_CORE:
        return FileKind.CORE, f"ELF type ET_CORE, {machine}"
    if header.type == ET_REL:
        sections = _read_sections(contents, header)
        return _relocatable_kind(contents, header, sections)
    if header.type in (ET_DYN, ET_EXEC):
        return _linked_kind(contents, header)
    return FileKind.OTHER_ELF, f"ELF type {header.type:#x}, {machine}"


# ---------------------------------------------------------------- ET_DYN and ET_EXEC


def _linked_kind(contents: Contents, header: _Header) -> tuple[FileKind, str]:
    """The kind of a file that a linker has finished."""
    sections_fault = ""
    try:
        sections = _read_sections(contents, header)
    except _NotFittingError as error:
        # What is wrong with the segments matters more, and is said first.
        sections, sections_fault = (), str(error)
    # Before the segments: eu-strip keeps the original's program headers in the companion, pointing at nothing.
    if _holds_no_contents(sections):
        return FileKind.DEBUG_ONLY, "its code and data sections are SHT_NOBITS: only debug information is left"
    segments = tuple(_read_segments(contents, header))
    _check_segments(contents, segments)
    if sections_fault:
        raise _NotFittingError(sections_fault)
    # The last one counts, as in glibc _dl_map_object_from_fd.
    dynamic = next((s for s in reversed(segments) if s.type == PT_DYNAMIC), None)
    if header.type == ET_EXEC:
        linkage = "statically linked" if dynamic is None else "dynamically linked"
        return FileKind.EXECUTABLE, f"{linkage}, {header.target.machine_name}"
    if dynamic is None:
        raise _NotFittingError("ET_DYN without a PT_DYNAMIC segment, so it exports nothing and ld.so refuses it")
    flags_1, has_soname = _read_dynamic(contents, header, dynamic)
    has_interpreter = any(s.type == PT_INTERP for s in segments)
    kind = judge_et_dyn(flags_1=flags_1, has_interpreter=has_interpreter, has_soname=has_soname)
    if kind is FileKind.SHARED_OBJECT:
        return (
            kind,
            "" if sections else "without section headers: it loads, but GNU ld 2.40 and gold find no symbol in it",
        )
    reason = "DF_1_PIE is set" if flags_1 & DF_1_PIE else "PT_INTERP without DT_SONAME"
    return kind, f"{reason}, {header.target.machine_name}"


def _read_segments(contents: Contents, header: _Header) -> Iterator[_Segment]:
    if header.program_count == 0:
        raise _NotFittingError("it has no program headers, so nothing of it can be loaded")
    if header.program_count == PN_XNUM:
        raise _NotFittingError("e_phnum is PN_XNUM (more than 65534 program headers), which ld.so does not read")
    layout = header.layout.program_header
    if header.program_entry_size != layout.size:
        raise _NotFittingError(f"e_phentsize is {header.program_entry_size}, not {layout.size}")
    table_size = header.program_count * layout.size
    _require_inside(contents, "the program header table", header.program_offset, table_size)
    table = _read_exactly(contents, "the program header table", header.program_offset, table_size)
    for fields in layout.iter_unpack(table):
        if header.target.bits == 64:
            kind, _flags, offset, address, _physical, file_size, memory_size, alignment = fields
        else:
            kind, offset, address, _physical, file_size, memory_size, _flags, alignment = fields
        yield _Segment(kind, offset, address, file_size, memory_size, alignment)


def _check_segments(contents: Contents, segments: tuple[_Segment, ...]) -> None:
    names = {PT_LOAD: "PT_LOAD", PT_DYNAMIC: "PT_DYNAMIC", PT_INTERP: "PT_INTERP"}
    for index, segment in enumerate(segments):
        if segment.type not in names:
            continue
        label = f"segment {index} ({names[segment.type]})"
        _require_inside(contents, label, segment.offset, segment.file_size)
        if segment.type != PT_LOAD:
            continue
        if segment.file_size > segment.memory_size:
            raise _NotFittingError(
                f"{label} has {segment.file_size} bytes in the file and {segment.memory_size} in memory"
            )
        # glibc _dl_map_object_from_fd: "ELF load command address/offset not properly aligned".
        if segment.alignment > 1 and (segment.address - segment.offset) % segment.alignment:
            raise _NotFittingError(
                f"{label}: address {segment.address:#x} and offset {segment.offset:#x} differ modulo its alignment "
                f"{segment.alignment:#x}"
            )
    if not any(s.type == PT_LOAD for s in segments):
        raise _NotFittingError("it has no PT_LOAD segment, so nothing of it can be loaded")


def _read_dynamic(contents: Contents, header: _Header, dynamic: _Segment) -> tuple[int, bool]:
    """DT_FLAGS_1, and whether there is a DT_SONAME."""
    if dynamic.file_size == 0:
        raise _NotFittingError("its PT_DYNAMIC segment has no bytes in the file")
    layout = header.layout.dynamic_entry
    entries = min(dynamic.file_size // layout.size, MOST_DYNAMIC_ENTRIES)
    table = _read_exactly(contents, "PT_DYNAMIC", dynamic.offset, entries * layout.size)
    flags_1 = 0
    has_soname = False
    for tag, value in layout.iter_unpack(table):
        if tag == DT_NULL:
            break
        if tag == DT_FLAGS_1:
            flags_1 = value
        elif tag == DT_SONAME:
            has_soname = True
    return flags_1, has_soname


# ---------------------------------------------------------------- sections


def _read_sections(contents: Contents, header: _Header) -> tuple[_Section, ...]:
    """The first MOST_SECTIONS section headers; none when the file has no table."""
    if header.section_offset == 0:
        return ()
    layout = header.layout.section_header
    if header.section_count == 0:
        # gABI: the count is in section 0's sh_size when e_shnum cannot hold it. A zero there means no table at all.
        first = _read_exactly(contents, "the section header table", header.section_offset, layout.size)
        count: int = layout.unpack(first)[5]
        if count == 0:
            return ()
    else:
        count = header.section_count
    if header.section_entry_size != layout.size:
        raise _NotFittingError(f"e_shentsize is {header.section_entry_size}, not {layout.size}")
    _require_inside(contents, "the section header table", header.section_offset, count * layout.size)
    table_size = min(count, MOST_SECTIONS) * layout.size
    table = _read_exactly(contents, "the section header table", header.section_offset, table_size)
    return tuple(_Section(name=f[0], type=f[1], flags=f[2], offset=f[4], size=f[5]) for f in layout.iter_unpack(table))


def _holds_no_contents(sections: tuple[_Section, ...]) -> bool:
    """Whether all that a process would map is emptied, as `objcopy --only-keep-debug` and `eu-strip -f` do."""
    mapped = [s.type for s in sections if s.flags & SHF_ALLOC and s.type != SHT_NOTE]
    return bool(mapped) and all(kind == SHT_NOBITS for kind in mapped)


def _relocatable_kind(contents: Contents, header: _Header, sections: tuple[_Section, ...]) -> tuple[FileKind, str]:
    names = _read_section_names(contents, header, sections)
    has_code = any(s.type == SHT_PROGBITS and s.flags & SHF_ALLOC and s.size for s in sections)
    contains = "beside machine code" if has_code else "and no machine code"
    if any(name.startswith(b".gnu.lto_") for name in names):
        return FileKind.LTO_OBJECT, f"ELF type ET_REL with GCC's intermediate code (.gnu.lto_*) {contains}"
    if b".llvm.lto" in names:
        return FileKind.LTO_OBJECT, f"ELF type ET_REL with LLVM's intermediate code (.llvm.lto) {contains}"
    return FileKind.RELOCATABLE, f"ELF type ET_REL, {header.target.machine_name}"


def _read_section_names(contents: Contents, header: _Header, sections: tuple[_Section, ...]) -> tuple[bytes, ...]:
    """The names of `sections`; a name beyond MOST_NAME_BYTES, or of a table not seen, comes out empty."""
    layout = header.layout.section_header
    # Its header is mostly the last one, and so beyond MOST_SECTIONS in an object of many functions.
    at = header.section_offset + header.section_names * layout.size
    raw = contents.read(at, layout.size)
    if not sections or header.section_names == 0 or len(raw) < layout.size:
        return ()
    fields = layout.unpack(raw)
    text = contents.read(fields[4], min(fields[5], MOST_NAME_BYTES))
    return tuple(text[s.name : s.name + 64].partition(b"\0")[0] for s in sections)


# ---------------------------------------------------------------- bounds


def _require_inside(contents: Contents, what: str, offset: int, count: int) -> None:
    if offset + count > contents.size:
        raise _NotFittingError(
            f"truncated: {what} takes the bytes {offset} to {offset + count}, and the file has {contents.size}"
        )


def _read_exactly(contents: Contents, what: str, offset: int, count: int) -> bytes:
    data = contents.read(offset, count)
    if len(data) < count:
        raise _NotFittingError(
            f"truncated: {what} takes the bytes {offset} to {offset + count}, and the file has {contents.size}"
        )
    return data
