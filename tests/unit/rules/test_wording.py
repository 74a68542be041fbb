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
        ("utility", "a utility"),
        ("union", "a union"),
        ("European", "a European"),
        ("umbrella", "an umbrella"),
        ("uninstaller", "an uninstaller"),
        ("unidentified file", "an unidentified file"),
        ("usher", "an usher"),
        ("Engine", "an Engine"),
    ],
)
def test_the_article_is_that_of_the_sound(noun: str, phrase: str) -> None:
    assert with_article(noun) == phrase
