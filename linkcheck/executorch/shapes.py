"""Which shapes the inputs of a method may have: `--shape [METHOD:]INPUT=MIN:OPT:MAX`. Knows no torch, no TensorRT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import UsageProblemError
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ShapeRange(Value):
    """The smallest, the usual and the largest shape of one input; an engine is tuned for the usual one."""

    least: tuple[int, ...]
    usual: tuple[int, ...]
    most: tuple[int, ...]

    def is_dynamic(self, dimension: int) -> bool:
        """Whether the dimension has more than one size."""
        return self.least[dimension] != self.most[dimension]


#: Input -> its shapes, of one method.
MethodShapes = dict[str, ShapeRange]


def parse_shapes(options: Iterable[str]) -> dict[str, MethodShapes]:
    """Method -> the shapes of its inputs; the method is "" where an option names none and so means the only one.

    Raises UsageProblemError for what is no shape.
    """
    shapes: dict[str, MethodShapes] = {}
    for option in options:
        target, separator, text = option.partition("=")
        method, _, name = target.rpartition(":")
        parts = [_parse_shape(option, part) for part in text.split(":")]
        if not separator or not name or len(parts) not in (1, 3):
            raise UsageProblemError(f"--shape {option}: write [METHOD:]INPUT=MIN:OPT:MAX, such as x=1x4:8x4:16x4")
        shape = ShapeRange(parts[0], parts[len(parts) // 2], parts[-1])
        if not len(shape.least) == len(shape.usual) == len(shape.most):
            raise UsageProblemError(f"--shape {option}: MIN, OPT and MAX differ in their number of dimensions")
        if any(not a <= b <= c for a, b, c in zip(shape.least, shape.usual, shape.most, strict=True)):
            raise UsageProblemError(f"--shape {option}: no dimension of MIN may be above OPT's, nor of OPT above MAX's")
        shapes.setdefault(method, {})[name] = shape
    return shapes


def _parse_shape(option: str, text: str) -> tuple[int, ...]:
    sizes = text.split("x") if text else []
    if any(not size.isdecimal() or int(size) == 0 for size in sizes):
        raise UsageProblemError(f"--shape {option}: {text!r} is no shape; one is written 8x3x224x224")
    return tuple(int(size) for size in sizes)


def assign_shapes(shapes: dict[str, MethodShapes], methods: Sequence[str]) -> dict[str, MethodShapes]:
    """The shapes of each of `methods`. Raises UsageProblemError for an option about none of them, or not only one."""
    listed = ", ".join(methods)
    for method, inputs in shapes.items():
        if not method and len(methods) > 1:
            raise UsageProblemError(f"--shape {next(iter(inputs))}=…: write METHOD: before it; there are {listed}")
        if method and method not in methods:
            raise UsageProblemError(f"--shape {method}:…: no such method; there are {listed}")
    return {method: {**shapes.get("", {}), **shapes.get(method, {})} for method in methods}
