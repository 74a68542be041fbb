"""What a file is, from its content and never from its name. Not what an ELF file says: that is reader.py.

A file is looked at with stat first and opened only when it is a regular one: opening a FIFO or a device can block or
act. At most a few kilobytes of it are read.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from linkcheck.elf.contents import Contents
from linkcheck.elf.limits import HEAD_SIZE
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import FileIdentity, FileKind
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Callable

#: O_NONBLOCK and O_NOCTTY: the name may have become a FIFO or a terminal since stat looked at it.
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def identify(path: str) -> FileIdentity:
    """Say what the file at `path` is; every path has an answer, a missing or unreadable one included.

    Links are followed, as the linker and ld.so follow them.
    """
    try:
        status = os.stat(path)  # `path` is named in messages as it was given
    except ValueError:  # CPython's answer to a NUL byte, which no system call can pass on
        return FileIdentity(path, FileKind.MISSING, "no path can hold a NUL byte")
    except OSError as error:
        return _identify_unreachable(path, error)
    special = _special_kind(status.st_mode)
    if special is not None:
        return FileIdentity(path, special)
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except OSError as error:
        return _identify_unreachable(path, error)
    try:
        status = os.fstat(descriptor)
        special = _special_kind(status.st_mode)
        if special is not None:
            return FileIdentity(path, special)
        head = os.pread(descriptor, HEAD_SIZE, 0)
        # Files of /proc and some network file systems say that they have no bytes and then have some.
        size = max(status.st_size, len(head))

        def read_at(offset: int, count: int) -> bytes:
            return os.pread(descriptor, count, offset)

        return _identify_contents(Contents(path, size, head, read_at))
    except OSError as error:
        return FileIdentity(path, FileKind.UNREADABLE, error.strerror or str(error))
    finally:
        os.close(descriptor)


def correct_identity(
    identity: FileIdentity, error: MalformedElfError | UnreadableFileError | NotAnImageError
) -> FileIdentity:
    """`identity` as `error` shows it to be: raised by the reader or, later, by the image's symbol table."""
    if isinstance(error, MalformedElfError):
        kind: FileKind | None = FileKind.MALFORMED_ELF
    elif isinstance(error, UnreadableFileError):
        kind = FileKind.UNREADABLE
    else:
        kind = error.kind  # the reader saw more, or the file was replaced in between
    kind = kind or FileKind.DATA
    return replace(identity, kind=kind, detail="" if error.reason == kind.value else error.reason)


def _special_kind(mode: int) -> FileKind | None:
    """The kind of what is no regular file, by st_mode (man 7 inode); None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return FileKind.DIRECTORY
    if stat.S_ISFIFO(mode):
        return FileKind.FIFO
    if stat.S_ISSOCK(mode):
        return FileKind.SOCKET
    return FileKind.DEVICE


def _identify_unreachable(path: str, error: OSError) -> FileIdentity:
    """What a path is that stat or open refused (man 2 stat, man 7 path_resolution)."""
    if error.errno == errno.ELOOP:
        return FileIdentity(path, FileKind.LOOPING_LINK, names=_link_target(path))
    if error.errno == errno.ENOENT:
        target = _link_target(path)
        if target:
            return FileIdentity(path, FileKind.DANGLING_LINK, f"its target {target[0]} does not exist", names=target)
        return FileIdentity(path, FileKind.MISSING, "there is no file of that name")
    if error.errno == errno.ENOTDIR:
        return FileIdentity(path, FileKind.MISSING, "a part of the path is a file, not a directory")
    if error.errno == errno.ENAMETOOLONG:
        return FileIdentity(path, FileKind.MISSING, "the name is longer than the system allows")
    return FileIdentity(path, FileKind.UNREADABLE, error.strerror or str(error))


def _link_target(path: str) -> tuple[str, ...]:
    try:
        return (os.readlink(path),)  # the target as written, not as a Path would rewrite it
    except OSError:
        return ()


def _identify_contents(contents: Contents) -> FileIdentity:
    if not contents.head:
        return FileIdentity(contents.path, FileKind.EMPTY)
    if contents.head.startswith(b"\x7fELF"):
        from linkcheck.elf.elf_kind import identify_elf

        return identify_elf(contents.path)
    # What is no image is the rare case, so the modules are read only here.
    from linkcheck.elf.archive_kind import identify_archive
    from linkcheck.elf.binary_kind import identify_binary
    from linkcheck.elf.text_kind import identify_text

    steps: tuple[Callable[[Contents], FileIdentity | None], ...] = (identify_archive, identify_binary, identify_text)
    for step in steps:
        identity = step(contents)
        if identity is not None:
            return identity
    shown = contents.head[:8].hex(" ")
    return FileIdentity(contents.path, FileKind.DATA, f"its first bytes are {shown}")
