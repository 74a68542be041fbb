"""Makes archives member by member, hostile ones too; it unpacks nothing."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: What an ELF file begins with; the rest is no ELF, so whoever judges it must say so.
ELF = b"\x7fELF" + bytes(60)


def make_zip(path: Path, members: Iterable[tuple[str, bytes]], links: Iterable[tuple[str, str]] = ()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        for name, target in links:
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
    return path


def member(name: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, len(content)
    return info


def make_tar(path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


def make_deb(path: Path, data: bytes, data_name: str = "data.tar") -> Path:
    """A package as `ar` would make it, from the bytes of its data archive."""

    def entry(name: str, content: bytes) -> bytes:
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        return header + content + b"\n" * (len(content) % 2)

    control = entry("debian-binary", b"2.0\n") + entry("control.tar.gz", b"odd")
    path.write_bytes(b"!<arch>\n" + control + entry(data_name, data))
    return path
