from __future__ import annotations

import weakref

import pytest

from linkcheck.policy.settings import Settings
from linkcheck.rules import kept
from linkcheck.rules.kept import keep_answers, memory_of
from linkcheck.value import replace


class Thing:
    """Equal to every other one, as images of equal facts are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    def __hash__(self) -> int:
        return 0


def test_a_question_about_the_same_two_values_is_asked_once() -> None:
    asked: list[tuple[Thing, Thing]] = []

    @keep_answers
    def ask(one: Thing, other: Thing) -> int:
        asked.append((one, other))
        return len(asked)

    one, other, third = Thing(), Thing(), Thing()
    assert [ask(one, other), ask(one, other), ask(one, third), ask(other, one), ask(one, other)] == [1, 1, 2, 3, 1]


def test_an_error_is_raised_each_time() -> None:
    asked = []

    @keep_answers
    def ask(one: str, _: str) -> int:
        asked.append(one)
        raise ValueError(one)

    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            ask("x", "y")
    assert len(asked) == 2


def test_answers_are_not_kept_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_ANSWERS", 3)
    asked = []

    @keep_answers
    def ask(one: Thing, _: Thing) -> Thing:
        asked.append(one)
        return one

    things = [Thing() for _ in range(4)]
    for thing in things:
        assert ask(thing, things[0]) is thing
    assert ask(things[3], things[0]) is things[3]
    assert len(asked) == 4
    assert ask(things[0], things[0]) is things[0]
    assert len(asked) == 5, "the first answers were dropped when the fourth came"


def test_settings_remember_for_themselves_and_no_others() -> None:
    one, equal = Settings("a profile"), Settings("a profile")
    kept_by_one = memory_of(one, Thing)
    assert memory_of(one, Thing) is kept_by_one
    assert memory_of(equal, Thing) is not kept_by_one
    assert memory_of(replace(one), Thing) is not kept_by_one
    gone = weakref.ref(kept_by_one)
    del one, kept_by_one
    assert gone() is None
