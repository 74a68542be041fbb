"""Which members of an archive are worth keeping: what a process could map, or would take for a library. No I/O."""

from __future__ import annotations

import re

ELF_MAGIC = b"\x7fELF"
#: What ExecuTorch programs are called; in directories only files of that name are asked whether they are some.
PROGRAM_SUFFIX = ".pte"


def is_library_name(path: str) -> bool:
    """Whether `path` is named like a shared library: `libx.so`, `x.cpython-311.so`, `libx.so.1.2`."""
    return ".so" in path and re.search(r"\.so(\.\d+)*$", path) is not None


def is_wanted(name: str, head: bytes) -> bool:
    """Whether a file called `name` that begins with `head` is kept. Like a directory, an archive stands for these."""
    return head.startswith(ELF_MAGIC) or is_library_name(name)
