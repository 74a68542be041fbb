"""What the interpreter that a program names says: whose loader it is, and whether the kernel can start it.

It knows no loader's rules. Source of the second: Linux fs/binfmt_elf.c (load_elf_binary, load_elf_interp) and
execve(2), ENOENT, ELIBBAD and ENOEXEC.
"""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import Attempt, FoundBy, Libc, Unresolved

if TYPE_CHECKING:
    from linkcheck.loader.system import System
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


def find_interpreter_fault(root: Image, system: System) -> Unresolved | None:
    """The interpreter of the program `root` when the kernel cannot start it; None when it can, or there is none.

    Without a rejected file there is none of that name; `given_up` says why nothing could be seen. Who may execute the
    file is not asked: a copy of a machine's files often has other modes.
    """
    path = root.interpreter
    if path is None or not root.is_executable:
        return None

    def reject(reason: str) -> Unresolved:
        return Unresolved(0, path, (), (Attempt(system.display(path), FoundBy.INTERPRETER, reason),))

    try:
        status = system.files.status(path)
        if not stat.S_ISREG(status.st_mode):
            return reject("not a regular file")
        target = system.image(path, status).target
    except (MalformedElfError, NotAnImageError) as error:
        return reject(error.reason)
    except UnreadableFileError as error:
        return Unresolved(0, path, (), given_up=f"the interpreter cannot be read: {error.reason}")
    except ValueError as error:  # a name that no file can have
        return reject(f"cannot be opened: {error}")
    except OSError as error:
        if not path.startswith("/"):
            return Unresolved(0, path, (), given_up="the interpreter is looked for in the working directory")
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return Unresolved(0, path, ())
        if error.errno == errno.EACCES:
            return Unresolved(0, path, (), given_up=f"the interpreter cannot be opened: {error.strerror}")
        return reject(f"cannot be opened: {error.strerror}")
    return None if target == root.target else reject(f"wrong machine: {target}")
