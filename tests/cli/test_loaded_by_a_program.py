"""A library that finds what it needs only in its program's process, as systemd's private ones; ld.so is the judge."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.verify_command import Verdict, verify
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

LOADER = "/lib64/ld-linux-x86-64.so.2"
USES = "extern int shared(void); int core(void) { return shared(); }"
SELECT = ("--profile", "default", "--select", "LC1,LC2,LC3,LC4")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.chdir(tmp_path)
    shop = Workshop(tmp_path)
    shop.library("private/libshared.so", soname="libshared.so", source="int shared(void) { return 1; }")
    shop.library("private/libcore.so", soname="libcore.so", needs=("libshared.so",), source=USES)
    return shop


def finds_all(shop: Workshop, path: str) -> bool:
    """Whether ld.so finds all that a program needs, or a library by itself, as ldd asks."""
    command, environment = [LOADER, path], {"LD_TRACE_LOADED_OBJECTS": "1", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=shop.base, check=False)
    return "not found" not in done.stdout


def judge(capfd: pytest.CaptureFixture[str], *paths: str) -> Verdict:
    return verify(capfd, *SELECT, *paths)


def make_program(shop: Workshop, *needs: str) -> None:
    shop.executable("bin/main", needs=needs, runpath="$ORIGIN/../private")


NAMED = ("private/libcore.so", "private/libshared.so")


@pytest.mark.parametrize("libraries", [NAMED, ("private",)], ids=["named", "directory"])
def test_what_its_program_loads_and_finds_is_no_error(
    shop: Workshop, capfd: pytest.CaptureFixture[str], libraries: tuple[str, ...]
) -> None:
    make_program(shop, "libcore.so", "libshared.so")
    assert finds_all(shop, "bin/main")
    assert [finds_all(shop, path) for path in NAMED] == [False, True]
    verdict = judge(capfd, "bin/main", *libraries)
    assert (verdict.status, verdict.findings, verdict.reasons("unknown")) == (0, [], [])
    assert judge(capfd, *libraries, "bin").status == 0
    said = "alone it does not find all it needs, and bin/main loads it and finds that: judged there"
    assert (("LC203", said) in verdict.reasons("not-applicable")) is (libraries == NAMED)


@pytest.mark.parametrize("libraries", [NAMED, ("private",)], ids=["named", "directory"])
def test_what_no_program_here_loads_is_one(
    shop: Workshop, capfd: pytest.CaptureFixture[str], libraries: tuple[str, ...]
) -> None:
    assert judge(capfd, *libraries).codes == {"LC203"}
    make_program(shop, "libshared.so")
    assert finds_all(shop, "bin/main")
    assert judge(capfd, "bin/main", *libraries).codes == {"LC203"}


def test_what_its_program_does_not_find_either_is_one(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """DT_RUNPATH of a program does not serve its libraries (man 8 ld.so)."""
    make_program(shop, "libcore.so")
    assert not finds_all(shop, "bin/main")
    verdict = judge(capfd, "bin/main", *NAMED)
    assert [(f["code"], f["primary"]["path"]) for f in verdict.errors] == [("LC203", "private/libcore.so")]


def test_what_is_below_it_has_to_be_found_too(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    shop.library("private/libshared.so", soname="libshared.so", needs=("libnope.so",))
    make_program(shop, "libcore.so", "libshared.so")
    assert not finds_all(shop, "bin/main")
    verdict = judge(capfd, "bin/main", "private/libcore.so")
    assert {f["code"] for f in verdict.about("private/libcore.so")} == {"LC203"}
    assert "LC202" in verdict.codes


def test_what_each_path_must_do_is_asked_of_it_all_the_same(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    make_program(shop, "libcore.so", "libshared.so")
    verdict = judge(capfd, "bin/main", *NAMED, "--require-needed", "libwanted.so")
    assert {f["primary"]["path"] for f in verdict.errors if f["code"] == "LC201"} == {"bin/main", *NAMED}


def test_what_the_target_machine_provides_is_not_lacking(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """As of a delegate, which needs the driver's library and what only its program's search path leads to."""
    driver = "libdriver.so.1"  # which is nowhere here
    shop.library("private/libcore.so", soname="libcore.so", needs=("libshared.so", driver), source=USES)
    make_program(shop, "libcore.so", "libshared.so")
    verdict = verify(capfd, *SELECT, "--external", driver, "bin/main", *NAMED)
    assert (verdict.status, verdict.findings) == (0, [])
    assert {f["code"] for f in judge(capfd, "bin/main", *NAMED).about("private/libcore.so")} == {"LC202", "LC203"}


def test_what_it_would_meet_alone_is_told(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """The program finds a good file; the library's own RUNPATH leads whoever opens it to a static archive."""
    shop.library("private/libcore.so", soname="libcore.so", needs=("libshared.so",), runpath="$ORIGIN", source=USES)
    make_program(shop, "libcore.so", "libshared.so")
    good = shop.base / "good"
    good.mkdir()
    (shop.base / "private/libshared.so").rename(good / "libshared.so")
    shop.executable("bin/main", needs=("libshared.so", "libcore.so"), runpath="$ORIGIN/../good:$ORIGIN/../private")
    (shop.base / "private/libshared.so").write_bytes(b"!<arch>\n")
    assert finds_all(shop, "bin/main")
    verdict = judge(capfd, "bin/main", "private/libcore.so")
    assert "LC101" in verdict.codes


def test_what_only_it_opens_is_told(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """The policy names the caller by a link, so only the process that was started by that path makes the call."""
    make_program(shop, "libcore.so", "libshared.so")
    (shop.base / "current").symlink_to("private")
    (shop.base / "plugin.so").write_text("no library\n")
    edge = '[[dlopen]]\nfrom = "current/libcore.so"\npath = "plugin.so"\n'
    (shop.base / "linkcheck.toml").write_text(edge)
    verdict = verify(capfd, "--select", "LC1", "bin/main", "current/libcore.so")
    assert [f["primary"]["path"] for f in verdict.errors if f["code"] == "LC101"] == ["./plugin.so"]


@pytest.mark.parametrize("link", ["hard", "symbolic"])
def test_a_link_in_another_directory_is_judged_where_it_lies(
    shop: Workshop, capfd: pytest.CaptureFixture[str], link: str
) -> None:
    """$ORIGIN goes by the path that a file is opened by (man 8 ld.so): the program's copy finds what the link lacks."""
    shop.library("private/libcore.so", soname="libcore.so", needs=("libshared.so",), runpath="$ORIGIN", source=USES)
    make_program(shop, "libcore.so")
    plugin = shop.base / "plugins/libcore.so"
    plugin.parent.mkdir()
    if link == "hard":
        plugin.hardlink_to(shop.base / "private/libcore.so")
    else:
        plugin.symlink_to("../private/libcore.so")
    assert [finds_all(shop, path) for path in ("bin/main", "plugins/libcore.so")] == [True, False]
    for arguments in (("bin/main", "plugins/libcore.so"), ("plugins/libcore.so", "bin/main", "private")):
        verdict = judge(capfd, *arguments)
        assert {f["primary"]["path"] for f in verdict.errors} == {"plugins/libcore.so"}


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_hard_linked_directories_are_judged_each(
    shop: Workshop, capfd: pytest.CaptureFixture[str], order: tuple[str, str]
) -> None:
    shop.library("one/libdep.so", soname="libdep.so", source="int shared(void) { return 1; }")
    shop.library("one/plugin.so", needs=("libdep.so",), runpath="$ORIGIN", source=USES)
    (shop.base / "two").mkdir()
    (shop.base / "two/plugin.so").hardlink_to(shop.base / "one/plugin.so")
    assert [finds_all(shop, f"{name}/plugin.so") for name in ("one", "two")] == [True, False]
    assert {f["primary"]["path"] for f in judge(capfd, *order).errors} == {"two/plugin.so"}


@pytest.mark.parametrize("inputs", [("bin/main", "pkg/mod.cpython-311-x86_64-linux-gnu.so"), ("bin", "pkg")])
def test_an_interpreter_opens_an_extension_module_all_the_same(
    shop: Workshop, capfd: pytest.CaptureFixture[str], inputs: tuple[str, ...]
) -> None:
    module = "pkg/mod.cpython-311-x86_64-linux-gnu.so"
    source = "extern int shared(void); int PyInit_mod(void) { return shared(); }"
    shop.library(module, needs=("libshared.so",), source=source)
    make_program(shop, "libshared.so")
    assert not finds_all(shop, module)
    verdict = judge(capfd, *inputs, "--dlopen", module)
    assert {f["code"] for f in verdict.about(module)} & {"LC202", "LC203"}


def test_what_is_loaded_through_a_link_is_judged_there(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """As in a tree of links over a store: nobody opens the file by the name that it has in the store."""
    (shop.base / "store").mkdir()
    (shop.base / "private/libcore.so").unlink()
    shop.library("store/libcore.so", soname="libcore.so", needs=("libshared.so",), runpath="$ORIGIN", source=USES)
    (shop.base / "private/libcore.so").symlink_to("../store/libcore.so")
    make_program(shop, "libcore.so")
    assert [finds_all(shop, path) for path in ("bin/main", "store/libcore.so")] == [True, False]
    assert (judge(capfd, ".").status, judge(capfd, "store").codes) == (0, {"LC202"})


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_link_in_an_archive_leads_as_on_disk(shop: Workshop, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    (shop.base / "store").mkdir()
    (shop.base / "private/libcore.so").unlink()
    shop.library("store/libcore.so", soname="libcore.so", needs=("libshared.so",), runpath="$ORIGIN", source=USES)
    (shop.base / "private/libcore.so").symlink_to("../store/libcore.so")
    make_program(shop, "libcore.so")
    archive = shop.base / f"all.{kind}"
    if kind == "tar":
        subprocess.run(["tar", "cf", archive, "bin", "private", "store"], cwd=shop.base, check=True)
    else:
        code = (
            "import os, sys, zipfile\n"
            "with zipfile.ZipFile(sys.argv[1], 'w') as z:\n"
            "    for d in sys.argv[2:]:\n"
            "        for n in sorted(os.listdir(d)):\n"
            "            p = os.path.join(d, n)\n"
            "            i = zipfile.ZipInfo(p)\n"
            "            i.external_attr = os.lstat(p).st_mode << 16\n"
            "            z.writestr(i, os.readlink(p) if os.path.islink(p) else open(p, 'rb').read())\n"
        )
        subprocess.run([sys.executable, "-c", code, archive, "bin", "private", "store"], cwd=shop.base, check=True)
    verdict = judge(capfd, archive.name)
    assert (verdict.status, verdict.findings) == (0, [])


def test_whoever_leaves_libc_to_the_target_leaves_its_loader_too(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    """Below a root without any C library: as LC202 says, so the program can start and its library is a part of it."""
    shop.library("private/libcore.so", soname="libcore.so", needs=("libshared.so", "libc.so.6"), source=USES)
    flags = ("-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2",)
    needs = ("libcore.so", "libshared.so", "libc.so.6")
    shop.executable("bin/main", needs=needs, runpath="$ORIGIN/../private", flags=flags)
    paths = (shop.base / "bin/main", shop.base / "private/libcore.so")
    verdict = verify(capfd, *SELECT, "--root", shop.base, "--external", "libc.so.6", *paths)
    assert (verdict.status, verdict.findings) == (0, [])
