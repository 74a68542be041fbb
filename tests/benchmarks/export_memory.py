"""How much memory it takes to export a program with large engines, in three ways. Judges nothing.

    python -m tests.benchmarks.export_memory [--engines N...] [--megabytes M] [--folder DIR]

Each way is a process of its own that exports one method for each engine (random bytes, in files) and writes the program
to a file. The resident memory of that process and all below it is sampled every 0.1 s. Printed is the largest sample
less the one before the first engine, when everything was imported and one small program exported; and beside it what
the kernel itself recorded for the process (VmHWM), which no sample can miss. Needs ExecuTorch and torch (extra
`executorch`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Way -> what it is called in the table.
WAYS = {
    "blob": "engine in the delegate's blob",
    "bytes": "bytes in the named data",
    "file": "linkcheck.executorch.TensorRTBackend",
}
BLOCK = 1 << 20
#: Seconds between two samples.
INTERVAL = 0.1


def export(way: str, folder: Path, names: list[str]) -> None:
    """Export one method for each plan of `names` in `folder`."""
    import torch
    from executorch.exir import to_edge_transform_and_lower

    from linkcheck.executorch.backend import TensorRTPartitioner

    example = (torch.ones(2, 4),)

    class Model(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def forward(self, x: Any) -> Any:
            return x + 1

    partitioners: dict[str, list[TensorRTPartitioner]] = {}
    for name in names:
        partitioner = TensorRTPartitioner(str(folder / f"{name}.plan"))
        if way != "file":
            partitioner.backend = define_backends()[way].__name__
        partitioners[name] = [partitioner]
    programs = {name: torch.export.export(Model(), example) for name in names}
    lowered = to_edge_transform_and_lower(programs, partitioner=partitioners)
    with open(folder / f"{way}.pte", "wb") as file:
        lowered.to_executorch().write_to_file(file)


_backends: dict[str, Any] = {}


def define_backends() -> dict[str, Any]:
    """The two straightforward ways, as backends. ExecuTorch finds them among the subclasses, so they are made once."""
    if _backends:
        return _backends
    from executorch.exir._serialize._named_data_store import NamedDataStore
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult

    from linkcheck.executorch.backend import find_order
    from linkcheck.executorch.blob import TensorRTBlob, serialize
    from linkcheck.executorch.engine_file import stage_engine

    class BlobBackend(BackendDetails):  # type: ignore[misc, unused-ignore]
        @staticmethod
        def preprocess(_: Any, compile_specs: Any) -> Any:
            engine = Path(find_order(compile_specs).partitioner.engine).read_bytes()
            return PreprocessResult(processed_bytes=serialize(TensorRTBlob(engine=engine)))

    class BytesBackend(BackendDetails):  # type: ignore[misc, unused-ignore]
        @staticmethod
        def preprocess(_: Any, compile_specs: Any) -> Any:
            path = find_order(compile_specs).partitioner.engine
            key = stage_engine(path).key
            store = NamedDataStore()
            store.add_named_data(key, Path(path).read_bytes(), alignment=16)
            return PreprocessResult(
                processed_bytes=serialize(TensorRTBlob(engine_key=key)),
                data_store_output=store.get_named_data_store_output(),
            )

    _backends.update(blob=BlobBackend, bytes=BytesBackend)
    return _backends


def work(way: str, folder: Path, count: int) -> None:
    """Import all, export something small, wait for a line, export `count` engines. The other end of `measure`."""
    export(way, folder, ["warm"])
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM (man 5 proc)
    before = read_status("self", "VmRSS")
    print("READY", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    export(way, folder, [f"engine{number}" for number in range(count)])
    print("MEASURED", read_status("self", "VmHWM") - before, time.monotonic() - start, flush=True)


@dataclass(frozen=True)
class Cost:
    """Megabytes above the start by samples and by VmHWM, samples taken, seconds."""

    sampled: float
    marked: float
    samples: int
    seconds: float


def measure(way: str, folder: Path, count: int) -> Cost:
    """Export in a process of its own. Raises CalledProcessError when it fails."""
    command = [sys.executable, "-m", "tests.benchmarks.export_memory", "--way", way, "--folder", str(folder)]
    command += ["--engines", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not any(line.strip() == "READY" for line in iter(process.stdout.readline, "")):
            raise subprocess.CalledProcessError(process.wait(), command)
        before = sample_tree(process.pid)
        process.stdin.write("go\n")
        process.stdin.flush()
        peak, samples, due = before, 0, time.monotonic()
        while process.poll() is None:
            peak = max(peak, sample_tree(process.pid))
            samples += 1
            due += INTERVAL
            time.sleep(max(0.0, due - time.monotonic()))
        answer = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    marked, seconds = map(float, answer.partition("MEASURED")[2].split())
    return Cost(peak - before, marked, samples, seconds)


def sample_tree(pid: int) -> float:
    """Megabytes that `pid` and its descendants hold; what ends meanwhile counts as nothing."""
    total, pending = 0.0, [str(pid)]
    while pending:
        one = pending.pop()
        try:
            total += read_status(one, "VmRSS")
            for thread in Path(f"/proc/{one}/task").iterdir():
                pending += (thread / "children").read_text().split()
        except OSError:
            continue
    return total


def read_status(pid: str, field: str) -> float:
    """A field of /proc/PID/status in megabytes; 0 where it is not, as for a process that has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), 0.0)


def compare(folder: Path, count: int, megabytes: int) -> None:
    """Print the table for `count` engines, of which `folder` has the files."""
    total = count * megabytes
    print(f"\n{count} engine{'' if count == 1 else 's'} of {megabytes} MB, {total} MB together\n")
    print("| way | peak above the start | of the engines | VmHWM | samples | seconds | program |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for way, title in WAYS.items():
        cost = measure(way, folder, count)
        program = folder / f"{way}.pte"
        size = program.stat().st_size / BLOCK
        program.unlink()
        figures = f"{cost.sampled:.0f} MB | {cost.sampled / total:.3f} x | {cost.marked:.0f} MB | {cost.samples}"
        print(f"| {title} | {figures} | {cost.seconds:.0f} | {size:.0f} MB |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engines", type=int, nargs="+", default=[1, 13])
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--folder", help="where the engines and the programs go; needs twice their size")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        work(arguments.way, Path(arguments.folder), arguments.engines[0])
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        (folder / "warm.plan").write_bytes(os.urandom(1000))
        for number in range(max(arguments.engines)):
            with open(folder / f"engine{number}.plan", "wb") as plan:
                plan.writelines(os.urandom(BLOCK) for _ in range(arguments.megabytes))
        for count in arguments.engines:
            try:
                compare(folder, count, arguments.megabytes)
            except subprocess.CalledProcessError as error:  # its own message is on standard error
                print(f"{' '.join(error.cmd)} ended with {error.returncode}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
