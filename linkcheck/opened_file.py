"""One regular file, open for reading: opened with care, and every read of it whole. It knows no format and no bound.

`os.pread` and not mmap: a mapped file that somebody truncates kills the process with SIGBUS.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from linkcheck.errors import UnreadableFileError
from linkcheck.value import Value

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from linkcheck.errors import LinkcheckError


class FileStamp(Value):
    """Which file was read, and in what state: one file may have several names, and may change between two reads."""

    device: int
    inode: int
    size: int
    modified_ns: int

    def fits(self, status: os.stat_result) -> bool:
        """Whether `status` is of the same file in the same state."""
        return (
            status.st_ino == self.inode
            and status.st_mtime_ns == self.modified_ns
            and status.st_size == self.size
            and status.st_dev == self.device
        )


class OpenedFile:
    """A regular file open for reading; a context manager that closes it. A subclass says what else it refuses."""

    __slots__ = ("_descriptor", "path", "size", "stamp")

    def __init__(self, path: str, *, opened_as: str | None = None, expected: FileStamp | None = None) -> None:
        """Open `opened_as` (by default `path`, which is kept as given, for messages).

        Raises UnreadableFileError, also when the file is no longer the one of `expected`, and `refuse_kind`'s error for
        a directory, FIFO, device or socket. Those are not opened, because opening alone can block or rewind a tape; one
        that has just taken the place of `expected` is, and found to be another.
        """
        self.path = path
        place = path if opened_as is None else opened_as
        try:
            if expected is None:
                self._check_kind(os.stat(place).st_mode)
            self._descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error
        except ValueError as error:  # a NUL byte, or characters that the file system's encoding lacks
            raise UnreadableFileError(path, str(error)) from error
        try:
            status = os.fstat(self._descriptor)
            self._check_kind(status.st_mode)
            #: Bytes in the file when it was opened.
            self.size = status.st_size
            if expected is None:
                expected = FileStamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            elif not expected.fits(status):
                raise UnreadableFileError(path, "it changed since it was first read")
            self.stamp = expected
        except BaseException:
            self.close()
            raise

    def _check_kind(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise self.refuse_kind(mode)

    def refuse_kind(self, mode: int) -> LinkcheckError:
        """The error about what is no regular file but of the type in `mode`, st_mode (man 7 inode)."""
        raise NotImplementedError

    def __enter__(self) -> Self:
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

    def read_at(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes at `offset`, which the file had when it was opened.

        Raises UnreadableFileError when the system refuses, and when the file has become shorter.
        """
        try:
            data = os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise UnreadableFileError(self.path, error.strerror or str(error)) from error
        if len(data) < size:
            raise UnreadableFileError(self.path, "it became shorter while it was read")
        return data
