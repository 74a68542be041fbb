"""Bounded reading of one ELF file: every read is checked against the file's size. It knows no ELF table."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from linkcheck.elf.limits import BLOCK_SIZE, HEAD_SIZE
from linkcheck.errors import MalformedElfError, NotAnImageError
from linkcheck.model import FileKind
from linkcheck.opened_file import OpenedFile
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.opened_file import FileStamp

#: Kinds of what is not a regular file, by the file type bits of st_mode (man 7 inode).
_IRREGULAR_KINDS = {
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFIFO: FileKind.FIFO,
    stat.S_IFCHR: FileKind.DEVICE,
    stat.S_IFBLK: FileKind.DEVICE,
    stat.S_IFSOCK: FileKind.SOCKET,
}


class BoundedFile(OpenedFile):
    """A regular file open for reading. Reads beyond the size that it had when it was opened raise MalformedElfError,
    and reads that the system refuses raise UnreadableFileError; what is no regular file is a NotAnImageError.
    """

    __slots__ = ("_head",)

    def __init__(self, path: str, *, opened_as: str | None = None, expected: FileStamp | None = None) -> None:
        """See OpenedFile."""
        self._head = b""
        super().__init__(path, opened_as=opened_as, expected=expected)

    def refuse_kind(self, mode: int) -> NotAnImageError:
        """See OpenedFile.refuse_kind."""
        kind = _IRREGULAR_KINDS.get(stat.S_IFMT(mode), FileKind.DEVICE)
        return NotAnImageError(self.path, kind.value, kind)

    def load_head(self) -> bytes:
        """The first HEAD_SIZE bytes, or the whole of a shorter file; later reads inside them cost no system call."""
        self._head = self.read_at(0, min(HEAD_SIZE, self.size))
        return self._head

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Exactly `size` bytes at `offset`; `what` names them in the MalformedElfError when the file has fewer."""
        end = offset + size
        if end <= len(self._head):
            return self._head[offset:end]
        if end > self.size:
            self.require(offset, size, what)
        return self.read_at(offset, size)

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
