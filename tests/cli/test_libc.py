"""`--libc`: the commands that load a process follow the loader that it starts with, or the one that is named."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from linkcheck.model import Libc
from tests.loader.fuzz.toolchain import why_not
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_compiler

MUSL = "/lib/ld-musl-x86_64.so.1"
GLIBC = "/lib64/ld-linux-x86-64.so.2"
STATE = "int acc(void) { return 1; } int use_%s(void) { return acc(); }"


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def say(*arguments: str | Path) -> tuple[int, str]:
        status = run([*map(str, arguments)])
        return status, capfd.readouterr().out

    return say


def make_graph(shop: Workshop, loader: str) -> Path:
    """main finds liba by its DT_RUNPATH, and for musl also what liba needs; libtwo and libb both define acc."""
    for name in ("libb.so", "libtwo.so"):
        source = STATE % name[3:-3]
        shop.library(f"lib/{name}", soname=name, source=source, flags=("-Wl,-Bsymbolic",))
    shop.library("lib/liba.so", soname="liba.so", needs=("libb.so",))
    flags = ("-pie", f"-Wl,--dynamic-linker={loader}")
    return shop.executable("main", needs=("liba.so", "libtwo.so"), runpath="$ORIGIN/lib", flags=flags)


@pytest.mark.parametrize("loader", [MUSL, GLIBC])
def test_the_program_tells_and_the_option_overrides(
    shop: Workshop, say: Callable[..., tuple[int, str]], loader: str
) -> None:
    main = make_graph(shop, loader)
    own = "musl" if loader == MUSL else "glibc"
    seen = {}
    for libc in ("auto", "glibc", "musl"):
        status, text = say("tree", main, "--libc", libc, "--format", "json")
        (tree,) = json.loads(text)["trees"]
        assert tree["libc"] == (own if libc == "auto" else libc)
        seen[libc] = (status, tuple(missing["needed"] for missing in tree["unresolved"]))
    assert seen["musl"] == (0, ())
    assert seen["glibc"] == (1, ("libb.so",))
    assert seen["auto"] == seen[own]
    assert say("tree", main)[0] == seen[own][0]


@pytest.mark.skipif(bool(why_not(Libc.MUSL)), reason=why_not(Libc.MUSL) or "never")
def test_the_two_loaders_themselves_differ_so(shop: Workshop) -> None:
    """The judges: what make_graph says of each is what each does."""
    started = {}
    for loader in (MUSL, GLIBC):
        main = make_graph(shop, loader)
        started[loader] = subprocess.run([str(main)], capture_output=True, check=False).returncode
    assert started == {MUSL: 0, GLIBC: 127}


def test_verify_judges_by_the_loader(shop: Workshop, say: Callable[..., tuple[int, str]]) -> None:
    main = make_graph(shop, MUSL)
    ask = ("verify", main, "--select", "LC202,LC203")
    assert say(*ask)[0] == 0
    status, text = say(*ask, "--libc", "glibc")
    assert status == 1
    assert "libb.so" in text


@pytest.mark.parametrize("loader", [MUSL, GLIBC])
def test_who_forces_the_other_loader_is_told_whose_the_program_is(
    shop: Workshop, say: Callable[..., tuple[int, str]], loader: str
) -> None:
    flags = ("-pie", f"-Wl,--dynamic-linker={loader}")
    main = shop.executable("main", needs=("libnope.so",), flags=flags)
    shop.library("lib/libsome.so", soname="libsome.so")
    near = shop.executable("near", needs=("libsome.so",), flags=flags)
    own, other = ("musl", "glibc") if loader == MUSL else ("glibc", "musl")
    told = f"is linked for {own} (its PT_INTERP is {loader}), and --libc {other} has it judged as {other}'s: leave out"
    for root, code in ((main, "LC202"), (near, "LC203")):
        ask = ("verify", root, "--select", code, "--format", "json")
        for libc in ("auto", own, other):
            status, text = say(*ask, "--libc", libc)
            (finding,) = json.loads(text)["findings"]
            assert (status, finding["code"]) == (1, code)
            assert (f"{root} {told}" in finding["remedy"]) is (libc == other)


def test_the_loader_is_no_hint_where_the_file_shows_none(shop: Workshop, say: Callable[..., tuple[int, str]]) -> None:
    library = shop.library("liba.so", soname="liba.so", needs=("libnope.so",))
    for libc in ("glibc", "musl"):
        assert "--libc" not in say("verify", library, "--select", "LC202", "--libc", libc)[1]


@pytest.mark.skipif(bool(why_not(Libc.MUSL)), reason=why_not(Libc.MUSL) or "never")
def test_what_only_the_other_c_library_defines_is_told_in_the_same_way(
    shop: Workshop, say: Callable[..., tuple[int, str]]
) -> None:
    program = shop.base / "main"
    source = "char *gnu_get_libc_version(void); int main(void) { return !gnu_get_libc_version(); }"
    subprocess.run(["gcc", "-xc", "-", "-o", program], input=source, text=True, check=True)
    assert subprocess.run([program], check=False).returncode == 0
    assert say("verify", program, "--select", "LC304")[0] == 0
    status, text = say("verify", program, "--select", "LC304", "--libc", "musl")
    assert status == 1
    assert f"Fix: {program} is linked for glibc (its PT_INTERP is {GLIBC}), and --libc musl" in text


def test_bindings_names_the_loader(shop: Workshop, say: Callable[..., tuple[int, str]]) -> None:
    main = make_graph(shop, GLIBC)
    for libc, missing in (("musl", 0), ("glibc", 1)):
        status, text = say("bindings", main, "--symbol", "acc", "--libc", libc, "--format", "json")
        document = json.loads(text)
        assert (status, document.get("libc", "glibc"), len(document["unresolved"])) == (0, libc, missing)


def test_scan_finds_two_copies_where_the_loader_brings_both(
    shop: Workshop, say: Callable[..., tuple[int, str]]
) -> None:
    make_graph(shop, MUSL)
    policy = shop.base / "linkcheck.toml"
    policy.write_text('[[state]]\nname = "acc"\nowner = ["libtwo.so"]\nsymbols = ["acc"]\n')
    ask = ("scan", shop.base, "--policy", policy)
    assert say(*ask)[0] == 1
    assert say(*ask, "--libc", "glibc")[0] == 0


def test_another_value_is_refused(say: Callable[..., tuple[int, str]]) -> None:
    assert say("tree", "/bin/sh", "--libc", "bionic")[0] == 2
