"""Writes the engine file that the simulated TensorRT runs; it reads none and knows nothing of real TensorRT plans.

    make_plan.py SPEC.json OUT.plan

The specification is one JSON object::

    {"tensors": [{"name": "x", "input": true, "dtype": "float32", "shape": [-1, 4],
                  "min": [1, 4], "opt": [2, 4], "max": [8, 4]},
                 {"name": "y", "dtype": "float32", "shape": [-1, 4], "aliases": ""}],
     "operations": [{"op": "add_scalar", "a": "x", "out": "y", "scalar": 1.0}],
     "streamable_weights": 0, "padding": 0}

`min`, `opt` and `max` are needed only where `shape` has a -1. A dynamic dimension of an output is the one of the first
operand of the operation that writes it. Operations run in order; `b` names the second operand of `add` and `multiply`.
`padding` bytes of zero are appended, to make an engine as large as a test needs.

The file, all little-endian, strings as u16 length and UTF-8 bytes:

    8 bytes  GSIMPLN1
    i64      streamable weights
    u32 u32  number of tensors, number of operations
    tensor:    string name, u8 is input, u8 dtype, u8 format, u8 is shape tensor, string aliased input,
               u8 rank, then rank i64 each of shape, min, opt, max
    operation: u8 opcode, u32 a, u32 b, u32 result (indices of tensors), f64 scalar
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

MAGIC = b"GSIMPLN1"
DTYPES = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "bool": 4,
    "uint8": 5,
    "fp8": 6,
    "bfloat16": 7,
    "int64": 8,
}
FORMATS = {"linear": 0, "chw2": 1, "hwc8": 2}
OPCODES = {"copy": 0, "add": 1, "add_scalar": 2, "multiply": 3, "multiply_scalar": 4}


class SpecError(ValueError):
    """The specification does not describe a plan; the message says where."""


def _pack_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<H", len(data)) + data


def _lookup(table: dict[str, int], what: str, name: object) -> int:
    if not isinstance(name, str) or name not in table:
        raise SpecError(f"{what} {name!r} is none of {', '.join(table)}")
    return table[name]


def _pack_tensor(tensor: dict[str, Any]) -> bytes:
    shape = tensor["shape"]
    parts = [
        _pack_text(tensor["name"]),
        struct.pack(
            "<BBBB",
            bool(tensor.get("input", False)),
            _lookup(DTYPES, "dtype", tensor.get("dtype", "float32")),
            _lookup(FORMATS, "format", tensor.get("format", "linear")),
            bool(tensor.get("shape_io", False)),
        ),
        _pack_text(tensor.get("aliases", "")),
        struct.pack("<B", len(shape)),
    ]
    for key in ("shape", "min", "opt", "max"):
        dims = tensor.get(key, shape)
        if len(dims) != len(shape):
            raise SpecError(f"tensor {tensor['name']}: {key} has {len(dims)} dimensions, shape has {len(shape)}")
        parts.append(struct.pack(f"<{len(dims)}q", *dims))
    return b"".join(parts)


def _pack_operation(operation: dict[str, Any], index: dict[str, int]) -> bytes:
    a = _lookup(index, "operand", operation["a"])
    b = _lookup(index, "operand", operation.get("b", operation["a"]))
    result = _lookup(index, "result", operation["out"])
    opcode = _lookup(OPCODES, "op", operation["op"])
    return struct.pack("<BIIId", opcode, a, b, result, float(operation.get("scalar", 0.0)))


def build_plan(spec: dict[str, Any]) -> bytes:
    """The bytes of the plan that `spec` describes. Raises SpecError, or KeyError for a missing entry."""
    tensors = spec["tensors"]
    operations = spec.get("operations", [])
    index = {tensor["name"]: i for i, tensor in enumerate(tensors)}
    if len(index) != len(tensors):
        raise SpecError("two tensors have one name")
    parts = [MAGIC, struct.pack("<qII", spec.get("streamable_weights", 0), len(tensors), len(operations))]
    parts += [_pack_tensor(tensor) for tensor in tensors]
    parts += [_pack_operation(operation, index) for operation in operations]
    parts.append(bytes(spec.get("padding", 0)))
    return b"".join(parts)


def main(arguments: list[str]) -> int:
    """Writes the plan; answers 2 for wrong usage and 1 for a specification that describes none."""
    if len(arguments) != 2:
        print("usage: make_plan.py SPEC.json OUT.plan", file=sys.stderr)
        return 2
    spec_path, out_path = map(Path, arguments)
    try:
        plan = build_plan(json.loads(spec_path.read_text()))
    except (OSError, SpecError, KeyError, json.JSONDecodeError) as error:
        print(f"make_plan.py: {spec_path}: {error}", file=sys.stderr)
        return 1
    out_path.write_bytes(plan)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
