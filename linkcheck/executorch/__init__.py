"""ExecuTorch's files as far as TensorRT engines are concerned: the delegate's blob, .pte programs, .ptd data.

`TensorRTBackend` and `TensorRTPartitioner`, which write them, import ExecuTorch and torch when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkcheck.executorch.backend import TensorRTBackend, TensorRTPartitioner

__all__ = ["TensorRTBackend", "TensorRTPartitioner"]


def __getattr__(name: str) -> type[TensorRTBackend] | type[TensorRTPartitioner]:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from linkcheck.executorch import backend

    found: type[TensorRTBackend] | type[TensorRTPartitioner] = getattr(backend, name)
    return found
