"""Writes a small ExecuTorch program whose methods are one call of the TensorRT delegate each.

    make_pte.py EXECUTORCH_DIR SPEC.json OUT.pte

It fills in ExecuTorch's own schema and lets the flatc of the executorch wheel (EXECUTORCH_DIR is the installed package)
write the file; it needs no torch. The specification::

    {"methods": [{"name": "forward", "plan": "add_one.plan", "device": "cpu",
                  "inputs":  [{"name": "input_0", "dtype": "FLOAT", "shape": [2, 3]}],
                  "outputs": [{"name": "output_0", "dtype": "FLOAT", "shape": [2, 3]}]}]}

Plans are looked for in the folder that --plans names. `device` "cuda" or "cuda:1" is the engine's GPU, and puts the
outputs' planned buffer there; "cpu" leaves the buffer in host memory and the engine on GPU 0.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SIZES = {"FLOAT": 4, "HALF": 2, "BFLOAT16": 2, "INT": 4, "LONG": 8, "CHAR": 1, "BYTE": 1, "BOOL": 1}
BUFFER_ALIGNMENT = 16
PLANNED_BUFFER = 1  # the runtime's buffer 0 is reserved for constants


def gpu_of(method: dict[str, Any]) -> int | None:
    """The ordinal of the method's GPU; None when its buffers are on the host. Raises ValueError."""
    kind, _, index = method.get("device", "cpu").partition(":")
    return None if kind == "cpu" else int(index or 0)


def build_blob(method: dict[str, Any], engine: bytes) -> bytes:
    """A TR01 blob as upstream's exporter writes it, for the tensors of `method`."""
    bindings = [
        {"name": tensor["name"], "dtype": "", "shape": [], "is_input": is_input}
        for is_input, key in ((True, "inputs"), (False, "outputs"))
        for tensor in method[key]
    ]
    metadata = json.dumps(
        {
            "io_bindings": bindings,
            "aliased_io": [],
            "hardware_compatible": False,
            "device_id": gpu_of(method) or 0,
            "serialized_metadata": "",
            "target_platform": "",
        },
        separators=(",", ":"),
    ).encode()
    engine_offset = -(-(32 + len(metadata)) // 16) * 16
    header = struct.pack("<4sIIIQ8s", b"TR01", 32, len(metadata), engine_offset, len(engine), b"\x01")
    return (header + metadata).ljust(engine_offset, b"\0") + engine


def describe_tensor(tensor: dict[str, Any], offset: int | None, gpu: int | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "scalar_type": tensor["dtype"],
        "sizes": tensor["shape"],
        "dim_order": list(range(len(tensor["shape"]))),
        "shape_dynamism": "DYNAMIC_BOUND" if tensor.get("dynamic") else "STATIC",
    }
    if offset is not None:
        described["allocation_info"] = {
            "memory_id": PLANNED_BUFFER,
            "memory_offset_low": offset,
            "memory_offset_high": 0,
        }
        if gpu is not None:
            described["extra_tensor_info"] = {"device_type": "CUDA", "device_index": gpu}
    return {"val_type": "Tensor", "val": described}


def describe_method(method: dict[str, Any], index: int) -> dict[str, Any]:
    gpu = gpu_of(method)
    values = [describe_tensor(tensor, None, None) for tensor in method["inputs"]]
    size = 0
    for tensor in method["outputs"]:
        values.append(describe_tensor(tensor, size, gpu))
        needed = math.prod(tensor["shape"]) * SIZES[tensor["dtype"]]
        size += -(-needed // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
    inputs = list(range(len(method["inputs"])))
    outputs = list(range(len(inputs), len(values)))
    call = {"instr_args_type": "DelegateCall", "instr_args": {"delegate_index": 0, "args": inputs + outputs}}
    plan: dict[str, Any] = {
        "name": method["name"],
        "container_meta_type": {"encoded_inp_str": "", "encoded_out_str": ""},
        "values": values,
        "inputs": inputs,
        "outputs": outputs,
        "chains": [{"inputs": inputs, "outputs": outputs, "instructions": [call]}],
        "operators": [],
        "delegates": [
            {"id": "TensorRTBackend", "processed": {"location": "INLINE", "index": index}, "compile_specs": []}
        ],
        "non_const_buffer_sizes": [0, size],
    }
    if gpu is not None:
        plan["non_const_buffer_device"] = [{"buffer_idx": PLANNED_BUFFER, "device_type": "CUDA", "device_index": gpu}]
    return plan


def build_program(spec: dict[str, Any], plan_dir: Path) -> dict[str, Any]:
    """The program as JSON of ExecuTorch's schema. Raises OSError for a plan that is not there."""
    blobs = [build_blob(method, (plan_dir / method["plan"]).read_bytes()) for method in spec["methods"]]
    return {
        "version": 0,
        "execution_plan": [describe_method(method, i) for i, method in enumerate(spec["methods"])],
        # One offset is the reserved entry of "no constant": the runtime looks for no segment then.
        "constant_segment": {"segment_index": 0, "offsets": [0]},
        "backend_delegate_data": [{"data": list(blob)} for blob in blobs],
        "segments": [],
    }


def write_program(program: dict[str, Any], executorch_dir: Path, out: Path) -> None:
    """Raises subprocess.CalledProcessError, after flatc has said why."""
    flatc = executorch_dir / "data" / "bin" / "flatc"
    schema = executorch_dir / "exir" / "_serialize" / "program.fbs"
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "program.json"
        text.write_text(json.dumps(program))
        subprocess.run([flatc, "--binary", "-o", folder, schema, text], check=True)
        out.write_bytes((Path(folder) / "program.pte").read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a small ExecuTorch program for tests.")
    parser.add_argument("executorch_dir", type=Path)
    parser.add_argument("spec", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plans", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        program = build_program(json.loads(arguments.spec.read_text()), arguments.plans)
        write_program(program, arguments.executorch_dir, arguments.out)
    except (OSError, KeyError, ValueError, json.JSONDecodeError, subprocess.CalledProcessError) as error:
        print(f"make_pte.py: {arguments.spec}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
