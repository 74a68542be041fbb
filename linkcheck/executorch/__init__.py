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
    try:
        from linkcheck.executorch import backend
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("executorch", "torch"):
            raise
        reason = f"{__name__}.{name} needs ExecuTorch and torch: pip install 'linkcheck-elf[executorch]'"
        raise ImportError(reason, name=error.name) from None

    found: type[TensorRTBackend] | type[TensorRTPartitioner] = getattr(backend, name)
    return found
