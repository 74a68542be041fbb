"""Keeps answers for rules that ask the same of the same files again, until their run ends. It asks nothing.

The programs of one directory load the same libraries, and each is judged with all it loads. Answers are found by the
identity of what was asked about: a hash of an image or a state takes longer than most answers.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_One = TypeVar("_One")
_Other = TypeVar("_Other")
_Answer = TypeVar("_Answer")

#: Answers to one question. What they are about lives as long as they do, so they are all dropped when there are more.
MOST_ANSWERS = 1 << 12


class _Thread(local):
    """What each thread is at: a run is one call, so it stays in its thread, and two threads may each have one."""

    #: What the run has found out, by who asks; None outside of runs.
    memory: dict[object, Any] | None = None


_thread = _Thread()


@contextmanager
def remember_answers() -> Iterator[None]:
    """Make what is inside one run: its answers are kept until its end, and no longer. One inside another is its own."""
    outer = _thread.memory
    _thread.memory = {}
    try:
        yield
    finally:
        _thread.memory = outer


def memory_of_run(kind: Callable[[], _Answer]) -> _Answer:
    """The `kind()` that belongs to the run: made when first asked for, and gone with it. Outside of runs a new one."""
    memory = _thread.memory
    if memory is None:
        return kind()
    known: _Answer | None = memory.get(kind)
    if known is None:
        known = memory[kind] = kind()
    return known


def keep_answers(question: Callable[[_One, _Other], _Answer]) -> Callable[[_One, _Other], _Answer]:
    """`question`, which must always answer the same about the same two values, asked once of each pair in a run.

    An error is no answer: it is raised again.
    """

    def ask(one: _One, other: _Other) -> _Answer:
        memory = _thread.memory
        if memory is None:
            return question(one, other)
        known: dict[tuple[int, int], tuple[_One, _Other, _Answer]] | None = memory.get(question)
        if known is None:
            known = memory[question] = {}
        key = (id(one), id(other))
        kept = known.get(key)
        if kept is None:
            if len(known) >= MOST_ANSWERS:
                known.clear()
            # With the values themselves, so that no other value can come to be where they are.
            kept = known[key] = (one, other, question(one, other))
        return kept[2]

    return ask
