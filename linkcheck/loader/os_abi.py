"""Which operating systems' files glibc's ld.so loads, by EI_OSABI and EI_ABIVERSION of e_ident. It reads no file.

Source: glibc elf/dl-load.c (open_verify: "ELF file OS ABI invalid", "ELF file ABI version invalid"), VALID_ELF_OSABI
and VALID_ELF_ABIVERSION in the machines' ldsodefs.h, and libc-abis; gABI "ELF Identification" for the names. Linux
looks at neither byte when it starts a program, so what is said here is true of libraries only.
"""

from __future__ import annotations

_SYSV, _GNU = 0, 3
_OS_NAMES = {
    1: "HP-UX",
    2: "NetBSD",
    6: "Solaris",
    7: "AIX",
    8: "IRIX",
    9: "FreeBSD",
    10: "Tru64",
    11: "Modesto",
    12: "OpenBSD",
    13: "OpenVMS",
    14: "NonStop",
    15: "AROS",
    16: "Fenix OS",
    17: "CloudABI",
    18: "OpenVOS",
}
_EM_MIPS, _EM_ARM = 8, 40
#: Values from here on belong to the machine, not to an operating system.
_FIRST_OF_MACHINE = 64
#: ELFOSABI_ARM_AEABI and ELFOSABI_ARM. glibc takes the first; the second is old, and ours is not to judge.
_ARM_VALUES = frozenset({64, 97})
#: The machines whose ldsodefs.h was read; what others accept is not known here.
_KNOWN_MACHINES = frozenset({2, 3, _EM_MIPS, 20, 21, 22, _EM_ARM, 43, 62, 183, 243, 258})
#: The first EI_ABIVERSION that no glibc up to 2.42 knows: with EI_OSABI GNU it is LIBC_ABI_MAX, which libc-abis makes;
#: MIPS has one with SYSV, too.
_MACHINES_WITH_IFUNC_ABI = frozenset({2, 3, 20, 21, 43, 62, 243})
_FIRST_UNKNOWN_MIPS = 6


def name_os(os_abi: int) -> str:
    """The operating system that EI_OSABI `os_abi` stands for, as a message says it."""
    return _OS_NAMES.get(os_abi, f"operating system {os_abi}")


def refusal(machine: int, os_abi: int, abi_version: int) -> str:
    """Why ld.so of `machine` (e_machine) would not load a library with these two bytes, or ""."""
    if machine not in _KNOWN_MACHINES:
        return ""
    if os_abi not in (_SYSV, _GNU) and not (machine == _EM_ARM and os_abi in _ARM_VALUES):
        built = f", built for {name_os(os_abi)}" if os_abi < _FIRST_OF_MACHINE else ""
        return f"ELF file OS ABI invalid: EI_OSABI is {os_abi}{built}"
    if abi_version and abi_version >= _first_unknown(machine, os_abi):
        return f"ELF file ABI version invalid: EI_ABIVERSION is {abi_version}"
    return ""


def _first_unknown(machine: int, os_abi: int) -> int:
    if machine == _EM_MIPS:
        return _FIRST_UNKNOWN_MIPS
    if os_abi != _GNU:
        return 1
    return 4 if machine in _MACHINES_WITH_IFUNC_ABI else 3
