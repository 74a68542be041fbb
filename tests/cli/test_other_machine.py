"""Files for another machine than this one: its directories and its ld.so.cache say nothing of theirs.

The i386 files are the compiler's own; those for aarch64 are this machine's with another e_machine, which is all that a
search looks at. readelf says what they are for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.process import linkcheck_command
from tests.cli.verify_command import Verdict, verify
from tests.loader.workshop import COMPILER, Workshop, needs_compiler, trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_compiler

AARCH64, S390 = 183, 22  # gABI, e_machine
HERE = "this machine's default directories and ld.so.cache are for x86-64"
#: A file that lies in directories of this machine, to which a search for an aarch64 library comes, too.
OF_THIS_MACHINE = "ld-linux-x86-64.so.2"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.chdir(tmp_path)
    return Workshop(tmp_path)


def turn(path: Path) -> Path:
    """Say that the file at `path` is for aarch64."""
    content = bytearray(path.read_bytes())
    content[18:20] = AARCH64.to_bytes(2, "little")
    path.write_bytes(content)
    return path


def machine_of(path: Path) -> str:
    done = subprocess.run(["readelf", "-h", path], capture_output=True, text=True, check=True)
    return next(line for line in done.stdout.splitlines() if "Machine:" in line).partition(":")[2].strip()


def judge(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> Verdict:
    return verify(capfd, "--profile", "default", "--select", "LC1,LC2", *arguments)


def reasons(verdict: Verdict) -> dict[str, str]:
    """The reason of each code that is unknown, of which there is one."""
    unknown = verdict.reasons("unknown")
    assert len(dict(unknown)) == len(unknown)
    return dict(unknown)


def test_what_this_machine_lacks_is_unknown_of_another(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    library = turn(shop.library("liba.so", needs=("libm.so.6", "libc.so.6")))
    assert machine_of(library) == "AArch64"
    verdict = judge(capfd, library)
    assert (verdict.status, verdict.findings) == (2, [])
    ways = "--root takes the root directory of a system for aarch64, and verify --external what such a system provides"
    why = f"the file is for aarch64, and {HERE} ({ways})"
    assert reasons(verdict) == {
        "LC202": f"libm.so.6 and libc.so.6 not found: {why}",
        "LC203": why,
    }


def test_what_is_missing_on_this_machine_stays_an_error(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = judge(capfd, shop.library("liba.so", needs=("libnope.so.6",)))
    assert (verdict.status, verdict.codes) == (1, {"LC202"})


def test_an_i386_program_and_its_loader_are_unknown_too(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    assert COMPILER is not None
    program = shop.base / "main"
    command = [COMPILER, "-m32", "-nostdlib", "-pie", "-fPIC", "-x", "c", "-", "-o", str(program)]
    command += ["-Wl,--dynamic-linker=/lib/ld-linux.so.2"]
    done = subprocess.run(command, input="void _start(void) {}", capture_output=True, text=True, check=False)
    if done.returncode != 0 or os.path.exists("/lib/ld-linux.so.2"):
        pytest.skip("needs a compiler that makes i386 programs (gcc -m32), on a machine without i386's loader")
    assert machine_of(program) == "Intel 80386"
    verdict = judge(capfd, program)
    assert (verdict.status, verdict.findings) == (2, [])
    assert reasons(verdict)["LC202"].startswith(f"/lib/ld-linux.so.2: the file is for i386, and {HERE} (--root takes")


def test_musl_s_loader_of_another_machine_is_unknown(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    flags = ("-pie", "-Wl,--dynamic-linker=/lib/ld-musl-aarch64.so.1")
    program = turn(shop.executable("main", needs=("libc.musl-aarch64.so.1", "libz.so.1"), flags=flags))
    verdict = judge(capfd, program)
    assert (verdict.status, verdict.findings) == (2, [])
    assert "libc.musl-aarch64.so.1 and libz.so.1 not found: the file is for aarch64" in reasons(verdict)["LC202"]


def test_below_a_root_it_is_an_error(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    library = turn(shop.library("machine/opt/liba.so", needs=("libc.so.6", "libz.so.1")))
    turn(shop.library("machine/lib/libz.so.1", soname="libz.so.1"))
    verdict = judge(capfd, library, "--root", shop.base / "machine")
    assert [finding["primary"]["symbol"] for finding in verdict.errors] == ["libc.so.6"]
    assert (verdict.status, reasons(verdict)) == (1, {})


def test_a_machine_with_the_loader_has_its_libraries(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    loader = shop.base / "ld-linux-aarch64.so.1"
    flags = ("-pie", f"-Wl,--dynamic-linker={loader}")
    program = turn(shop.executable("main", needs=("libz.so.1",), flags=flags))
    assert judge(capfd, program).status == 2
    turn(shop.library(loader.name, soname=loader.name))
    verdict = judge(capfd, program)
    assert (verdict.status, verdict.codes) == (1, {"LC202"})


@pytest.mark.parametrize("argument", ["--external", "--library-path"])
def test_who_says_what_the_machine_has_gets_a_verdict(
    shop: Workshop, capfd: pytest.CaptureFixture[str], argument: str
) -> None:
    library = turn(shop.library("liba.so", needs=("libz.so.1",)))
    turn(shop.library("there/libz.so.1", soname="libz.so.1"))
    verdict = judge(capfd, library, argument, "libz.so.1" if argument == "--external" else shop.base / "there")
    assert (verdict.status, reasons(verdict)) == (0, {})


def test_what_lies_nearby_is_named_and_no_error(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """The other machine may have the library in a directory of its own, as this one has libz.so.1."""
    library = turn(shop.library("bin/liba.so", needs=("libz.so.1",)))
    nearby = turn(shop.library("lib/libz.so.1", soname="libz.so.1"))
    verdict = judge(capfd, library)
    assert (verdict.status, verdict.findings) == (2, [])
    assert f"libz.so.1 (there is one at {nearby}) not found: " in reasons(verdict)["LC202"]


@pytest.mark.parametrize("runpath", [None, "/lib64"])
def test_a_file_of_this_machine_is_not_the_one_that_is_wanted(
    shop: Workshop, capfd: pytest.CaptureFixture[str], runpath: str | None
) -> None:
    library = turn(shop.library("liba.so", needs=(OF_THIS_MACHINE,), runpath=runpath))
    verdict = judge(capfd, library)
    assert (verdict.status, verdict.findings) == (2, [])


def test_a_file_of_this_machine_beside_it_is_a_wrong_one(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    library = turn(shop.library("liba.so", needs=(OF_THIS_MACHINE,), runpath="$ORIGIN"))
    shutil.copy(f"/lib64/{OF_THIS_MACHINE}", shop.base)
    verdict = judge(capfd, library)
    assert (verdict.status, verdict.codes) == (1, {"LC102"})
    assert reasons(verdict)["LC202"].startswith(f"{OF_THIS_MACHINE} ")


def make_directory(path: Path) -> None:
    path.mkdir()


def make_text(path: Path) -> None:
    path.write_text("no library\n" * 9)


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_other(path: Path) -> None:
    """A library that is for neither machine."""
    Workshop(path.parent).library(path.name)
    content = bytearray(path.read_bytes())
    content[18:20] = S390.to_bytes(2, "little")
    path.write_bytes(content)


def make_secret(path: Path) -> None:
    path.touch(mode=0)


@pytest.mark.parametrize("make", [make_directory, make_text])
def test_where_the_search_ends_beside_it_nothing_is_left_open(
    shop: Workshop, capfd: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    library = turn(shop.library("liba.so", needs=("libz.so.1",), runpath="$ORIGIN"))
    make(shop.base / "libz.so.1")
    verdict = judge(capfd, library)
    assert (verdict.status, reasons(verdict)) == (1, {})


@pytest.mark.parametrize("make", [make_directory, make_text, make_loop, make_other, make_secret])
def test_what_the_loader_passes_over_leaves_it_open(
    shop: Workshop, prefix: tuple[str, ...], make: Callable[[Path], None]
) -> None:
    """The loader of this machine says of each obstacle whether it then looks into its own directories."""
    there = shop.base / "there"
    there.mkdir()
    make(there / "libm.so.6")
    traced = trace(shop.executable("main", needs=("libm.so.6",)), library_path=str(there), prefix=prefix, cwd=shop.base)
    goes_on = not traced.error or "cannot open shared object file: No such file" in traced.error
    library = turn(shop.library("liba.so", needs=("libm.so.6",)))
    arguments = ("--profile", "default", "--select", "LC2", "--format", "json", "--library-path", there)
    done = linkcheck_command("verify", *arguments, library, cwd=shop.base, prefix=prefix)
    unknown = {check["code"] for check in json.loads(done.out)["checks"] if check["outcome"] == "unknown"}
    assert unknown - {"LC101"} == ({"LC202", "LC203"} if goes_on else set())  # LC101 is about the obstacle


def test_what_ends_the_search_in_a_directory_of_this_machine_ends_no_other(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    """A process of the other machine meets the link beside the file, too, and then its own directories."""
    elsewhere = shop.base / "of-this-machine"
    elsewhere.mkdir()
    make_text(elsewhere / "libz.so.1")
    library = turn(shop.library("home/liba.so", needs=("libz.so.1",), runpath=f"$ORIGIN:{elsewhere}"))
    make_loop(library.parent / "libz.so.1")
    assert reasons(judge(capfd, library)).keys() >= {"LC202", "LC203"}


@pytest.mark.parametrize(("needed", "status"), [("/nope/libz.so.1", 2), ("$ORIGIN/nope/libz.so.1", 1)])
def test_a_path_of_the_other_machine_is_unknown(
    shop: Workshop, capfd: pytest.CaptureFixture[str], needed: str, status: int
) -> None:
    assert judge(capfd, turn(shop.library("liba.so", needs=(needed,)))).status == status


def test_tree_says_it_once(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    library = turn(shop.library("liba.so", needs=("libm.so.6", "libc.so.6")))
    assert run(["tree", str(library)]) == 1
    shown = capfd.readouterr().out
    assert shown.count(HERE) == 1
    assert "libc.so.6 => not found (as above)\n" in shown


def test_tree_names_only_directories_that_say_something(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    (shop.base / "there").mkdir()
    loader = ("-pie", "-Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1")
    program = turn(shop.executable("bin/main", needs=("libz.so.1",), runpath="$ORIGIN:/opt:/lib64", flags=loader))
    run(["tree", str(program), "--library-path", str(shop.base / "there")])
    shown = capfd.readouterr().out
    assert shown.count(HERE) == 1
    assert "libz.so.1 => not found (as above)\n" in shown
    named = [line.strip().removeprefix("not in ") for line in shown.splitlines() if "not in " in line]
    assert named == [str(shop.base / "there"), str(shop.base / "bin")]


def test_the_loader_of_each_program_says_whether_this_machine_tells_anything(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    loader = turn(shop.library("ld-linux-aarch64.so.1", soname="ld-linux-aarch64.so.1"))
    for name, path in (("here", loader), ("elsewhere", "/lib/ld-linux-aarch64.so.1")):
        turn(shop.executable(name, needs=("libz.so.1",), flags=("-pie", f"-Wl,--dynamic-linker={path}")))
    for order in (("here", "elsewhere"), ("elsewhere", "here")):
        verdict = judge(capfd, *order)
        assert [finding["primary"]["path"] for finding in verdict.errors] == ["here"]
        assert {c["subject"] for c in verdict.document["checks"] if c["outcome"] == "unknown"} == {"elsewhere"}
