"""Reads tar files, compressed or not: finds the ELF members and writes them into a tree. Decides no kind.

Python's tarfile reads the headers of the stream; nothing of it writes a file.
"""

from __future__ import annotations

import itertools
import os
import tarfile
from typing import TYPE_CHECKING, BinaryIO

from linkcheck.errors import ArchiveError
from linkcheck.inputs.budget import Budget
from linkcheck.inputs.decompress import broken_data, name_compression, open_decompressed
from linkcheck.inputs.limits import BLOCK, MAX_NAME, MAX_TAR_HEADER
from linkcheck.inputs.member_name import split_name
from linkcheck.inputs.wanted import is_wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from linkcheck.inputs.spool import Tree

#: Header types that hold the name or target of the next header; tarfile reads them as a whole.
_EXTENSIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


def unpack_tar(path: str, tree: Tree) -> None:
    """Unpack the ELF members and links of the tar file at `path` into `tree`.

    Raises ArchiveError, and OSError when the file cannot be opened.
    """
    with open(path, "rb") as file:
        compression = name_compression(file.read(8))
        file.seek(0)
        unpack_tar_stream(path, file, compression, Budget(path, os.fstat(file.fileno()).st_size), tree)


def unpack_tar_stream(path: str, stream: BinaryIO, compression: str | None, budget: Budget, tree: Tree) -> None:
    """As `unpack_tar`, from an open stream; `path` names the archive in messages. Raises ArchiveError."""
    metered = _Metered(open_decompressed(stream, compression, path), budget)
    broken: tuple[type[Exception], ...] = (RecursionError, *broken_data())
    try:
        with tarfile.open(
            fileobj=metered,  # type: ignore[call-overload,unused-ignore]  # it needs read() only
            mode="r|",
            tarinfo=_BoundedHeader,
            encoding="utf-8",
            errors="surrogateescape",
            bufsize=BLOCK,
        ) as archive:
            while (member := archive.next()) is not None:
                budget.count_member()
                _unpack_member(path, archive, member, budget, tree)
                archive.members.clear()  # it would keep every header otherwise
    except tarfile.TarError as error:
        raise ArchiveError(path, f"it is broken: {str(error) or type(error).__name__}") from error
    except ValueError as error:  # its words are about Python, as of a sparse map that is not made of numbers
        raise ArchiveError(path, "it is broken: a header cannot be read") from error
    except broken as error:
        raise ArchiveError(path, f"it is broken: {str(error) or type(error).__name__}") from error


def _unpack_member(path: str, archive: tarfile.TarFile, member: tarfile.TarInfo, budget: Budget, tree: Tree) -> None:
    parts = split_name(path, member.name)
    if not parts:
        return
    if member.issym():
        if len(member.linkname) > MAX_NAME:
            raise ArchiveError(path, f"the link {member.name} has a target of {len(member.linkname):,} characters")
        tree.link(parts, member.linkname)
    elif member.islnk():
        tree.link_hard(path, parts, split_name(path, member.linkname))
    elif member.isreg():
        blocks = _read_blocks(archive, member, budget)
        first = next(blocks, b"")
        if is_wanted(member.name, first):
            tree.write(path, parts, itertools.chain((first,), blocks))
    # Directories come with what is in them; devices and FIFOs are nothing to judge, and are not made.


def _read_blocks(archive: tarfile.TarFile, member: tarfile.TarInfo, budget: Budget) -> Iterator[bytes]:
    stream = archive.extractfile(member)
    if stream is None:
        return
    while block := stream.read(BLOCK):
        if member.issparse():  # the holes come out of nothing, so the stream below did not count them
            budget.spend(len(block))
        yield block


class _BoundedHeader(tarfile.TarInfo):
    """A header that is not read when its extension is larger than any name, and that ends no archive by being broken.

    `tarfile` takes a broken header behind the first for the end of the archive: what comes after it would not be seen.
    """

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """The next header. Raises ReadError for a broken one."""
        try:
            return super().fromtarfile(archive)
        except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError):  # type: ignore[attr-defined]  # two ways to end
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from error

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENSIONS and self.size > MAX_TAR_HEADER:
            raise tarfile.ReadError(f"an extended header of {self.size:,} bytes; the limit is {MAX_TAR_HEADER:,}")
        if self.size < 0:
            raise tarfile.ReadError(f"a member of {self.size:,} bytes")
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        if member.size < 0:  # an extended header may have another size than the member's own
            raise tarfile.ReadError(f"a member of {member.size:,} bytes")
        return member


class _Metered:
    """A stream that counts what is read from it."""

    def __init__(self, stream: BinaryIO, budget: Budget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._budget.spend(len(data))
        return data
