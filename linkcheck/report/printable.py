"""Makes text that came from a file safe to show or to store: terminals, logs and JSON. Escapes only, never drops.

File names and symbol names are bytes that somebody else chose. They may hold terminal escapes, line breaks that
start a CI system's command, bidirectional controls that reorder what a reader sees, or bytes that are no UTF-8.
What XML, Markdown or GitHub need besides is done by their renderers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

#: `::name` at the start of a line is a command to GitHub Actions, `##[name]` and `##vso[name]` anywhere in it are
#: commands to GitHub Actions and Azure Pipelines, `##teamcity[` to TeamCity.
_LINE_COMMAND = r"^(\s*):(?=:)|#(?=#\w*\[)"


def printable(text: str) -> str:
    """`text` on one line, with everything that is not printable (str.isprintable) as a backslash escape.

    A byte that was not UTF-8 (a surrogate of PEP 383) becomes `\\xNN`, a control character `\\n`, `\\x1b` or
    `\\u009b`, a bidirectional or invisible control `\\u202e`. A backslash itself stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def printable_lines(text: str) -> list[str]:
    """`text` as lines: its line feeds separate, its tabs are four spaces, all else is as in `printable`.

    Only for messages and remedies, which may have several lines.
    """
    return [printable(line.replace("\t", "    ")).rstrip() for line in text.split("\n")]


def defuse_commands(line: str) -> str:
    """`line` so that no CI system takes it for a command when it is printed on a build's output."""
    if "::" not in line and "##" not in line:
        return line
    return re.sub(_LINE_COMMAND, lambda match: f"{match[1] or ''}\\x{ord(match[0][-1]):02x}", line)


def encodable(value: object) -> object:
    """`value` (what JSON can hold) with every text encodable as UTF-8 and every number one that JSON has.

    Only what no UTF-8 document can hold is escaped: lone surrogates, as `\\xNN` where they stand for a byte. JSON's
    own escapes take care of control characters. NaN and the infinities become text.
    """
    if isinstance(value, str):
        return value if value.isascii() else "".join(_escape(c) if "\ud800" <= c <= "\udfff" else c for c in value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [encodable(item) for item in value]
    return value


def _escape(character: str) -> str:
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
