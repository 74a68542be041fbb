"""Binary formats that are neither ELF nor ar, by their magic numbers. Reads headers only and unpacks nothing."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from linkcheck.model import FileIdentity, FileKind

if TYPE_CHECKING:
    from linkcheck.elf.contents import Contents

#: (magic at offset 0, kind, what was seen). Sources: RFC 1952, RFC 8878, the .xz and bzip2 format notes, APPNOTE.TXT,
#: LLVM "Bitcode File Format", WebAssembly core specification 5.5.16.
MAGICS = (
    (b"BC\xc0\xde", FileKind.LLVM_BITCODE, "raw bitcode, magic BC C0 DE"),
    (b"\xde\xc0\x17\x0b", FileKind.LLVM_BITCODE, "bitcode with Darwin's wrapper, magic 0x0B17C0DE"),
    (b"\0asm", FileKind.WASM, "magic \\0asm"),
    (b"PK\x05\x06", FileKind.ZIP, "an empty one"),
    (b"PK\x07\x08", FileKind.ZIP, "the first of several volumes"),
    (b"\x1f\x8b", FileKind.GZIP, "magic 1F 8B"),
    (b"\xfd7zXZ\0", FileKind.XZ, "magic FD 7zXZ"),
    (b"\x28\xb5\x2f\xfd", FileKind.ZSTD, "magic 28 B5 2F FD"),
    (b"7z\xbc\xaf\x27\x1c", FileKind.DATA, "a 7-Zip archive"),
    (b"\x04\x22\x4d\x18", FileKind.DATA, "LZ4-compressed data"),
    (b"\xed\xab\xee\xdb", FileKind.DATA, "an RPM package"),
    (b"<bigaf>\n", FileKind.ARCHIVE, "of the AIX big format"),
)

#: cputype -> name (<mach/machine.h>).
MACH_O_MACHINES = {
    7: "i386",
    0x01000007: "x86-64",
    12: "arm",
    0x0100000C: "arm64",
    0x0200000C: "arm64_32",
    18: "ppc",
    0x01000012: "ppc64",
}
#: filetype -> name (<mach-o/loader.h>).
MACH_O_TYPES = {
    1: "object file",
    2: "executable",
    4: "core dump",
    6: "dynamic library",
    8: "bundle",
    9: "dynamic library stub",
    10: "debug companion (dSYM)",
}
#: Architectures a universal file may list here. Java class files share the magic 0xCAFEBABE, and where the count
#: stands they have their version, which is 45 (JDK 1.0) or more.
MOST_ARCHITECTURES = 44

#: Machine -> name (Microsoft "PE Format", Machine Types).
PE_MACHINES = {0x14C: "i386", 0x8664: "x86-64", 0x1C0: "arm", 0x1C4: "arm (Thumb-2)", 0xAA64: "arm64"}
PE_DLL = 0x2000


def identify_binary(contents: Contents) -> FileIdentity | None:
    """Recognise a binary format by its magic number; None when no magic number fits."""
    head = contents.head
    for magic, kind, detail in MAGICS:
        if head.startswith(magic):
            return FileIdentity(contents.path, kind, detail)
    for step in (_identify_mach_o, _identify_pe, _identify_zip, _identify_bzip2, _identify_tar):
        found = step(contents)
        if found is not None:
            return FileIdentity(contents.path, found[0], found[1])
    if len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F:
        return FileIdentity(contents.path, FileKind.ZSTD, "it begins with a skippable frame")
    return None


def _identify_mach_o(contents: Contents) -> tuple[FileKind, str] | None:
    head = contents.head
    magic = head[:4]
    thin = {
        b"\xfe\xed\xfa\xce": (">", 32),
        b"\xce\xfa\xed\xfe": ("<", 32),
        b"\xfe\xed\xfa\xcf": (">", 64),
        b"\xcf\xfa\xed\xfe": ("<", 64),
    }.get(magic)
    if thin is not None:
        order, bits = thin
        if len(head) < 16:
            return FileKind.MACH_O, f"{bits}-bit, cut off within its header"
        machine, _subtype, file_type = struct.unpack_from(order + "III", head, 4)
        return FileKind.MACH_O, f"{_mach_o_type(file_type)} for {_mach_o_machine(machine)}, {bits}-bit"
    if magic not in (b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"):
        return None
    entry_size = 20 if magic == b"\xca\xfe\xba\xbe" else 32
    count = int.from_bytes(head[4:8], "big") if len(head) >= 8 else 0
    if count > MOST_ARCHITECTURES:
        return FileKind.DATA, f"a Java class file, version {count & 0xFFFF}"
    machines = [
        _mach_o_machine(int.from_bytes(head[start : start + 4], "big"))
        for start in range(8, min(8 + count * entry_size, len(head) - 3), entry_size)
    ]
    return FileKind.MACH_O, f"universal, for {', '.join(machines) or 'no architecture'}"


def _mach_o_type(value: int) -> str:
    return MACH_O_TYPES.get(value, f"file of type {value}")


def _mach_o_machine(value: int) -> str:
    return MACH_O_MACHINES.get(value, f"cputype {value:#x}")


def _identify_pe(contents: Contents) -> tuple[FileKind, str] | None:
    head = contents.head
    if not head.startswith(b"MZ") or len(head) < 64:
        return None
    offset = int.from_bytes(head[60:64], "little")
    header = contents.read(offset, 24)
    if not header.startswith(b"PE\0\0") or len(header) < 24:
        return FileKind.DATA, "an MS-DOS program: it begins with MZ and has no PE header"
    machine, flags = struct.unpack_from("<H16xH", header, 4)
    name = PE_MACHINES.get(machine, f"machine {machine:#x}")
    return FileKind.PE, f"{'DLL' if flags & PE_DLL else 'program'} for {name}"


def _identify_zip(contents: Contents) -> tuple[FileKind, str] | None:
    head = contents.head
    if not head.startswith(b"PK\x03\x04"):
        return None
    length = int.from_bytes(head[26:28], "little")
    name = head[30 : 30 + min(length, 200)].decode("utf-8", "surrogateescape")
    return FileKind.ZIP, f"its first entry is {name}"


def _identify_bzip2(contents: Contents) -> tuple[FileKind, str] | None:
    head = contents.head
    # The block magic is pi's digits; an empty file has the end-of-stream magic, sqrt(pi)'s.
    block = head[4:10]
    if head.startswith(b"BZh") and block in (b"1AY&SY", b"\x17rE8P\x90"):
        return FileKind.BZIP2, "magic BZh"
    return None


def _identify_tar(contents: Contents) -> tuple[FileKind, str] | None:
    return (FileKind.DATA, "a tar archive") if contents.head[257:262] == b"ustar" else None
