"""Which line of a TOML text a key or a list entry stands on. Not a TOML parser: it never judges the text.

tomllib and tomli give values without positions. Only a message that names a place needs one, so the text is scanned a
second time, here, when there is something to say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

#: How a value is reached from the top of a document: keys, and indices of lists and of arrays of tables.
Address = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)+")
_SPACE = re.compile(r"[ \t]+")
_REST_OF_LINE = re.compile(r"[^\n]*")
#: A multi-line string may end in up to five quotes: up to two of them belong to it (TOML 1.0, "String").
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^\s,#\[\]{}\"']+")
_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(["\\bfnrt]))')
_ESCAPED = {'"': '"', "\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class LineMap:
    """The places of one TOML text."""

    def __init__(self, text: str) -> None:
        """Scan `text`. What follows a syntax error has no places."""
        self._text = text
        self._offsets: dict[Address, int] = {}
        for address, offset in _places(text):
            self._offsets.setdefault(address, offset)

    def find(self, address: Address) -> int | None:
        """The 1-based line of `address`, or of the innermost part of it that is there; None when no part is.

        A table's line is its header's, a key's its own, a list entry's the one where the entry starts.
        """
        for length in range(len(address), 0, -1):
            if (offset := self._offsets.get(address[:length])) is not None:
                return self._text.count("\n", 0, offset) + 1
        return None


def _places(text: str) -> Iterator[tuple[Address, int]]:
    """Every address of `text` with the offset it starts at, in the order of the text."""
    position = 0
    table: Address = ()
    counts: dict[Address, int] = {}  # array of tables -> how many tables it has so far
    while position < len(text):
        if blank := _BLANK.match(text, position):
            position = blank.end()
            continue
        start = position
        is_array = text.startswith("[[", position)
        if is_array or text.startswith("[", position):
            keys, position = _read_keys(text, position + 1 + is_array)
            if not keys:
                return
            table = _resolve(keys[:-1], counts)
            for length in range(1, len(table) + 1):
                yield table[:length], start
            table = (*table, keys[-1])
            yield table, start
            if is_array:
                counts[table] = counts.get(table, 0) + 1
                table = (*table, counts[table] - 1)
                yield table, start
            elif table in counts:
                table = (*table, counts[table] - 1)
        else:
            keys, position = _read_keys(text, position)
            if not keys or not text.startswith("=", position):
                return
            for length in range(1, len(keys) + 1):
                yield (*table, *keys[:length]), start
            position = yield from _value_places(text, position + 1, (*table, *keys))
        position = _end(_REST_OF_LINE, text, position)


def _resolve(keys: tuple[str, ...], counts: dict[Address, int]) -> Address:
    """The address that a header's `keys` mean: inside an array of tables, its latest table."""
    address: Address = ()
    for key in keys:
        address = (*address, key)
        if address in counts:
            address = (*address, counts[address] - 1)
    return address


def _read_keys(text: str, position: int) -> tuple[tuple[str, ...], int]:
    """The parts of a dotted key at `position`, and where it ends; no parts when there is no key."""
    keys: list[str] = []
    while True:
        position = _end(_SPACE, text, position)
        if bare := _BARE_KEY.match(text, position):
            keys.append(bare.group())
            position = bare.end()
        elif quoted := _STRING.match(text, position):
            keys.append(_unquote(quoted.group()))
            position = quoted.end()
        else:
            return (), position
        position = _end(_SPACE, text, position)
        if not text.startswith(".", position):
            return tuple(keys), position
        position += 1


def _unquote(quoted: str) -> str:
    if quoted[0] == "'":
        return quoted[1:-1]
    return _ESCAPE.sub(_unescape, quoted[1:-1])


def _unescape(escape: re.Match[str]) -> str:
    if escape[3]:
        return _ESCAPED[escape[3]]
    number = int(escape[1] or escape[2], 16)
    return chr(number) if number <= 0x10FFFF else escape[0]


class _Container:
    """A list or an inline table that the scan is inside of."""

    def __init__(self, address: Address, closing: str) -> None:
        self.address = address
        self.closing = closing
        self.index = 0
        #: Set where an entry may start: after the opening bracket and after each comma.
        self.expects_entry = True


def _value_places(text: str, position: int, address: Address) -> Generator[tuple[Address, int], None, int]:
    """The places inside the value at `position`; the generator's value is where it ends.

    A stack of its own instead of recursion: nesting is bounded by the text, not by Python's stack.
    """
    open_: list[_Container] = []
    while position < len(text):
        # Outside brackets a value ends with its line; inside, lines and comments mean nothing.
        position = _end(_BLANK if open_ else _SPACE, text, position)
        character = text[position : position + 1]
        if open_ and character == open_[-1].closing:
            open_.pop()
            position += 1
        elif open_ and character == ",":
            open_[-1].index += 1
            open_[-1].expects_entry = True
            position += 1
        elif open_ and open_[-1].expects_entry:
            container = open_[-1]
            container.expects_entry = False
            if container.closing == "]":
                address = (*container.address, container.index)
                yield address, position
            else:
                start = position
                keys, position = _read_keys(text, position)
                for length in range(1, len(keys) + 1):
                    yield (*container.address, *keys[:length]), start
                if not keys or not text.startswith("=", position):
                    return len(text)
                address = (*container.address, *keys)
                position += 1
            continue
        elif character in ("[", "{"):
            open_.append(_Container(address, "]" if character == "[" else "}"))
            position += 1
        elif token := _STRING.match(text, position) or _BARE_VALUE.match(text, position):
            position = token.end()
        else:
            return len(text)
        if not open_:
            return position
    return position


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position
