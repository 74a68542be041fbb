"""Reads wheels and other zip files: finds the ELF members and inflates them into a tree. Decides no kind.

Python's zipfile reads the directory; the members are inflated here, because most are only looked at: four bytes tell
that a header file is no ELF file, and zipfile needs ten times as long to come to them.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from typing import TYPE_CHECKING

from linkcheck.errors import ArchiveError
from linkcheck.inputs.budget import Budget
from linkcheck.inputs.limits import BLOCK, MAX_NAME, MAX_ZIP_DIRECTORY
from linkcheck.inputs.member_name import split_name
from linkcheck.inputs.wanted import is_library_name, is_wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from linkcheck.inputs.spool import Tree

#: APPNOTE 4.3.7: size of a local file header without name and extra field, and where their lengths are.
_LOCAL_HEADER = 30
_LOCAL_SIGNATURE = b"PK\3\4"
#: Bytes of a member that are read to look at its beginning: header, name, and a few of data.
_PEEK = 512
_ENCRYPTED = 0x1
#: A wheel's `<name>-<version>.data/platlib` and `purelib` are installed into site-packages (PEP 427).
_INSTALLED_AT_TOP = ("platlib", "purelib")


def unpack_zip(path: str, choose_tree: Callable[[list[tuple[str, ...]]], Tree], *, wheel: bool) -> Tree:
    """Unpack the ELF members and links of the zip file at `path` into the tree that `choose_tree` gives; return it.

    It is asked with the places of the members to come. In a `wheel` they are where pip puts them. Raises
    ArchiveError, and OSError when the file cannot be read.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        budget = Budget(path, size)
        members = _list_members(file.fileno(), path, size, budget)
        kept: dict[tuple[str, ...], zipfile.ZipInfo] = {}
        links: dict[tuple[str, ...], zipfile.ZipInfo] = {}
        reader = _Reader(file.fileno(), path, budget)
        for info in members:
            parts = split_name(path, info.filename)
            if not parts or info.is_dir():
                continue
            place = _installed_place(parts) if wheel else parts
            if stat.S_ISLNK(info.external_attr >> 16):
                links[place] = info
            elif reader.is_wanted(info):
                kept[place] = info
        tree = choose_tree(list(kept))
        for place, info in kept.items():
            tree.write(path, place, reader.inflate(info))
            tree.files[tree.place(place)] = f"{path}!/{'/'.join(split_name(path, info.filename))}"
        for place, info in links.items():
            tree.link(place, reader.read_target(info))
        return tree


def _installed_place(parts: tuple[str, ...]) -> tuple[str, ...]:
    if len(parts) > 2 and parts[0].endswith(".data") and parts[1] in _INSTALLED_AT_TOP:
        return parts[2:]
    return parts


def _list_members(descriptor: int, path: str, size: int, budget: Budget) -> list[zipfile.ZipInfo]:
    """The directory's entries in the order of their data, after the checks that concern all of them together."""
    _check_directory_size(descriptor, path, size)
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(archive.infolist(), key=lambda info: info.header_offset)
            end = archive.start_dir
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise ArchiveError(path, f"its directory is broken: {error}") from error
    offsets = [*(info.header_offset for info in members), end]
    for info, after in zip(members, offsets[1:], strict=True):
        budget.count_member()
        # Members that share their data are how a few megabytes inflate to petabytes.
        if info.header_offset + _LOCAL_HEADER + info.compress_size > after:
            raise ArchiveError(path, f"the member {info.filename} overlaps what follows it")
    return members


def _check_directory_size(descriptor: int, path: str, size: int) -> None:
    """Refuse a directory that zipfile would need gigabytes for (APPNOTE 4.3.14 to 4.3.16)."""
    start = max(0, size - 22 - 0xFFFF)
    tail = os.pread(descriptor, size - start, start)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + 22 > len(tail):
        raise ArchiveError(path, "it has no zip directory; it was cut off, or is something else")
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    if listed == 0xFFFFFFFF:  # the size is in the zip64 record then
        long_at = tail.rfind(b"PK\6\6", 0, at)
        listed = int.from_bytes(tail[long_at + 40 : long_at + 48], "little") if long_at >= 0 else size
    if listed > MAX_ZIP_DIRECTORY:
        raise ArchiveError(path, f"its directory has {listed:,} bytes; the limit is {MAX_ZIP_DIRECTORY:,}")


class _Reader:
    """Members of one open zip file."""

    def __init__(self, descriptor: int, path: str, budget: Budget) -> None:
        self._descriptor = descriptor
        self._path = path
        self._budget = budget

    def is_wanted(self, info: zipfile.ZipInfo) -> bool:
        """Whether the member is kept, from its name and its first bytes."""
        if is_library_name(info.filename):
            return True
        if info.file_size < 16:  # e_ident alone is longer
            return False
        if info.flag_bits & _ENCRYPTED:
            raise ArchiveError(self._path, f"the member {info.filename} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return is_wanted(info.filename, next(self.inflate(info), b""))
        raw = os.pread(self._descriptor, _PEEK, info.header_offset)
        data = raw[self._data_offset(info, raw) :]
        if info.compress_type == zipfile.ZIP_DEFLATED:
            if len(data) < 64:
                data = os.pread(self._descriptor, _PEEK, info.header_offset + self._data_offset(info, raw))
            try:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, 16)
            except zlib.error as error:
                raise self._broken(info, str(error)) from error
        return is_wanted(info.filename, data)

    def inflate(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """The member's bytes, block by block; ArchiveError when they are not what the directory promises."""
        if info.flag_bits & _ENCRYPTED:
            raise ArchiveError(self._path, f"the member {info.filename} is encrypted")
        if info.compress_type == zipfile.ZIP_STORED:
            blocks = self._read_packed(info)
        elif info.compress_type == zipfile.ZIP_DEFLATED:
            blocks = self._inflate_deflated(info)
        else:
            blocks = self._inflate_otherwise(info)
        size, checksum = 0, 0
        for block in blocks:
            self._budget.spend(len(block))
            size += len(block)
            if size > info.file_size:
                break
            checksum = zlib.crc32(block, checksum)
            yield block
        if size != info.file_size:
            raise self._broken(info, f"it has not the {info.file_size:,} bytes that the directory says")
        if checksum != info.CRC:
            raise self._broken(info, "its checksum is wrong")

    def read_target(self, info: zipfile.ZipInfo) -> str:
        """The target of a symbolic link, which is its content."""
        if info.file_size > MAX_NAME:
            raise ArchiveError(self._path, f"the link {info.filename} has a target of {info.file_size:,} bytes")
        return b"".join(self.inflate(info)).decode("utf-8", "surrogateescape")

    def _data_offset(self, info: zipfile.ZipInfo, header: bytes) -> int:
        if len(header) < _LOCAL_HEADER or not header.startswith(_LOCAL_SIGNATURE):
            raise self._broken(info, "its local header is not where the directory says")
        return _LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")

    def _read_packed(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        header = os.pread(self._descriptor, _LOCAL_HEADER, info.header_offset)
        at = info.header_offset + self._data_offset(info, header)
        end = at + info.compress_size
        while at < end:
            block = os.pread(self._descriptor, min(BLOCK, end - at), at)
            if not block:
                raise self._broken(info, "the file ends before it does")
            at += len(block)
            yield block

    def _inflate_deflated(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            for packed in self._read_packed(info):
                rest = packed
                while rest and not decoder.eof:
                    yield decoder.decompress(rest, BLOCK)
                    rest = decoder.unconsumed_tail
            while not decoder.eof and (block := decoder.decompress(decoder.unconsumed_tail, BLOCK)):
                yield block
        except zlib.error as error:
            raise self._broken(info, str(error)) from error

    def _inflate_otherwise(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """What wheels do not use: bzip2 and lzma, by zipfile."""
        import lzma

        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(info) as stream:
                while block := stream.read(BLOCK):
                    yield block
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, lzma.LZMAError) as error:
            raise self._broken(info, str(error)) from error

    def _broken(self, info: zipfile.ZipInfo, reason: str) -> ArchiveError:
        return ArchiveError(self._path, f"the member {info.filename} is broken: {reason}")
