"""Whether the kernel can start the interpreter that a program names; it does not say what that loads.

Source: Linux fs/binfmt_elf.c (load_elf_binary, load_elf_interp) and execve(2), ENOENT, ELIBBAD and ENOEXEC.
"""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import Attempt, FoundBy, Unresolved

if TYPE_CHECKING:
    from linkcheck.loader.system import System
    from linkcheck.model import Image


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
