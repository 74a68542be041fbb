"""Builds an engine from an ONNX file with TensorRT or TensorRT for RTX, straight into a file. Knows no ExecuTorch.

Both have one Python interface (NVIDIA TensorRT, Python API: Builder, OnnxParser, IProgressMonitor, IStreamWriter).
TensorRT measures kernels on a GPU, and so needs one; TensorRT for RTX leaves that to the device, and needs none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from linkcheck.errors import MissingPackageError, ModelError
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from linkcheck.executorch.shapes import ShapeRange

    #: Called with what is being done, steps done, and steps in all.
    Progress = Callable[[str, int, int], None]

#: Value of --builder -> the Python package; the extra that brings it is called like the builder.
BUILDERS = {"tensorrt-rtx": "tensorrt_rtx", "tensorrt": "tensorrt"}


class Tensor(Value):
    """An input or output of an engine; a size is -1 where it is dynamic. `dtype` is TensorRT's name, such as FLOAT."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class BuiltEngine(Value):
    """A plan file, and what goes in and comes out, in the engine's order."""

    path: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def load_builder(name: str) -> Any:
    """The Python package of the builder `name`. Raises MissingPackageError."""
    package = BUILDERS[name]
    try:
        return importlib.import_module(package)
    except (ImportError, OSError) as error:  # OSError: a library that it loads with ctypes is not there
        raise MissingPackageError(package, name, str(error)) from error


def build_engine(
    trt: Any,
    model: str,
    plan: str,
    *,
    shapes: Mapping[str, ShapeRange],
    weight_streaming: bool,
    progress: Progress,
    shown: str,
) -> BuiltEngine:
    """Build the ONNX file `model` into the plan file `plan`; errors call it `shown`.

    `shapes` has the inputs that are dynamic. With `weight_streaming` the device may keep a part of the weights in host
    memory. Raises ModelError for a model that the builder refuses, and OSError for a file that cannot be written.
    """
    logger = _make_logger(trt)
    builder = trt.Builder(logger)
    if builder is None:
        raise ModelError(shown, f"no builder: {_say(logger.errors)}")
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(model):
        faults = [parser.get_error(number).desc() for number in range(parser.num_errors)]
        raise ModelError(shown, f"the ONNX parser refuses it: {_say(faults or logger.errors)}")
    inputs = tuple(_describe(network.get_input(number)) for number in range(network.num_inputs))
    outputs = tuple(_describe(network.get_output(number)) for number in range(network.num_outputs))
    config = builder.create_builder_config()
    config.progress_monitor = _make_monitor(trt, progress)
    if weight_streaming:
        config.set_flag(trt.BuilderFlag.WEIGHT_STREAMING)
    _add_profile(builder, config, inputs, shapes, shown)
    with open(plan, "wb") as file:
        built = builder.build_serialized_network_to_stream(network, config, _make_writer(trt, file))
        if not built or not file.tell():
            raise ModelError(shown, f"the builder refuses it: {_say(logger.errors)}")
    return BuiltEngine(plan, inputs, outputs)


def _describe(tensor: Any) -> Tensor:
    return Tensor(str(tensor.name), str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape))


def _add_profile(
    builder: Any, config: Any, inputs: tuple[Tensor, ...], shapes: Mapping[str, ShapeRange], shown: str
) -> None:
    if unknown := sorted(shapes.keys() - {tensor.name for tensor in inputs}):
        names = ", ".join(tensor.name for tensor in inputs)
        raise ModelError(shown, f"--shape names the input {unknown[0]}, and there are {names}")
    profile = builder.create_optimization_profile()
    for tensor in inputs:
        given = shapes.get(tensor.name)
        if given is not None:
            sizes = zip(tensor.shape, given.least, given.most, strict=False)
            fits = all(size < 0 or least == size == most for size, least, most in sizes)
            if len(given.most) != len(tensor.shape) or not fits:
                written = "x".join("?" if size < 0 else str(size) for size in tensor.shape)
                raise ModelError(shown, f"--shape {tensor.name}: the input is {written}, where ? is dynamic")
        elif -1 in tensor.shape:
            raise ModelError(shown, f"the input {tensor.name} has a dynamic shape: --shape {tensor.name}=MIN:OPT:MAX")
        if -1 in tensor.shape and given is not None:
            profile.set_shape(tensor.name, given.least, given.usual, given.most)
    if any(-1 in tensor.shape for tensor in inputs) and config.add_optimization_profile(profile) < 0:
        raise ModelError(shown, "the builder refuses the shapes")


def _say(messages: list[str]) -> str:
    return messages[-1] if messages else "it does not say why"


# TensorRT calls these; their base classes exist only when its package was imported.


def _make_logger(trt: Any) -> Any:
    class Logger(trt.ILogger):  # type: ignore[misc]
        """Keeps what TensorRT calls an error."""

        def __init__(self) -> None:
            super().__init__()
            self.errors: list[str] = []

        def log(self, severity: Any, message: str) -> None:
            if severity in (trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR):
                self.errors.append(message)

    return Logger()


def _make_monitor(trt: Any, progress: Progress) -> Any:
    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        """Hands on the phases that have no parent."""

        def __init__(self) -> None:
            super().__init__()
            self._steps: dict[str, int] = {}

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            if not parent:
                self._steps[phase] = steps
                progress(phase, 0, steps)

        def step_complete(self, phase: str, step: int) -> bool:
            if phase in self._steps:
                progress(phase, step + 1, self._steps[phase])
            return True

        def phase_finish(self, phase: str) -> None:
            steps = self._steps.pop(phase, None)
            if steps is not None:
                progress(phase, steps, steps)

    return Monitor()


def _make_writer(trt: Any, file: Any) -> Any:
    class Writer(trt.IStreamWriter):  # type: ignore[misc]
        """Writes the plan as it comes."""

        def write(self, data: Any) -> int:
            file.write(data)
            return len(data)

    return Writer()
