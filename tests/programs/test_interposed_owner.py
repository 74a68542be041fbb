"""A library with all of an owner's functions before the owner, in programs of which no role demands anything.

What the program prints says whose state it uses: 1 is the owner's.
"""

from __future__ import annotations

import json
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


def make_user(yard: Yard) -> tuple[Path, Path]:
    owner = yard.library("libowner.so", STATE % 1)
    return yard.library("libuser.so", USER, *NEEDS, owner), owner


@pytest.mark.parametrize("flags", [(), ("-Wl,-Bsymbolic",)], ids=["plain", "symbolic"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_a_library_of_the_program(yard: Yard, before: bool, flags: tuple[str, ...]) -> None:
    user, owner = make_user(yard)
    other = yard.library("libother.so", STATE % 3, *flags)
    order = (other, user) if before else (owner, user, other)
    program = yard.program("program", PROGRAM, *NEEDS, *order)
    taken = yard.run(program).output == "3"
    assert taken is before
    verdict = yard.verify(program, "--policy", yard.policy(POLICY))
    found = {finding["code"]: finding for finding in verdict.errors}
    if taken:
        assert verdict.status == 1
        assert found.keys() == {"LC303", "LC401"}
        assert found["LC303"]["primary"] == {"path": str(user), "symbol": "s_get"}
        assert found["LC303"]["evidence"]["providers"] == [str(other)]
    elif flags:
        assert found.keys() == {"LC401"}  # its own uses stay inside it
    else:
        assert (verdict.status, found) == (0, {})


def test_the_program_itself(yard: Yard) -> None:
    user, _ = make_user(yard)
    program = yard.program("program", f"{STATE % 3}\n{PROGRAM}", "-rdynamic", *NEEDS, user)
    assert yard.run(program).output == "3"
    verdict = yard.verify(program, "--policy", yard.policy(POLICY))
    assert {finding["code"] for finding in verdict.errors} == {"LC303", "LC401"}


@pytest.mark.parametrize("shared", [True, False], ids=["global", "local"])
def test_a_library_that_was_opened_before(yard: Yard, shared: bool) -> None:
    user, _ = make_user(yard)
    opened = (Opening(yard.library("libother.so", STATE % 3), shared), Opening(user))
    assert yard.open(*opened).output == ("3" if shared else "1")
    codes = {finding["code"] for finding in yard.judge(*opened, policy=POLICY).errors}
    assert ("LC303" in codes) is shared
    assert "LC401" in codes  # two copies, whoever uses which


ALLOCATOR = """
#include <stddef.h>
static char pool[1 << 24]; static size_t used;
void *malloc(size_t size) { used += (size + 31) & ~15UL; size_t *at = (size_t *)(pool + used); return at + 2; }
void free(void *memory) {}
"""
WAITS = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { void *volatile one = malloc(1); free(one); puts("ready"); fflush(stdout); getchar(); return 0; }
"""


@pytest.mark.parametrize(("owner", "status"), [("liballocator.so", 0), ("libc.so.6", 1)])
def test_a_preloaded_allocator_that_the_policy_declares(
    yard: Yard, capfd: pytest.CaptureFixture[str], owner: str, status: int
) -> None:
    allocator = yard.library("liballocator.so", ALLOCATOR, "-fno-builtin")
    program = yard.program("program", WAITS)
    policy = yard.policy(f'[[state]]\nname = "heap"\nowner = ["{owner}"]\nsymbols = ["malloc", "free"]\n')
    environment = {"LD_PRELOAD": str(allocator)}
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert run(["live", str(process.pid), "--policy", str(policy), "--format", "json"]) == status
    findings = json.loads(capfd.readouterr().out)["findings"]
    errors = {finding["code"] for finding in findings if finding["severity"] == "error"}
    assert errors == (set() if status == 0 else {"LC303", "LC401"})
