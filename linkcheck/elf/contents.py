"""The bytes of one open file as the kind detectors see them. Opens nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable


class Contents(Value):
    """A file's first bytes and a way to more of them."""

    path: str
    #: Bytes in the file.
    size: int
    head: bytes
    #: pread: at most `count` bytes from `offset`, fewer at the end of the file; raises OSError.
    _read_at: Callable[[int, int], bytes]

    def read(self, offset: int, count: int) -> bytes:
        """The bytes from `offset`, at most `count`; fewer when the file ends before. Raises OSError."""
        if offset + count <= len(self.head):
            return self.head[offset : offset + count]
        # An offset from the file may be larger than off_t, and nothing is there.
        return self._read_at(offset, count) if offset < self.size else b""
