"""What nobody defines, and versions that a library lacks, as linkcheck and the real ld.so see them."""

from __future__ import annotations

import os.path
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import load_trees
from linkcheck.loader.undefined import DefinitionFinder
from linkcheck.model import Finding, Severity
from linkcheck.policy.settings import Settings
from linkcheck.rules.unsatisfied_version import check as check_versions
from tests.loader.workshop import START, Workshop, compile_c, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

USES = "int table_get(void); int table_size; int use(void) { return table_get(); }"


def ask_loader(path: Path) -> set[tuple[str, str]]:
    """File and symbol of everything that the real ld.so does not find, as `ldd -r` asks it."""
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_BIND_NOW": "1", "LD_WARN": "1", "LC_ALL": "C"}
    command = [str(path)] if _is_program(path) else ["/lib64/ld-linux-x86-64.so.2", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = re.findall(r"undefined symbol: (\w+)(?:, version (\w+))?\s+\((\S+)\)", done.stdout + done.stderr)
    return {(where, f"{name}@{version}" if version else name) for name, version, where in lines}


def _is_program(path: Path) -> bool:
    return b"ld-linux" in path.read_bytes()


def ask_linkcheck(path: Path, *dlopen: Path) -> set[tuple[str, str]]:
    (load_set,) = load_trees([str(path)], dlopen=[str(one) for one in dlopen])
    finder = DefinitionFinder()
    return {
        (load_set.modules[one.module].image.path, name if version is None else f"{name}@{version}")
        for one in finder.find(load_set)
        for name, version, _ in finder.requested(load_set.modules[one.module].image, one.demands)
    }


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def link_program(shop: Workshop, user: str, **facts: object) -> Path:
    """A program that needs libuser.so (of the source `user`) and libtable.so."""
    shop.library("libuser.so", soname="libuser.so", source=user)
    return shop.executable("app", needs=("libuser.so", "libtable.so"), runpath="$ORIGIN", **facts)  # type: ignore[arg-type]


DEFINITIONS = {
    "defined": "int table_get(void) { return 1; }",
    "absent": "int other;",
    "hidden": '__attribute__((visibility("hidden"))) int table_get(void) { return 1; }',
    "protected": '__attribute__((visibility("protected"))) int table_get(void) { return 1; }',
    "weak": "__attribute__((weak)) int table_get(void) { return 1; }",
    "data": "int table_get = 1;",
    "thread-local": "__thread int table_get = 1;",
    "common": "int table_get;",
}


@pytest.mark.parametrize("hash_style", ["gnu", "sysv", "both"])
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_a_symbol_that_a_library_defines_or_not(shop: Workshop, definition: str, hash_style: str) -> None:
    style = f"-Wl,--hash-style={hash_style}"
    shop.library("libtable.so", soname="libtable.so", source=DEFINITIONS[definition], flags=(style,))
    program = link_program(shop, USES)
    expected = ask_loader(program)
    assert bool(expected) is (definition in ("absent", "hidden"))
    assert ask_linkcheck(program) == expected


USERS = {
    "call": USES,
    "address": "int table_get(void); int (*get)(void) = table_get;",
    "object": "extern int table_get; int use(void) { return table_get; }",
    "thread-local": "extern __thread int table_get; int use(void) { return table_get; }",
    "weak": "__attribute__((weak)) int table_get(void); int use(void) { return table_get ? table_get() : 0; }",
    "hidden": '__attribute__((visibility("hidden"), weak)) int table_get(void); int u(void) { return !table_get; }',
    "none": "int unrelated;",
}


@pytest.mark.parametrize("user", USERS)
def test_the_ways_to_use_what_nobody_defines(shop: Workshop, user: str) -> None:
    shop.library("libtable.so", soname="libtable.so")
    program = link_program(shop, USERS[user])
    expected = ask_loader(program)
    assert bool(expected) is (user in ("call", "address", "object", "thread-local"))
    assert ask_linkcheck(program) == expected


def test_an_entry_that_no_relocation_refers_to_is_never_looked_up(shop: Workshop) -> None:
    shop.library("libtable.so", soname="libtable.so")
    # Debug information refers to it, and is not loaded.
    source = '__asm__(".section .debug_x,\\"\\"\\n.quad table_get\\n.text"); int unrelated;'
    shop.library("libuser.so", soname="libuser.so", source=source)
    program = shop.executable("app", needs=("libuser.so", "libtable.so"), runpath="$ORIGIN")
    listed = subprocess.run(
        ["readelf", "-W", "--dyn-syms", str(shop.base / "libuser.so")], capture_output=True, text=True
    )
    assert " UND table_get" in listed.stdout
    assert ask_linkcheck(program) == ask_loader(program) == set()


@pytest.mark.parametrize("attribute", ["", "__attribute__((weak)) "])
@pytest.mark.parametrize("kind", ["-pie", "-no-pie"])
@pytest.mark.parametrize("table", ["int kept = 1;", "int other;", '__attribute__((visibility("hidden"))) int kept;'])
def test_an_object_that_a_program_copies(shop: Workshop, table: str, kind: str, attribute: str) -> None:
    """Judged by the program's start: its own room for the object is no definition."""
    shop.library("libtable.so", soname="libtable.so", source=f"{attribute}int kept = 1;")
    source = f"extern int kept; int *volatile place; void touch(void) {{ place = &kept; }} {START}"
    flags = (kind, "-fPIE" if kind == "-pie" else "-fno-pic", str(shop.base / "libtable.so"))
    program = shop.executable("app", source=source, flags=flags, runpath="$ORIGIN")
    listed = subprocess.run(["readelf", "-rW", str(program)], capture_output=True, text=True, check=True).stdout
    shop.library("libtable.so", soname="libtable.so", source=table)
    done = subprocess.run([str(program)], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
    lost = "undefined symbol: kept" in done.stderr
    assert lost is (done.returncode != 0), done.stderr
    assert ask_linkcheck(program) == ({(str(program), "kept")} if lost else set())
    assert "R_X86_64_COPY" in listed
    assert lost is (table != "int kept = 1;" and not attribute)


@pytest.mark.parametrize("defined_in_first", [True, False])
def test_programs_of_one_run_have_what_their_own_libraries_define(shop: Workshop, defined_in_first: bool) -> None:
    """One finder is asked for both, and knows who defined the function when it comes to the second."""
    shop.library("libuser.so", soname="libuser.so", source=USES)
    programs = []
    for name, defined in (("first", defined_in_first), ("second", not defined_in_first)):
        shop.library(
            f"{name}/libtable.so", soname="libtable.so", source=DEFINITIONS["defined" if defined else "absent"]
        )
        shop.library(f"{name}/libown.so", soname="libown.so", source=USES)
        needs = ("libuser.so", "libown.so", "libtable.so")
        programs.append(shop.executable(f"{name}/app", needs=needs, rpath="$ORIGIN/..:$ORIGIN"))
    expected = [ask_loader(program) for program in programs]
    assert [len(found) for found in expected] == ([0, 2] if defined_in_first else [2, 0])
    finder = DefinitionFinder()
    for load_set, wanted in zip(load_trees([str(program) for program in programs]), expected, strict=True):
        found = {(load_set.modules[one.module].image.path, one.demands[0][0]) for one in finder.find(load_set)}
        assert found == {(os.path.normpath(path), symbol) for path, symbol in wanted}


def test_a_program_serves_the_libraries_it_needs_only_when_it_exports(shop: Workshop) -> None:
    source = f"int table_get(void) {{ return 1; }} {START}"
    for flags, found in (("-pie", "-Wl,--export-dynamic"), True), (("-pie",), False):
        shop.library("libtable.so", soname="libtable.so")
        program = link_program(shop, USES, source=source, flags=flags)
        expected = ask_loader(program)
        assert (expected == set()) is found
        assert ask_linkcheck(program) == expected


def test_a_symbol_that_is_not_in_the_version_that_is_asked_for(shop: Workshop) -> None:
    """Both versions are there, so that ld.so starts the comparison of symbols; the function moved to another one."""
    source = "int table_get(void) { return 1; } int table_put(void) { return 1; }"
    script = shop.base / "versions"
    table = shop.base / "libtable.so"
    flags = ("-shared", "-Wl,-soname,libtable.so", f"-Wl,--version-script={script}")
    script.write_text("T_1 { global: table_put; }; T_2 { global: table_get; local: *; };")
    compile_c(source, table, *flags)
    compile_c(USES, shop.base / "libuser.so", "-shared", "-Wl,-soname,libuser.so", str(table))
    program = shop.executable("app", needs=("libuser.so", "libtable.so"), runpath="$ORIGIN")
    assert ask_linkcheck(program) == ask_loader(program) == set()
    script.write_text("T_1 { global: table_get; }; T_2 { global: table_put; local: *; };")
    compile_c(source, table, *flags)
    expected = ask_loader(program)
    assert {symbol for _, symbol in expected} == {"table_get@T_2"}
    assert ask_linkcheck(program) == expected


@pytest.mark.parametrize("provided", ["T_1", "T_2", ""])
@pytest.mark.parametrize("weak", [False, True])
def test_versions_that_a_library_has_or_lacks(shop: Workshop, provided: str, weak: bool) -> None:
    script, table = shop.base / "versions", shop.base / "libtable.so"
    source = "int table_get(void) { return 1; }"
    flags = ("-shared", "-Wl,-soname,libtable.so")
    script.write_text("T_2 { global: table_get; };")
    compile_c(source, table, *flags, f"-Wl,--version-script={script}")
    user = USES if not weak else f"__attribute__((weak)) {USES}"
    compile_c(user, shop.base / "libuser.so", "-shared", "-Wl,-soname,libuser.so", str(table))
    program = shop.executable("app", needs=("libuser.so", "libtable.so"), runpath="$ORIGIN")
    script.write_text(f"{provided} {{ global: table_get; }};")
    compile_c(source, table, *flags, *([f"-Wl,--version-script={script}"] if provided else []))
    done = subprocess.run([str(program)], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
    refused = "version `T_2' not found" in done.stderr
    assert (done.returncode != 0) is refused is (provided == "T_1" and not weak), done.stderr
    (load_set,) = load_trees([str(program)])
    found = [r.severity for r in check_versions(load_set, Settings("test")) if isinstance(r, Finding)]
    assert (Severity.ERROR in found) is refused
    # The function is never called, so that glibc before 2.41 only says so here, too.
    unversioned = not provided and not weak
    assert (Severity.WARNING in found) is ("no version information available" in done.stderr) is unversioned


def test_what_is_opened_sees_the_program_and_its_own_needs_only(shop: Workshop) -> None:
    """Judged by a program that opens both, with RTLD_NOW."""
    shop.library("libtable.so", soname="libtable.so", source=DEFINITIONS["defined"])
    plug_in = shop.library("plug.so", source=USES)
    opener = """
    #include <dlfcn.h>
    int main(int n, char **names) {
      dlopen(names[1], RTLD_NOW | (names[3][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL));
      return dlopen(names[2], RTLD_NOW) == 0;
    }"""
    program = shop.base / "opener"
    subprocess.run(["gcc", "-x", "c", "-", "-o", str(program)], input=opener, text=True, check=True)
    table = shop.base / "libtable.so"
    for mode in ("local", "global"):
        failed = subprocess.run([str(program), str(table), str(plug_in), mode], check=False).returncode
        opened = {"dlopen": [str(plug_in)], "dlopen_global": [str(table)]} if mode == "global" else {}
        if mode == "local":
            found = ask_linkcheck(program, table, plug_in)
            assert bool(failed) and {symbol for _, symbol in found} == {"table_get"}
        else:
            assert not failed
            # --dlopen-global comes after --dlopen; a program that needs the library opens it first.
            (load_set,) = load_trees([str(program)], **opened)  # type: ignore[arg-type]
            assert len(load_set.opened) == 2
