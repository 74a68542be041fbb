"""What kind of ELF file this is. What a process could map is the reader's to tell; here are the kinds that are none.

Source: gABI "ELF Header" (e_type) and "Sections"; GCC's and LLVM's names of the sections with intermediate code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.header import ET_CORE, ET_REL, LINKED_TYPES, read_header
from linkcheck.elf.reader import describe_image, explain_kind
from linkcheck.elf.section_table import read_names, read_table
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import FileIdentity, FileKind

if TYPE_CHECKING:
    from linkcheck.elf.header import Header
    from linkcheck.model import Target

SHT_PROGBITS = 1
SHF_ALLOC = 0x2


def identify_elf(path: str) -> FileIdentity:
    """Say what kind of ELF file is at `path`; MALFORMED_ELF with the broken bound when it does not fit itself."""
    target: Target | None = None
    try:
        with BoundedFile(path) as file:
            header = read_header(file)
            target = header.target
            if header.type in LINKED_TYPES:
                image = describe_image(file, header)
                return FileIdentity(path, image.kind, explain_kind(image), target=target)
            kind, detail = _judge_unlinked(file, header)
    except MalformedElfError as error:
        kind, detail = FileKind.MALFORMED_ELF, error.reason
    except NotAnImageError as error:
        kind, detail = error.kind or FileKind.OTHER_ELF, ""
        if kind is FileKind.DEBUG_ONLY:
            detail = "its .dynamic, or all its code, is SHT_NOBITS: only debug information is left"
    except UnreadableFileError as error:
        kind, detail = FileKind.UNREADABLE, error.reason
    return FileIdentity(path, kind, detail, target=target)


def _judge_unlinked(file: BoundedFile, header: Header) -> tuple[FileKind, str]:
    if header.type == ET_REL:
        return _judge_object(file, header)
    machine = header.target.machine_name
    if header.type == ET_CORE:
        return FileKind.CORE, f"ELF type ET_CORE, {machine}"
    return FileKind.OTHER_ELF, f"ELF type {header.type:#x}, {machine}"


def _judge_object(file: BoundedFile, header: Header) -> tuple[FileKind, str]:
    """What an object file holds: machine code, or what a compiler keeps for the linker to compile."""
    sections = read_table(file, header)
    names = read_names(file, header, sections)
    has_code = any(s.type == SHT_PROGBITS and s.flags & SHF_ALLOC and s.size for s in sections)
    contains = "beside machine code" if has_code else "and no machine code"
    if any(name.startswith(b".gnu.lto_") for name in names):
        return FileKind.LTO_OBJECT, f"ELF type ET_REL with GCC's intermediate code (.gnu.lto_*) {contains}"
    if b".llvm.lto" in names:
        return FileKind.LTO_OBJECT, f"ELF type ET_REL with LLVM's intermediate code (.llvm.lto) {contains}"
    return FileKind.RELOCATABLE, f"ELF type ET_REL, {header.target.machine_name}"
