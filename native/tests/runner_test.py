"""Runs executorch_runner on a program made by make_pte.py and checks its lines, a contract, and its exit status.

runner_test.py RUNNER PROGRAM.pte
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = ""
PROGRAM = ""


def lines_of(stderr: str) -> list[str]:
    """The runner's own lines, without ExecuTorch's log."""
    return [line for line in stderr.splitlines() if not line.startswith(("I ", "D ", "E "))]


class RunnerTest(unittest.TestCase):
    def run_runner(self, *flags: str, status: int = 0) -> list[str]:
        result = subprocess.run(
            [RUNNER, f"--model_path={PROGRAM}", *flags], capture_output=True, text=True, check=False
        )
        self.assertEqual(result.returncode, status, result.stderr)
        return lines_of(result.stderr)

    def test_the_reference_lines(self) -> None:
        self.assertEqual(
            self.run_runner(),
            [
                "  input[0] shape=[2,3,4,4] numel=96",
                "caller stream: ordinary stream",
                "output[0] shape=[2,3,4,4] numel=96 dtype=6",
                "  first 8 values: 2.0000 2.0000 2.0000 2.0000 2.0000 2.0000 2.0000 2.0000",
            ],
        )

    def test_several_runs_give_the_same(self) -> None:
        self.assertEqual(self.run_runner("--num_runs=3"), self.run_runner())

    def test_outputs_on_the_gpu_are_copied_back(self) -> None:
        self.assertEqual(self.run_runner("--method=on_gpu"), self.run_runner())

    def test_every_type_is_filled_and_printed_as_itself(self) -> None:
        for method, dtype, values in (
            ("half", 5, "2.0000 2.0000 2.0000 2.0000"),
            ("long", 4, "2 2 2 2"),
            ("bool", 11, "1 1 1 1"),
        ):
            with self.subTest(method):
                lines = self.run_runner(f"--method={method}")
                self.assertEqual(
                    lines[2:], [f"output[0] shape=[4] numel=4 dtype={dtype}", f"  first 4 values: {values}"]
                )

    def test_inputs_from_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "input.bin"
            path.write_bytes(struct.pack("<4q", 10, 20, 30, -40))
            lines = self.run_runner("--method=long", f"--inputs={path}")
            self.assertEqual(lines[-1], "  first 4 values: 11 21 31 -39")
            path.write_bytes(b"short")
            lines = self.run_runner("--method=long", f"--inputs={path}", status=1)
            self.assertIn("has 5 bytes, the input takes 32", lines[-1])

    def test_a_seed_makes_the_same_random_inputs_again(self) -> None:
        first = self.run_runner("--seed=7")
        self.assertEqual(first, self.run_runner("--seed=7"))
        self.assertNotEqual(first, self.run_runner("--seed=8"))

    def test_wrong_flags_are_refused(self) -> None:
        for flag in ("--num_run=3", "--num_runs=x", "--num_runs=-1", "--num_runs", "--seed=", "extra", "--num_runs=1 "):
            with self.subTest(flag):
                self.assertIn("executorch_runner:", self.run_runner(flag, status=2)[0])

    def test_what_cannot_run_is_an_exit_status_not_an_abort(self) -> None:
        self.assertIn("/nowhere.pte", self.run_runner("--model_path=/nowhere.pte", status=1)[-1])
        self.assertIn("method absent", self.run_runner("--method=absent", status=1)[-1])
        self.assertIn("execute: Error::InvalidArgument", self.run_runner("--method=wrong", status=1)[-1])


if __name__ == "__main__":
    RUNNER, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
