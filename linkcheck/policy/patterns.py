"""Patterns of files and SONAMEs, as a policy writes them. Opens no file; symbols have patterns of their own.

They are those of fnmatch, compared case-sensitively as ld.so compares. What stands before the first wildcard is
compared first: most names differ there, and compiling a pattern takes longer than all comparisons of a check.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.model import Image


def matches(name: str, pattern: str) -> bool:
    """Whether the whole of `name` fits `pattern`: `*` is any text, slashes included, `?` and `[…]` one character."""
    start = _before_wildcards(pattern)
    if start is None:
        return name == pattern
    if not name.startswith(start):
        return False
    if pattern == f"{start}*":
        return True
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern)


@lru_cache(maxsize=4096)
def matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether `name` fits one of `patterns`. Remembered: the rules ask it of the same few SONAMEs again and again."""
    return any(matches(name, pattern) for pattern in patterns)


def means_file(image: Image, patterns: Iterable[str]) -> bool:
    """Whether one of `patterns`, `files` of a role or `from` of a dlopen, means `image`.

    With a slash it is compared with the path, or with the end of it that begins after a slash. Without one it is
    compared with the file name and the SONAME only: on a machine where everything lies below /home/runner, `*runner*`
    would otherwise mean every file.
    """
    file_name = image.path.rpartition("/")[2]
    for pattern in patterns:
        if "/" not in pattern:
            if matches(file_name, pattern) or matches(image.name, pattern):
                return True
            continue
        whole = os.path.abspath(image.path)
        # `bin/*` means bin/runner also for somebody who works in bin and says `runner`.
        from_a_slash_on = f"*/{pattern.removeprefix('./')}"
        if matches(image.path, pattern) or matches(whole, pattern) or matches(whole, from_a_slash_on):
            return True
        real = in_real_directory(image.path)
        if real != whole and (matches(real, pattern) or matches(real, from_a_slash_on)):
            return True
    return False


def in_real_directory(path: str) -> str:
    """`path` with the name of its directory that holds no links; a link of the file itself keeps its name."""
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)


class RealDirectories:
    """`in_real_directory` of many paths: each directory is looked at once."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[str, str] = {}

    def find(self, path: str) -> str:
        """`path` in its real directory; itself when the working directory is gone, or it has a NUL byte."""
        directory, name = os.path.split(path)
        real = self._known.get(directory)
        if real is None:
            real = directory
            with suppress(OSError, ValueError):
                real = os.path.dirname(in_real_directory(path))
            self._known[directory] = real
        return os.path.join(real, name)


@lru_cache(maxsize=1024)
def _before_wildcards(pattern: str) -> str | None:
    """What every name that fits `pattern` begins with; None when `pattern` has no wildcard."""
    ends = [end for wildcard in "*?[" if (end := pattern.find(wildcard)) >= 0]
    return pattern[: min(ends)] if ends else None
