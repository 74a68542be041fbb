"""Exports one model with one engine, which is named data as our backend writes it, or inline in the delegate's blob.

    export_forms.py PLAN OUT.pte named|inline

The model adds and multiplies its two inputs of 2 x 3; so must the engine, from `a` and `b` to `sum` and `product`.
Needs ExecuTorch and torch (extra `executorch`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.backend_details import PreprocessResult

from linkcheck.executorch import TensorRTBackend, TensorRTPartitioner
from linkcheck.executorch.backend import find_order
from linkcheck.executorch.blob import TensorRTBlob, serialize


class Model(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    def forward(self, x: Any, y: Any) -> Any:
        return x + y, x * y


def write_inline(program: Any, compile_specs: Any) -> PreprocessResult:
    """What a backend does that puts the engine into the blob."""
    order = find_order(compile_specs)
    engine = Path(order.partitioner.engine).read_bytes()
    return PreprocessResult(serialize(TensorRTBlob(order.bind(program.graph_signature), engine=engine)))


def main(plan: str, out: str, form: str) -> None:
    if form == "inline":
        # ExecuTorch finds backends by the names of their classes, so that there must be one only.
        setattr(TensorRTBackend, "preprocess", staticmethod(write_inline))  # noqa: B010 - mypy wants no assignment
    example = (torch.ones(2, 3), torch.ones(2, 3))
    partitioner = TensorRTPartitioner(plan, input_names=["a", "b"], output_names=["sum", "product"])
    lowered = to_edge_transform_and_lower(torch.export.export(Model(), example), partitioner=[partitioner])
    with open(out, "wb") as file:
        lowered.to_executorch().write_to_file(file)


if __name__ == "__main__":
    main(*sys.argv[1:4])
