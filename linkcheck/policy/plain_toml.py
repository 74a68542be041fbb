"""Reads the plain part of TOML that the built-in profiles keep to. What is not plain it leaves to tomllib.

Plain are comments on lines of their own, `[table]`, `[[table]]`, and keys with a string, a list of strings or a
boolean, all without escapes and dots. Importing tomllib and reading a profile with it takes 2.5 ms, this 0.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOOLEANS = {"true": True, "false": False}
_BLANKS = " \t\n"


class _NotPlainError(Exception):
    """What stands here is for tomllib; never leaves this module."""


def read_plain_toml(text: str) -> dict[str, Any] | None:
    """What tomllib.loads would make of `text` (with `\\n` line ends), or None when it is not plain TOML."""
    try:
        return _read(text)
    except _NotPlainError:
        return None


def _read(text: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    table = data
    arrays: set[str] = set()
    position = 0
    while position < len(text):
        line, end = _line_at(text, position)
        if not line or line[0] == "#":
            if not line.isprintable():
                raise _NotPlainError
            position = end
        elif line[0] == "[":
            table = _open_table(line, data, arrays)
            position = end
        else:
            key, position = _read_key(text, position)
            if key in table:
                raise _NotPlainError
            table[key], position = _read_value(text, position)
            rest, position = _line_at(text, position)
            if rest:
                raise _NotPlainError
    return data


def _line_at(text: str, position: int) -> tuple[str, int]:
    """What of the line is left at `position`, without blanks around it, and where the next line begins."""
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    return text[position:end].strip(" \t"), end + 1


def _open_table(line: str, data: dict[str, Any], arrays: set[str]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if line.startswith("[[") and line.endswith("]]"):
        name = _bare(line[2:-2])
        if name not in arrays:
            if name in data:
                raise _NotPlainError
            arrays.add(name)
            data[name] = []
        data[name].append(table)
    else:
        name = _bare(line[1:-1])
        if not line.endswith("]") or name in data:
            raise _NotPlainError
        data[name] = table
    return table


def _bare(name: str) -> str:
    name = name.strip(" \t")
    if not name.isascii() or not name.replace("-", "_").replace("_", "a").isalnum():
        raise _NotPlainError
    return name


def _read_key(text: str, position: int) -> tuple[str, int]:
    """The key at `position`, and where its value begins."""
    position = _skip(text, position, " \t")
    if text.startswith('"', position):
        key, end = _read_string(text, position)
        equals = _skip(text, end, " \t")
    else:
        equals = text.find("=", position)
        if equals < 0:
            raise _NotPlainError
        key = _bare(text[position:equals])
    if not text.startswith("=", equals):
        raise _NotPlainError
    return key, _skip(text, equals + 1, " \t")


def _read_value(text: str, position: int) -> tuple[object, int]:
    """The value at `position`, and where it ends."""
    if text.startswith('"', position):
        return _read_string(text, position)
    if text.startswith("[", position):
        entries: list[str] = []
        for entry, end in _read_list(text, position + 1):
            if entry is None:
                return entries, end
            entries.append(entry)
    for word, value in _BOOLEANS.items():
        if text.startswith(word, position):
            return value, position + len(word)
    raise _NotPlainError


def _read_list(text: str, position: int) -> Iterator[tuple[str | None, int]]:
    """Each string from `position` on and its end; None for the closing bracket."""
    position = _skip(text, position, _BLANKS)
    while not text.startswith("]", position):
        entry, position = _read_string(text, position)
        yield entry, position
        position = _skip(text, position, _BLANKS)
        if text.startswith(",", position):
            position = _skip(text, position + 1, _BLANKS)
        elif not text.startswith("]", position):
            raise _NotPlainError
    yield None, position + 1


def _read_string(text: str, position: int) -> tuple[str, int]:
    end = text.find('"', position + 1)
    string = text[position + 1 : end]
    if not text.startswith('"', position) or end < 0 or "\\" in string or not string.isprintable():
        raise _NotPlainError
    return string, end + 1


def _skip(text: str, position: int, blanks: str) -> int:
    while position < len(text) and text[position] in blanks:
        position += 1
    return position
