"""Bounded reading of one regular file: every read is checked against the file's size. It knows no ELF table.

`os.pread` and not mmap: a mapped file that somebody truncates kills the process with SIGBUS.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from linkcheck.elf.limits import BLOCK_SIZE, HEAD_SIZE
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import FileKind
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

#: Kinds of what is not a regular file, by the file type bits of st_mode (man 7 inode).
_IRREGULAR_KINDS = {
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFIFO: FileKind.FIFO,
    stat.S_IFCHR: FileKind.DEVICE,
    stat.S_IFBLK: FileKind.DEVICE,
    stat.S_IFSOCK: FileKind.SOCKET,
}


class FileStamp(Value):
    """Which file was read, and in what state, so that a later read can tell whether it is still that one."""

    device: int
    inode: int
    size: int
    modified_ns: int


class BoundedFile:
    """A regular file open for reading; a context manager that closes it.

    `path` is kept as given, for messages. Reads beyond the size that the file had when it was opened raise
    MalformedElfError; reads that the system refuses raise UnreadableFileError.
    """

    __slots__ = ("_descriptor", "_head", "path", "size", "stamp")

    def __init__(self, path: str, *, opened_as: str | None = None, expected: FileStamp | None = None) -> None:
        """Open `opened_as` (by default `path`).

        Raises UnreadableFileError, also when the file is no longer the one of `expected`, and NotAnImageError for a
        directory, FIFO, device or socket. Those are never opened, because opening alone can block or rewind a tape.
        """
        self.path = path
        self._head = b""
        place = path if opened_as is None else opened_as
        try:
            self._refuse_irregular(os.stat(place).st_mode)
            self._descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error
        except ValueError as error:  # a NUL byte, or characters that the file system's encoding lacks
            raise UnreadableFileError(path, str(error)) from error
        try:
            status = os.fstat(self._descriptor)
            self._refuse_irregular(status.st_mode)
            self.stamp = stamp = FileStamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            #: Bytes in the file when it was opened.
            self.size = stamp.size
            if expected is not None and stamp != expected:
                raise UnreadableFileError(path, "it changed since it was first read")
        except BaseException:
            self.close()
            raise

    def _refuse_irregular(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            kind = _IRREGULAR_KINDS.get(stat.S_IFMT(mode), FileKind.DEVICE)
            raise NotAnImageError(self.path, kind.value, kind)

    def __enter__(self) -> BoundedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def load_head(self) -> bytes:
        """The first HEAD_SIZE bytes, or the whole of a shorter file; later reads inside them cost no system call."""
        self._head = self._pread(0, min(HEAD_SIZE, self.size))
        return self._head

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Exactly `size` bytes at `offset`; `what` names them in the MalformedElfError when the file has fewer."""
        end = offset + size
        if end <= len(self._head):
            return self._head[offset:end]
        self.require(offset, size, what)
        return self._pread(offset, size)

    def require(self, offset: int, size: int, what: str) -> None:
        """Raise MalformedElfError unless the file has `size` bytes at `offset`."""
        end = offset + size
        if end > self.size:
            raise self.malformed(
                f"truncated: {what} takes the bytes {offset:#x} to {end:#x}, but the file has {self.size:#x}"
            )

    def malformed(self, reason: str) -> MalformedElfError:
        """The error that says `reason` about this file, to be raised by the caller."""
        return MalformedElfError(self.path, reason)

    def _pread(self, offset: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise UnreadableFileError(self.path, error.strerror or str(error)) from error
        if len(data) < size:
            raise UnreadableFileError(self.path, "it became shorter while it was read")
        return data


class Span(Value):
    """A stretch of a file that one table may fill: its file offset and size in bytes, and its name for messages."""

    offset: int
    size: int
    what: str

    def read(self, file: BoundedFile, at: int, size: int) -> bytes:
        """Exactly `size` bytes from `at` on, counted from the span's start.

        Raises MalformedElfError when they pass the span's end.
        """
        if at + size > self.size:
            raise file.malformed(
                f"{self.what}: bytes {at:#x} to {at + size:#x} are wanted, but it ends at {self.size:#x}"
            )
        return file.read(self.offset + at, size, self.what)

    def contains(self, file: BoundedFile, wanted: bytes) -> bool:
        """Whether `wanted` stands anywhere in the span, looked for a block at a time."""
        return next(self.find_all(file, wanted), None) is not None

    def find_all(self, file: BoundedFile, wanted: bytes) -> Iterator[int]:
        """Where `wanted` stands, counted from the span's start, in ascending order."""
        for start in range(0, self.size, BLOCK_SIZE):
            size = min(BLOCK_SIZE + len(wanted) - 1, self.size - start)
            block = file.read(self.offset + start, size, self.what)
            at = block.find(wanted)
            while at >= 0:
                yield start + at
                at = block.find(wanted, at + 1)
