"""Writes vectors.txt: blobs that linkcheck/executorch/blob.py and native/delegate/blob.cpp must read or refuse alike.

    python make_vectors.py > vectors.txt

It packs the bytes itself and imports neither reader. One vector is a heading and lines of `key = value`: `bytes` in
hexadecimal digits, and either `refused`, words that the refusal of both readers contains, or what they must read.
Names are UTF-8 and hold no blank.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINE = b"ENGINE"
BINDINGS = [("x", True), ("y", False)]
KEY = "tensorrt_engine_" + 16 * "00ff"


def describe(**changes: object) -> dict[str, object]:
    """The metadata that the exporter writes, in its order, with `changes`."""
    return {
        "io_bindings": [{"name": n, "dtype": "", "shape": [], "is_input": i} for n, i in BINDINGS],
        "aliased_io": [],
        "hardware_compatible": False,
        "device_id": 0,
        "serialized_metadata": "",
        "target_platform": "",
        **changes,
    }


def pack(
    metadata: dict[str, object] | bytes | None = None,
    engine: bytes = ENGINE,
    *,
    magic: bytes = b"TR01",
    metadata_offset: int = 32,
    metadata_size: int | None = None,
    engine_offset: int | None = None,
    engine_size: int | None = None,
    reserved: bytes = b"\1\0\0\0\0\0\0\0",
) -> bytes:
    """A blob; what is given takes the place of the right value."""
    if metadata is None:
        metadata = describe()
    text = metadata if isinstance(metadata, bytes) else json.dumps(metadata, separators=(",", ":")).encode()
    aligned = -(-(32 + len(text)) // 16) * 16
    header = struct.pack(
        "<4sIIIQ8s",
        magic,
        metadata_offset,
        len(text) if metadata_size is None else metadata_size,
        aligned if engine_offset is None else engine_offset,
        len(engine) if engine_size is None else engine_size,
        reserved,
    )
    return (header + text).ljust(aligned, b"\0") + engine


def accepted() -> Iterator[tuple[str, bytes, list[str]]]:
    """Heading, bytes, and what is to be read."""
    engine = f"engine = {ENGINE.hex()}"
    both = ["binding = input x", "binding = output y"]
    yield "an engine in the blob, as the exporter writes it", pack(), [*both, engine]
    named = describe(
        io_bindings=[
            {"name": "caf\u00e9_\U0001f600", "dtype": "", "shape": [], "is_input": True},
            {"name": "\u8f93\u51fa", "dtype": "float16", "shape": [2, 3], "is_input": False},
        ],
        aliased_io=[{"output": "\u8f93\u51fa", "input": "caf\u00e9_\U0001f600", "kind": "user"}],
        hardware_compatible=True,
        device_id=2,
        serialized_metadata="gASV",
        target_platform="linux_x86_64",
    )
    values = [
        "binding = input caf\u00e9_\U0001f600",
        "binding = output \u8f93\u51fa",
        "alias = \u8f93\u51fa caf\u00e9_\U0001f600 user",
        "hardware_compatible = true",
        "device_id = 2",
        engine,
    ]
    yield "names that are not ASCII, and an alias", pack(named, magic=b"TR02"), values
    yield (
        "the same with its names as UTF-8",
        pack(json.dumps(named, ensure_ascii=False).encode(), magic=b"TR02"),
        values,
    )
    aliases = describe(aliased_io=[{"output": "y", "input": "x"}])
    yield "an alias without a kind, under the old magic", pack(aliases), [*both, "alias = y x kv_cache_update", engine]
    yield "the new magic without an alias", pack(magic=b"TR02"), [*both, engine]
    yield "an engine in the named data", pack(describe(engine_key=KEY), b""), [*both, f"engine_key = {KEY}"]
    yield "only what is mandatory", pack(b'{"io_bindings":[]}'), [engine]
    spaced = b'\n{ "device_id" : 1 , "later": {"io_bindings": 3}, "io_bindings" : [ ] }\t'
    yield "keys in another order, blanks, unknown keys", pack(spaced), ["device_id = 1", engine]
    yield "bytes behind the engine", pack() + b"more", [*both, engine]
    yield "reserved bytes of a later writer", pack(reserved=8 * b"\xff"), [*both, engine]
    yield "the largest device", pack(describe(device_id=2**31 - 1)), [*both, f"device_id = {2**31 - 1}", engine]
    looks = describe(
        io_bindings=[{"name": "aliased_io", "is_input": True}, {"name": '"device_id":7', "is_input": False}],
        aliased_io=[{"output": '"device_id":7', "input": "aliased_io"}],
    )
    read = [
        "binding = input aliased_io",
        'binding = output "device_id":7',
        'alias = "device_id":7 aliased_io kv_cache_update',
    ]
    yield "names that look like keys", pack(looks), [*read, engine]
    far = pack(metadata_offset=48, metadata_size=18, engine_offset=80, engine=b"")
    far = far[:32] + bytes(16) + b'{"io_bindings":[]}' + bytes(14) + ENGINE
    far = far[:16] + struct.pack("<Q", len(ENGINE)) + far[24:]
    yield "metadata that does not follow the header at once", far, [engine]


def refused() -> Iterator[tuple[str, bytes, str]]:
    """Heading, bytes, and words of the refusal."""
    yield "nothing", b"", "blob"
    yield "a header that is cut off", pack()[:31], "header"
    yield "another magic", pack(magic=b"TR03"), "unknown magic"
    yield "metadata inside of the header", pack(metadata_offset=31), "metadata begins inside the header"
    yield "an engine that is not aligned", pack(engine_offset=72), "not 16-byte aligned"
    yield "metadata past the end", pack(metadata_size=1 << 30), "metadata ends past the blob"
    yield "metadata whose end wraps in 32 bits", pack(metadata_offset=0xFFFFFFFF), "metadata ends past the blob"
    yield "an engine past the end", pack(engine_size=len(ENGINE) + 1), "engine ends past the blob"
    yield "an engine that is cut off", pack()[:-1], "engine ends past the blob"
    for bits in (2**64 - 1, 2**64 - 128, 2**64 - 16, 2**63):
        yield f"an engine of {bits:#x} bytes, whose end wraps", pack(engine_size=bits), "engine ends past the blob"
    yield "an engine that begins in the metadata", pack(engine_offset=32), "metadata overlaps the engine"
    yield "an engine that begins at 0", pack(engine_offset=0), "metadata overlaps the engine"
    for text in (
        b"",
        b"{",
        b'{"io_bindings":[]} x',
        b'{"io_bindings":[],}',
        b"{'io_bindings':[]}",
        b'{"io_bindings":[]}{}',
        b'{"io_bindings":[],"a":"\xff"}',
        b'{"io_bindings":[],"a":"\n"}',
        b'{"io_bindings":[],"a":NaN}',
        b'{"io_bindings":[],"a":1e999}',
        b'{"io_bindings":[],"a":"\\ud800"}',
        b'{"io_bindings":[],"a":01}',
        b"[]",
        b"3",
    ):
        yield f"metadata {text!r}", pack(text), "JSON"
    twice = b'{"io_bindings":[],"device_id":0,"device_id":1}'
    yield "a key twice", pack(twice), "device_id twice"
    twice = b'{"io_bindings":[{"name":"a","name":"b","is_input":true}]}'
    yield "a key twice in a binding", pack(twice), "name twice"
    for device in (b"99999999999", b"2147483648", b"-1", b"-0", b"1.0", b"true", b'"0"', b"null"):
        text = b'{"io_bindings":[],"device_id":' + device + b"}"
        yield f"device {device.decode()}", pack(text), "device_id"
    yield "no bindings", pack(b"{}"), "io_bindings"
    yield "bindings that are no list", pack(b'{"io_bindings":{}}'), "io_bindings"
    for entry in (b"3", b'{"is_input":true}', b'{"name":"","is_input":true}', b'{"name":3,"is_input":true}'):
        yield f"binding {entry.decode()}", pack(b'{"io_bindings":[' + entry + b"]}"), "io_bindings"
    nul = b'{"io_bindings":[{"name":"a\\u0000b","is_input":true}]}'
    yield "a name with a NUL", pack(nul), "io_bindings"
    yield "a binding of no direction", pack(b'{"io_bindings":[{"name":"a"}]}'), "does not say is_input"
    same = b'{"io_bindings":[{"name":"a","is_input":true},{"name":"a","is_input":false}]}'
    yield "a binding twice", pack(same), "listed twice"
    for alias in (b"3", b'{"output":"o"}', b'{"input":"i"}', b'{"output":"o","input":"i","kind":"other"}'):
        yield f"alias {alias.decode()}", pack(b'{"io_bindings":[],"aliased_io":[' + alias + b"]}"), "alias"
    yield "hardware_compatible 1", pack(b'{"io_bindings":[],"hardware_compatible":1}'), "hardware_compatible"
    yield "no engine and no name", pack(engine=b""), "holds no engine and names none"
    yield "an engine and the name of another", pack(describe(engine_key=KEY)), "names another"
    yield "an empty name", pack(describe(engine_key=""), b""), "engine_key"
    yield "a name that is no text", pack(describe(engine_key=7), b""), "engine_key"


def vectors() -> Iterator[str]:
    """The lines of vectors.txt."""
    yield "# Made by make_vectors.py, which says what this is."
    for heading, data, read in accepted():
        yield from ("", f"[{heading}]", f"bytes = {data.hex()}", *read)
    for heading, data, words in refused():
        yield from ("", f"[{heading}]", f"bytes = {data.hex()}", f"refused = {words}")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print("\n".join(vectors()))
