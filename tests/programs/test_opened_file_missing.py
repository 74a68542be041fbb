"""A file that is to be opened or preloaded by its path, and is not there: what it would bring is unknown to every rule.

Each graph runs with the file first, and shows what the file would have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler

STATE = "static int state = %d; int s_get(void) { return state; }"
USER = "int s_get(void); int probe(void) { return s_get(); }"
POLICY = '[[state]]\nname = "state"\nowner = ["libowner.so"]\nsymbols = ["s_get"]\n'
NEEDS = ("-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN")


def unknown_of(yard: Yard, *openings: Opening | Path) -> tuple[set[str], set[str]]:
    """The codes of the errors, and of what is unknown."""
    verdict = yard.judge(*openings, policy=POLICY)
    return verdict.codes, {code for code, _ in verdict.reasons("unknown")}


@pytest.mark.parametrize("broken", [False, True], ids=["missing", "no-image"])
def test_the_owner_that_is_opened_first_may_be_what_is_missing(yard: Yard, broken: bool) -> None:
    owner, user = yard.library("libowner.so", STATE % 1), yard.library("libuser.so", USER)
    openings = (Opening(owner, shared=True), Opening(user))
    assert (yard.open(*openings).status, yard.judge(*openings, policy=POLICY).status) == (0, 0)
    assert "undefined symbol: s_get" in yard.open(user).output
    owner.unlink()
    if broken:
        yard.archive("libowner.so", STATE % 1)
    errors, unknown = unknown_of(yard, *openings)
    assert errors == ({"LC101"} if broken else set())
    assert {"LC304", "LC402"} <= unknown
    # Opened after the user, it changes nothing: the dlopen of the user has failed by then.
    errors, _ = unknown_of(yard, Opening(user), Opening(owner, shared=True))
    assert {"LC402"} <= errors


def test_a_copy_that_needs_the_user_may_be_what_is_missing(yard: Yard) -> None:
    owner = yard.library("libowner.so", STATE % 1)
    user = yard.library("libuser.so", USER, *NEEDS, owner)
    copy = yard.library("libcopy.so", STATE % 3, *NEEDS, user)
    assert (yard.open(copy, user).output, yard.open(user).output) == ("3 3", "1")
    assert {"LC303", "LC401"} <= yard.judge(copy, user, policy=POLICY).codes
    copy.unlink()
    errors, unknown = unknown_of(yard, copy, user)
    assert errors == set()
    assert unknown == {"LC101", "LC303", "LC401", "LC403"}
    # After the user it cannot take the import of the user, but it may hold a second copy.
    assert unknown_of(yard, user, copy) == (set(), {"LC101", "LC401", "LC403"})


def test_a_bare_name_that_is_not_found_makes_the_same_unknown(yard: Yard) -> None:
    owner = yard.library("libowner.so", STATE % 1)
    user = yard.library("libuser.so", USER, *NEEDS, owner)
    host, policy = yard.host(), yard.policy(POLICY)
    by_path = yard.verify(host, "--policy", policy, "--dlopen", "./libgone.so", "--dlopen", user)
    by_name = yard.verify(host, "--policy", policy, "--dlopen", "libgone.so", "--dlopen", user)
    assert {code for code, _ in by_path.reasons("unknown")} - {"LC101"} == {"LC303", "LC401", "LC403"}
    assert {code for code, _ in by_name.reasons("unknown")} == {"LC303", "LC401", "LC403"}
    # Who reports it differs: nobody searches for a path, and LC101 has looked at it.
    assert (by_path.codes, by_name.codes) == (set(), {"LC202"})
    assert ("LC202", "every DT_NEEDED found") in {(code, reason[-21:]) for code, reason in by_path.reasons("pass")}


def test_a_program_that_is_opened_is_reported_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.program("program", "int main(void) { return 0; }", "-pie", "-fPIE")
    assert "cannot dynamically load position-independent executable" in yard.open(Opening("./program")).output
    monkeypatch.chdir(yard.base)
    (finding,) = yard.verify(yard.host(), "--policy", yard.policy(POLICY), "--dlopen", "./program").errors
    assert (finding["code"], finding["primary"]["path"]) == ("LC101", "./program")


def test_what_is_declared_external_holds_no_state(yard: Yard) -> None:
    owner = yard.library("libowner.so", STATE % 1)
    user = yard.library("libuser.so", USER, *NEEDS, owner)
    names = ("--dlopen", "./libgone.so", "--dlopen", user)
    verdict = yard.verify(yard.host(), "--policy", yard.policy(POLICY), *names, "--external", "./libgone.so")
    assert {code for code, _ in verdict.reasons("unknown")} == {"LC101"}
