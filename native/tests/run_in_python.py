"""Runs a delegated model under ExecuTorch's stock Python runtime, for python_runtime_test.py.

    run_in_python.py before|after BACKEND PROGRAM.pte

BACKEND is opened before or after `executorch.runtime` is imported. It prints what came out, and which files of the
libraries in question the process has mapped, as one line of JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import torch


def find_mapped(name: str) -> list[str]:
    """The files called `name` that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if len(line.split()) > 5}
    return sorted(path for path in paths if Path(path).name == name)


def main(order: str, backend: str, program_file: str) -> None:
    if order == "before":
        ctypes.CDLL(backend)
    from executorch.runtime import Runtime

    runtime = Runtime.get()
    names_before = list(runtime.backend_registry.registered_backend_names)
    if order == "after":
        ctypes.CDLL(backend)
    program = runtime.load_program(program_file)
    floats = torch.arange(96, dtype=torch.float32).reshape(2, 3, 4, 4)
    integers = torch.tensor([1, 2, 3, -4])
    outputs = program.load_method("forward").execute([floats])
    print(
        json.dumps(
            {
                "names_before": names_before,
                "names": list(runtime.backend_registry.registered_backend_names),
                "available": runtime.backend_registry.is_available("TensorRTBackend"),
                "count": len(outputs),
                "shape": list(outputs[0].shape),
                "right": torch.equal(outputs[0], floats + 1),
                "integers": program.load_method("long").execute([integers])[0].tolist(),
                "libexecutorch": find_mapped("libexecutorch.so"),
                "libextension_cuda": find_mapped("libextension_cuda.so"),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:4])
