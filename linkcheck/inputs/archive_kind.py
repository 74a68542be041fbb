"""Which archive a named file is, from its content. Opens no member.

A file that is named like a library is never taken for an archive: whoever names `libx.so` asks whether it is one, and
that it is a zip file is the answer (LC101).
"""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from linkcheck.choice import Choice
from linkcheck.errors import ArchiveError
from linkcheck.inputs.wanted import ELF_MAGIC, is_library_name

_TAR_BLOCK = 512
#: `magic` of a POSIX or GNU tar header (man 5 tar), and where it is.
_USTAR, _USTAR_OFFSET = b"ustar", 257
_DEB = b"!<arch>\ndebian-binary"
#: Endings that promise an archive: what is not one must not be judged as a file of its own.
_ENDINGS = (".whl", ".zip", ".deb", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2", ".tbz2")


class ArchiveKind(Choice):
    """How an archive is read."""

    ZIP = "zip"
    WHEEL = "wheel"
    TAR = "tar"
    DEB = "deb"


def identify_archive(path: str) -> ArchiveKind | None:
    """The kind of archive at `path`, or None when it is none (or no regular file, or unreadable: others say that).

    Raises ArchiveError for a file that is named like an archive and is none, and for a compression that cannot be
    read here.
    """
    if is_library_name(path):
        return None
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb", buffering=0) as file:
            head = file.read(_TAR_BLOCK)
            if head.startswith(ELF_MAGIC):
                return None
            kind = _identify(path, head, file)
    except (OSError, ValueError):
        return None
    if kind is None and path.endswith(_ENDINGS):
        raise ArchiveError(path, "it is named like an archive, but its content is none")
    return kind


def _identify(path: str, head: bytes, file: BinaryIO) -> ArchiveKind | None:
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return ArchiveKind.WHEEL if path.endswith(".whl") else ArchiveKind.ZIP
    if head.startswith(_DEB):
        return ArchiveKind.DEB
    if _is_tar(head):
        return ArchiveKind.TAR
    # Imported only for what is neither ELF nor one of those.
    from linkcheck.inputs.decompress import broken_data, name_compression, open_decompressed

    compression = name_compression(head)
    if compression is None:
        return None
    file.seek(0)
    try:
        return ArchiveKind.TAR if _is_tar(open_decompressed(file, compression, path).read(_TAR_BLOCK)) else None
    except ArchiveError:
        # A compressed file that is no tar is nobody's input; whether this is one cannot be seen.
        if ".tar" in path or path.endswith(_ENDINGS):
            raise
        return None
    except broken_data() as error:
        if path.endswith(_ENDINGS):
            raise ArchiveError(path, f"its {compression} data is broken: {error}") from error
        return None


def _is_tar(block: bytes) -> bool:
    """Whether `block` is a tar header: by its magic, or by the checksum that the oldest ones have (man 5 tar)."""
    if len(block) < _TAR_BLOCK:
        return False
    if block[_USTAR_OFFSET:].startswith(_USTAR):
        return True
    digits = block[148:156].strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        return False
    return int(digits, 8) == sum(block) - sum(block[148:156]) + 8 * ord(" ")
