"""`python -m tests.benchmarks.run` measures `linkcheck verify` beside other tools and prints Markdown. Asserts nothing.

It makes what it needs in a temporary directory: two environments and the public wheels of torch-tensorrt and torch.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.machine import describe_machine
from tests.benchmarks.measure import alternate, run_once
from tests.benchmarks.table import make_table
from tests.benchmarks.workplace import (
    NotAvailableError,
    clean_environment,
    copy_project,
    fetch_wheel,
    find_tool,
    make_environment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNER_WHEEL = "torch-tensorrt==2.14.0"
RUNNER = "torch_tensorrt/bin/example_executorch_runner"
TORCH_WHEEL = "torch==2.13.0"
CLOSURE = "torch/lib/libtorch_python.so"

#: What every ratio is to.
REFERENCE = '`python -c "import click"`'


def main() -> None:
    """Measure all that can be had and say what cannot."""
    options = _read_options()
    print("\n".join(describe_machine()))
    print(f"* {options.runs} runs of each command, in turn, after 2 that do not count")
    with tempfile.TemporaryDirectory(prefix="linkcheck-benchmark-") as name:
        # Not where a policy may lie: this project's own pyproject.toml names linkcheck, so each run would parse it.
        os.chdir(name)
        bench = Bench(Path(name), options.runs)
        bench.prepare()
        bench.measure_runner(options.runner)
        if not options.no_torch:
            bench.measure_torch(options.torch)
        if bench.skipped:
            print("\nNot measured:\n")
            print("\n".join(f"* {reason}" for reason in bench.skipped))


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.run", description=main.__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs of each command (default: 40)")
    parser.add_argument(
        "--runner", type=_absolute, help=f"{RUNNER} of an unpacked {RUNNER_WHEEL}, instead of fetching it"
    )
    parser.add_argument("--torch", type=_absolute, help=f"an unpacked {TORCH_WHEEL}, not to be fetched")
    parser.add_argument("--no-torch", action="store_true", help="leave the large subjects out")
    options = parser.parse_args()
    for given, what in ((options.runner, ""), (options.torch, CLOSURE)):
        if given is not None and not (given / what).is_file():
            parser.error(
                f"{given}: no such file, or nothing called {what or RUNNER} in it"
            )  # it would be timed failing
    return options


def _absolute(text: str) -> Path:
    return Path(text).resolve()


class Bench:
    """One session: its directory, its environments, and what had to be left out."""

    def __init__(self, directory: Path, runs: int) -> None:
        self.directory = directory
        self.runs = runs
        self.environment = clean_environment()
        self.skipped: list[str] = []
        self.ours = directory / "ours" / "bin"

    def prepare(self) -> None:
        """Install linkcheck as a user has it. Raises NotAvailableError: without it there is nothing to measure."""
        self.ours = make_environment(self.directory / "ours", str(copy_project(self.directory / "project")))

    def measure_runner(self, given: Path | None) -> None:
        """The runner, beside what reads ELF files elsewhere."""
        with self._or_skip():
            runner = given or fetch_wheel(RUNNER_WHEEL, self.directory) / RUNNER
            commands = {**self._reference(), "`linkcheck verify`": self._verify(runner)}
            with self._or_skip():
                commands["`readelf -d`"] = [find_tool("readelf"), "-d", str(runner)]
            with self._or_skip():
                commands["`nm -D`"] = [find_tool("nm"), "-D", str(runner)]
            with self._or_skip():
                auditwheel = make_environment(self.directory / "auditwheel", "auditwheel") / "auditwheel"
                commands["`auditwheel lddtree`"] = [str(auditwheel), "lddtree", str(runner)]
            self._print(f"The runner of {RUNNER_WHEEL}", commands)

    def measure_torch(self, given: Path | None) -> None:
        """A library that loads 472 MB, and a whole wheel."""
        with self._or_skip():
            wheel = given or fetch_wheel(TORCH_WHEEL, self.directory)
            commands = {
                **self._reference(),
                "`linkcheck verify libtorch_python.so`": self._verify(wheel / CLOSURE),
                "`linkcheck verify` of the unpacked wheel": self._verify(wheel),
            }
            self._print(TORCH_WHEEL, commands)

    def _reference(self) -> dict[str, list[str]]:
        return {REFERENCE: [str(self.ours / "python"), "-c", "import click"]}

    def _verify(self, path: Path) -> list[str]:
        return [str(self.ours / "linkcheck"), "verify", str(path)]

    def _print(self, title: str, commands: dict[str, list[str]]) -> None:
        series = alternate(commands, self.environment, runs=self.runs)
        # After the runs: until now this process has grown, and what it starts counts as large as it is itself.
        floor = run_once([find_tool("true")], self.environment).peak_memory
        print("\n".join(("", f"{title}:", "", *make_table(series, floor=floor))), flush=True)

    @contextmanager
    def _or_skip(self) -> Iterator[None]:
        try:
            yield
        except NotAvailableError as error:
            self.skipped.append(str(error))


if __name__ == "__main__":
    main()
