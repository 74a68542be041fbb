"""`python -m tests.benchmarks.peers` measures linkcheck beside other tools on large subjects and prints Markdown.

Four subjects: the closure of libtorch_python.so, every ELF file of the torch wheel, the wheel file itself, and
/usr/lib. It asserts nothing, and the tools do not answer the same question; what each does is in docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.machine import describe_machine
from tests.benchmarks.measure import Series, run_once
from tests.benchmarks.table import show_memory, show_time
from tests.benchmarks.workplace import (
    NotAvailableError,
    clean_environment,
    copy_project,
    download_wheel,
    find_tool,
    make_environment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TORCH_WHEEL = "torch==2.13.0"
CLOSURE = "torch/lib/libtorch_python.so"
SYSTEM = Path("/usr/lib")
#: Peers from the package index, each with its program.
PYTHON_PEERS = ("auditwheel", "elfdeps", "abicheck", "blint")
#: Runs that take longer than this many seconds are not repeated.
LONG = 3.0

#: What reading a wheel cannot do without: every member inflated, nothing kept.
INFLATE = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        with wheel.open(name) as member:
            while member.read(1 << 20):
                pass
"""
#: A program that takes one file, for each of several.
EACH = 'program=$1; shift; for file; do "$program" $FLAGS "$file"; done; true'

#: A call of a peer that ends with 0 when the peer works; --help for those that are not here.
_TRIAL = {"libtree": ["/bin/sh"], "ldd": ["/bin/sh"], "lddtree": ["/bin/sh"]}

#: What timeout(1) ends with when it had to end the command.
_ENDED = 124

_HEAD = (
    "| command | runs | median | ratio | processor time | ratio | peak memory | ratio | status |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def main() -> None:
    """Measure all that can be had, and say what cannot."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=main.__doc__)
    parser.add_argument("--runs", type=int, default=5, help=f"runs of what takes at most {LONG} s (default: 5)")
    parser.add_argument("--limit", type=int, default=300, help="seconds after which a run is ended (default: 300)")
    parser.add_argument("--wheel", type=Path, help=f"the wheel file of {TORCH_WHEEL}, instead of fetching it")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="only this one; repeatable")
    options = parser.parse_args()
    print("\n".join(describe_machine()))
    with tempfile.TemporaryDirectory(prefix="linkcheck-peers-") as name:
        bench = PeerBench(Path(name), options.runs, options.limit)
        bench.prepare(options.wheel)
        for subject in options.subject or SUBJECTS:
            bench.measure(subject)
        if bench.absent:
            print("\nAbsent:\n")
            print("\n".join(f"* {reason}" for reason in bench.absent))


class PeerBench:
    """One session: linkcheck and the peers that can be had, and what they are run on."""

    def __init__(self, directory: Path, runs: int, limit: int) -> None:
        self.directory = directory
        self.runs = runs
        self.limit = limit
        self.absent: list[str] = []
        self.tools: dict[str, str] = {}
        self.wheel = self.unpacked = directory
        self.floor = 0

    def prepare(self, wheel: Path | None) -> None:
        """Install linkcheck and the peers, and get the wheel. Raises NotAvailableError without linkcheck or wheel."""
        ours = make_environment(self.directory / "ours", str(copy_project(self.directory / "project")))
        self.tools = {"linkcheck": str(ours / "linkcheck"), "python": str(ours / "python")}
        for name in PYTHON_PEERS:
            try:
                self.tools[name] = str(make_environment(self.directory / name, name) / name)
                self._try(name)
            except NotAvailableError as error:
                self.absent.append(str(error))
        for name in ("libtree", "ldd", "lddtree"):
            try:
                self.tools[name] = find_tool(name)
                self._try(name)
            except NotAvailableError as error:
                self.absent.append(str(error))
        self.wheel = wheel or download_wheel(TORCH_WHEEL, self.directory)
        self.unpacked = self.directory / "torch"
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.unpacked)
        self.floor = run_once([find_tool("true")], clean_environment()).peak_memory

    def _try(self, name: str) -> None:
        """Raise NotAvailableError, and forget the tool, when it is there and does not run: that would be very fast."""
        arguments = _TRIAL.get(name, ["--help"])
        run = run_once([self.tools[name], *arguments], _environment())
        if run.status:
            del self.tools[name]
            raise NotAvailableError(f"{name}: it does not run: `{name} {' '.join(arguments)}` ends with {run.status}")

    def measure(self, subject: str) -> None:
        """Measure one of SUBJECTS and print its table."""
        title, commands = getattr(self, f"_{subject}")()
        print(f"\n{title}:\n")
        print("\n".join(_HEAD), flush=True)
        first: Series | None = None
        for label, (tool, arguments) in commands.items():
            if tool not in self.tools:
                print(f"| {label} | absent | | | | | | | |", flush=True)
                continue
            series = self._run(label, [self.tools[tool], *arguments])
            first = first or series
            print(make_row(series, first, self.floor), flush=True)

    def _run(self, label: str, command: Sequence[str]) -> Series:
        """Once to fill the caches; what takes long counts from then on."""
        limited = [find_tool("timeout"), str(self.limit), *command]
        environment = _environment()
        run = run_once(limited, environment)
        if run.wall > LONG:
            return Series(label, (run,))
        return Series(label, tuple(run_once(limited, environment) for _ in range(self.runs)))

    def _closure(self) -> tuple[str, Commands]:
        library = str(self.unpacked / CLOSURE)
        return f"libtorch_python.so of {TORCH_WHEEL} and what it loads", {
            "`linkcheck verify FILE`": ("linkcheck", ["verify", library]),
            "`linkcheck tree FILE`": ("linkcheck", ["tree", library]),
            "`linkcheck bindings FILE`": ("linkcheck", ["bindings", library]),
            "`libtree FILE`": ("libtree", [library]),
            "`ldd -r FILE`": ("ldd", ["-r", library]),
            "`lddtree FILE` (pax-utils)": ("lddtree", [library]),
            "`auditwheel lddtree FILE`": ("auditwheel", ["lddtree", library]),
            "`elfdeps -R FILE` (the file only)": ("elfdeps", ["-R", library]),
            "`abicheck deps tree FILE`": ("abicheck", ["deps", "tree", library]),
            "`blint -i FILE` (the file only)": ("blint", self._blint(library)),
        }

    def _elf_files(self) -> tuple[str, Commands]:
        files = list(elf_files(self.unpacked))
        return f"The {len(files)} ELF files of the unpacked wheel", self._on_directory(self.unpacked, files)

    def _system(self) -> tuple[str, Commands]:
        files = list(elf_files(SYSTEM))
        return f"{SYSTEM}, {len(files)} ELF files", self._on_directory(SYSTEM, files)

    def _on_directory(self, directory: Path, files: list[str]) -> Commands:
        self.tools["sh"] = "/bin/sh"
        elfdeps = self.tools.get("elfdeps", "")
        return {
            "`linkcheck verify DIRECTORY`": ("linkcheck", ["verify", str(directory)]),
            "`linkcheck scan DIRECTORY`": ("linkcheck", ["scan", str(directory)]),
            "`libtree FILE...`": ("libtree", files),
            "`ldd -r FILE...`": ("ldd", ["-r", *files]),
            "`lddtree FILE...` (pax-utils)": ("lddtree", files),
            "`elfdeps -R FILE`, for each": ("sh" if elfdeps else "elfdeps", ["-c", EACH, "sh", elfdeps, *files]),
            "`blint -i DIRECTORY`": ("blint", self._blint(str(directory))),
        }

    def _wheel(self) -> tuple[str, Commands]:
        wheel = str(self.wheel)
        return f"The wheel file, {self.wheel.stat().st_size / 1e6:.0f} MB", {
            "inflating every member (Python's zipfile)": ("python", ["-c", INFLATE, wheel]),
            "`linkcheck verify WHEEL`": ("linkcheck", ["verify", wheel]),
            "`linkcheck scan WHEEL`": ("linkcheck", ["scan", wheel]),
            "`elfdeps -R WHEEL`": ("elfdeps", ["-R", wheel]),
            "`auditwheel show WHEEL`": ("auditwheel", ["show", wheel]),
            "`blint -i WHEEL`": ("blint", self._blint(wheel)),
        }

    def _blint(self, path: str) -> list[str]:
        return ["--no-banner", "-q", "-i", path, "-o", str(self.directory / "blint-reports")]


#: Label -> the tool and its arguments; every ratio is to the first one.
Commands = dict[str, tuple[str, list[str]]]

SUBJECTS = ("closure", "elf_files", "wheel", "system")


def _environment() -> dict[str, str]:
    """With the system's own programs only: lddtree of pax-utils is a script for the python3 of the system."""
    return {**clean_environment(), "PATH": os.defpath, "FLAGS": "-R"}


def make_row(series: Series, first: Series, floor: int) -> str:
    """One line of the table; times and memory also as ratios to `first`."""
    over = _ENDED in series.statuses
    mark = "more than " if over else ""
    cells = (
        series.label,
        str(len(series.runs)),
        mark + show_time(series.wall_median),
        mark + f"{series.wall_median / first.wall_median:.2f}",
        mark + show_time(series.processor_median),
        mark + f"{series.processor_median / first.processor_median:.2f}",
        show_memory(series.peak_memory, floor),
        _memory_ratio(series, first, floor),
        "ended by the limit" if over else ", ".join(map(str, series.statuses)),
    )
    return f"| {' | '.join(cells)} |"


def _memory_ratio(series: Series, first: Series, floor: int) -> str:
    """What can be said where the system cannot tell small processes from the one that started them."""
    if series is first:
        return "1.00"
    if series.peak_memory <= floor:
        return f"at most {floor / first.peak_memory:.2f}" if first.peak_memory > floor else "not told apart"
    ratio = f"{series.peak_memory / max(first.peak_memory, floor):.2f}"
    return ratio if first.peak_memory > floor else f"at least {ratio}"


def elf_files(directory: Path) -> Iterator[str]:
    """Every regular file below `directory` that begins with the ELF magic."""
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            path = Path(folder, name)
            with suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    with path.open("rb") as stream:
                        if stream.read(4) == b"\x7fELF":
                            yield str(path)


if __name__ == "__main__":
    main()
