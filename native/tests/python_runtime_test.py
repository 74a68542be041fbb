"""The shared backend under ExecuTorch's stock Python runtime, opened with ctypes and nothing else.

python_runtime_test.py BACKEND PROGRAM.pte

Needs the torch that the executorch wheel was built for, and what `executorch.runtime` imports. Without them it skips:
exit status 77, with the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

SKIPPED = 77
BACKEND = ""
PROGRAM = ""


def run_python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """This interpreter, without the warning that ExecuTorch's interface is experimental."""
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class PythonRuntimeTest(unittest.TestCase):
    def test_it_runs_whether_opened_before_or_after_the_runtime(self) -> None:
        for order in ("before", "after"):
            with self.subTest(order):
                done = run_python(Path(__file__).with_name("run_in_python.py"), order, BACKEND, PROGRAM)
                self.assertEqual(done.returncode, 0, done.stderr)
                answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
                self.assertEqual("TensorRTBackend" in answer["names_before"], order == "before")
                self.assertEqual(answer["names"].count("TensorRTBackend"), 1)
                self.assertTrue(answer["available"])
                self.assertEqual((answer["count"], answer["shape"]), (1, [2, 3, 4, 4]))
                self.assertTrue(answer["right"])
                self.assertEqual(answer["integers"], [2, 3, 4, -3])
                # One registry, and one choice of stream.
                self.assertEqual(len(answer["libexecutorch"]), 1)
                self.assertEqual(len(answer["libextension_cuda"]), 1)


if __name__ == "__main__":
    BACKEND, PROGRAM = sys.argv[1:3]
    runtime = run_python("-c", "import executorch.runtime")
    if runtime.returncode != 0:
        missing = runtime.stderr.strip().splitlines() or ["no message"]
        causes = [line for line in missing if "Error: " in line] or missing
        print(f"skipped: {sys.executable} has no executorch.runtime: {causes[0]}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
