"""How programs for one C library are compiled and linked, asked of its compiler driver once; it builds nothing.

Starting the driver for every link takes three times as long as the linker itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from functools import cache

from linkcheck.model import Libc

#: The driver of each C library; Debian has the second in the package musl-tools.
DRIVERS = {Libc.GLIBC: "gcc", Libc.MUSL: "musl-gcc"}


def why_not(libc: Libc) -> str:
    """Why programs for `libc` cannot be made and run here, or ""."""
    if os.uname().machine != "x86_64":
        return "the graphs are written for x86-64"
    if shutil.which(DRIVERS[libc]) is None:
        return f"needs {DRIVERS[libc]} (Debian package {'gcc' if libc is Libc.GLIBC else 'musl-tools'})"
    return ""


@cache
def link_words(libc: Libc, flags: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a linker call for a program, before and after its own objects and libraries."""
    command = [DRIVERS[libc], "-###", *flags, "-o", "OUTPUT", "INPUT.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stderr.splitlines() if "collect2" in line)
    words = shlex.split(line)[1:]
    kept: list[str] = []
    for word, before in zip(words, ["", *words[:-1]], strict=True):
        # No link-time optimisation: its plugin is loaded for nothing.
        if not word.startswith("-plugin") and before != "-plugin":
            kept.append(word)
    at = kept.index("INPUT.o")
    head = kept[:at]
    head[head.index("-o") : head.index("-o") + 2] = []
    return ("ld", *head), tuple(kept[at + 1 :])
