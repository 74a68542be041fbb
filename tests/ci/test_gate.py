"""The gate believes only the right verdicts: stand-in commands answer here, `ci/gate` itself asks the real ones."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ci import gate, judge
from ci.build import NoBuildError, call
from ci.gate import Step, Subjects, check, steps, take

if TYPE_CHECKING:
    from pathlib import Path

RIGHT_LINES = "\n".join(judge.LINES)
#: Answers as the real runner does: ExecuTorch's log comes between the lines.
RIGHT_RUNNER = f"print('I 00:00 log'); print({RIGHT_LINES!r})"
#: Answers as ci/judge.py has to.
RIGHT_JUDGE = f"""
if "private_copy" in sys.argv[1]:
    print("LC301", sys.argv[1])
print({RIGHT_LINES!r})
sys.exit(1 * ("private_copy" in sys.argv[1]))
"""


def write_command(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    path.chmod(0o755)
    return str(path)


class TestJudge:
    def answer(self, folder: Path, runner: str = RIGHT_RUNNER, linkcheck: str = "") -> int:
        command = write_command(folder / "runner", runner)
        return judge.main([command, "delegate", "model"], write_command(folder / "linkcheck", linkcheck))

    def test_it_passes_what_is_right(self, tmp_path: Path) -> None:
        assert self.answer(tmp_path) == 0

    @pytest.mark.parametrize("status", [1, 2])
    def test_linkchecks_verdict_stands_although_the_runner_is_right(
        self, tmp_path: Path, status: int, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert self.answer(tmp_path, linkcheck=f"sys.exit({status})") == status
        assert RIGHT_LINES in capfd.readouterr().out

    def test_it_asks_for_both_files_and_the_import(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.answer(tmp_path, linkcheck="print('asked', sys.argv[1:])")
        asked = ["verify", "--profile", "executorch-caller-stream", "--require-import", judge.ACCESSOR, "--"]
        assert f"asked {[*asked, str(tmp_path / 'runner'), 'delegate']}" in capfd.readouterr().out

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("[2,3,4,4] numel=96 dtype", "[2,3,4,5] numel=96 dtype"),
            ("2.0000 2.0000\n", "2.0000 2.0001\n"),
            ("2.0000 2.0000\n", "2.0000 2.00000\n"),
            ("2.0000 2.0000\n", "2.0000\n"),
            ("2.0000 2.0000\n", "2.0000 2.0000 2.0000\n"),
            ("caller stream: ordinary stream\n", ""),
            ("output[0]", "output[1] shape=[1] numel=1 dtype=6\noutput[0]"),
            ("dtype=6", "dtype=7"),
        ],
    )
    def test_it_fails_a_runner_that_prints_something_else(self, tmp_path: Path, right: str, wrong: str) -> None:
        text = f"{RIGHT_LINES}\n"
        assert right in text
        assert self.answer(tmp_path, f"print({text.replace(right, wrong)!r})") == 1

    @pytest.mark.parametrize("body", [f"{RIGHT_RUNNER}; sys.exit(1)", "import os; os.abort()", ""])
    def test_it_fails_a_runner_that_ends_badly(self, tmp_path: Path, body: str) -> None:
        assert self.answer(tmp_path, body) == 1

    def test_it_runs_elsewhere_and_without_an_environment(self, tmp_path: Path) -> None:
        body = "import os; assert os.getcwd() == '/' and 'PATH' not in os.environ and os.path.isabs(sys.argv[1][13:])"
        assert self.answer(tmp_path, f"{body}; {RIGHT_RUNNER}") == 0

    def test_what_is_not_there_is_no_pass(self, tmp_path: Path) -> None:
        linkcheck = write_command(tmp_path / "linkcheck", "")
        assert judge.main([str(tmp_path / "absent"), "delegate", "model"], linkcheck) == 1
        runner = write_command(tmp_path / "runner", RIGHT_RUNNER)
        assert judge.main([runner, "delegate", "model"], str(tmp_path / "absent")) == 2
        assert judge.main([runner, "delegate"], linkcheck) == 2


class TestGate:
    @pytest.fixture
    def subjects(self, tmp_path: Path) -> Subjects:
        package = tmp_path / "package"
        (package / "lib").mkdir(parents=True)
        (package / "lib" / "libextension_cuda.so").touch()
        return Subjects(
            tmp_path / "runner", tmp_path / "delegate", package, tmp_path / "private_copy", tmp_path / "model"
        )

    def answer(self, subjects: Subjects, judging: str = RIGHT_JUDGE, linkcheck: str = "") -> int:
        folder = subjects.model.parent
        command = (write_command(folder / "judge", judging),)
        return check(steps(subjects, command, write_command(folder / "linkcheck", linkcheck)))

    def test_it_passes_when_every_verdict_is_right(self, subjects: Subjects, capfd: pytest.CaptureFixture[str]) -> None:
        assert self.answer(subjects) == 0
        assert capfd.readouterr().out.endswith(" s: passed\n")

    @pytest.mark.parametrize(
        "judging",
        [
            pytest.param(f"print(sys.argv[1], 'LC301', {RIGHT_LINES!r})", id="always-passes"),
            pytest.param(f"print(sys.argv[1], 'LC301', {RIGHT_LINES!r}); sys.exit(1)", id="always-fails"),
            pytest.param(RIGHT_JUDGE.replace("exit(1", "exit(2"), id="cannot-check-the-wrong-one"),
            pytest.param(RIGHT_JUDGE.replace("LC301", "LC104"), id="fails-the-wrong-one-for-another-reason"),
            pytest.param(RIGHT_JUDGE.replace("2.0000", "1.0000"), id="passes-wrong-values"),
            pytest.param("raise RuntimeError", id="crashes"),
        ],
    )
    def test_it_fails_when_a_verdict_is_wrong(
        self, subjects: Subjects, judging: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert judging != RIGHT_JUDGE
        assert self.answer(subjects, judging) == 1
        assert "NOT as expected" in capfd.readouterr().out

    def test_it_fails_a_package_with_a_second_library(self, subjects: Subjects) -> None:
        (subjects.package / "lib" / "libexecutorch_extension_cuda.so").touch()
        assert self.answer(subjects) == 1

    def test_it_fails_a_package_that_linkcheck_fails(self, subjects: Subjects) -> None:
        assert self.answer(subjects, linkcheck="sys.exit(1)") == 1

    def test_what_cannot_be_built_is_one_line_and_no_verdict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(gate, "FOLDER", tmp_path / "gate")
        monkeypatch.setattr("ci.build.TOOLS", tmp_path)
        monkeypatch.setattr("ci.build.executorch_folder", lambda: tmp_path)
        write_command(tmp_path / "cmake", "sys.exit('no space left')")
        assert gate.main() == 2
        assert capfd.readouterr().err.splitlines() == [
            "no space left",
            "gate: cmake --preset ended with status 1, its message is above",
        ]

    def test_a_tool_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(NoBuildError, match="absent: No such file"):
            call(tmp_path / "absent")


class TestStep:
    def test_it_prints_the_command_and_its_answer(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert take(Step("say it", ("sh", "-c", "echo out; echo err >&2; exit 3"), 3, ("out", "err")))
        printed = capfd.readouterr().out.splitlines()[1:]
        assert printed[0].endswith(" s: say it")
        assert printed[1:] == [
            "$ sh -c 'echo out; echo err >&2; exit 3'",
            "out",
            "err",
            "gate: exit status 3, as expected",
        ]

    def test_a_command_that_is_not_there_is_not_as_expected(self, tmp_path: Path) -> None:
        assert not take(Step("run it", (str(tmp_path / "absent"),), 0))
