"""`linkcheck pte build`: options, progress and printing. The building is executorch.build's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit, refuse_inputs, wants_color

if TYPE_CHECKING:
    from types import TracebackType

#: As executorch.engine_builder.BUILDERS, which a help text need not import.
_BUILDERS = ("tensorrt-rtx", "tensorrt")


@click.command(name="pte build", cls=Command)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", required=True, help="Write the program there.")
@click.option(
    "--builder",
    type=click.Choice(_BUILDERS),
    default=_BUILDERS[0],
    show_default=True,
    help="What builds the engines. tensorrt needs a GPU of the kind that will run them; tensorrt-rtx needs none.",
)
@click.option(
    "--shape",
    "shapes",
    metavar="[METHOD:]INPUT=MIN:OPT:MAX",
    multiple=True,
    help="Shapes of an input, such as x=1x4:8x4:16x4.",
)
@click.option(
    "--weight-streaming-budget",
    "budget",
    metavar="BYTES",
    type=click.IntRange(min=0),
    help="Let the device hold so much of the weights at a time.",
)
@click.option("--device", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="The GPU that runs it.")
def command(
    models: tuple[str, ...], output: str, builder: str, shapes: tuple[str, ...], budget: int | None, device: int
) -> int:
    """Build an ExecuTorch program whose methods are TensorRT engines, and check it.

    A MODEL is [METHOD=]FILE.onnx, or [METHOD=]FILE.py:FUNCTION, where the function returns a torch module and its
    example arguments, or a dictionary from methods to such pairs. Without METHOD it is forward.

    Exit status: 0 clean, 1 findings, 2 could not build or check.
    """
    from linkcheck.api import build_program, check_programs, load_settings
    from linkcheck.report.programs import render_programs
    from linkcheck.rules.program_rules import ALL_RULES

    refuse_inputs(output, tuple(model.rpartition("=")[2].partition(".py:")[0] for model in models))
    with _Bars() as bars:
        build_program(
            models,
            output,
            builder=builder,
            shapes=shapes,
            weight_streaming_budget=budget,
            device=device,
            progress=bars.show,
        )
    verdict = check_programs([output], settings=load_settings())
    emit(render_programs(verdict.report, verdict.programs, "text", color=wants_color(), rules=ALL_RULES), None)
    return verdict.report.outcome.exit_status


class _Bars:
    """A progress bar for each step, one after the other, on standard error; where that is no terminal, its name."""

    def __init__(self) -> None:
        self._what = ""
        self._bar: Any = None

    def __enter__(self) -> _Bars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def show(self, what: str, done: int, steps: int) -> None:
        """Say that `done` of `steps` of `what` are done."""
        if what != self._what or self._bar is None:
            self._end()
            self._what = what
            self._bar = click.progressbar(length=max(steps, 1), label=what, file=sys.stderr, show_eta=False)
            self._bar.__enter__()
        self._bar.update(done - self._bar.pos)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
