"""The gate believes only the right verdicts: stand-in commands answer here, `ci/gate` itself asks the real one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.programs import gate
from tests.programs.gate import Step, take

if TYPE_CHECKING:
    from pathlib import Path

#: A command that answers as linkcheck has to, judged by the file names alone.
RIGHT = """
subject = sys.argv[-1]
if subject.startswith("good/"):
    sys.exit(0)
print(subject, "LC301" if sys.argv[1] == "verify" else "LC101")
sys.exit(1)
"""


@pytest.fixture
def answering(tmp_path: Path) -> Path:
    return tmp_path / "linkcheck"


def write_command(path: Path, body: str) -> str:
    path.write_text(f"#!{sys.executable}\nimport sys\n{body}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.compile
def test_the_gate_passes_when_every_verdict_is_right(answering: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert gate.main(write_command(answering, RIGHT)) == 0
    assert capfd.readouterr().out.endswith("gate: passed\n")


@pytest.mark.compile
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("print('LC301 LC101')", id="always-passes"),
        pytest.param("print(sys.argv[-1], 'LC301 LC101'); sys.exit(1)", id="always-fails"),
        pytest.param(RIGHT.replace("sys.exit(1)", "sys.exit(2)"), id="cannot-check-the-broken-ones"),
        pytest.param(RIGHT.replace("print(", "str("), id="fails-without-a-message"),
        pytest.param(RIGHT.replace("LC101", "LC104"), id="fails-the-archive-for-another-reason"),
        pytest.param("raise RuntimeError", id="crashes"),
    ],
)
def test_the_gate_fails_when_a_verdict_is_wrong(answering: Path, body: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert gate.main(write_command(answering, body)) == 1
    assert "NOT as expected" in capfd.readouterr().out


def test_a_compiler_that_fails_is_one_line_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_command(tmp_path / "g++", "sys.exit('no space left')")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gate.main("linkcheck") == 2
    assert capfd.readouterr().err.splitlines() == [
        "no space left",
        "gate: g++ could not build the programs, its message is above",
    ]


def test_a_step_prints_the_command_and_its_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert take(Step("say it", ("sh", "-c", "echo out; echo err >&2; exit 3"), 3, ("out", "err")), tmp_path)
    assert capfd.readouterr().out.splitlines()[1:] == [
        "gate: say it",
        "$ sh -c 'echo out; echo err >&2; exit 3'",
        "out",
        "err",
        "gate: exit status 3, as expected",
    ]


def test_a_command_that_is_not_there_is_not_as_expected(tmp_path: Path) -> None:
    assert not take(Step("run it", (str(tmp_path / "absent"),), 0), tmp_path)
