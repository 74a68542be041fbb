"""Shortens lists that a file can make as long as it likes, for messages and evidence; it chooses no names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.model import Json

#: What a person reads of a list, and what a program is given of it.
MOST_SHOWN = 20
MOST_IN_EVIDENCE = 200


def shorten(names: Sequence[str]) -> tuple[str, ...]:
    """The first MOST_SHOWN of `names`, and `N more` in place of the others."""
    more = len(names) - MOST_SHOWN
    return tuple(names) if more <= 0 else (*names[:MOST_SHOWN], f"{more} more")


def as_lines(names: Sequence[str]) -> str:
    """Each of `names` on an indented line of its own, with a line feed before it; at last `and N more`."""
    lines = "".join(f"\n    {name}" for name in names[:MOST_SHOWN])
    more = len(names) - MOST_SHOWN
    return lines if more <= 0 else f"{lines}\n    and {more} more"


def as_evidence(names: Sequence[str]) -> list[Json]:
    """The first MOST_IN_EVIDENCE of `names`."""
    return list(names[:MOST_IN_EVIDENCE])
