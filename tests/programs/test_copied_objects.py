"""A state that is a variable of the owner, in a program that makes room for a copy of it (R_*_COPY) and shares that.

Compilers do so by default, in a position-independent program, too. The program prints what it and the owner see once
it has set the variable to 9.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import load
from linkcheck.loader.state import judge_state
from linkcheck.loader.system import System
from linkcheck.model import Verdict
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.value import replace
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler

OWNER = "int s_value = 1; int s_get(void) { return s_value; }"
PROGRAM = """
#include <stdio.h>
extern int s_value;
int s_get(void);
int main(void) { s_value = 9; printf("%d %d", s_value, s_get()); return 0; }
"""
POLICY = """
[[state]]
name = "state"
owner = ["libowner.so"]
symbols = ["s_value"]

[[role]]
name = "runner"
kind = "executable"
"""
IMPORT = POLICY + 'import = ["s_value"]\nforbid-export = ["s_value"]\n'
COPYING = [("-fno-pic", "-no-pie"), ("-fPIE", "-pie")]
LINKS = ("-L.", "-lowner", "-Wl,-rpath,$ORIGIN")


@pytest.fixture
def owner(yard: Yard) -> Path:
    return yard.library("libowner.so", OWNER)


def copies(program: Path) -> bool:
    shown = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True, check=True).stdout
    return "_COPY" in shown


@pytest.mark.parametrize("flags", COPYING, ids=["fixed", "pie"])
def test_it_imports_the_object_and_has_no_copy_of_its_own(yard: Yard, owner: Path, flags: tuple[str, ...]) -> None:
    program = yard.program("program", PROGRAM, *flags, *LINKS)
    assert copies(program)
    assert yard.run(program).output == "9 9"
    verdict = yard.verify(program, "--policy", yard.policy(IMPORT))
    assert (verdict.status, [f for f in verdict.findings if f["code"].startswith(("LC3", "LC4"))]) == (0, [])
    passed = {code for code, _ in verdict.reasons("pass")}
    assert {"LC301", "LC302", "LC303", "LC306", "LC401", "LC402"} <= passed


@pytest.mark.parametrize("names", ['"s_value", "s_get"', '"s_*"'], ids=["both", "pattern"])
def test_it_is_one_state_with_the_functions_of_the_owner(yard: Yard, owner: Path, names: str) -> None:
    program = yard.program("program", PROGRAM, "-fno-pic", "-no-pie", *LINKS)
    policy = yard.policy(IMPORT.replace('symbols = ["s_value"]', f"symbols = [{names}]"))
    assert yard.run(program).output == "9 9"
    assert yard.verify(program, "--policy", policy).status == 0


@pytest.mark.parametrize(
    ("user", "deepbind", "output"),
    [
        ("int s_value = 3;", False, "9 9 9"),
        ("extern int s_value;", False, "9 9 9"),
        ('__attribute__((visibility("hidden"))) int s_value = 3;', False, "9 9 3"),
        ("extern int s_value;", True, "9 9 1"),
    ],
    ids=["exported", "imported", "hidden", "deepbind"],
)
def test_what_it_opens_shares_the_copy_or_does_not(
    yard: Yard, owner: Path, user: str, deepbind: bool, output: str
) -> None:
    library = yard.library("libuser.so", f"{user} int probe(void) {{ return s_value; }}", "-Wl,--no-as-needed", *LINKS)
    opening = PROGRAM.replace("#include", "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include").replace(
        'printf("%d %d", s_value, s_get());',
        f'int (*probe)(void) = (int (*)(void))dlsym(dlopen("{library}", RTLD_NOW | {"RTLD_DEEPBIND" * deepbind or 0}), '
        '"probe"); printf("%d %d %d", s_value, s_get(), probe());',
    )
    program = yard.program("program", opening, "-fno-pic", "-no-pie", *LINKS, "-ldl")
    assert copies(program)
    assert yard.run(program).output == output
    edge = f'[[dlopen]]\nfrom = "program"\npath = "{library}"\ndeepbind = {str(deepbind).lower()}\n'
    both = IMPORT.replace('symbols = ["s_value"]', 'symbols = ["s_value", "s_get"]')
    for policy in (IMPORT, both):
        codes = yard.verify(program, "--policy", yard.policy(policy + edge)).codes
        assert codes == (set() if output == "9 9 9" else {"LC401"})


def test_it_has_its_own_where_the_owner_keeps_to_itself(yard: Yard) -> None:
    yard.library("libowner.so", OWNER, "-Wl,-Bsymbolic")
    program = yard.program("program", PROGRAM, "-fno-pic", "-no-pie", *LINKS)
    assert yard.run(program).output == "9 1"
    assert yard.verify(program, "--policy", yard.policy(IMPORT)).codes == {"LC401"}


def test_the_wrong_provider_is_the_file_that_it_is_copied_from(yard: Yard, owner: Path) -> None:
    """Also where that file keeps its own object beside the copy, and the program holds what everybody else uses."""
    other = yard.library("libother.so", "int s_value = 3; int other(void) { return s_value; }", "-Wl,-Bsymbolic")
    source = PROGRAM.replace("s_get", "other")
    program = yard.program("program", source, "-fno-pic", "-no-pie", "-Wl,--no-as-needed", "-lother", *LINKS)
    assert copies(program)
    assert yard.run(program).output == "9 3"
    verdict = yard.verify(program, "--policy", yard.policy(IMPORT))
    (finding,) = (finding for finding in verdict.errors if finding["code"] == "LC303")
    assert finding["evidence"]["providers"] == [str(other)]
    assert f"{program} -> {other}" in finding["message"]


def test_it_is_no_export_for_what_demands_one(yard: Yard, owner: Path) -> None:
    demands = yard.policy(POLICY + 'export = ["s_value"]\n')
    program = yard.program("program", PROGRAM, "-fno-pic", "-no-pie", *LINKS)
    assert [finding["primary"]["path"] for finding in yard.verify(program, "--policy", demands).errors] == [
        str(program)
    ]
    own = PROGRAM.replace("extern int s_value;", "int s_value;")
    program = yard.program("program", own, "-fno-pic", "-no-pie", "-rdynamic", *LINKS)
    assert "LC306" not in yard.verify(program, "--policy", demands).codes


def test_it_has_its_own_when_it_defines_one(yard: Yard, owner: Path) -> None:
    own = PROGRAM.replace("extern int s_value;", "int s_value;")
    program = yard.program("program", own, "-fno-pic", "-no-pie", "-rdynamic", *LINKS)
    assert not copies(program)
    # It takes the owner's place, which works and is no import.
    assert yard.run(program).output == "9 9"
    assert {"LC301", "LC302"} <= yard.verify(program, "--policy", yard.policy(IMPORT)).codes


def test_it_is_an_import_for_what_forbids_it_or_asks_for_it(yard: Yard, owner: Path) -> None:
    program = yard.program("program", PROGRAM, "-fno-pic", "-no-pie", *LINKS)
    forbids = POLICY + 'forbid-import = ["s_value"]\n'
    (finding,) = yard.verify(program, "--policy", yard.policy(forbids)).errors
    assert (finding["code"], finding["evidence"]["imports"]) == ("LC204", ["s_value"])
    asks = POLICY + 'when-import = ["s_value"]\nimport = ["s_missing"]\n'
    (finding,) = yard.verify(program, "--policy", yard.policy(asks)).errors
    assert (finding["code"], finding["evidence"]["missing"]) == ("LC301", ["s_missing"])


def test_an_owner_that_does_not_export_it_any_more_is_found(yard: Yard, owner: Path) -> None:
    program = yard.program("program", PROGRAM, "-fno-pic", "-no-pie", *LINKS)
    yard.library("libowner.so", OWNER.replace("int s_value", "static int s_value", 1))
    assert "LC306" in yard.verify(program, "--policy", yard.policy(IMPORT)).codes


TWO_NAMES = """
int s_value = 1;
extern int s_other __attribute__((alias("s_value") WEAK));
int s_get(void) { return USED; }
"""


def two_names(*, weak: bool, used: str) -> str:
    return TWO_NAMES.replace(" WEAK", ", weak" if weak else "").replace("USED", used)


def naming(*names: str) -> str:
    return IMPORT.replace('symbols = ["s_value"]', f"symbols = [{', '.join(map(repr, names))}]").replace(
        'forbid-export = ["s_value"]', f"forbid-export = [{', '.join(map(repr, names))}]"
    )


@pytest.mark.parametrize("linker", ["bfd", "gold"])
@pytest.mark.parametrize("names", [("s_value",), ("s_other",), ("s_value", "s_other")], ids=" ".join)
@pytest.mark.parametrize("used", ["s_value", "s_other"])
def test_names_at_the_address_of_the_copy_are_names_of_it(
    yard: Yard, linker: str, names: tuple[str, ...], used: str
) -> None:
    if shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"needs ld.{linker} (Debian package binutils)")
    yard.library("libowner.so", two_names(weak=True, used=used))
    # One relocation, for either name (the linker's choice), and both names in the program's table.
    program = yard.program("program", PROGRAM.replace("s_value", "s_other"), *COPYING[0], f"-fuse-ld={linker}", *LINKS)
    assert copies(program)
    assert yard.run(program).output == "9 9"
    policy = naming(*names).replace('import = ["s_value"]', f"import = [{names[-1]!r}]")
    verdict = yard.verify(program, "--policy", yard.policy(policy))
    assert (verdict.status, [f for f in verdict.findings if f["code"].startswith(("LC3", "LC4"))]) == (0, [])
    assert {"LC301", "LC302", "LC303", "LC306", "LC401", "LC402"} <= {code for code, _ in verdict.reasons("pass")}


@pytest.mark.parametrize("names", [("environ",), ("__environ",), ("environ", "__environ", "_environ")], ids=" ".join)
def test_the_environment_of_a_default_build_is_one(yard: Yard, names: tuple[str, ...]) -> None:
    source = """
#include <stdio.h>
#include <stdlib.h>
extern char **environ;
int main(void) { char *own[] = {"S_VALUE=9", 0}; environ = own; printf("%s", getenv("S_VALUE")); return 0; }
"""
    program = yard.program("program", source, *COPYING[1])
    assert copies(program)
    assert yard.run(program).output == "9"
    policy = f'[[state]]\nname = "environment"\nowner = ["libc.so.6"]\nsymbols = [{", ".join(map(repr, names))}]\n'
    verdict = yard.verify(program, "--policy", yard.policy(policy))
    assert (verdict.status, [f for f in verdict.findings if f["code"].startswith(("LC3", "LC4"))]) == (0, [])


@pytest.mark.parametrize(
    "names", [("s_value",), ("s_other",), ("s_value", "s_other"), ("s_value", "s_other", "s_get")], ids=" ".join
)
@pytest.mark.parametrize(
    ("used", "user", "output"),
    [
        ("s_other", "s_value", "9 1 9"),
        ("s_value", "s_other", "9 9 1"),
        ("s_value", "s_value", "9 9 9"),
    ],
)
def test_it_has_its_own_where_others_use_a_second_name(
    yard: Yard, names: tuple[str, ...], used: str, user: str, output: str
) -> None:
    yard.library("libowner.so", two_names(weak=False, used=used))
    yard.library("libuser.so", f"extern int {user}; int s_see(void) {{ return {user}; }}", *LINKS)
    source = PROGRAM.replace("int s_get(void);", "int s_get(void), s_see(void);").replace(
        '"%d %d", s_value, s_get()', '"%d %d %d", s_value, s_get(), s_see()'
    )
    program = yard.program("program", source, *COPYING[1], "-L.", "-luser", *LINKS)
    assert copies(program)
    assert yard.run(program).output == output
    # A program that must import a name that it does not import is another fault (LC301).
    policy = naming(*names).replace('import = ["s_value"]\n', "")
    verdict = yard.verify(program, "--policy", yard.policy(policy))
    assert verdict.codes == (set() if output == "9 9 9" else {"LC401"})
    if verdict.codes:
        (finding,) = verdict.errors
        assert finding["evidence"]["copies"] == [str(program), str(yard.base / "libowner.so")]


LIST = "{ s_get; };"
HIDDEN = 'extern int s_own __attribute__((alias("s_value"), visibility("hidden")));'
#: What the owner does with the object, flags for its linker, what it sees, and what LC401 says.
INSIDE = {
    "refers to it": (OWNER, (), "9 9", "pass"),
    "lists what may be replaced": (OWNER, ("-Wl,--dynamic-list=list",), "9 1", "error"),
    "writes it as a number": (
        "int s_value = 1; void s_set(void) { s_value = 1; } int s_get(void) { s_set(); return s_value; }",
        ("-Wl,--dynamic-list=list",),
        "9 1",
        "error",
    ),
    "has it in a table": (
        "int s_value = 1; static int *volatile table[] = {&s_value}; int s_get(void) { return *table[0]; }",
        ("-Wl,--dynamic-list=list",),
        "9 1",
        "error",
    ),
    "has it in a packed table": (
        "int s_value = 1; static int *volatile table[] = {0, &s_value}; int s_get(void) { return *table[1]; }",
        ("-Wl,--dynamic-list=list", "-Wl,-z,pack-relative-relocs"),
        "9 1",
        "error",
    ),
    "has it in a table, by its name": (
        "int s_value = 1; static int *volatile table[] = {&s_value}; int s_get(void) { return *table[0]; }",
        (),
        "9 9",
        "pass",
    ),
    "calls it by a hidden name": (f"int s_value = 1; {HIDDEN} int s_get(void) {{ return s_own; }}", (), "9 1", "error"),
    "does not use it": ("int s_value = 1, other = 5; int s_get(void) { return other; }", (), "9 5", "pass"),
    "uses a part of it": (
        "struct { int first, others[7]; } s_value = {1}; int s_get(void) { return s_value.others[3]; }",
        ("-Wl,--dynamic-list=list",),
        "9 0",
        "error",
    ),
    "does not use it, and it is large": (
        "struct { int first, others[7]; } s_value = {1}; int other = 5; int s_get(void) { return other; }",
        (),
        "9 5",
        "pass",
    ),
    "may use a part of it": (
        "struct { int first, others[7]; } s_value = {1}; int other = 5; int s_get(void) { return other; }",
        ("-Wl,--dynamic-list=list",),
        "9 5",
        "unknown",
    ),
}


@pytest.mark.parametrize("names", [("s_value",), ("s_value", "s_get")], ids=" ".join)
@pytest.mark.parametrize("case", INSIDE)
def test_uses_that_the_owners_linker_has_bound_are_seen(yard: Yard, case: str, names: tuple[str, ...]) -> None:
    source, flags, output, outcome = INSIDE[case]
    (yard.base / "list").write_text(LIST, encoding="utf-8")
    owner = yard.library("libowner.so", source, *flags)
    program = yard.program("program", PROGRAM, *COPYING[1], *LINKS)
    assert copies(program)
    assert yard.run(program).output == output
    shown = subprocess.run(["readelf", "-rW", owner], capture_output=True, text=True, check=True).stdout
    assert ("s_value" in shown) == (outcome == "pass" and output == "9 9")
    verdict = yard.verify(program, "--policy", yard.policy(naming(*names)))
    assert {o for o in ("pass", "unknown") if "LC401" in [code for code, _ in verdict.reasons(o)]} == (
        {outcome} - {"error"}
    )
    assert verdict.codes == ({"LC401"} if outcome == "error" else set())


def test_of_other_code_it_is_unknown_whether_the_owner_uses_it(yard: Yard) -> None:
    (yard.base / "list").write_text(LIST, encoding="utf-8")
    owner = yard.library("libowner.so", OWNER, "-Wl,--dynamic-list=list")
    program = yard.program("program", PROGRAM, *COPYING[1], *LINKS)
    assert yard.verify(program, "--policy", yard.policy(IMPORT)).codes == {"LC401"}
    load_set = load(read_image(str(program)), System(read_image))
    table = ListedSymbols(tuple(read_image(str(owner)).symbols), unreferenced=frozenset({"s_value"}))
    modules = tuple(
        replace(module, image=replace(module.image, symbols=table)) if module.image.name == owner.name else module
        for module in load_set.modules
    )
    assert modules != load_set.modules
    judgement = judge_state(replace(load_set, modules=modules), ["s_value"])
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.doubt.startswith(f"{owner}: no relocation refers to s_value, of which {program} has a copy")
