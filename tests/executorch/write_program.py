"""Writes small ExecuTorch programs (.pte) and data files (.ptd), right and wrong ones. Reads none, needs no package.

    write_program.py OUT [--method NAME=HOW]... [--entry KEY=FILE]... [--data] [--shift BYTES]

HOW says where the method's TensorRT engine is: `inline:FILE` in the delegate's blob, `named:FILE` in the named data,
`key:KEY` in the named data under a key that --entry gives (or not), `both:FILE`, `neither`, or `raw:FILE` for a blob
that is taken as it is. --entry adds named data. --data writes a .ptd that holds the entries only. --shift moves the
segments, so that they are not aligned.

The layout is that of ExecuTorch 1.5.1: schema/program.fbs, extension/flat_tensor/serialize/flat_tensor.fbs, and the
headers beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# ---------------------------------------------------------------- flatbuffers


@dataclass
class Number:
    """A scalar; `code` is struct's."""

    code: str
    value: int


@dataclass
class Numbers:
    """A vector of scalars."""

    code: str
    values: list[int]


@dataclass
class Repeated:
    """A vector of tables that are all the same one, which stands in the file once."""

    table: dict[int, Any]
    count: int


@dataclass(eq=False, repr=False)
class Shared:
    """A value that stands in the file once, whoever of those that hold this very object refers to it."""

    value: Any


#: Field number -> Number, Numbers, text, bytes, Table, list of Tables, Repeated or Shared.
Table = dict[int, Any]


class FlatbufferWriter:
    """Writes tables front to back: whoever refers to something stands before it, so distances are positive."""

    def __init__(self, identifier: bytes) -> None:
        self.data = bytearray(4) + identifier
        #: Who refers to a shared value. It is written last, so that it stands behind all of them.
        self._waiting: dict[Shared, list[int]] = {}

    def write(self, root: Table) -> bytes:
        """The buffer: distance to the root, identifier, tables."""
        self._refer(0, root)
        while self._waiting:
            shared = next(iter(self._waiting))
            first, *others = self._waiting.pop(shared)
            self._refer(first, shared.value)
            (distance,) = struct.unpack_from("<I", self.data, first)
            for place in others:
                struct.pack_into("<I", self.data, place, first + distance - place)
        return bytes(self.data)

    def _refer(self, place: int, value: object) -> None:
        """Write `value`, and at `place` the distance to it."""
        if isinstance(value, Shared):
            self._waiting.setdefault(value, []).append(place)
            return
        if isinstance(value, dict):
            target = self._write_table(value)
        elif isinstance(value, list):
            target = self._start_vector(4, len(value))
            places = range(len(self.data), len(self.data) + 4 * len(value), 4)
            self.data += bytes(4 * len(value))
            for at, entry in zip(places, value, strict=True):
                self._refer(at, entry)
        elif isinstance(value, Repeated):
            target = self._start_vector(4, value.count)
            first = len(self.data)
            self.data += bytes(4 * value.count)
            self._refer(first, value.table)
            (table,) = struct.unpack_from("<I", self.data, first)
            distances = (first + table - at for at in range(first, first + 4 * value.count, 4))
            struct.pack_into(f"<{value.count}I", self.data, first, *distances)
        elif isinstance(value, Numbers):
            size = struct.calcsize(value.code)
            target = self._start_vector(size, len(value.values))
            self.data += struct.pack(f"<{len(value.values)}{value.code}", *value.values)
        else:
            content = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
            target = self._start_vector(16, len(content))
            self.data += content + b"\0"
        struct.pack_into("<I", self.data, place, target - place)

    def _align(self, alignment: int, before: int = 0) -> None:
        self.data += bytes(-(len(self.data) + before) % alignment)

    def _start_vector(self, alignment: int, count: int) -> int:
        self._align(max(alignment, 4), before=4)
        self.data += struct.pack("<I", count)
        return len(self.data) - 4

    def _write_table(self, table: Table) -> int:
        offsets: dict[int, int] = {}
        size = 4
        for number, value in table.items():
            width = struct.calcsize(value.code) if isinstance(value, Number) else 4
            size += -size % width
            offsets[number] = size
            size += width
        slots = max(table, default=-1) + 1
        self._align(2)
        vtable = len(self.data)
        self.data += struct.pack("<HH", 4 + 2 * slots, size)
        self.data += struct.pack(f"<{slots}H", *(offsets.get(number, 0) for number in range(slots)))
        self._align(8)
        start = len(self.data)
        self.data += struct.pack("<i", start - vtable) + bytes(size - 4)
        for number, value in table.items():
            if isinstance(value, Number):
                struct.pack_into(f"<{value.code}", self.data, start + offsets[number], value.value)
        for number, value in table.items():
            if not isinstance(value, Number):
                self._refer(start + offsets[number], value)
        return start


# ---------------------------------------------------------------- blobs


def make_blob(
    engine: bytes = b"",
    key: str | None = None,
    inputs: tuple[str, ...] = ("x",),
    outputs: tuple[str, ...] = ("y",),
    **changes: object,
) -> bytes:
    """A TR01 blob, as torch_tensorrt's exporter writes it, with `changes` of its metadata."""
    metadata: dict[str, object] = {
        "io_bindings": [
            {"name": name, "dtype": "", "shape": [], "is_input": is_input}
            for names, is_input in ((inputs, True), (outputs, False))
            for name in names
        ],
        "aliased_io": [],
        "hardware_compatible": False,
        "device_id": 0,
        "serialized_metadata": "",
        "target_platform": "",
        **({} if key is None else {"engine_key": key}),
        **changes,
    }
    text = json.dumps(metadata, separators=(",", ":")).encode()
    engine_offset = -(-(32 + len(text)) // 16) * 16
    header = struct.pack("<4sIIIQ8s", b"TR01", 32, len(text), engine_offset, len(engine), b"\1")
    return (header + text).ljust(engine_offset, b"\0") + engine


def make_key(engine: bytes) -> str:
    return f"tensorrt_engine_{hashlib.sha256(engine).hexdigest()}"


# ---------------------------------------------------------------- programs


@dataclass
class Tensor:
    """A tensor that a method gives to a delegate; 6 is float32."""

    shape: tuple[int, ...] = (2, 3)
    dtype: int = 6
    dynamic: bool = False
    cuda: bool = False


@dataclass
class Delegate:
    """One delegate, and the tensors of its call, if it is called."""

    blob: bytes
    backend: str = "TensorRTBackend"
    arguments: tuple[Tensor, ...] | None = (Tensor(), Tensor())
    in_segment: bool = True


@dataclass
class Program:
    """What to write. `named` maps a key to bytes, or to another key whose segment it shares."""

    methods: dict[str, list[Delegate]] = field(default_factory=dict)
    named: dict[str, bytes | str] = field(default_factory=dict)
    #: Of segments; `shift` bytes are put in front of the first.
    alignment: int = 128
    shift: int = 0
    #: A .ptd: named data only.
    is_data: bool = False

    def to_bytes(self) -> bytes:
        """The file."""
        segments: list[bytes] = []
        placed: dict[bytes, int] = {}
        plans: list[Table] = []
        inline: list[Table] = []
        for name, delegates in self.methods.items():
            described = []
            for delegate in delegates:
                if delegate.in_segment:
                    if delegate.blob not in placed:
                        placed[delegate.blob] = len(segments)
                        segments.append(delegate.blob)
                    reference = {0: Number("b", 1), 1: Number("I", placed[delegate.blob])}
                else:
                    reference = {1: Number("I", len(inline))}
                    inline.append({0: delegate.blob})
                described.append({0: delegate.backend, 1: reference, 2: []})
            plans.append(_describe_method(name, described, delegates))
        entries: list[Table] = []
        indices: dict[str, int] = {}
        for key, data in self.named.items():
            if isinstance(data, str):
                indices[key] = indices[data]
            else:
                indices[key] = len(segments)
                segments.append(data)
            entries.append({0: key, 1: Number("I", indices[key])})
        offset = self.shift
        tables: list[Table] = []
        content = bytearray(self.shift)
        for segment in segments:
            padding = -(offset - self.shift) % self.alignment
            offset += padding
            tables.append({0: Number("Q", offset), 1: Number("Q", len(segment))})
            content += bytes(padding) + segment
            offset += len(segment)
        if self.is_data:
            return wrap(b"FT01", {0: Number("I", 0), 1: tables, 2: entries}, bytes(content), self.alignment)
        root: Table = {0: Number("I", 0), 1: plans, 3: inline, 4: tables, 5: {0: Number("I", 0), 1: Numbers("Q", [0])}}
        root[7] = entries
        return wrap(b"ET12", root, bytes(content), self.alignment)


def _describe_method(name: str, described: list[Table], delegates: list[Delegate]) -> Table:
    values: list[Table] = []
    calls: list[Table] = []
    for index, delegate in enumerate(delegates):
        if delegate.arguments is None:
            continue
        first = len(values)
        values += [_describe_tensor(tensor) for tensor in delegate.arguments]
        arguments = Numbers("i", list(range(first, len(values))))
        calls.append({0: Number("B", 2), 1: {0: Number("i", index), 1: arguments}})
    everything = Numbers("i", list(range(len(values))))
    chain = {0: Numbers("i", []), 1: Numbers("i", []), 2: calls}
    return {
        0: name,
        1: {0: "", 1: ""},
        2: values,
        3: everything,
        4: Numbers("i", []),
        5: [chain],
        6: [],
        7: described,
        8: Numbers("q", [0]),
    }


def _describe_tensor(tensor: Tensor) -> Table:
    table: Table = {
        0: Number("b", tensor.dtype),
        2: Numbers("i", list(tensor.shape)),
        3: Numbers("B", list(range(len(tensor.shape)))),
        8: Number("b", 1 if tensor.dynamic else 0),
    }
    if tensor.cuda:
        table[9] = {3: Number("b", 1), 4: Number("b", 0)}
    return {0: Number("B", 5), 1: table}


def wrap(identifier: bytes, root: Table, segments: bytes, alignment: int) -> bytes:
    """The flatbuffer with its header in it, and the segments behind it."""
    flatbuffer = FlatbufferWriter(identifier).write(root)
    if identifier == b"ET12" and not segments:
        return flatbuffer
    padded = 32 if identifier == b"ET12" else 48
    size = len(flatbuffer) + padded
    base = -(-size // alignment) * alignment
    if identifier == b"ET12":
        header = b"eh00" + struct.pack("<IQQQ", 32, size, base, len(segments))
    else:
        header = b"FH01" + struct.pack("<IQQQQ", 40, padded, len(flatbuffer), base, len(segments))
    (distance,) = struct.unpack_from("<I", flatbuffer)
    moved = struct.pack("<I", distance + padded) + flatbuffer[4:8] + header.ljust(padded, b"\0") + flatbuffer[8:]
    return moved.ljust(base, b"\0") + segments


# ---------------------------------------------------------------- command line


def _make_delegate(method: str, how: str, named: dict[str, bytes | str]) -> Delegate:
    kind, _, argument = how.partition(":")
    content = Path(argument).read_bytes() if kind in ("inline", "named", "both", "raw") else b""
    if kind == "raw":
        return Delegate(content)
    if kind in ("named", "both"):
        named[make_key(content)] = content
    keys = {"key": argument, "named": make_key(content), "both": make_key(content)}
    engine = content if kind in ("inline", "both") else b""
    return Delegate(make_blob(engine, keys.get(kind), (f"{method}_input",), (f"{method}_output",)))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a small ExecuTorch program for tests.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--method", action="append", default=[], metavar="NAME=HOW")
    parser.add_argument("--entry", action="append", default=[], metavar="KEY=FILE")
    parser.add_argument("--data", action="store_true")
    parser.add_argument("--shift", type=int, default=0)
    arguments = parser.parse_args()
    program = Program(shift=arguments.shift, is_data=arguments.data)
    for text in arguments.method:
        name, _, how = text.partition("=")
        program.methods.setdefault(name, []).append(_make_delegate(name, how, program.named))
    for text in arguments.entry:
        key, _, path = text.rpartition("=")
        program.named[key] = Path(path).read_bytes()
    arguments.out.write_bytes(program.to_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
