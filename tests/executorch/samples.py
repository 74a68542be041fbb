"""Programs that several tests start from. Judges nothing."""

from __future__ import annotations

from tests.executorch.write_program import Delegate, Program, Tensor, make_blob, make_key

#: With the head of a plan by TensorRT 10.16.0.31, as trtexec reads it.
ENGINE = b"ftrt" + bytes(20) + bytes((10, 16, 0, 31)) + bytes(range(100))
OTHER_ENGINE = b"GSIMPLN1" + bytes(80)
KEY = make_key(ENGINE)


def good_program() -> Program:
    """Two methods that share a named engine, one with its own in the blob, another backend, weights under two names."""
    aliases = [{"output": "y", "input": "cache", "kind": "user"}]
    shared = make_blob(key=KEY, inputs=("x", "cache"), outputs=("y",), aliased_io=aliases)
    tensors = (Tensor((1, 4), 5, dynamic=True), Tensor((8,), cuda=True), Tensor((8,), cuda=True))
    return Program(
        {
            "forward": [Delegate(shared, arguments=tensors), Delegate(b"xnnpack", "XnnpackBackend", in_segment=False)],
            "decode": [Delegate(make_blob(key=KEY, outputs=("z",)))],
            "embed": [Delegate(make_blob(OTHER_ENGINE, device_id=1), in_segment=False)],
        },
        {KEY: ENGINE, "weight": b"12345678", "tied": "weight"},
    )
