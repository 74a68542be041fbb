from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.policy.patterns import matches, matches_any


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("libx.so", "libx.so", True),
        ("libx.so.1", "libx.so", False),
        ("libx.so.1", "libx.so.[0-9]*", True),
        ("libx.so.one", "libx.so.[0-9]*", False),
        ("a/b/libx.so", "*/libx.so", True),
        ("libX.so", "libx.so", False),
        ("anything/at all\n", "*", True),
        ("libx.so", "lib?.so", True),
        ("", "*", True),
        ("lib[.so", "lib[.so", True),  # a bracket that is not closed stands for itself
    ],
)
def test_patterns_are_those_of_fnmatch(name: str, pattern: str, fits: bool) -> None:
    assert matches(name, pattern) is fits


@given(st.text(alphabet="ab/*?[]!-.\n"), st.text(alphabet="ab/*?[]!-.\n"))
def test_any_pattern_means_what_fnmatch_says(name: str, pattern: str) -> None:
    assert matches(name, pattern) is fnmatchcase(name, pattern)


def test_one_of_several_patterns_is_enough() -> None:
    assert matches_any("libx.so.2", ("libx.so", "libx.so.[0-9]*"))
    assert not matches_any("liby.so", ("libx.so", "libx.so.[0-9]*"))
    assert not matches_any("liby.so", ())
