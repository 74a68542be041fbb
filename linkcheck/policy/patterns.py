"""Patterns of file names and SONAMEs, as a policy writes them. Knows no file; symbols have rules of their own.

They are those of fnmatch, compared case-sensitively as ld.so compares. What stands before the first wildcard is
compared first: most names differ there, and compiling a pattern takes longer than all comparisons of a check.
"""

from __future__ import annotations

from functools import lru_cache


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


@lru_cache(maxsize=1024)
def _before_wildcards(pattern: str) -> str | None:
    """What every name that fits `pattern` begins with; None when `pattern` has no wildcard."""
    ends = [end for wildcard in "*?[" if (end := pattern.find(wildcard)) >= 0]
    return pattern[: min(ends)] if ends else None
