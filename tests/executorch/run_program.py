"""Runs `forward` of a program under ExecuTorch's stock Python runtime, with our backend opened by ctypes alone.

    run_program.py BACKEND PROGRAM.pte INPUT...

Each INPUT is a file of float32 of 2 x 3. Prints the outputs as one line of JSON. Exports nothing.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import torch


def main(backend: str, program: str, *inputs: str) -> None:
    ctypes.CDLL(backend)
    from executorch.runtime import Runtime

    buffers = (bytearray(Path(name).read_bytes()) for name in inputs)
    tensors = [torch.frombuffer(buffer, dtype=torch.float32).reshape(2, 3) for buffer in buffers]
    outputs = Runtime.get().load_program(program).load_method("forward").execute(tensors)
    print(json.dumps([output.flatten().tolist() for output in outputs]))


if __name__ == "__main__":
    main(*sys.argv[1:])
