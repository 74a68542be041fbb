"""What is opened with RTLD_GLOBAL after a plug-in: a lazily bound call of the plug-in gets there, and others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

STATE = "static int state = 1; int s_get(void) { return state; }"
USER = "int s_get(void); int use(void) { return s_get(); }"
POLICY = '[[state]]\nname = "state"\nowner = ["libowner.so"]\nsymbols = ["s_get"]\n'
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void *user = dlopen("./libuser.so", RTLD_LAZY);
  if (!user || !dlopen("./libowner.so", RTLD_NOW | %s)) { puts(dlerror()); return 1; }
  printf("%%d", ((int (*)(void))dlsym(user, "use"))());
  return 0;
}
"""


@pytest.mark.parametrize(
    ("flag", "mode", "works"),
    [("lazy", "RTLD_GLOBAL", True), ("now", "RTLD_GLOBAL", False), ("lazy", "RTLD_LOCAL", False)],
)
def test_a_call_that_is_bound_lazily_gets_what_was_opened_in_between(
    yard: Yard, flag: str, mode: str, works: bool
) -> None:
    owner, user = yard.library("libowner.so", STATE), yard.library("libuser.so", USER, f"-Wl,-z,{flag}", "-fplt")
    ran = yard.run(yard.program("program", PROGRAM % mode, "-ldl"))
    assert (ran.status == 0) is works
    assert ran.output == "1" if works else "undefined symbol: s_get" in ran.output + ran.errors
    verdict = yard.judge(Opening(user), Opening(owner, shared=mode == "RTLD_GLOBAL"), policy=POLICY)
    assert verdict.codes == {"LC304", "LC402"}
    for finding in verdict.errors:
        assert (f"{owner}, opened with RTLD_GLOBAL after it, has a definition" in finding["message"]) is works
        assert finding["confidence"] == ("medium" if works else "high")


def test_a_definition_for_some_of_the_imports_is_not_enough(yard: Yard) -> None:
    owner = yard.library("libowner.so", STATE)
    user = yard.library("libuser.so", USER + "int s_put(void); int put(void) { return s_put(); }", "-Wl,-z,lazy")
    verdict = yard.judge(Opening(user), Opening(owner, shared=True))
    (finding,) = [one for one in verdict.errors if one["code"] == "LC304"]
    assert finding["confidence"] == "high"
    assert "RTLD_GLOBAL after it" not in finding["message"]
