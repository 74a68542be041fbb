"""`deepbind` of a `[[dlopen]]`: the definitions of what is opened come before the program's. The program says whose
state the plug-in uses: 1 is the owner's, 3 the program's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.one_state import STATE, USER

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
  void *library = dlopen(names[1], RTLD_NOW | RTLD_LOCAL | (count > 2 ? RTLD_DEEPBIND : 0));
  printf("%d", ((int (*)(void))dlsym(library, "probe"))());
  return 0;
}
"""
POLICY = """
[[state]]
name = "state"
owner = ["libowner.so"]
symbols = ["s_get", "s_add"]
[[dlopen]]
from = "program"
path = "libplugin.so"
deepbind = %s
"""


@pytest.mark.parametrize("deep", [False, True], ids=["plain", "deepbind"])
def test_whose_definition_comes_first(yard: Yard, deep: bool) -> None:
    owner = yard.library("libowner.so", STATE % 1)
    plug_in = yard.library("libplugin.so", USER, "-Wl,-rpath,$ORIGIN", owner)
    program = yard.program("program", f"{STATE % 3}\n{PROGRAM}", "-rdynamic")
    assert yard.run(program, str(plug_in), *(["deep"] if deep else [])).output == ("1" if deep else "3")
    verdict = yard.verify(program, "--policy", yard.policy(POLICY % str(deep).lower()))
    found = {finding["code"]: finding for finding in verdict.errors}
    assert "LC401" in found  # two copies either way
    assert ("LC303" in found) is not deep
    if not deep:
        assert found["LC303"]["primary"] == {"path": str(plug_in), "symbol": "s_get"}
        assert found["LC303"]["evidence"]["providers"] == [str(program)]
