"""What the first bytes of an engine say about who made it. Reads no plan, and knows no file.

Source of the layout of TensorRT's: `printPlanVersion` in samples/common/sampleEngines.cpp of NVIDIA/TensorRT (trtexec
--getPlanVersionOnly): u32 tag 0x74727466, u32 serialization version, and with that version 0 the four numbers of the
TensorRT version in bytes 24 to 27. TensorRT for RTX 1.4 writes another tag, and its layout is nowhere published.
"""

from __future__ import annotations

_TAG = b"ftrt"
_VERSION_END = 28
_RTX_TAG = b"vtrt"
_SIMULATED = b"GSIMPLN"


def describe_plan(head: bytes) -> str:
    """The maker of the engine that begins with `head`, such as "TensorRT 10.16.0.31 plan"; empty when it is unknown."""
    if head.startswith(_SIMULATED):
        return "plan of the simulated TensorRT"
    if head.startswith(_RTX_TAG):
        return "TensorRT for RTX plan"
    if not head.startswith(_TAG):
        return ""
    if len(head) < _VERSION_END or int.from_bytes(head[4:8], "little") != 0:
        return "TensorRT plan of an unknown serialization version"
    return f"TensorRT {'.'.join(str(number) for number in head[24:28])} plan"
