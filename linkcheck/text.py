"""Names made unique, and fit for a message, wherever they come from. It knows no value, and renders nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """`names` without repetitions, first occurrence kept."""
    return tuple(dict.fromkeys(names))


def one_line(name: str) -> str:
    """`name` with its control characters (C0, C1, line and paragraph separator) as escapes, `\\n` for a line feed.

    For names that files carry, before they become part of a message: with a line feed of its own a SONAME could add a
    line to a message, a command to a remedy. All other bytes stay, and are the renderers' business.
    """
    if name.isprintable():
        return name
    return "".join(_escape(c) if c < " " or "\x7f" <= c <= "\x9f" or c in "\u2028\u2029" else c for c in name)


def _escape(character: str) -> str:
    code = ord(character)
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
