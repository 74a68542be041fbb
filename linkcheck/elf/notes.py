"""Finds the build ID and the dlopen metadata in PT_NOTE. What a payload says is dlopen_notes.py's job, not this one's.

Notes are evidence only: what is not a well-formed note ends the search in its segment, no error.
Source: gABI "Note Section"; NT_GNU_BUILD_ID from <elf.h>; the UAPI Group's "ELF dlopen() metadata" for the owner FDO.
Notes in a segment aligned to 8 bytes are padded to 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.header import PT_NOTE
from linkcheck.elf.limits import MAX_DLOPEN_PAYLOADS, MAX_NOTE_SEGMENTS, MAX_NOTE_SIZE
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.header import Header

_NT_GNU_BUILD_ID = 3
_NT_FDO_DLOPEN = 0x407C0C0A


class Notes(Value):
    """What the notes of one file say."""

    #: In hexadecimal digits; None without one.
    build_id: str | None
    #: The content of each dlopen note, in order.
    dlopen_payloads: tuple[bytes, ...] = ()


def read_notes(file: BoundedFile, header: Header) -> Notes:
    """The notes of `file`: its first build ID, and up to MAX_DLOPEN_PAYLOADS dlopen notes."""
    build_id = None
    payloads: dict[bytes, None] = {}  # linkers let segments overlap, so that one note is met twice
    segments = [segment for segment in header.segments if segment.type == PT_NOTE]
    for segment in segments[:MAX_NOTE_SEGMENTS]:
        size = min(segment.file_size, MAX_NOTE_SIZE)
        if segment.offset + size > file.size:
            continue
        raw = file.read(segment.offset, size, "PT_NOTE")
        for type_, owner, content in _walk(raw, header, 8 if segment.alignment == 8 else 4):
            if type_ == _NT_GNU_BUILD_ID and owner == b"GNU\0":
                build_id = build_id or content.hex()
            elif type_ == _NT_FDO_DLOPEN and owner == b"FDO\0" and len(payloads) < MAX_DLOPEN_PAYLOADS:
                payloads[content] = None
    return Notes(build_id, tuple(payloads))


def _walk(raw: bytes, header: Header, alignment: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Type, owner and content of each note."""
    record = header.layout.compile("III")
    at = 0
    while at + record.size <= len(raw):
        name_size, size, type_ = record.unpack_from(raw, at)
        name_at = at + record.size
        start = _align(name_at + name_size, alignment)
        end = start + size
        if end > len(raw):
            return
        yield type_, raw[name_at : name_at + name_size], raw[start:end]
        at = _align(end, alignment)


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
