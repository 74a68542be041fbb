"""Bounded reading of one program, a block at a time: every read is checked against the file's size. Knows no format."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedProgramError, NotAProgramError
from linkcheck.executorch.limits import BLOCK_SIZE, HASH_BLOCK_SIZE, MAX_BLOCK_READS, MAX_BLOCKS
from linkcheck.opened_file import OpenedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.opened_file import FileStamp


class BlockFile(OpenedFile):
    """A regular file open for reading; what is none is a NotAProgramError."""

    __slots__ = ("_blocks", "_reads_left")

    def __init__(self, path: str, expected: FileStamp | None = None) -> None:
        """See OpenedFile."""
        self._blocks: dict[int, bytes] = {}
        self._reads_left = MAX_BLOCK_READS
        super().__init__(path, expected=expected)

    def refuse_kind(self, mode: int) -> NotAProgramError:
        """See OpenedFile.refuse_kind."""
        return NotAProgramError(self.path, "a directory" if stat.S_ISDIR(mode) else "no regular file")

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Exactly `size` bytes at `offset`; `what` names them in the MalformedProgramError when the file has fewer."""
        end = offset + size
        if end > self.size:
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
        return self.read_at(offset, size)

    def _read_block(self, number: int, offset: int, what: str) -> bytes:
        self._count_read(offset, what)
        if len(self._blocks) >= MAX_BLOCKS:
            del self._blocks[next(iter(self._blocks))]  # the oldest; what is referred to stands behind who refers
        first = number * BLOCK_SIZE
        block = self._blocks[number] = self.read_at(first, min(BLOCK_SIZE, self.size - first))
        return block

    def _count_read(self, offset: int, what: str) -> None:
        self._reads_left -= 1
        if self._reads_left < 0:
            raise self.malformed(f"{what} at {offset:#x}: its tables lie in more than {MAX_BLOCK_READS} places")

    def peek(self, offset: int, size: int) -> bytes:
        """As `read_at`, for what is known to be inside the file and is read once: it takes the place of no block."""
        return self.read_at(offset, size)

    def malformed(self, reason: str) -> MalformedProgramError:
        """The error that says `reason` about this file, to be raised by the caller."""
        return MalformedProgramError(self.path, reason)

    def digest(self, offset: int, size: int) -> str:
        """The SHA-256 of `size` bytes at `offset`, which are known to be inside the file, in hexadecimal digits.

        Raises as `read_at`.
        """
        import hashlib

        digest = hashlib.sha256()
        for data in self._stream(offset, size):
            digest.update(data)
        return digest.hexdigest()

    def _stream(self, offset: int, size: int) -> Iterator[bytes]:
        for start in range(offset, offset + size, HASH_BLOCK_SIZE):
            yield self.read_at(start, min(HASH_BLOCK_SIZE, offset + size - start))
