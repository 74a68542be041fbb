"""A plug-in that takes a symbol from the program: what the program defines and does not export is told as that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

PLUG_IN = "int host_api(void); int use(void) { return host_api(); }"
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int host_api(void) { return 7; }
int main(void) {
  void *user = dlopen("./libuser.so", RTLD_NOW);
  if (!user) { puts(dlerror()); return 1; }
  printf("%d", ((int (*)(void))dlsym(user, "use"))());
  return 0;
}
"""
SAID = "defines host_api (.symtab), but does not export it."


def test_of_a_lone_plug_in_in_a_directory_no_program_is_asked(yard: Yard) -> None:
    yard.library("libuser.so", PLUG_IN, soname="")
    yard.program("program", PROGRAM, "-ldl")
    (finding,) = yard.verify(yard.base, "--select", "LC304").findings
    assert finding["severity"] == "info"
    assert ".symtab" not in finding["message"]
    assert "--dlopen" in finding["remedy"]


@pytest.mark.parametrize(
    ("flags", "works", "said", "rdynamic"),
    [
        ((), False, True, True),
        (("-s",), False, False, True),
        (("-rdynamic",), True, False, False),
        (("-Wl,--export-dynamic-symbol=host_api",), True, False, False),
    ],
)
def test_a_program_that_keeps_its_symbol_to_itself_is_told_to_export_it(
    yard: Yard, flags: tuple[str, ...], works: bool, said: bool, rdynamic: bool
) -> None:
    user = yard.library("libuser.so", PLUG_IN)
    ran = yard.run(yard.program("program", PROGRAM, "-ldl", *flags))
    assert ran.output == "7" if works else "undefined symbol: host_api" in ran.output
    verdict = yard.verify(yard.base / "program", "--dlopen", user, "--select", "LC304")
    assert verdict.codes == (set() if works else {"LC304"})
    assert any(SAID in finding["message"] for finding in verdict.errors) is said
    assert any("-rdynamic" in finding["remedy"] for finding in verdict.errors) is rdynamic
