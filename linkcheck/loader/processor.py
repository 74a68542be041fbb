"""Which glibc-hwcaps subdirectories and which $PLATFORM a processor gives; it searches no directory.

Source: x86-64 psABI "Micro-Architecture Levels"; glibc sysdeps/x86_64/dl-hwcaps_subdirs.c,
sysdeps/powerpc/powerpc64/le/dl-hwcaps_subdirs.c and sysdeps/x86/cpu-features.c (dl_platform).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.model import Target

CPUINFO = "/proc/cpuinfo"

#: Flags of /proc/cpuinfo that each level asks for on top of the one before ("pni" is SSE3, "abm" is LZCNT).
_X86_64_LEVELS = (
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
)
_HASWELL = {"avx2", "bmi1", "bmi2", "abm", "movbe", "popcnt", "fma"}

#: os.uname().machine -> (e_machine, bits)
_HOST_MACHINES = {
    "x86_64": (62, 64),
    "i686": (3, 32),
    "i386": (3, 32),
    "aarch64": (183, 64),
    "armv7l": (40, 32),
    "armv8l": (40, 32),
    "ppc64le": (21, 64),
    "ppc64": (21, 64),
    "s390x": (22, 64),
    "riscv64": (243, 64),
    "loongarch64": (258, 64),
}
_PLATFORMS = {(62, 64): "x86_64", (3, 32): "i686", (183, 64): "aarch64", (40, 32): "v7l"}


class Processor(Value):
    """What ld.so takes from the processor it runs on."""

    #: Active subdirectories of glibc-hwcaps, best first.
    hwcaps: tuple[str, ...] = ()
    #: What $PLATFORM stands for; None: unknown, and ld.so's answer for an element that uses it cannot be told.
    platform: str | None = None


def describe_processor(target: Target, machine: str, cpuinfo: str) -> Processor:
    """The processor of a host that calls itself `machine` (uname -m) and has `cpuinfo`, as `target` programs see it.

    A target the host cannot be (another machine) gets no hwcaps: they depend on a processor that is not there.
    """
    wanted = (target.machine, target.bits)
    platform = _PLATFORMS.get(wanted)
    if _HOST_MACHINES.get(machine) != wanted:
        return Processor((), platform)
    if wanted == (62, 64):
        flags = set(_field(cpuinfo, "flags").split())
        levels: list[str] = []
        for name, needs in _X86_64_LEVELS:
            if not needs <= flags:
                break
            levels.insert(0, name)
        if flags >= _HASWELL and _field(cpuinfo, "vendor_id") == "GenuineIntel":
            # glibc gives this platform to Intel's processors only; "xeon_phi" needs instructions nobody ships now.
            platform = "haswell"
        return Processor(tuple(levels), platform)
    if target.machine == 21:
        import re

        match = re.match(r"POWER(\d+)", _field(cpuinfo, "cpu"))
        generation = int(match[1]) if match else 0
        names = tuple(f"power{n}" for n in (10, 9) if n <= generation)
        return Processor(names, f"power{generation}" if generation else None)
    return Processor((), platform)


def _field(cpuinfo: str, name: str) -> str:
    """The value of the first line called `name`: that of the first processor."""
    for line in cpuinfo.split("\n"):
        key, colon, value = line.partition(":")
        if colon and key.rstrip() == name:
            return value.strip()
    return ""
