"""One ELF file that a process could map, as facts. Where a process finds it is load_sets.py's business, not this one's.

Source: System V gABI ("Program Loading and Dynamic Linking"), glibc <elf.h> for the GNU extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model.files import EXECUTABLE_KINDS
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.model.files import FileKind, Target
    from linkcheck.model.symbols import SymbolTable, SymbolVersion


class ThreadLocalSegment(Value):
    """PT_TLS: the image's own thread-local block. Sizes in bytes."""

    file_size: int
    memory_size: int
    alignment: int


class VersionNeed(Value):
    """One DT_VERNEED entry: versions this image wants from `library` (vn_file), with their VER_FLG_* flags."""

    library: str
    versions: tuple[SymbolVersion, ...]


class DlopenNote(Value):
    """One entry of a file's dlopen metadata (.note.dlopen): a library that it may open at run time."""

    #: Names of one library, the preferred one first; the first that is found is opened.
    sonames: tuple[str, ...]
    #: One of DLOPEN_PRIORITIES.
    priority: str = "recommended"
    feature: str = ""
    description: str = ""


#: How much a file depends on what it may open: not at all without `required`; the second one holds when none is given.
DLOPEN_PRIORITIES = ("required", "recommended", "suggested")


#: DT_FLAGS and DT_FLAGS_1 bits that rules and the loader ask about (gABI; <elf.h>).
DF_SYMBOLIC = 0x2
DF_TEXTREL = 0x4
DF_1_NODEFLIB = 0x800
DF_1_PIE = 0x08000000


class Image(Value):
    """One ELF file that a process could map, as facts.

    `path` is the path it was opened by; `device` and `inode` say which file that was. Names from the file are
    text decoded as UTF-8 with surrogateescape, so that no byte is lost.
    """

    path: str
    kind: FileKind
    target: Target
    symbols: SymbolTable
    soname: str | None = None
    needed: tuple[str, ...] = ()
    #: DT_FILTER and DT_AUXILIARY: libraries that ld.so loads too, and searches before this one in its place.
    filters: tuple[str, ...] = ()
    #: DT_RPATH and DT_RUNPATH as written, `$ORIGIN` unexpanded; None when absent, "" when present and empty.
    rpath: str | None = None
    runpath: str | None = None
    flags: int = 0
    flags_1: int = 0
    #: DT_SYMBOLIC present, or DF_SYMBOLIC in DT_FLAGS.
    symbolic: bool = False
    interpreter: str | None = None
    tls: ThreadLocalSegment | None = None
    #: PT_GNU_STACK has PF_X; None when the header is absent.
    executable_stack: bool | None = None
    build_id: str | None = None
    version_definitions: tuple[SymbolVersion, ...] = ()
    version_needs: tuple[VersionNeed, ...] = ()
    dlopen_notes: tuple[DlopenNote, ...] = ()
    device: int = 0
    inode: int = 0
    #: EI_OSABI and EI_ABIVERSION of e_ident (gABI, "ELF Identification").
    os_abi: int = 0
    abi_version: int = 0
    #: DT_RELR: it has packed relative relocations.
    packed_relocations: bool = False

    @property
    def is_executable(self) -> bool:
        """Whether a process can start from this image."""
        return self.kind in EXECUTABLE_KINDS

    @property
    def name(self) -> str:
        """DT_SONAME, or the last part of the path when there is none."""
        return self.soname if self.soname is not None else self.path.rpartition("/")[2]
