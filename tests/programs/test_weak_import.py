"""A weak import of a state that stays unbound: a fault where a role demands it, and the file's affair elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.verify_command import Verdict
    from tests.programs.yard import Yard

pytestmark = needs_compiler

STATE = "static int state = 1; int s_get(void) { return state; }"
#: 9: it does without the state, and says nothing.
WEAK_USER = "int s_get(void) __attribute__((weak)); int probe(void) { return s_get ? s_get() : 9; }"
POLICY = '[[state]]\nname = "state"\nowner = ["libowner.so"]\nsymbols = ["s_get"]\n'
DEMAND = '[[role]]\nname = "delegate"\nfiles = ["libuser.so"]\nimport = ["s_get"]\n'
NEEDS = ("-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN")


def split_state(verdict: Verdict) -> list[tuple[str, str]]:
    """What LC401 says that is no finding: the outcome and the reason."""
    outcomes = ("pass", "not-applicable", "unknown")
    return [(outcome, reason) for outcome in outcomes for code, reason in verdict.reasons(outcome) if code == "LC401"]


@pytest.fixture
def files(yard: Yard) -> tuple[Path, Path]:
    return yard.library("libowner.so", STATE), yard.library("libuser.so", WEAK_USER)


def test_one_that_a_role_demands_is_an_absent_state(yard: Yard, files: tuple[Path, Path]) -> None:
    owner, user = files
    assert yard.open(*files).output == "9"
    verdict = yard.judge(*files, policy=POLICY + DEMAND)
    (finding,) = verdict.errors
    assert (finding["code"], finding["primary"]["path"], finding["evidence"]["symbols"]) == (
        "LC402",
        str(user),
        ["s_get"],
    )
    assert "the import is weak, so ld.so says nothing and its address is 0" in finding["message"]
    assert finding["message"].rstrip(".").endswith("as a delegate must")
    # LC401 counts one copy, and does not call that a pass beside a file that has to share it and does not.
    absent = "not every file that uses the state finds a definition of it (LC402)"
    assert split_state(verdict) == [("not-applicable", absent)]
    # With the owner in the global scope the same file shares the state.
    shared = (Opening(owner, shared=True), user)
    assert yard.open(*shared).output == "1"
    verdict = yard.judge(*shared, policy=POLICY + DEMAND)
    assert (verdict.errors, split_state(verdict)) == ([], [("pass", f"one copy of the state: {owner}")])


def test_one_that_nobody_demands_is_left_alone(yard: Yard, files: tuple[Path, Path]) -> None:
    owner, user = files
    other = DEMAND.replace("libuser.so", "libelse.so")
    for policy in (POLICY, POLICY + other):
        verdict = yard.judge(*files, policy=policy)
        assert (verdict.errors, verdict.reasons("unknown")) == ([], [])
        without = f"; no definition is found for the weak import of s_get in {user}"
        assert split_state(verdict) == [("pass", f"one copy of the state: {owner}{without}")]


def test_one_that_a_role_demands_hides_no_second_owner(yard: Yard, files: tuple[Path, Path]) -> None:
    owner, user = files
    other = yard.library("libowner.so.2", STATE)
    policy = POLICY.replace('"libowner.so"', '"libowner.so*"') + DEMAND
    assert yard.open(owner, other, user).output == "9"
    verdict = yard.judge(owner, other, user, policy=policy)
    assert {"LC401", "LC402"} <= verdict.codes
    # And where ld.so leaves one of the copies in use, its being used is said of those that find it.
    copy = yard.library("libcopy.so", STATE + "int (*get)(void) = s_get;")
    opened = (Opening(owner, shared=True), Opening(copy, shared=True))
    early = yard.library("libuser.so", WEAK_USER, "-Wl,-z,nodelete")
    assert yard.open(early, *opened).output == "9"
    (merged,) = (f for f in yard.judge(early, *opened, policy=POLICY + DEMAND).findings if f["code"] == "LC401")
    assert merged["severity"] == "info"
    assert f"every use in this process that finds a definition is bound to the copy in {owner}" in merged["message"]


def test_one_in_a_library_on_its_own_is_not_said_to_be_lc402s(yard: Yard, files: tuple[Path, Path]) -> None:
    owner, user = files
    verdict = yard.verify(user, "--policy", yard.policy(POLICY + DEMAND), "--dlopen", owner)
    absent = "not every file that uses the state finds a definition of it"
    assert (verdict.errors, split_state(verdict)) == ([], [("not-applicable", absent)])


def test_one_beside_an_import_that_is_not_weak_is_not_what_it_ends_in(yard: Yard) -> None:
    user = yard.library("libuser.so", WEAK_USER + "int s_put(void); int put(void) { return s_put(); }")
    policy = POLICY.replace('"s_get"', '"s_get", "s_put"') + DEMAND
    assert "undefined symbol: s_put" in yard.open(user).output
    (finding,) = [f for f in yard.judge(user, policy=policy).errors if f["code"] == "LC402"]
    assert finding["evidence"]["symbols"] == ["s_put"]
    assert "it ends in an undefined symbol" in finding["message"]


def test_one_is_unknown_while_a_library_is_missing_that_may_define_it(yard: Yard, files: tuple[Path, Path]) -> None:
    owner, _ = files
    gone = yard.library("libgone.so", "int other;", *NEEDS, owner)
    user = yard.library("libuser.so", WEAK_USER, *NEEDS, gone)
    assert yard.open(user).output == "1"
    gone.unlink()
    verdict = yard.judge(user, policy=POLICY + DEMAND)
    assert verdict.codes == {"LC202"}
    assert ("LC402", "libgone.so not found, and it may define the state") in verdict.reasons("unknown")
