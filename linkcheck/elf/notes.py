"""Finds the build ID in PT_NOTE. Notes are evidence only: what is not a well-formed note ends the search, no error.

Source: gABI "Note Section"; NT_GNU_BUILD_ID from <elf.h>. Notes in a segment aligned to 8 bytes are padded to 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.header import PT_NOTE
from linkcheck.elf.limits import MAX_NOTE_SEGMENTS, MAX_NOTE_SIZE

if TYPE_CHECKING:
    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.header import Header

_NT_GNU_BUILD_ID = 3


def read_build_id(file: BoundedFile, header: Header) -> str | None:
    """The build ID in hexadecimal digits, or None."""
    notes = [segment for segment in header.segments if segment.type == PT_NOTE]
    for segment in notes[:MAX_NOTE_SEGMENTS]:
        size = min(segment.file_size, MAX_NOTE_SIZE)
        if segment.offset + size <= file.size:
            raw = file.read(segment.offset, size, "PT_NOTE")
            found = _find_build_id(raw, header, 8 if segment.alignment == 8 else 4)
            if found is not None:
                return found
    return None


def _find_build_id(raw: bytes, header: Header, alignment: int) -> str | None:
    record = header.layout.compile("III")
    at = 0
    while at + record.size <= len(raw):
        name_size, size, type_ = record.unpack_from(raw, at)
        name_at = at + record.size
        start = _align(name_at + name_size, alignment)
        end = start + size
        if end > len(raw):
            return None
        if type_ == _NT_GNU_BUILD_ID and raw[name_at : name_at + name_size] == b"GNU\0":
            return raw[start:end].hex()
        at = _align(end, alignment)
    return None


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
