"""What nobody defines in a process of musl, and what its files say that they may open, judged by musl's own loader."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import load_trees
from linkcheck.loader.undefined import DefinitionFinder
from linkcheck.model import Finding, FoundBy, Libc, Outcome
from linkcheck.policy.settings import Settings
from linkcheck.rules.undefined_symbol import check
from linkcheck.rules.unsatisfied_version import check as check_versions
from tests.elf.test_dlopen_notes import write_note
from tests.loader.fuzz.toolchain import why_not
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from linkcheck.model import LoadSet

pytestmark = [*needs_compiler, pytest.mark.skipif(bool(why_not(Libc.MUSL)), reason=why_not(Libc.MUSL) or "never")]

DEFINITION = "int table_get(void) { return 1; }"
INDIRECT = (
    "static int f(void) { return 1; } static void *r(void) { return f; } "
    'int table_get(void) __attribute__((ifunc("r")));'
)
USES = "int table_get(void); int use(void) { return table_get(); }"
MAIN = "int use(void); int main(void) { use(); return 0; }"


def build(source: str, target: Path, *flags: str | Path) -> Path:
    """Compile and link with musl-gcc: a library for a name with `.so` in it, a program otherwise."""
    kind = ["-shared", "-fPIC", f"-Wl,-soname,{target.name}"] if ".so" in target.name else ["-Wl,-rpath,$ORIGIN"]
    command = ["musl-gcc", *kind, "-x", "c", "-", "-x", "none", "-w", *map(str, flags), "-o", str(target)]
    subprocess.run(command, input=source, text=True, check=True)
    return target


def ask_musl(program: Path) -> set[tuple[str, str]]:
    """File and symbol of everything that musl's loader does not find when it starts `program`: it binds all then."""
    done = subprocess.run([str(program)], capture_output=True, text=True, env={}, check=False)
    found = re.findall(r"^Error relocating ([^:\n]+): (\S+): symbol not found$", done.stderr, re.MULTILINE)
    assert bool(found) is (done.returncode != 0), done.stderr
    return {(path.rpartition("/")[2], name) for path, name in found}


def load(program: Path, libc: Libc = Libc.MUSL) -> LoadSet:
    (load_set,) = load_trees([str(program)], libc=libc)
    assert load_set.libc is libc
    return load_set


def name_undefined(load_set: LoadSet) -> set[tuple[str, str]]:
    finder = DefinitionFinder()
    return {
        (load_set.modules[one.module].image.path.rpartition("/")[2], name)
        for one in finder.find(load_set)
        for name, _, _ in finder.requested(load_set.modules[one.module].image, one.demands)
    }


def judge(program: Path) -> set[tuple[str, str]]:
    """What musl's loader does not find in `program`, after checking that linkcheck and LC304 say the same."""
    expected = ask_musl(program)
    load_set = load(program)
    assert name_undefined(load_set) == expected
    results = list(check(load_set, Settings("test")))
    found = {(one.primary.path.rpartition("/")[2], one.primary.symbol) for one in results if isinstance(one, Finding)}
    assert found == expected
    return expected


def link(base: Path, table: str, *flags: str, user: str = USES) -> Path:
    """A program, the library it uses, and libtable.so, which is made of `table` when the others are linked."""
    build(DEFINITION, base / "libtable.so")
    build(user, base / "libuser.so", base / "libtable.so", "-Wl,--no-as-needed")
    program = build(MAIN, base / "app", base / "libuser.so", base / "libtable.so", "-Wl,--no-as-needed")
    build(table, base / "libtable.so", *flags)
    return program


@pytest.mark.parametrize("kind", ["-no-pie", "-pie"])
@pytest.mark.parametrize(("table", "lost"), [("int kept = 1;", False), ("int other;", True)])
def test_an_object_that_a_program_copies(tmp_path: Path, table: str, lost: bool, kind: str) -> None:
    build("int kept = 1;", tmp_path / "libtable.so")
    main = "extern int kept; int main(void) { return kept - 1; }"
    compiled = "-fno-pic" if kind == "-no-pie" else "-fPIE"
    program = build(main, tmp_path / "app", kind, compiled, tmp_path / "libtable.so")
    listed = subprocess.run(["readelf", "-rW", str(program)], capture_output=True, text=True, check=True).stdout
    assert "R_X86_64_COPY" in listed
    build(table, tmp_path / "libtable.so")
    assert judge(program) == ({("app", "kept")} if lost else set())


@pytest.mark.parametrize(
    ("table", "defined"),
    [
        (DEFINITION, True),
        ("int other;", False),
        (f'__attribute__((visibility("hidden"))) {DEFINITION}', False),
        (f'__attribute__((visibility("protected"))) {DEFINITION}', True),
        (f"__attribute__((weak)) {DEFINITION}", True),
        (INDIRECT, False),
    ],
)
def test_a_symbol_that_a_library_defines_or_not(tmp_path: Path, table: str, defined: bool) -> None:
    assert judge(link(tmp_path, table)) == (set() if defined else {("libuser.so", "table_get")})


def test_a_weak_import_may_stay_undefined(tmp_path: Path) -> None:
    user = "__attribute__((weak)) int table_get(void); int use(void) { return table_get ? table_get() : 0; }"
    assert judge(link(tmp_path, "int other;", user=user)) == set()


def test_names_that_the_loader_has_itself(tmp_path: Path) -> None:
    user = 'int printf(const char *, ...); double sin(double); int use(void) { return printf("") + (int)sin(1.0); }'
    assert judge(link(tmp_path, DEFINITION, user=user)) == set()


VERSIONED = ("T_1 { global: table_get; };", "T_2 { global: table_get; };")


def test_another_version_serves_as_well(tmp_path: Path) -> None:
    """glibc refuses to start with it."""
    old, new = (tmp_path / name for name in ("old.map", "new.map"))
    old.write_text(VERSIONED[0])
    new.write_text(VERSIONED[1])
    build(DEFINITION, tmp_path / "libtable.so", f"-Wl,--version-script={new}")
    build(USES, tmp_path / "libuser.so", tmp_path / "libtable.so")
    program = build(MAIN, tmp_path / "app", tmp_path / "libuser.so", tmp_path / "libtable.so")
    build(DEFINITION, tmp_path / "libtable.so", f"-Wl,--version-script={old}")
    assert judge(program) == set()
    assert [r.outcome for r in check_versions(load(program), Settings("test"))] == [Outcome.NOT_APPLICABLE]  # type: ignore[union-attr]
    faults = check_versions(load(program, Libc.GLIBC), Settings("test"))
    assert "T_2" in {fault.primary.symbol for fault in faults if isinstance(fault, Finding)}


def test_a_version_that_is_no_default_serves_nobody(tmp_path: Path) -> None:
    """Not even who asks for it, so that the library's lack of it is LC304's, not LC305's, to tell."""
    script = tmp_path / "versions.map"
    script.write_text(VERSIONED[0])
    old = '__asm__(".symver old, table_get@T_1"); int old(void) { return 1; }'
    flag = f"-Wl,--version-script={script}"
    build(DEFINITION, tmp_path / "libtable.so", flag)
    build(USES, tmp_path / "libuser.so", tmp_path / "libtable.so")
    program = build(MAIN, tmp_path / "app", tmp_path / "libuser.so", tmp_path / "libtable.so")
    assert judge(program) == set()
    for table, flags in (old, (flag,)), ("int other;", ()):
        build(table, tmp_path / "libtable.so", *flags)
        assert judge(program) == {("libuser.so", "table_get")}
    script.write_text("T_3 { global: other; };")
    build("int other;", tmp_path / "libtable.so", flag)
    assert judge(program) == {("libuser.so", "table_get")}


def test_one_file_in_processes_of_both_libraries(tmp_path: Path) -> None:
    """What is remembered of a file for one loader says nothing of the other."""
    program = link(tmp_path, INDIRECT)
    finder = DefinitionFinder()

    def ask(libc: Libc) -> Collection[str]:
        return {demand[0] for one in finder.find(load(program, libc)) for demand in one.demands}

    for _ in range(2):
        assert "table_get" in ask(Libc.MUSL)
        assert "table_get" not in ask(Libc.GLIBC)


@pytest.mark.parametrize("place", ["program", "user", "loader"])
def test_what_a_note_names_is_looked_for_from_the_program(tmp_path: Path, place: str) -> None:
    """musl's dlopen searches from the program, whoever calls it; the name of a C library is always there."""
    name = "libfast.so.1" if place != "loader" else "libm.so.6"
    opener = f'#include <dlfcn.h>\nint use(void) {{ return dlopen("{name}", RTLD_NOW) == 0; }}'
    note = write_note(1, json.dumps([{"soname": [name], "priority": "required"}]))
    (tmp_path / "own").mkdir()
    build(f"{opener}\n{note}", tmp_path / "libuser.so", "-Wl,-rpath,$ORIGIN/own")
    program = build(MAIN.replace("use(); return 0", "return use()"), tmp_path / "app", tmp_path / "libuser.so")
    if place != "loader":
        build("int fast;", tmp_path / ("own" if place == "user" else ".") / name)
    failed = subprocess.run([str(program)], env={}, check=False).returncode
    load_set = load(program)
    assert failed == (place == "user")
    assert [missing.needed for missing in load_set.unresolved] == ([name] if failed else [])
    opened = [module.requested_as for module in load_set.modules if module.found_by is FoundBy.DLOPEN]
    assert opened == ([name] if place == "program" else [])
