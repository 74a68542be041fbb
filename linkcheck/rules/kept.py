"""Keeps answers for rules that ask the same of the same files again, by two values or by settings. It asks nothing.

The programs of one directory load the same libraries, and each is judged with all it loads. Answers are found by the
identity of what was asked about: a hash of an image or a state takes longer than most answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkcheck.policy.settings import Settings

_One = TypeVar("_One")
_Other = TypeVar("_Other")
_Answer = TypeVar("_Answer")

#: Answers to one question. What they are about lives as long as they do, so they are all dropped when there are more.
MOST_ANSWERS = 1 << 12


def memory_of(settings: Settings, kind: Callable[[], _Answer]) -> _Answer:
    """The `kind()` that belongs to `settings`: made when first asked for, and gone with them."""
    memory = settings.memory
    known: _Answer | None = memory.get(kind)
    if known is None:
        known = memory[kind] = kind()
    return known


def keep_answers(question: Callable[[_One, _Other], _Answer]) -> Callable[[_One, _Other], _Answer]:
    """`question`, which must always answer the same about the same two values, asked once of each pair.

    An error is no answer: it is raised again.
    """
    known: dict[tuple[int, int], tuple[_One, _Other, _Answer]] = {}

    def ask(one: _One, other: _Other) -> _Answer:
        key = (id(one), id(other))
        kept = known.get(key)
        if kept is None:
            if len(known) >= MOST_ANSWERS:
                known.clear()
            # With the values themselves, so that no other value can come to be where they are.
            kept = known[key] = (one, other, question(one, other))
        return kept[2]

    return ask
