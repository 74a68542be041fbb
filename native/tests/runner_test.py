"""Runs executorch_runner on a program made by make_pte.py and checks its lines, a contract, and its exit status.

runner_test.py RUNNER PROGRAM.pte
"""

from __future__ import annotations

import os
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
    def run_runner(
        self,
        *flags: str,
        status: int = 0,
        gpu: str = "",
        kernel_log: Path | None = None,
        call_log: Path | None = None,
    ) -> list[str]:
        """Run it on the simulated GPU that `gpu` (gpusim's GPUSIM_SETTINGS) describes; answer its lines."""
        environment = {**os.environ, "GPUSIM_SETTINGS": gpu}
        if kernel_log is not None:
            environment["GPUSIM_KERNEL_LOG"] = str(kernel_log)
        if call_log is not None:
            environment["GPUSIM_CALL_LOG"] = str(call_log)
        command = [RUNNER, f"--model_path={PROGRAM}", *flags]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
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

    def test_device_io_gives_the_same_and_never_waits_for_a_run(self) -> None:
        for flags in ((), ("--num_runs=3",), ("--seed=7",)):
            with tempfile.TemporaryDirectory() as folder:
                calls = Path(folder) / "calls"
                lines = self.run_runner("--method=on_gpu", "--device_io", *flags, call_log=calls)
                self.assertEqual(lines, self.run_runner("--method=on_gpu", *flags))
                made = calls.read_text().split()
            self.assertEqual(made.count("IExecutionContext::enqueueV3"), 3 if flags == ("--num_runs=3",) else 1)
            last = len(made) - made[::-1].index("IExecutionContext::enqueueV3")
            self.assertNotIn("cudaStreamSynchronize", made[:last])
            self.assertNotIn("cudaMemcpyAsync", made)

    def test_device_io_wants_outputs_on_the_gpu(self) -> None:
        lines = self.run_runner("--device_io", status=1)
        self.assertIn("output 0 is not in device memory", lines[-1])
        self.assertIn("does not take the value", self.run_runner("--device_io=maybe", status=2)[0])

    def test_a_method_on_the_second_gpu_runs_there(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "kernels"
            lines = self.run_runner("--method=on_second_gpu", gpu="devices=2", kernel_log=log)
            self.assertEqual(lines, self.run_runner())
            self.assertEqual(log.read_text(), "kernel on device 1, SMs 0 to 15\n")
        lines = self.run_runner("--method=on_second_gpu", status=1)
        self.assertIn("executorch_runner: ", lines[-1])

    def test_a_green_context_keeps_the_work_on_its_sms(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "kernels"
            lines = self.run_runner(
                "--green_context_sms=8", "--num_runs=2", gpu="sms=132,sm_granularity=8", kernel_log=log
            )
            self.assertEqual(lines[1], "caller stream: green context with 8 SM(s)")
            self.assertEqual([*lines[:1], *lines[2:]], [*self.run_runner()[:1], *self.run_runner()[2:]])
            self.assertEqual(log.read_text(), "kernel on device 0, SMs 0 to 7\n" * 2)

    def test_a_green_context_on_the_second_gpu(self) -> None:
        lines = self.run_runner("--method=on_second_gpu", "--green_context_sms=4", gpu="devices=2")
        self.assertEqual(lines[1], "caller stream: green context with 4 SM(s)")

    def test_sms_that_the_driver_rounds_up_are_counted_as_they_are(self) -> None:
        lines = self.run_runner("--green_context_sms=5", gpu="sms=132,sm_granularity=8")
        self.assertEqual(lines[1], "executorch_runner: asked for 5 SMs, the driver gives 8")
        self.assertEqual(lines[2], "caller stream: green context with 8 SM(s)")
        lines = self.run_runner("--green_context_sms=131", gpu="sms=132,sm_granularity=8")
        self.assertEqual(lines[2], "caller stream: green context with 132 SM(s)")

    def test_a_green_context_that_cannot_be_is_refused(self) -> None:
        for sms, gpu, message in (
            (133, "sms=132,sm_granularity=8", "there are no 133 SMs of the GPU's 132"),
            (8, "green_contexts=0", "the driver has no cuDeviceGetDevResource; it must be of CUDA 12.5 (555) or newer"),
        ):
            with self.subTest(message):
                lines = self.run_runner(f"--green_context_sms={sms}", gpu=gpu, status=1)
                self.assertIn(f"executorch_runner: no green context: {message}", lines[-1])
                self.assertNotIn("output[0]", "".join(lines), "there is no fallback to an ordinary stream")

    def test_zero_sms_mean_an_ordinary_stream(self) -> None:
        self.assertEqual(self.run_runner("--green_context_sms=0", gpu="green_contexts=0"), self.run_runner())

    def test_every_type_is_filled_and_printed_as_itself(self) -> None:
        for method, dtype, values in (
            ("byte", 0, "2 2 2 2"),
            ("char", 1, "2 2 2 2"),
            ("int", 3, "2 2 2 2"),
            ("long", 4, "2 2 2 2"),
            ("half", 5, "2.0000 2.0000 2.0000 2.0000"),
            ("bfloat16", 15, "2.0000 2.0000 2.0000 2.0000"),
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
        for flag in (
            *(
                "--num_run=3",
                "--num_runs=x",
                "--num_runs=0",
                "--num_runs=-1",
                "--num_runs",
                "--num_runs=1 ",
                "--seed=",
                "extra",
            ),
            *("--green_context_sms=", "--green_context_sms=-1", "--green_context_sms=4294967295"),
        ):
            with self.subTest(flag):
                self.assertIn("executorch_runner:", self.run_runner(flag, status=2)[0])

    def test_what_cannot_run_is_an_exit_status_not_an_abort(self) -> None:
        self.assertIn("/nowhere.pte", self.run_runner("--model_path=/nowhere.pte", status=1)[-1])
        self.assertIn("method absent", self.run_runner("--method=absent", status=1)[-1])
        self.assertIn("execute: Error::InvalidArgument", self.run_runner("--method=wrong", status=1)[-1])

    def test_a_damaged_program_is_refused_not_followed(self) -> None:
        """Offsets that lead nowhere, in the tables at the front, and every kind of truncation."""
        whole = Path(PROGRAM).read_bytes()
        damaged = [whole[: len(whole) * part // 20] for part in range(20)]
        damaged += [whole[:at] + b"\xf0\xff\xff\x7f" + whole[at + 4 :] for at in range(0, 400, 4)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "damaged.pte"
            statuses = set()
            for bytes_ in damaged:
                path.write_bytes(bytes_)
                done = subprocess.run([RUNNER, f"--model_path={path}"], capture_output=True, check=False)
                statuses.add(done.returncode)
        self.assertEqual(statuses - {0}, {1}, "a negative one is a crash")


if __name__ == "__main__":
    RUNNER, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
