"""Reads Debian packages: finds data.tar in the ar file and hands it on. Reads no control data.

Source: man 5 deb; the ar format is the common one (man 5 ar), whose long names no package uses.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, cast

from linkcheck.errors import ArchiveError
from linkcheck.inputs.budget import Budget
from linkcheck.inputs.decompress import name_compression
from linkcheck.inputs.limits import BLOCK

if TYPE_CHECKING:
    from linkcheck.inputs.spool import Tree

_GLOBAL_HEADER = 8
_HEADER = 60
#: Members of a package: three, and a few that start with an underscore.
_MOST_MEMBERS = 64


def unpack_deb(path: str, tree: Tree) -> None:
    """Unpack the ELF files and links of the package at `path` into `tree`, as below the root directory.

    Raises ArchiveError, and OSError when the file cannot be read.
    """
    from linkcheck.inputs.tar_archive import unpack_tar_stream

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        at = _GLOBAL_HEADER
        for _ in range(_MOST_MEMBERS):
            file.seek(at)
            header = file.read(_HEADER)
            if len(header) < _HEADER or header[58:60] != b"`\n" or not header[48:58].strip().isdigit():
                raise ArchiveError(path, "it is no Debian package: no data.tar in it" if at == size else "it is broken")
            length = int(header[48:58])
            start = at + _HEADER
            if start + length > size:
                raise ArchiveError(path, "it was cut off")
            name = header[:16].rstrip(b" ").rstrip(b"/").decode("ascii", "replace")
            if name.startswith("data.tar"):
                compression = name_compression(file.read(8))
                stream = cast("BinaryIO", io.BufferedReader(_Part(file, start, length), BLOCK))
                unpack_tar_stream(path, stream, compression, Budget(path, size), tree)
                return
            at = start + length + length % 2
    raise ArchiveError(path, "it is no Debian package: no data.tar among its first members")


class _Part(io.RawIOBase):
    """A stretch of a file as a stream."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._descriptor = file.fileno()
        self._at = start
        self._end = start + length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = os.pread(self._descriptor, min(len(buffer), self._end - self._at), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
