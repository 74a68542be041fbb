"""How much memory it takes to export a program with large engines, in three ways. Judges nothing.

    python -m tests.benchmarks.export_memory [--engines N] [--megabytes M] [--folder DIR]

Each way is a process of its own that exports one method for each engine (random bytes, in files) and writes the program
to a file. Printed is the largest resident size (VmHWM) from the first engine on, less the resident size before it, when
everything was imported and one small program was exported. Needs ExecuTorch and torch (extra `executorch`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

#: Way -> what it is called in the table.
WAYS = {
    "blob": "engine in the delegate's blob",
    "bytes": "bytes in the named data",
    "file": "linkcheck.executorch.TensorRTBackend",
}
BLOCK = 1 << 20


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


def measure(way: str, folder: Path, count: int) -> None:
    """Print the megabytes before, the largest, and the seconds of one export."""
    export(way, folder, ["warm"])
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM (man 5 proc)
    before = read_status("VmRSS")
    start = time.monotonic()
    export(way, folder, [f"engine{number}" for number in range(count)])
    print("MEASURED", before, read_status("VmHWM"), time.monotonic() - start)


def read_status(field: str) -> float:
    """A field of /proc/self/status in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engines", type=int, default=13)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--folder", help="where the engines and the programs go; needs twice their size")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        measure(arguments.way, Path(arguments.folder), arguments.engines)
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        (folder / "warm.plan").write_bytes(os.urandom(1000))
        for number in range(arguments.engines):
            with open(folder / f"engine{number}.plan", "wb") as plan:
                plan.writelines(os.urandom(BLOCK) for _ in range(arguments.megabytes))
        total = arguments.engines * arguments.megabytes
        print(f"{arguments.engines} engines of {arguments.megabytes} MB, {total} MB together\n")
        print("| way | peak above the start | of the engines | seconds | program |\n|---|---:|---:|---:|---:|")
        for way, title in WAYS.items():
            command = [sys.executable, "-m", "tests.benchmarks.export_memory", "--way", way, "--folder", name]
            done = subprocess.run(
                [*command, "--engines", str(arguments.engines)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return 1
            before, peak, seconds = map(float, done.stdout.partition("MEASURED")[2].split())
            program = folder / f"{way}.pte"
            size = program.stat().st_size / BLOCK
            program.unlink()
            more = peak - before
            print(f"| {title} | {more:.0f} MB | {more / total:.2f} x | {seconds:.0f} | {size:.0f} MB |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
