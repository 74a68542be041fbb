"""Phrases that several rules share, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.rules.wording import with_article


@pytest.mark.parametrize(
    ("noun", "phrase"),
    [
        ("runner", "a runner"),
        ("app", "an app"),
        ("user", "a user"),
        ("unit", "a unit"),
        ("umbrella", "an umbrella"),
        ("Engine", "an Engine"),
    ],
)
def test_the_article_is_that_of_the_sound(noun: str, phrase: str) -> None:
    assert with_article(noun) == phrase
