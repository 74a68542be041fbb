"""What a file is and what it was built for. How that is told from its bytes is elf/kind.py's business, not this one's.

Source: System V gABI ("Object Files") and glibc <elf.h>.
"""

from __future__ import annotations

from linkcheck.choice import Choice
from linkcheck.value import Value


class FileKind(Choice):
    """What a file is, judged by its content (but for STAND_IN); the value is the phrase used in messages."""

    SHARED_OBJECT = "a shared object"
    PIE = "a position-independent executable"
    STATIC_PIE = "a static position-independent executable"
    EXECUTABLE = "an executable linked at a fixed address (ET_EXEC)"
    RELOCATABLE = "a relocatable object file"
    CORE = "a core dump"
    DEBUG_ONLY = "a debug-only companion file"
    OTHER_ELF = "an ELF file of an unknown type"
    MALFORMED_ELF = "a malformed ELF file"
    ARCHIVE = "a static archive"
    THIN_ARCHIVE = "a thin static archive"
    DEBIAN_PACKAGE = "a Debian package"
    LD_SCRIPT = "a GNU ld script"
    LLVM_BITCODE = "LLVM bitcode"
    LTO_OBJECT = "a link-time-optimisation object"
    MACH_O = "a Mach-O file"
    PE = "a PE (Windows) file"
    WASM = "a WebAssembly module"
    ZIP = "a zip archive"
    GZIP = "gzip-compressed data"
    BZIP2 = "bzip2-compressed data"
    XZ = "xz-compressed data"
    ZSTD = "zstd-compressed data"
    LFS_POINTER = "a Git LFS pointer"
    FLATTENED_SYMLINK = "a symbolic link flattened into a text file"
    HTML = "an HTML page"
    TEXT = "a text file"
    DATA = "data of an unknown format"
    EMPTY = "an empty file"
    DIRECTORY = "a directory"
    DANGLING_LINK = "a symbolic link to nothing"
    LOOPING_LINK = "a symbolic link that loops"
    FIFO = "a FIFO"
    DEVICE = "a device"
    SOCKET = "a socket"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    #: No file: what stands for the program of a process when that program is not among the inputs.
    STAND_IN = "a stand-in for a program that is not here"


#: Kinds that a process can start from (LC301's roles, the choice of roots in a directory).
EXECUTABLE_KINDS = frozenset({FileKind.PIE, FileKind.STATIC_PIE, FileKind.EXECUTABLE})
#: Kinds with facts worth an Image: PT_DYNAMIC, or at least program headers of a complete link.
IMAGE_KINDS = EXECUTABLE_KINDS | {FileKind.SHARED_OBJECT}


class FileIdentity(Value):
    """What `elf.kind.identify` says about a file: the kind, and in `detail` what was seen (one clause)."""

    path: str
    kind: FileKind
    #: What the bytes say, for the message: the magic read, the member count, the bound that is broken.
    detail: str = ""
    #: Libraries an ld script's INPUT/GROUP names, or the target text of a flattened or dangling link.
    names: tuple[str, ...] = ()
    target: Target | None = None


class Target(Value):
    """What a file was built for: e_machine, EI_CLASS and EI_DATA (gABI, "ELF Header")."""

    machine: int
    bits: int  # 32 or 64
    byte_order: str  # "little" or "big"

    @property
    def machine_name(self) -> str:
        """The usual name of e_machine, such as "x86-64" or "aarch64"; "machine 0x…" for one we do not name."""
        return MACHINE_NAMES.get(self.machine, f"machine {self.machine:#x}")

    def __str__(self) -> str:
        return f"{self.machine_name}, {self.bits}-bit, {self.byte_order}-endian"


#: e_machine -> name (gABI registry of machine values; <elf.h> EM_*).
MACHINE_NAMES = {
    2: "sparc",
    3: "i386",
    8: "mips",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    43: "sparc64",
    50: "ia64",
    62: "x86-64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv",
    247: "bpf",
    258: "loongarch",
}
