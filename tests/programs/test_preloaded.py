"""`verify --preload` and `scan --preload`: what LD_PRELOAD puts before everything else. The programs say whose state
they use: 1 is the owner's.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.loader.workshop import needs_compiler
from tests.programs.one_state import NEEDS, POLICY, PROGRAM, STATE, USER
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler


@pytest.fixture
def program(yard: Yard) -> Path:
    owner = yard.library("libowner.so", STATE % 1)
    return yard.program("program", PROGRAM, *NEEDS, yard.library("libuser.so", USER, *NEEDS, owner))


def run_with(program: Path, preload: Path | str) -> tuple[str, str]:
    """What the program prints, and what ld.so has to say about the preload."""
    done = subprocess.run([program], env={"LD_PRELOAD": str(preload)}, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_a_copy_takes_the_state(yard: Yard, program: Path) -> None:
    copy = yard.library("libcopy.so", STATE % 3)
    assert run_with(program, copy) == ("3", "")
    verdict = yard.verify(program, "--policy", yard.policy(POLICY), "--preload", copy)
    assert verdict.status == 1
    assert {finding["code"] for finding in verdict.errors} == {"LC303", "LC401"}
    assert yard.verify(program, "--policy", yard.policy(POLICY)).status == 0


def test_a_token_stands_for_the_place_of_the_program(yard: Yard, program: Path) -> None:
    policy = yard.policy(POLICY)
    name = "$ORIGIN/sub/libcopy.so"
    assert run_with(program, name)[0] == "1"
    verdict = yard.verify(program, "--policy", policy, "--preload", name)
    assert (verdict.status, verdict.errors) == (2, [])
    assert "LC101" in dict(verdict.reasons("unknown"))
    yard.library("sub/libcopy.so", STATE % 3)
    assert run_with(program, name) == ("3", "")
    # What is merely called so is taken at its word.
    plain = yard.library("$ORIGINAL/libcopy.so", STATE % 3)
    for one in (name, str(plain)):
        assert run_with(program, one) == ("3", "")
        verdict = yard.verify(program, "--policy", policy, "--preload", one)
        assert {finding["code"] for finding in verdict.errors} == {"LC303", "LC401"}


def test_a_token_in_a_dlopen_stands_for_the_place_of_who_opens(yard: Yard) -> None:
    user = yard.library("libuser.so", "int s_get(void); int probe(void) { return s_get(); }")
    owner = yard.library("sub/libowner.so", STATE % 1)
    for name in ("$ORIGIN/sub/libowner.so", "${ORIGIN}/sub/libowner.so"):
        openings = (Opening(name, shared=True), Opening(user))
        assert yard.open(*openings).output == "1"
        assert yard.judge(*openings, policy=POLICY).errors == []
    owner.unlink()
    verdict = yard.judge(*openings, policy=POLICY)
    assert (verdict.status, verdict.errors) == (2, [])
    assert "LC101" in dict(verdict.reasons("unknown"))


@pytest.mark.parametrize("flags", [(), ("-fvisibility=hidden",)], ids=["nothing-of-it", "hidden"])
def test_what_leaves_the_state_alone_is_left_alone(yard: Yard, program: Path, flags: tuple[str, ...]) -> None:
    other = yard.library("libother.so", STATE % 3 if flags else "int other;", *flags)
    assert run_with(program, other) == ("1", "")
    verdict = yard.verify(program, "--policy", yard.policy(POLICY), "--preload", other)
    codes = {finding["code"] for finding in verdict.errors}
    assert codes == ({"LC401"} if flags else set())  # a hidden copy in the process is a copy, whoever uses it


def test_the_owner_may_be_preloaded(yard: Yard) -> None:
    owner = yard.library("libowner.so", STATE % 1)
    user = yard.library("libuser.so", USER)
    program = yard.program("program", PROGRAM, *NEEDS, "-Wl,--unresolved-symbols=ignore-in-shared-libs", user)
    assert run_with(program, owner) == ("1", "")
    policy = yard.policy(POLICY)
    assert {f["code"] for f in yard.verify(program, "--policy", policy).errors} >= {"LC402"}
    assert yard.verify(program, "--policy", policy, "--preload", owner).status == 0


def test_several_in_one_value_are_searched_in_order(yard: Yard, program: Path) -> None:
    first, second = yard.library("libfirst.so", "int other;"), yard.library("libsecond.so", STATE % 3)
    assert run_with(program, f"{first}:{second}") == ("3", "")
    verdict = yard.verify(program, "--policy", yard.policy(POLICY), "--preload", f"{first}:{second}")
    assert {finding["code"] for finding in verdict.errors} == {"LC303", "LC401"}


def test_a_name_that_is_not_found_is_a_finding_and_the_state_unknown(yard: Yard, program: Path) -> None:
    output, errors = run_with(program, "libgone.so")
    assert (output, "cannot be preloaded" in errors) == ("1", True)
    verdict = yard.verify(program, "--policy", yard.policy(POLICY), "--preload", "libgone.so")
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC202")
    assert f"LD_PRELOAD of {program} names libgone.so, and " in finding["message"]
    assert "starts the program without it" in finding["message"]
    assert "--preload" in finding["remedy"]
    # It would stand before the owner.
    assert {"LC303", "LC401"} <= {code for code, _ in verdict.reasons("unknown")}


def test_a_path_that_is_not_there_could_not_be_checked(yard: Yard, program: Path) -> None:
    output, errors = run_with(program, "/nowhere/libgone.so")
    assert (output, "cannot be preloaded" in errors) == ("1", True)
    verdict = yard.verify(program, "--policy", yard.policy(POLICY), "--preload", "/nowhere/libgone.so")
    assert (verdict.status, verdict.errors) == (2, [])
    reasons = dict(verdict.reasons("unknown"))
    assert "there is no file of that name" in reasons["LC101"]
    # It would stand before the owner, as one that is searched for by its name would.
    assert reasons.keys() == {"LC101", "LC303", "LC401", "LC403"}


def test_one_that_is_no_library_is_a_finding(yard: Yard, program: Path, tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("not a library, and long enough to have a header of an ELF file: it is read before it is refused\n")
    output, errors = run_with(program, text)
    assert (output, "cannot be preloaded" in errors) == ("1", True)
    verdict = yard.verify(program, "--policy", yard.policy(POLICY), "--preload", text)
    (finding,) = verdict.errors
    assert (finding["code"], finding["primary"]["path"]) == ("LC101", str(text))
    assert {code for code, _ in verdict.reasons("unknown")} == {"LC303", "LC401", "LC403"}


def test_scan_takes_it_too(yard: Yard, program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy = yard.library("libcopy.so", STATE % 3)
    policy = str(yard.policy(POLICY))
    assert run(["scan", str(program), "--policy", policy, "--preload", str(copy)]) == 1
    assert "LC401" in capfd.readouterr().out
    assert run(["scan", str(program), "--policy", policy]) == 0


def test_an_empty_value_is_a_mistake(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(program), "--preload", ""]) == 2
    assert "--preload: an empty value names nothing" in capfd.readouterr().err
