"""What is no regular file in place of a needed library: where the real ld.so stops or waits."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import verify
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It finds libneeded.so in the second of two directories."""
    monkeypatch.chdir(tmp_path)
    shop = Workshop(tmp_path)
    shop.library("second/libneeded.so", soname="libneeded.so")
    (tmp_path / "first").mkdir()
    return shop.executable("main", needs=("libneeded.so",), runpath="$ORIGIN/first:$ORIGIN/second")


def judge(program: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, set[str]]:
    verdict = verify(capfd, program, "--profile", "default")
    assert run(["tree", str(program)]) == verdict.status
    capfd.readouterr()
    return verdict.status, verdict.codes


def test_a_file_is_found_in_the_second_directory(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert subprocess.run([program], check=False).returncode == 0
    assert judge(program, capfd) == (0, set())


def test_ld_so_stops_at_a_directory(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (program.parent / "first/libneeded.so").mkdir()
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "first/libneeded.so: cannot read file data: Error 21" in done.stderr
    assert judge(program, capfd) == (1, {"LC101"})


def test_ld_so_waits_at_a_fifo(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(program.parent / "first/libneeded.so")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([program], check=False, timeout=1)
    assert judge(program, capfd) == (1, {"LC101"})
    os.unlink(program.parent / "first/libneeded.so")
