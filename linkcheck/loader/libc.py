"""Whose loader a process of a given root starts with; it knows no loader's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Libc

if TYPE_CHECKING:
    from linkcheck.model import Image

#: What every name of musl's loader begins with (PT_INTERP; the linker gets it from the compiler's specs).
_MUSL_LOADER = "ld-musl-"
#: DT_NEEDED by which musl's files are told from glibc's (libc.so.6): its own name for itself, which is also Android's,
#: and Alpine's.
_MUSL_LIBC = ("libc.so", "libc.musl-")
#: What only glibc's libraries begin with; musl is all of them in one file.
_GLIBC_LIBRARIES = ("libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "ld-linux")


def recognise_libc(root: Image) -> Libc:
    """The C library that the loader of `root` belongs to: by PT_INTERP, or of a library by its DT_NEEDED.

    glibc where neither says musl, also for a library that needs no C library itself.
    """
    return named_libc(root) or Libc.GLIBC


def named_libc(root: Image) -> Libc | None:
    """The C library that PT_INTERP or DT_NEEDED of `root` says; None for a library that needs none itself."""
    if root.interpreter is not None:
        return Libc.MUSL if is_musl_loader(root.interpreter) else Libc.GLIBC
    if any(name == _MUSL_LIBC[0] or name.startswith(_MUSL_LIBC[1]) for name in root.needed):
        return Libc.MUSL
    return Libc.GLIBC if any(name.startswith(_GLIBC_LIBRARIES) for name in root.needed) else None


def is_musl_loader(path: str) -> bool:
    """Whether a loader of this name is musl's."""
    return path.rpartition("/")[2].startswith(_MUSL_LOADER)
