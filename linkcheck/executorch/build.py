"""Builds a whole ExecuTorch program: each method one engine, each engine once in the file. Prints nothing.

Engines and what leads to them lie in a temporary folder beside the program; no engine is held in memory but by its
builder.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

from linkcheck.errors import MissingPackageError, ModelError
from linkcheck.executorch.engine_builder import build_engine, load_builder
from linkcheck.executorch.model_source import FAILURES, read_sources
from linkcheck.executorch.shapes import assign_shapes, parse_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.executorch.engine_builder import Progress


def build_program(
    models: Sequence[str],
    output: str,
    *,
    builder: str,
    shapes: Sequence[str] = (),
    weight_streaming_budget: int | None = None,
    device: int = 0,
    progress: Progress = lambda what, done, steps: None,
) -> None:
    """Build `models` (see `read_sources`) with `builder` (see BUILDERS) into the program `output`.

    `shapes` are options of the form `[METHOD:]INPUT=MIN:OPT:MAX`. `weight_streaming_budget` is in bytes of device
    memory; None: engines stream no weights. `device` is a CUDA ordinal. The file appears when it is whole.

    Raises ModelError, MissingPackageError, UsageProblemError, and OSError for a file that cannot be written.
    """
    ranges = parse_shapes(shapes)
    trt = load_builder(builder)
    export, partitioner = _load_executorch()
    sources = read_sources(models)
    wanted = assign_shapes(ranges, [source.method for source in sources])
    folder = os.path.dirname(os.path.abspath(output))
    with tempfile.TemporaryDirectory(prefix=".linkcheck-", dir=folder) as scratch:
        programs: dict[str, Any] = {}
        partitioners: dict[str, Any] = {}
        for number, source in enumerate(sources):
            chosen = wanted[source.method]
            onnx = source.onnx or os.path.join(scratch, f"{number}.onnx")
            exported = None
            if source.onnx is None:
                progress(f"{source.method}: exporting", 0, 1)
                exported = export.export_module(source, chosen, onnx)
                progress(f"{source.method}: exporting", 1, 1)
            engine = build_engine(
                trt, onnx, os.path.join(scratch, f"{number}.plan"),
                shapes=chosen, weight_streaming=weight_streaming_budget is not None, shown=source.shown,
                progress=_name_steps(progress, source.method),
            )  # fmt: skip
            exported = exported or export.export_stand_in(source, engine, chosen)
            programs[source.method] = exported.program
            partitioners[source.method] = [
                partitioner(
                    engine.path,
                    input_names=exported.input_names,
                    output_names=exported.output_names,
                    device_id=device,
                    weight_streaming_budget=weight_streaming_budget,
                )
            ]
        progress("writing the program", 0, 1)
        whole = os.path.join(scratch, "program")
        _write(programs, partitioners, whole, " ".join(models))
        os.replace(whole, output)
        progress("writing the program", 1, 1)


def _name_steps(progress: Progress, method: str) -> Progress:
    def named(what: str, done: int, steps: int) -> None:
        progress(f"{method}: {what}", done, steps)

    return named


def _load_executorch() -> tuple[Any, Any]:
    try:
        from linkcheck.executorch import export
        from linkcheck.executorch.backend import TensorRTPartitioner
    except ImportError as error:
        raise MissingPackageError(error.name or "executorch", "executorch", str(error)) from error
    return export, TensorRTPartitioner


def _write(programs: dict[str, Any], partitioners: dict[str, Any], path: str, shown: str) -> None:
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    try:
        # Nothing but the engine runs what is in a method, so its operators need not be ExecuTorch's.
        config = EdgeCompileConfig(_check_ir_validity=False)
        lowered = to_edge_transform_and_lower(programs, partitioner=partitioners, compile_config=config)
        with open(path, "wb") as file:
            lowered.to_executorch().write_to_file(file)
    except FAILURES as error:
        raise ModelError(shown, f"ExecuTorch: {type(error).__name__}: {error}") from error
