"""What the dlopen metadata of a file says: JSON -> model.DlopenNote. It opens no library and judges none.

Source: the UAPI Group's "ELF dlopen() metadata" (.note.dlopen): an array of objects with `soname`, `priority`,
`feature` and `description`. No linker and no loader checks it, so what does not fit is passed over, entry by entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.limits import MAX_DLOPEN_NOTES, MAX_DLOPEN_SONAMES, MAX_DLOPEN_TEXT
from linkcheck.elf.strings import encode_name
from linkcheck.model import DLOPEN_PRIORITIES, DlopenNote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def parse_dlopen_notes(payloads: Sequence[bytes]) -> tuple[DlopenNote, ...]:
    """The entries of `payloads`, at most MAX_DLOPEN_NOTES; raises no error, whatever the bytes are."""
    found: dict[DlopenNote, None] = {}
    for payload in payloads:
        for note in _parse(payload):
            if len(found) >= MAX_DLOPEN_NOTES:
                return tuple(found)
            found[note] = None
    return tuple(found)


def _parse(payload: bytes) -> Iterator[DlopenNote]:
    import json

    try:
        entries = json.loads(payload.rstrip(b"\0").decode("utf-8", "strict"))
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or nested a thousand deep
        return
    for entry in entries if isinstance(entries, list) else ():
        names = entry.get("soname") if isinstance(entry, dict) else None
        if not isinstance(names, list):
            continue
        sonames = tuple(name for name in names if _is_name(name))[:MAX_DLOPEN_SONAMES]
        if not sonames:
            continue
        priority = entry.get("priority")
        yield DlopenNote(
            sonames,
            priority if isinstance(priority, str) and priority in DLOPEN_PRIORITIES else DLOPEN_PRIORITIES[1],
            _text(entry.get("feature")),
            _text(entry.get("description")),
        )


def _is_name(value: object) -> bool:
    """Whether `value` is text that a file can be called."""
    return isinstance(value, str) and bool(value) and len(value) <= MAX_DLOPEN_TEXT and encode_name(value) is not None


def _text(value: object) -> str:
    return value[:MAX_DLOPEN_TEXT] if isinstance(value, str) else ""
