from __future__ import annotations

import threading
import weakref

import pytest

from linkcheck.rules import kept
from linkcheck.rules.kept import keep_answers, memory_of_run, remember_answers


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
    with remember_answers():
        assert [ask(one, other), ask(one, other), ask(one, third), ask(other, one), ask(one, other)] == [1, 1, 2, 3, 1]


def test_an_error_is_raised_each_time() -> None:
    asked = []

    @keep_answers
    def ask(one: str, _: str) -> int:
        asked.append(one)
        raise ValueError(one)

    with remember_answers():
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
    with remember_answers():
        for thing in things:
            assert ask(thing, things[0]) is thing
        assert ask(things[3], things[0]) is things[3]
        assert len(asked) == 4
        assert ask(things[0], things[0]) is things[0]
    assert len(asked) == 5, "the first answers were dropped when the fourth came"


def test_a_run_remembers_until_it_ends() -> None:
    with remember_answers():
        kept_by_run = memory_of_run(Thing)
        assert memory_of_run(Thing) is kept_by_run
        with remember_answers():
            assert memory_of_run(Thing) is not kept_by_run
        assert memory_of_run(Thing) is kept_by_run
        gone = weakref.ref(kept_by_run)
        del kept_by_run
        assert gone() is not None
    assert gone() is None
    assert memory_of_run(Thing) is not memory_of_run(Thing), "outside of runs nothing is kept"


def test_answers_and_what_they_are_about_go_with_the_run() -> None:
    @keep_answers
    def ask(one: Thing, other: Thing) -> tuple[Thing, Thing]:
        return one, other

    one, other = Thing(), Thing()
    with pytest.raises(ValueError, match="an error"), remember_answers():
        assert ask(one, other) is ask(one, other)
        gone = weakref.ref(one)
        del one
        assert gone() is not None
        raise ValueError("an error")
    assert gone() is None
    assert ask(other, other) is not ask(other, other), "outside of runs nothing is kept"


def test_threads_have_runs_of_their_own() -> None:
    seen = []
    with remember_answers():
        kept_here = memory_of_run(Thing)
        thread = threading.Thread(target=lambda: seen.append(memory_of_run(Thing)))
        thread.start()
        thread.join()
        assert seen[0] is not kept_here
        assert memory_of_run(Thing) is kept_here
