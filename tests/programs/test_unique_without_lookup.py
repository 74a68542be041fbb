"""A STB_GNU_UNIQUE definition becomes the process's by a look-up only: a library that defines the name itself, and has
no relocation for it, makes none. The program says in which file the plug-in's variable is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.lookup import bindings
from linkcheck.loader.system import System
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

UNIQUE = """
__asm__(".data\\n.globl var\\n.type var, @gnu_unique_object\\n.size var, 4\\n.balign 4\\nvar: .long 0\\n.text");
extern int var;
"""
PROTECTED = '__attribute__((visibility("protected"))) int var = 1;'
#: Refers to what it defines: a relocation, and so a look-up, which ends at the program's.
PLAIN = "int var = 1; int *use(void) { return &var; }"
PLUG_IN = f"{UNIQUE}int *probe(void) {{ return &var; }}"
PROGRAM = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
{UNIQUE}
int main(int count, char **names) {{
  Dl_info info;
  void *library = dlopen(names[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  dladdr(((void *(*)(void))dlsym(library, "probe"))(), &info);
  printf("%s", strrchr(info.dli_fname, '/') + 1);
  return 0;
}}
"""


@pytest.mark.parametrize(("source", "expected"), [(PROTECTED, "libplugin.so"), (PLAIN, "program")])
def test_who_makes_a_look_up(yard: Yard, source: str, expected: str) -> None:
    library = yard.library("libother.so", source)
    plug_in = yard.library("libplugin.so", PLUG_IN)
    program = yard.program("program", PROGRAM, "-rdynamic", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", library)
    assert yard.run(program, str(plug_in)).output == expected
    load_set = load(read_image(str(program)), System(read_image), dlopen=[Dlopen(str(plug_in), deepbind=True)])
    (bound,) = (b for b in bindings(load_set, ["var"]) if load_set.modules[b.module].image.path == str(plug_in))
    assert bound.provider is not None
    assert load_set.modules[bound.provider].image.path.endswith(f"/{expected}")
