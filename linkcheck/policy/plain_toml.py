"""Reads the plain part of TOML that the built-in profiles keep to. What is not plain it leaves to tomllib.

Plain are comments on lines of their own, `[table]`, `[[table]]`, and keys with a string, a list of strings or a
boolean, all without escapes and dots. Importing tomllib and reading a profile with it takes 2.5 ms, this 0.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOOLEANS = {"true": True, "false": False}


class _NotPlainError(Exception):
    """What stands here is for tomllib; never leaves this module."""


def read_plain_toml(text: str) -> dict[str, Any] | None:
    """What tomllib.loads would make of `text` (with `\\n` line ends), or None when it is not plain TOML."""
    try:
        return _read(text)
    except _NotPlainError:
        return None


def _read(text: str) -> dict[str, Any]:
    if "\\" in text or not text.replace("\n", "").isprintable():
        raise _NotPlainError
    data: dict[str, Any] = {}
    table = data
    arrays: set[str] = set()
    lines = iter(text.split("\n"))
    for line in lines:
        line = line.strip()
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            table = _open_table(line, data, arrays)
            continue
        key, value = _split_line(line)
        if key in table:
            raise _NotPlainError
        table[key] = _read_list(value, lines) if value.startswith("[") else _read_scalar(value)
    return data


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
    name = name.strip()
    if not name.isascii() or not name.replace("-", "_").replace("_", "a").isalnum():
        raise _NotPlainError
    return name


def _split_line(line: str) -> tuple[str, str]:
    """The key that `line` begins with, and its value."""
    if line[0] != '"':
        key, equals, value = line.partition("=")
        key = _bare(key)
    else:
        key, _, value = line[1:].partition('"')
        before, equals, value = value.partition("=")
        if before.strip():
            raise _NotPlainError
    if not equals:
        raise _NotPlainError
    return key, value.strip()


def _read_scalar(value: str) -> object:
    if value in _BOOLEANS:
        return _BOOLEANS[value]
    pieces = value.split('"')
    if len(pieces) != 3 or pieces[0] or pieces[2]:
        raise _NotPlainError
    return pieces[1]


def _read_list(value: str, lines: Iterator[str]) -> list[str]:
    """The strings of the list that `value` begins and that ends on a later one of `lines`, if not there."""
    parts = [value]
    while not parts[-1].endswith("]"):
        line = next(lines, None)
        if line is None:
            raise _NotPlainError
        parts.append(line.strip())
    pieces = "\n".join(parts)[1:-1].split('"')
    strings, others = pieces[1::2], [piece.strip(" \n") for piece in pieces[::2]]
    if any("\n" in string for string in strings):
        raise _NotPlainError
    # Commas stand between two strings, and perhaps behind the last one.
    first, last = others[0], others[-1]
    commas = set(others[1:-1]) <= {","} and last in (("", ",") if strings else ("",))
    if first or not commas or len(others) != len(strings) + 1:
        raise _NotPlainError
    return strings
