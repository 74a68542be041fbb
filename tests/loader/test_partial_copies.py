"""A file with only some of the functions of a state: what linkcheck says, and what the program really does."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import verify
from linkcheck.model import Severity
from linkcheck.policy.settings import Settings, State, SymbolSpec
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.model import Finding

pytestmark = needs_compiler

OWNER = "static int v; int table_get(void) { return v; } void table_set(int n) { v = n; }"
#: One of the owner's two functions, with a variable of its own, and a use of it that the compiler cannot fold.
PART = "static int v; {hidden} void table_set(int n) {{ v = n; }} void part_set(int n) {{ table_set(n); }}"
HIDDEN = '__attribute__((visibility("hidden")))'
#: Sets through the part and reads through the owner: 7 when both reach one variable.
MAIN = """
#include <stdio.h>
int table_get(void); void part_set(int);
{more}
int main(void) {{ part_set(7); printf("%d", table_get()); return 0; }}
"""
#: The same with the part opened at run time.
OPENER = """
#include <dlfcn.h>
#include <stdio.h>
int table_get(void);
{more}
int main(int n, char **names) {{
  void (*set)(int) = (void (*)(int))dlsym(dlopen(names[1], RTLD_NOW | RTLD_LOCAL), "part_set");
  set(7); printf("%d", table_get()); return 0;
}}
"""


def state(*owner: str) -> State:
    return State("table", owner, (SymbolSpec("table_get", ("table_get",)), SymbolSpec("table_set", ("table_set",))))


class Shop:
    def __init__(self, base: Path) -> None:
        self.base = base

    def build(self, name: str, source: str, *flags: str) -> Path:
        path = self.base / name
        command = ["gcc", "-O1", "-fPIC", "-x", "c", "-", "-x", "none", f"-L{self.base}", *flags, "-o", str(path)]
        subprocess.run(command, input=source, text=True, check=True, capture_output=True)
        return path

    def library(self, name: str, source: str, *flags: str) -> Path:
        return self.build(name, source, "-shared", f"-Wl,-soname,{name}", *flags)

    def program(self, source: str, *flags: str) -> Path:
        return self.build("app", source, "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", *flags)

    def owner(self) -> Path:
        return self.library("libtable.so", OWNER)

    def part(self, *flags: str, hidden: bool = False) -> Path:
        return self.library("libpart.so", PART.format(hidden=HIDDEN if hidden else ""), *flags)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def answer(program: Path, *arguments: Path) -> str:
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, env={}, check=True)
    return done.stdout


def split(program: Path, *dlopen: Path, owner: str = "libtable.so") -> Finding | None:
    """LC401's error, if there is one. LC403 never takes a part for the whole library."""
    settings = Settings("test", states=(state(owner),))
    report = verify([str(program)], settings=settings, dlopen=[str(one) for one in dlopen])
    assert not [f for f in report.findings if f.finding.code == "LC403"]
    found = [f.finding for f in report.findings if f.finding.code == "LC401"]
    return next((f for f in found if f.severity is Severity.ERROR), None)


def test_a_part_that_comes_first_splits_the_state(shop: Shop) -> None:
    shop.owner()
    part = shop.part()
    program = shop.program(MAIN.format(more=""), "-lpart", "-ltable")
    assert answer(program) == "0"
    found = split(program)
    assert found is not None
    assert found.evidence["verdict"] == "split"
    assert str(part) in found.message


def test_a_part_that_comes_last_and_leaves_its_uses_to_the_loader_is_merged(shop: Shop) -> None:
    shop.owner()
    shop.part()
    program = shop.program(MAIN.format(more=""), "-ltable", "-lpart")
    assert answer(program) == "7"
    assert split(program) is None


@pytest.mark.parametrize("flags", [("-Wl,-Bsymbolic",), ("-Wl,-Bsymbolic-functions",)])
def test_a_part_that_comes_last_and_is_bound_to_itself_splits_the_state(shop: Shop, flags: tuple[str, ...]) -> None:
    shop.owner()
    shop.part(*flags)
    program = shop.program(MAIN.format(more=""), "-ltable", "-lpart")
    assert answer(program) == "0"
    assert split(program) is not None


def test_a_hidden_part_splits_the_state_and_is_seen_until_it_is_stripped(shop: Shop) -> None:
    shop.owner()
    part = shop.part(hidden=True)
    program = shop.program(MAIN.format(more=""), "-ltable", "-lpart")
    assert answer(program) == "0"
    assert split(program) is not None
    subprocess.run(["strip", "-s", str(part)], check=True)
    assert answer(program) == "0"
    assert split(program) is None  # what only LC301 can demand: libpart.so imports nothing of the state


@pytest.mark.parametrize("hidden", [False, True])
def test_an_opened_part_is_judged_in_its_scope(shop: Shop, hidden: bool) -> None:
    shop.owner()
    part = shop.part(hidden=hidden)
    program = shop.program(OPENER.format(more=""), "-ltable")
    assert answer(program, part) == ("0" if hidden else "7")
    assert (split(program, part) is not None) is hidden


def test_two_opened_files_of_which_one_has_a_part(shop: Shop) -> None:
    """The owner comes with the first one, out of the second one's sight: one copy under RTLD_GLOBAL only."""
    shop.owner()
    reader = shop.library(
        "reader.so", "int table_get(void); int read_it(void) { return table_get(); }", "-Wl,-rpath,$ORIGIN", "-ltable"
    )
    part = shop.part()
    source = """
    #include <dlfcn.h>
    #include <stdio.h>
    int main(int n, char **names) {
      int (*read_it)(void) = (int (*)(void))dlsym(dlopen(names[1], RTLD_NOW | RTLD_LOCAL), "read_it");
      void (*set)(int) = (void (*)(int))dlsym(dlopen(names[2], RTLD_NOW | RTLD_LOCAL), "part_set");
      set(7); printf("%d", read_it()); return 0;
    }"""
    program = shop.program(source)
    assert answer(program, reader, part) == "0"
    found = split(program, reader, part)
    assert found is not None
    assert found.evidence["verdict"] == "split-unless-global"


@pytest.mark.parametrize("exported", [False, True])
def test_a_program_with_a_part_is_the_culprit(shop: Shop, exported: bool) -> None:
    shop.owner()
    source = MAIN.format(more=PART.format(hidden=""))
    program = shop.program(source, "-ltable", *(["-rdynamic"] if exported else []))
    assert answer(program) == "0"
    found = split(program)
    assert found is not None
    assert str(program) in found.message


def test_a_program_that_owns_the_state_and_a_library_with_a_part(shop: Shop) -> None:
    shop.part("-Wl,-Bsymbolic")
    program = shop.program(MAIN.format(more=OWNER), "-rdynamic", "-lpart")
    assert answer(program) == "0"
    assert split(program, owner="<root>") is not None
    shop.part()
    assert answer(program) == "7"
    assert split(program, owner="<root>") is None


def test_an_owner_that_lacks_a_function_leaves_it_undefined(shop: Shop) -> None:
    shop.owner()
    shop.part()
    program = shop.program(MAIN.format(more=""), "-ltable", "-lpart")
    shop.library("libtable.so", "static int v; void table_set(int n) { v = n; }")
    done = subprocess.run([str(program)], capture_output=True, text=True, env={"LD_BIND_NOW": "1"}, check=False)
    assert "undefined symbol: table_get" in done.stderr
    report = verify([str(program)], settings=Settings("test", states=(state("libtable.so"),)))
    codes = {f.finding.code for f in report.findings if f.finding.severity is Severity.ERROR}
    assert codes == {"LC304", "LC306", "LC402"}
