"""Reads one ELF file into a model.Image, through its program headers. It judges nothing and follows no other file.

Cost on a 434 MB library: a few kilobytes read. Symbols are read when somebody asks for them (symbols.py).
"""

from __future__ import annotations

import os.path
from itertools import pairwise
from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.dynamic import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_FLAGS,
    DT_FLAGS_1,
    DT_NEEDED,
    DT_RELR,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRTAB,
    DT_SYMBOLIC,
    DT_SYMTAB,
    DT_TEXTREL,
    DT_VERDEF,
    DT_VERNEED,
    read_dynamic,
)
from linkcheck.elf.header import (
    ET_CORE,
    ET_EXEC,
    ET_REL,
    LINKED_TYPES,
    PF_X,
    PT_GNU_STACK,
    PT_INTERP,
    PT_LOAD,
    PT_TLS,
    read_header,
)
from linkcheck.elf.limits import (
    MAX_DYNAMIC_NAME_BYTES,
    MAX_INTERPRETER_SIZE,
    MAX_NEEDED_BYTES,
    MAX_RESIDENT_NAMES,
)
from linkcheck.elf.notes import read_notes
from linkcheck.elf.sections import is_debug_companion
from linkcheck.elf.strings import Strings, decode_name
from linkcheck.elf.symbols import DynamicSymbols
from linkcheck.elf.versions import Versions, read_versions
from linkcheck.errors import MalformedElfError, NotAnImageError
from linkcheck.model import (
    DF_1_PIE,
    DF_SYMBOLIC,
    DF_TEXTREL,
    FileKind,
    Image,
    ThreadLocalSegment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.elf.header import Header, Segment
    from linkcheck.model import DlopenNote

#: Bytes of the smallest page of any machine that Linux and glibc support.
SMALLEST_PAGE = 4096
_OTHER_KINDS = {ET_REL: FileKind.RELOCATABLE, ET_CORE: FileKind.CORE}

#: Tags whose value is, or leads to, a place in the string table.
_NAMING_TAGS = frozenset(
    {DT_NEEDED, DT_FILTER, DT_AUXILIARY, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_SYMTAB, DT_VERNEED, DT_VERDEF}
)


def read_image(path: str) -> Image:
    """The facts of the executable or shared object at `path`.

    A static executable has no PT_DYNAMIC and gives an image without needs and symbols.

    Raises UnreadableFileError when the file cannot be opened or read, NotAnImageError when no process could map it
    (not ELF; relocatable, core or debug-only; not a regular file), and MalformedElfError when its numbers do not fit
    the file, or leave nothing to map.
    """
    with BoundedFile(path) as file:
        return describe_image(file, read_header(file))


def describe_image(file: BoundedFile, header: Header) -> Image:
    """The same of an open file whose header was read; raises what `read_image` raises."""
    if header.type not in LINKED_TYPES:
        kind = _OTHER_KINDS.get(header.type, FileKind.OTHER_ELF)
        raise NotAnImageError(file.path, f"{kind.value} (e_type {header.type})", kind)
    try:
        return _read_facts(file, header)
    except MalformedElfError:
        _refuse_debug_companion(file, header)
        raise


def _read_facts(file: BoundedFile, header: Header) -> Image:
    loads = [segment for segment in header.segments if segment.type == PT_LOAD]
    if not loads:
        raise file.malformed("it has no PT_LOAD segment, so nothing of it can be loaded")
    for number, load in enumerate(loads):
        end = load.offset + load.file_size
        if end > file.size:
            raise file.malformed(
                f"truncated: PT_LOAD segment {number} ends at byte {end:#x}, but the file has {file.size:#x} bytes"
            )
        if load.file_size > load.memory_size:
            raise file.malformed(
                f"PT_LOAD segment {number} has {load.file_size} bytes in the file and {load.memory_size} in memory"
            )
    _check_order(file, loads)
    dynamic = read_dynamic(file, header)
    if dynamic is None:
        return _describe_static(file, header)
    if not dynamic.values:
        # Zeros where the dynamic section was: eu-strip leaves such a companion.
        _refuse_debug_companion(file, header)
    return _describe_dynamic(file, header, dynamic)


def _check_order(file: BoundedFile, loads: Sequence[Segment]) -> None:
    """Refuse PT_LOAD segments of which one is mapped over another, because memory then holds the last one's bytes.

    The gABI ("Program Header", PT_LOAD) wants them in ascending order of p_vaddr; glibc (dl-load.c,
    _dl_map_object_from_fd) and Linux rely on it, and map whole pages.
    """
    mapped = [(number, load) for number, load in enumerate(loads) if load.memory_size]
    for (earlier, one), (later, other) in pairwise(mapped):
        if other.address < one.address:
            raise file.malformed(
                f"PT_LOAD segment {later} is at address {other.address:#x}, below segment {earlier} ({one.address:#x})"
            )
        end = one.address + one.memory_size
        if other.address < end:
            raise file.malformed(
                f"PT_LOAD segment {later} at address {other.address:#x} overlaps segment {earlier}, which ends at "
                f"{end:#x}"
            )
        if (
            other.address // SMALLEST_PAGE <= (one.address + one.file_size - 1) // SMALLEST_PAGE
            and one.file_size
            and other.file_size
            and one.address - one.offset != other.address - other.offset
        ):
            raise file.malformed(
                f"PT_LOAD segment {later} at address {other.address:#x} shares a page of memory with segment "
                f"{earlier}, but none of the file"
            )


def _check_alignment(file: BoundedFile, header: Header) -> None:
    """Refuse what every ld.so refuses of a library: "ELF load command address/offset not page-aligned" (glibc
    _dl_map_object_from_fd). Before 2.35 it asked for p_align in place of the page; Linux maps programs otherwise.
    """
    loads = (segment for segment in header.segments if segment.type == PT_LOAD)
    for number, load in enumerate(loads):
        if (load.address - load.offset) % SMALLEST_PAGE:
            raise file.malformed(
                f"PT_LOAD segment {number}: address {load.address:#x} and offset {load.offset:#x} differ in alignment, "
                f"modulo a page of {SMALLEST_PAGE} bytes"
            )


def _refuse_debug_companion(file: BoundedFile, header: Header) -> None:
    if is_debug_companion(file, header):
        raise NotAnImageError(file.path, FileKind.DEBUG_ONLY.value, FileKind.DEBUG_ONLY) from None


def _describe_static(file: BoundedFile, header: Header) -> Image:
    _refuse_debug_companion(file, header)
    if header.type != ET_EXEC:
        # glibc: "object file has no dynamic section"
        raise file.malformed("ET_DYN without a PT_DYNAMIC segment, so it exports nothing and ld.so refuses it")
    from linkcheck.elf.static_symbols import StaticSymbols

    return Image(
        path=file.path,
        kind=FileKind.EXECUTABLE,
        target=header.target,
        interpreter=_read_interpreter(file, header),
        tls=_describe_tls(header),
        executable_stack=_judge_stack(header),
        build_id=read_notes(file, header).build_id,
        symbols=StaticSymbols(file.path, _make_absolute(file.path), file.stamp, header),
        device=file.stamp.device,
        inode=file.stamp.inode,
        os_abi=header.os_abi,
        abi_version=header.abi_version,
    )


def _describe_dynamic(file: BoundedFile, header: Header, dynamic: DynamicSection) -> Image:
    values = dynamic.values
    names = _open_names(file, dynamic)
    soname = _read_name(names, values.get(DT_SONAME), "DT_SONAME")
    interpreter = _read_interpreter(file, header)
    flags = values.get(DT_FLAGS, 0) | (DF_TEXTREL if DT_TEXTREL in values else 0)
    flags_1 = values.get(DT_FLAGS_1, 0)
    versions = Versions() if names is None else read_versions(file, dynamic, names)
    notes = read_notes(file, header)
    kind = FileKind.EXECUTABLE
    if header.type != ET_EXEC:
        kind = judge_et_dyn(flags_1=flags_1, has_interpreter=interpreter is not None, has_soname=soname is not None)
        if kind is FileKind.SHARED_OBJECT:
            _check_alignment(file, header)
    return Image(
        path=file.path,
        kind=kind,
        target=header.target,
        soname=soname,
        needed=() if names is None else tuple(_read_needed(file, names, dynamic.needed)),
        filters=_read_names(names, dynamic.filters, "DT_FILTER or DT_AUXILIARY"),
        rpath=_read_name(names, values.get(DT_RPATH), "DT_RPATH"),
        runpath=_read_name(names, values.get(DT_RUNPATH), "DT_RUNPATH"),
        flags=flags,
        flags_1=flags_1,
        symbolic=DT_SYMBOLIC in values or bool(flags & DF_SYMBOLIC),
        interpreter=interpreter,
        tls=_describe_tls(header),
        executable_stack=_judge_stack(header),
        build_id=notes.build_id,
        version_definitions=versions.definitions,
        version_needs=versions.needs,
        dlopen_notes=_read_dlopen_notes(notes.dlopen_payloads) if notes.dlopen_payloads else (),
        symbols=DynamicSymbols(file.path, _make_absolute(file.path), file.stamp, dynamic, versions),
        device=file.stamp.device,
        inode=file.stamp.inode,
        os_abi=header.os_abi,
        abi_version=header.abi_version,
        packed_relocations=DT_RELR in values,
    )


def judge_et_dyn(*, flags_1: int, has_interpreter: bool, has_soname: bool) -> FileKind:
    """SHARED_OBJECT, PIE or STATIC_PIE, from DT_FLAGS_1, PT_INTERP and DT_SONAME of an ET_DYN file.

    DF_1_PIE decides where the linker set it (binutils since 2.26, lld since 9). Without it PT_INTERP tells an
    executable, unless there is a DT_SONAME: libc.so.6 has both, because it can be run to print its version.
    """
    if flags_1 & DF_1_PIE:
        return FileKind.PIE if has_interpreter else FileKind.STATIC_PIE
    if has_interpreter and not has_soname:
        return FileKind.PIE
    return FileKind.SHARED_OBJECT


def explain_kind(image: Image) -> str:
    """By which sign `image` is a program, and for which machine; "" for a shared object, which is what is expected."""
    if image.kind is FileKind.SHARED_OBJECT:
        return ""
    if image.kind is FileKind.EXECUTABLE:
        # Without an interpreter nobody would load what PT_DYNAMIC asks for.
        sign = "statically linked" if image.interpreter is None else "dynamically linked"
    else:
        sign = "DF_1_PIE is set" if image.flags_1 & DF_1_PIE else "PT_INTERP without DT_SONAME"
    return f"{sign}, {image.target.machine_name}"


def _read_dlopen_notes(payloads: tuple[bytes, ...]) -> tuple[DlopenNote, ...]:
    from linkcheck.elf.dlopen_notes import parse_dlopen_notes

    return parse_dlopen_notes(payloads)


def _make_absolute(path: str) -> str:
    """`path` for later questions, when the working directory may be another; symbolic links stay as they are."""
    return os.path.abspath(path)


def _open_names(file: BoundedFile, dynamic: DynamicSection) -> Strings | None:
    """The string table; None when there is none and nothing needs it. MalformedElfError when something does."""
    if DT_STRTAB not in dynamic.values and not _NAMING_TAGS & dynamic.values.keys():
        return None
    table = dynamic.string_table(file)
    return Strings(file, table, budget=MAX_DYNAMIC_NAME_BYTES, resident_up_to=MAX_RESIDENT_NAMES)


def _read_name(names: Strings | None, offset: int | None, what: str) -> str | None:
    return None if names is None or offset is None else decode_name(names.find(offset, what))


def _read_names(names: Strings | None, offsets: tuple[int, ...], what: str) -> tuple[str, ...]:
    return () if names is None else tuple(decode_name(names.find(at, what)) for at in offsets)


def _read_needed(file: BoundedFile, names: Strings, places: tuple[int, ...]) -> Iterator[str]:
    left = MAX_NEEDED_BYTES
    for at in places:
        name = names.find(at, "DT_NEEDED")
        left -= len(name)
        if left < 0:
            raise file.malformed(f"the names of its DT_NEEDED entries take more than {MAX_NEEDED_BYTES} bytes")
        yield decode_name(name)


def _describe_tls(header: Header) -> ThreadLocalSegment | None:
    segment = header.last(PT_TLS)
    if segment is None:
        return None
    return ThreadLocalSegment(segment.file_size, segment.memory_size, segment.alignment)


def _judge_stack(header: Header) -> bool | None:
    segment = header.last(PT_GNU_STACK)
    return None if segment is None else bool(segment.flags & PF_X)


def _read_interpreter(file: BoundedFile, header: Header) -> str | None:
    segment = header.last(PT_INTERP)
    if segment is None:
        return None
    if segment.file_size > MAX_INTERPRETER_SIZE:
        raise file.malformed(f"PT_INTERP has {segment.file_size} bytes, and Linux allows {MAX_INTERPRETER_SIZE}")
    raw = file.read(segment.offset, segment.file_size, "PT_INTERP")
    if b"\0" not in raw:
        raise file.malformed("PT_INTERP has no terminating NUL")
    return decode_name(raw[: raw.index(b"\0")])
