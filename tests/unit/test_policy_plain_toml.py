from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkcheck.policy
from linkcheck.policy.plain_toml import read_plain_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROFILES = sorted((Path(linkcheck.policy.__file__).parent / "profiles").glob("*.toml"))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_profile_is_plain(path: Path) -> None:
    """Else its reading would cost each run what this module is there to save."""
    text = path.read_text(encoding="utf-8")
    assert read_plain_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# a comment\n\n  # another\n",
        'a = "x"',
        'a-b_1 = [ "x", "y" ]\n',
        'a = [\n    "x",\n    "y",\n]\nb = true\n',
        "a = []\nb=false\n",
        '[t]\na = "[x] = y, # no comment"\n[u]\na = "y"\n',
        '[[t]]\na = "x"\n\n[[t]]\na = "y"\n[u]\n"k :: (char const*)" = ["_Z"]\n',
    ],
)
def test_plain_text_means_what_tomllib_says(text: str) -> None:
    assert read_plain_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a = 2027-01-31",
        "a = 'x'",
        'a = "x" # comment',
        'a = """x"""',
        'a = "\\n"',
        'a = ["x", 1]',
        'a = [["x"]]',
        'a = {b = "x"}',
        'a.b = "x"',
        '["quoted"]\na = "x"',
        "[a.b]",
        "[t] # comment",
        'a = [ "x", # comment\n]',
        'a = "é\u00a0"',  # tomllib takes it, but it does not print
        "# \t tab",
    ],
)
def test_the_rest_of_toml_is_left_to_tomllib(text: str) -> None:
    tomllib.loads(text)
    assert read_plain_toml(text) is None


@pytest.mark.parametrize(
    "text",
    [
        'a = "x',
        'a = "x\n"',
        'a "x"',
        'a = "x" "y"',
        "a = truest",
        'a = ["x" "y"]',
        'a = ["x"',
        "a = [,]",
        'a = ["x",,]',
        'a = "x"\na = "y"',
        "[t]\n[t]",
        "[t]\n[[t]]",
        "a = []\n[[a]]",
        "[[t]]\n[t]",
        "[[t]",
        "[t]]",
        "[]",
        "= true",
        'a = \n"x"',
        "a =",
        "nonsense",
        "# \x01",
        'é = "x"',
    ],
)
def test_mistakes_are_left_to_tomllib_which_words_them(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    assert read_plain_toml(text) is None


_SIGNS = [*"abt \t\n=\"'[],#\\1.{-é\x00\r", "]"]
_LINES = ["[[t]]\n", "[t]\n", 'a = "x"\n', 'b = ["x", "y"]\n', "c = true\n", '"k" = "v"\n', "true"]
PIECES = st.sampled_from([*_SIGNS, *_LINES])


@settings(max_examples=1000)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_means_what_tomllib_says_or_is_left_to_it(text: str) -> None:
    found = read_plain_toml(text)
    expected: dict[str, Any] | None
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        expected = None
    assert found is None or found == expected
