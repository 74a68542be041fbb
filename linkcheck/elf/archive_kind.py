"""Whether a file is an ar archive, and what is in it. Unpacks nothing and follows no thin archive's members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import FileIdentity, FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.elf.contents import Contents

ARCHIVE_MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
#: struct ar_hdr of <ar.h>: ar_name[16], then ar_size[10] at 48, then the two bytes ar_fmag.
HEADER_SIZE = 60
#: Member headers looked at; the message names the first two and a count.
MOST_MEMBERS = 64
#: Bytes of the table of long names that are read.
MOST_NAME_BYTES = 4096


def identify_archive(contents: Contents) -> FileIdentity | None:
    """Recognise an ar archive or a thin one (man 5 ar; binutils "ar", option T); None for anything else.

    A Debian package is one, too (man 5 deb), but without an index of symbols, and linkers refuse that.
    """
    thin = contents.head.startswith(THIN_MAGIC)
    if not thin and not contents.head.startswith(ARCHIVE_MAGIC):
        return None
    kind = FileKind.THIN_ARCHIVE if thin else FileKind.ARCHIVE
    members = tuple(_member_names(contents, thin=thin))
    if not thin and members[:1] == ("debian-binary",):
        return FileIdentity(contents.path, FileKind.DEBIAN_PACKAGE)
    if not members:
        return FileIdentity(contents.path, kind, "without members")
    count = f"at least {len(members)}" if len(members) == MOST_MEMBERS else str(len(members))
    noun = "member" if len(members) == 1 else "members"
    more = ", …" if len(members) > 2 else ""
    return FileIdentity(contents.path, kind, f"{count} {noun}: {', '.join(members[:2])}{more}")


def _member_names(contents: Contents, *, thin: bool) -> Iterator[str]:
    """The names of the first members, without the symbol index and the table of long names.

    Ends where a header does not fit.
    """
    offset = len(ARCHIVE_MAGIC)
    long_names = b""
    found = 0
    for _ in range(MOST_MEMBERS + 4):
        header = contents.read(offset, HEADER_SIZE)
        if len(header) < HEADER_SIZE or header[58:] != b"`\n":
            return
        raw_size = header[48:58].strip()
        if not raw_size.isdigit():
            return
        size = int(raw_size)
        name = header[:16].rstrip(b" ")
        # The symbol index of GNU and System V, the table of long names, and the symbol index of BSD.
        special = name in (b"/", b"/SYM64/", b"//") or name.startswith(b"__.SYMDEF")
        if name == b"//":
            long_names = contents.read(offset + HEADER_SIZE, min(size, MOST_NAME_BYTES))
        elif not special and found < MOST_MEMBERS:
            found += 1
            yield _decode_name(contents, name, long_names, offset)
        # A thin archive holds the special members' bytes only (binutils "Thin archives").
        body = 0 if thin and not special else size
        offset += HEADER_SIZE + body + body % 2


def _decode_name(contents: Contents, name: bytes, long_names: bytes, offset: int) -> str:
    if name.startswith(b"#1/") and name[3:].isdigit():  # BSD: the name stands before the member's bytes
        length = min(int(name[3:]), 256)
        name = contents.read(offset + HEADER_SIZE, length).rstrip(b"\0")
    elif name.startswith(b"/") and name[1:].isdigit():  # GNU and System V: an offset into "//"
        start = int(name[1:])
        name = long_names[start:].partition(b"\n")[0].removesuffix(b"/") or name
    else:
        name = name.removesuffix(b"/")
    return name.decode("utf-8", "surrogateescape")
