"""A model becomes an ExportedProgram that torch and ExecuTorch understand, and an ONNX file that TensorRT does.

Of an ONNX file the ExportedProgram is a stand-in: one operator with the engine's inputs and outputs, all of which goes
to the engine. Importing this module imports torch.
"""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from linkcheck.errors import MissingPackageError, ModelError
from linkcheck.executorch.model_source import FAILURES
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.engine_builder import BuiltEngine
    from linkcheck.executorch.model_source import Source
    from linkcheck.executorch.shapes import MethodShapes, ShapeRange

#: TensorRT's names of element types -> torch's.
_DTYPES = {
    "FLOAT": torch.float32,
    "HALF": torch.float16,
    "BF16": torch.bfloat16,
    "INT8": torch.int8,
    "UINT8": torch.uint8,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "BOOL": torch.bool,
}


class Exported(Value):
    """An ExportedProgram, and what the engine calls its inputs and outputs."""

    program: Any
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def export_module(source: Source, shapes: MethodShapes, onnx: str) -> Exported:
    """Export a torch module, and write it to the file `onnx`, its weights beside it.

    Raises ModelError for what torch cannot export, or an engine could not run, and MissingPackageError.
    """
    _require_onnx()
    try:
        with _quiet():
            program = torch.export.export(
                source.module.eval(), source.example, dynamic_shapes=_name_dimensions(source, shapes)
            )
            # What is changed in place shows only where such operators are replaced: torch.export leaves them.
            signature = program.run_decompositions({}).graph_signature
            if changed := [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]:
                raise ModelError(source.shown, f"{source.method} changes {changed[0]}, and an engine keeps nothing")
            signature = program.graph_signature
            inputs = tuple(str(name) for name in signature.user_inputs)
            _check_dynamic(program, source, inputs, shapes)
            outputs = tuple(f"output_{number}" for number in range(len(signature.user_outputs)))
            torch.onnx.export(
                program, (), onnx, input_names=inputs, output_names=outputs,
                dynamo=True, external_data=True, verbose=False,
            )  # fmt: skip
    except FAILURES as error:
        raise ModelError(source.shown, f"{source.method}: {type(error).__name__}: {error}") from error
    return Exported(program, inputs, outputs)


def _require_onnx() -> None:
    try:
        import onnx
        import onnxscript  # noqa: F401 - torch's exporter asks for it in the middle of its work
    except ImportError as error:
        raise MissingPackageError(error.name or "onnxscript", "tensorrt-rtx", str(error)) from error
    del onnx


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's notes on what it does not support; what goes wrong is raised."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _name_dimensions(source: Source, shapes: MethodShapes) -> tuple[dict[int, Any], ...] | None:
    """What torch.export takes for dynamic shapes: for each example argument the dimensions that are dynamic."""
    import inspect

    parameters = list(inspect.signature(source.module.forward).parameters.values())
    if len(parameters) != len(source.example) or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        if shapes:
            taken = ", ".join(parameter.name for parameter in parameters)
            raise ModelError(source.shown, f"--shape needs one example for each parameter of forward ({taken})")
        return None
    names = [parameter.name for parameter in parameters]
    if unknown := sorted(shapes.keys() - set(names)):
        raise ModelError(source.shown, f"--shape names the input {unknown[0]}, and there are {', '.join(names)}")
    return tuple(
        _dimensions(source, name, shapes.get(name), tuple(tensor.shape))
        for name, tensor in zip(names, source.example, strict=True)
    )


def _dimensions(source: Source, name: str, given: ShapeRange | None, example: tuple[int, ...]) -> dict[int, Any]:
    if given is None:
        return {}
    if len(given.most) != len(example):
        raise ModelError(
            source.shown, f"--shape {name}: {len(given.most)} dimensions, and the example has {len(example)}"
        )
    for dimension, size in enumerate(example):
        if not given.least[dimension] <= size <= given.most[dimension]:
            raise ModelError(
                source.shown, f"--shape {name}: the example's dimension {dimension} is {size}, outside of it"
            )
    return {
        dimension: torch.export.Dim.AUTO(min=given.least[dimension], max=given.most[dimension])
        for dimension in range(len(example))
        if given.is_dynamic(dimension)
    }


def _check_dynamic(program: Any, source: Source, inputs: tuple[str, ...], shapes: MethodShapes) -> None:
    """Refuse a dimension that was asked to be dynamic and did not become it: torch fixes what the model fixes."""
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    for name in inputs:
        given = shapes.get(name)
        for dimension, size in enumerate(values[name].shape if given is not None else ()):
            if given is not None and given.is_dynamic(dimension) and isinstance(size, int):
                why = "the example has 1 there, which torch takes for fixed" if size == 1 else "the model fixes it"
                raise ModelError(source.shown, f"{source.method}: dimension {dimension} of {name} stays {size}: {why}")


# ---------------------------------------------------------------- ONNX files

#: Number of a stand-in -> its outputs for the sizes of its inputs.
_stand_ins: dict[int, Any] = {}
_library = torch.library.Library("linkcheck", "FRAGMENT")
_library.define("engine(Tensor[] inputs, int number) -> Tensor[]")


def _describe_outputs(inputs: list[Any], number: int) -> list[Any]:
    described: list[Any] = _stand_ins[number](inputs)
    return described


torch.library.register_fake("linkcheck::engine", _describe_outputs, lib=_library)


def export_stand_in(source: Source, engine: BuiltEngine, shapes: MethodShapes) -> Exported:
    """A program with the inputs and outputs of `engine`, which was built from the ONNX file of `source`.

    A dynamic dimension of an output must have the name of an input's, or else nothing says how large it is. Raises
    ModelError.
    """
    symbols = _read_symbols(source)
    number = len(_stand_ins)
    example: list[Any] = []
    dynamic: list[dict[int, Any]] = []
    dimensions: dict[str, tuple[Any, int]] = {}
    places: dict[str, tuple[int, int]] = {}
    for position, tensor in enumerate(engine.inputs):
        sizes = list(tensor.shape)
        named: dict[int, Any] = {}
        for index in (i for i, size in enumerate(sizes) if size < 0):
            given = shapes[tensor.name]  # the builder has refused a model without
            symbol = symbols.get((tensor.name, index)) or f"{tensor.name}.{index}"
            least, most = given.least[index], given.most[index]
            if symbol not in dimensions:
                # torch takes an example of 1 for a fixed size.
                dimensions[symbol] = (torch.export.Dim(f"d{len(dimensions)}", min=least, max=most), max(least, 2))
                places[symbol] = (position, index)
            if most < 2 or least == most:
                sizes[index] = most
                continue
            named[index], sizes[index] = dimensions[symbol]
        example.append(torch.zeros(sizes, dtype=_find_dtype(source, tensor.name, tensor.dtype)))
        dynamic.append(named)
    outputs = [
        (
            _find_dtype(source, tensor.name, tensor.dtype),
            [
                size if size >= 0 else _find_place(source, symbols, places, tensor.name, i)
                for i, size in enumerate(tensor.shape)
            ],
        )
        for tensor in engine.outputs
    ]

    def describe(inputs: list[Any]) -> list[Any]:
        return [
            inputs[0].new_empty(
                [inputs[size[0]].shape[size[1]] if isinstance(size, tuple) else size for size in sizes], dtype=dtype
            )
            for dtype, sizes in outputs
        ]

    _stand_ins[number] = describe

    class StandIn(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def forward(self, *inputs: Any) -> tuple[Any, ...]:
            return tuple(torch.ops.linkcheck.engine(list(inputs), number))

    try:
        with _quiet():
            program = torch.export.export(StandIn(), tuple(example), dynamic_shapes=(tuple(dynamic),))
    except FAILURES as error:
        raise ModelError(source.shown, f"{type(error).__name__}: {error}") from error
    return Exported(
        program, tuple(tensor.name for tensor in engine.inputs), tuple(tensor.name for tensor in engine.outputs)
    )


def _find_dtype(source: Source, name: str, dtype: str) -> Any:
    if dtype not in _DTYPES:
        raise ModelError(source.shown, f"{name} is of the type {dtype}, which ExecuTorch's tensors do not have")
    return _DTYPES[dtype]


def _find_place(
    source: Source, symbols: dict[tuple[str, int], str], places: dict[str, tuple[int, int]], name: str, index: int
) -> tuple[int, int]:
    symbol = symbols.get((name, index), "")
    if symbol not in places:
        reason = f"dimension {index} of the output {name} is {symbol or 'without a name'}, and no input's dimension is"
        raise ModelError(source.shown, f"{reason}: how large it gets is not known")
    return places[symbol]


def _read_symbols(source: Source) -> dict[tuple[str, int], str]:
    """The names of dynamic dimensions of the model's inputs and outputs; TensorRT tells those of inputs only."""
    _require_onnx()
    import onnx

    try:
        graph = onnx.load(source.onnx, load_external_data=False).graph
    except FAILURES as error:
        raise ModelError(source.shown, f"{type(error).__name__}: {error}") from error
    return {
        (value.name, index): dimension.dim_param
        for value in (*graph.input, *graph.output)
        for index, dimension in enumerate(value.type.tensor_type.shape.dim)
        if dimension.dim_param
    }
