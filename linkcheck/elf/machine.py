"""The machines that `--machine` can name, and the one that this process runs on. Looks into no library."""

from __future__ import annotations

import sys

from linkcheck.errors import UsageProblemError
from linkcheck.model import Target

#: The name a message lists -> its target. Sources: gABI registry of e_machine values, <elf.h>.
MACHINES = {
    "x86-64": Target(62, 64, "little"),
    "aarch64": Target(183, 64, "little"),
    "i386": Target(3, 32, "little"),
    "arm": Target(40, 32, "little"),
    "riscv64": Target(243, 64, "little"),
    "riscv32": Target(243, 32, "little"),
    "ppc64le": Target(21, 64, "little"),
    "ppc64": Target(21, 64, "big"),
    "ppc": Target(20, 32, "big"),
    "s390x": Target(22, 64, "big"),
    "loongarch64": Target(258, 64, "little"),
    "mips": Target(8, 32, "big"),
    "mipsel": Target(8, 32, "little"),
    "mips64": Target(8, 64, "big"),
    "mips64el": Target(8, 64, "little"),
    "sparc64": Target(43, 64, "big"),
    "ia64": Target(50, 64, "little"),
    "x32": Target(62, 32, "little"),
    "aarch64_be": Target(183, 64, "big"),
    "armeb": Target(40, 32, "big"),
}

#: Other names of the same machines: what uname, CMake's CMAKE_SYSTEM_PROCESSOR, Debian and GNU triplets say.
ALIASES = {
    "x86_64": "x86-64",
    "amd64": "x86-64",
    "x64": "x86-64",
    "arm64": "aarch64",
    "armv8": "aarch64",
    "i486": "i386",
    "i586": "i386",
    "i686": "i386",
    "x86": "i386",
    "armhf": "arm",
    "armel": "arm",
    "armv6l": "arm",
    "armv7": "arm",
    "armv7a": "arm",
    "armv7l": "arm",
    "ppc64el": "ppc64le",
    "powerpc64le": "ppc64le",
    "powerpc64": "ppc64",
    "powerpc": "ppc",
    "sparcv9": "sparc64",
}


def parse_machine(name: str) -> Target:
    """The target called `name`, in any case. Raises UsageProblemError, which lists the names, for another one."""
    lowered = name.strip().lower()
    target = MACHINES.get(ALIASES.get(lowered, lowered))
    if target is None:
        raise UsageProblemError(f"--machine {name}: unknown machine; one of: {', '.join(MACHINES)}")
    return target


def detect_host() -> Target | None:
    """What this process was built for; None when neither its program file nor the system says it.

    The program file comes first: a 64-bit kernel says x86_64 to a 32-bit Python, too, whose libraries are 32-bit.
    """
    from linkcheck.elf.kind import identify

    for path in ("/proc/self/exe", sys.executable):
        target = identify(path).target if path else None
        if target is not None:
            return target
    import platform

    try:
        return parse_machine(platform.machine())
    except UsageProblemError:
        return None
