"""The loader that a program names, when the kernel cannot start it; this machine's kernel is the judge."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import verify
from tests.loader.workshop import START, Workshop, compile_c, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_compiler

LOADER = "/lib64/ld-linux-x86-64.so.2"


@pytest.fixture(autouse=True)
def no_policy_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(path: Path, interpreter: str) -> Path:
    compile_c(START, path, "-pie", f"-Wl,--dynamic-linker={interpreter}")
    return path


def starts(program: Path) -> bool:
    try:
        return subprocess.run([program], check=False).returncode == 0
    except OSError:
        return False


def make_object(tmp_path: Path) -> str:
    """An ELF file for another machine, that may be executed."""
    path = tmp_path / "other"
    compile_c(START, path, "-pie")
    content = bytearray(path.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    path.write_bytes(content)
    return str(path)


def make_text(tmp_path: Path) -> str:
    path = tmp_path / "text"
    path.write_text("not a loader\n" * 9)
    path.chmod(0o755)
    return str(path)


KINDS: dict[str, Callable[[Path], str]] = {
    "usual": lambda tmp_path: LOADER,
    "absent": lambda tmp_path: "/nope/ld.so",
    "below-a-file": lambda tmp_path: f"{LOADER}/ld.so",
    "text": make_text,
    "directory": str,
    "other-machine": make_object,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_starts_when_its_interpreter_does(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    program = make(tmp_path / "main", KINDS[kind](tmp_path))
    assert starts(program) is (kind == "usual")
    verdict = verify(capfd, program, "--profile", "default")
    assert (verdict.status, verdict.codes) == ((0, set()) if starts(program) else (1, {"LC202"}))
    assert run(["tree", str(program)]) == verdict.status
    shown = capfd.readouterr().out
    assert (KINDS[kind](tmp_path) in shown) is (kind != "usual")


def test_the_interpreter_is_the_one_below_the_root(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    base = tmp_path / "machine"
    program = Workshop(base).executable("main")
    arguments = (program, "--profile", "default", "--root", base)
    (finding,) = verify(capfd, *arguments).errors
    assert (finding["code"], finding["primary"]["symbol"]) == ("LC202", LOADER)
    (base / "lib64").mkdir()
    shutil.copy(LOADER, base / LOADER[1:])
    assert verify(capfd, *arguments).errors == []


@pytest.mark.parametrize("external", ["ld-linux-*", LOADER, "libc.so.6"])
def test_who_leaves_the_c_library_to_the_machine_leaves_the_loader_to_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], external: str
) -> None:
    base = tmp_path / "machine"
    program = Workshop(base).executable("main", needs=("libc.so.6",))
    arguments = (program, "--profile", "default", "--root", base, "--select", "LC202")
    assert {finding["primary"]["symbol"] for finding in verify(capfd, *arguments).errors} == {LOADER, "libc.so.6"}
    left = verify(capfd, *arguments, "--external", external)
    assert LOADER not in {finding["primary"]["symbol"] for finding in left.errors}
    assert ("LC202", f"{LOADER} is left to the target machine (external)") in left.reasons("not-applicable")


@pytest.mark.parametrize("flags", [("-static-pie",), ("-static",), ("-shared", "-Wl,-soname,l.so")])
def test_without_an_interpreter_none_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    path = tmp_path / "main"
    compile_c(START, path, *flags)
    assert flags[0] == "-shared" or starts(path)
    assert "LC202" not in verify(capfd, path, "--profile", "default").codes


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory")
def test_an_interpreter_that_cannot_be_seen_is_unknown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    program = make(tmp_path / "main", str(closed / "ld.so"))
    verdict = verify(capfd, program, "--profile", "default")
    assert (verdict.status, [code for code, _ in verdict.reasons("unknown")]) == (2, ["LC202"])
