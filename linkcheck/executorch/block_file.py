"""Bounded reading of one regular file, a block at a time: every read is checked against its size. Knows no format.

`os.pread` and not mmap: a mapped file that somebody truncates kills the process with SIGBUS.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedProgramError, NotAProgramError, UnreadableFileError
from linkcheck.executorch.limits import BLOCK_SIZE, HASH_BLOCK_SIZE, MAX_BLOCK_READS, MAX_BLOCKS
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


class FileStamp(Value):
    """Which file was read, and in what state: one file may have several names, and may change between two reads."""

    device: int
    inode: int
    size: int
    modified_ns: int


class BlockFile:
    """A regular file open for reading; a context manager that closes it."""

    def __init__(self, path: str, expected: FileStamp | None = None) -> None:
        """Open `path`, which is kept as given for messages.

        Raises UnreadableFileError, also when the file is no longer the one of `expected`, and NotAProgramError for
        what is no regular file; that is never opened, because opening alone can block.
        """
        self.path = path
        self._blocks: dict[int, bytes] = {}
        self._reads_left = MAX_BLOCK_READS
        try:
            self._refuse_irregular(os.stat(path).st_mode)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error
        except ValueError as error:  # a NUL byte, or characters that the file system's encoding lacks
            raise UnreadableFileError(path, str(error)) from error
        try:
            status = os.fstat(self._descriptor)
            self._refuse_irregular(status.st_mode)
            self.stamp = FileStamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if expected is not None and self.stamp != expected:
                raise UnreadableFileError(path, "it changed since it was first read")
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes in the file when it was opened."""
        return self.stamp.size

    def _refuse_irregular(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise NotAProgramError(self.path, "a directory" if stat.S_ISDIR(mode) else "no regular file")

    def __enter__(self) -> BlockFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Exactly `size` bytes at `offset`; `what` names them in the MalformedProgramError when the file has fewer."""
        end = offset + size
        if end > self.stamp.size:
            raise self.malformed(f"{what} needs bytes {offset:#x} to {end:#x}, but the file has {self.size:#x} bytes")
        number, start = offset // BLOCK_SIZE, offset % BLOCK_SIZE
        if start + size <= BLOCK_SIZE:
            block = self._blocks.get(number)
            if block is None:
                block = self._read_block(number, offset, what)
            return block[start : start + size]
        if start + size <= 2 * BLOCK_SIZE:
            head = self.read(offset, BLOCK_SIZE - start, what)
            return head + self.read(offset + len(head), size - len(head), what)
        self._count_read(offset, what)
        return self._pread(offset, size)

    def _read_block(self, number: int, offset: int, what: str) -> bytes:
        self._count_read(offset, what)
        if len(self._blocks) >= MAX_BLOCKS:
            del self._blocks[next(iter(self._blocks))]  # the oldest; what is referred to stands behind who refers
        first = number * BLOCK_SIZE
        block = self._blocks[number] = self._pread(first, min(BLOCK_SIZE, self.size - first))
        return block

    def _count_read(self, offset: int, what: str) -> None:
        self._reads_left -= 1
        if self._reads_left < 0:
            raise self.malformed(f"{what} at {offset:#x}: its tables lie in more than {MAX_BLOCK_READS} places")

    def peek(self, offset: int, size: int) -> bytes:
        """As `read`, for what is inside the file and read once: it takes the place of no block."""
        return self._pread(offset, size)

    def malformed(self, reason: str) -> MalformedProgramError:
        """The error that says `reason` about this file, to be raised by the caller."""
        return MalformedProgramError(self.path, reason)

    def digest(self, offset: int, size: int) -> str:
        """The SHA-256 of `size` bytes at `offset`, in hexadecimal digits. Raises as `read`."""
        import hashlib

        digest = hashlib.sha256()
        for data in self._stream(offset, size):
            digest.update(data)
        return digest.hexdigest()

    def _stream(self, offset: int, size: int) -> Iterator[bytes]:
        for start in range(offset, offset + size, HASH_BLOCK_SIZE):
            yield self._pread(start, min(HASH_BLOCK_SIZE, offset + size - start))

    def _pread(self, offset: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise UnreadableFileError(self.path, error.strerror or str(error)) from error
        if len(data) < size:
            raise UnreadableFileError(self.path, "it became shorter while it was read")
        return data
