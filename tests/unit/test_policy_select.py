"""Which codes run, given what the policy and the command line select and ignore."""

from __future__ import annotations

import pytest

from linkcheck.policy.settings import select_codes

CODES = ("LC101", "LC301", "LC302", "LC401")


@pytest.mark.parametrize(
    ("select", "ignore", "running"),
    [
        ((), (), CODES),
        (("LC3",), (), ("LC301", "LC302")),
        ((), ("LC3",), ("LC101", "LC401")),
        (("LC",), ("LC3",), ("LC101", "LC401")),
        (("LC301",), ("LC3",), ("LC301",)),  # the longer prefix decides
        (("LC301", "LC1"), ("LC3", "LC301"), ("LC101",)),  # of two equally long ones ignore
        (("LC3",), ("LC3",), ()),
        (("LC",), ("LC",), ()),
    ],
)
def test_the_longest_prefix_decides_and_ignore_wins_ties(
    select: tuple[str, ...], ignore: tuple[str, ...], running: tuple[str, ...]
) -> None:
    assert select_codes(CODES, select=select, ignore=ignore) == running
    # The same two lists mean the same on the command line of a policy that says nothing.
    if select:
        assert select_codes(CODES, command_line_select=select, command_line_ignore=ignore) == running


@pytest.mark.parametrize(
    ("select", "ignore", "running"),
    [
        (("LC302",), (), ("LC302",)),  # the policy ignores it, but it was asked for by hand
        (("LC3",), ("LC301",), ("LC302",)),
        ((), ("LC3",), ("LC101",)),  # the policy selects LC301 by its full code, and yet
        ((), ("LC1",), ("LC301",)),
    ],
)
def test_the_command_line_wins_over_the_policy(
    select: tuple[str, ...], ignore: tuple[str, ...], running: tuple[str, ...]
) -> None:
    policy = {"select": ("LC1", "LC301"), "ignore": ("LC302",)}
    assert select_codes(CODES, **policy) == ("LC101", "LC301")
    assert select_codes(CODES, **policy, command_line_select=select, command_line_ignore=ignore) == running
