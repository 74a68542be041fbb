"""The bytes that the TensorRT delegate stores for one call: header, metadata, engine. Knows no .pte and reads no file.

The layout is that of torch_tensorrt's exporter (`torch_tensorrt/executorch/serialization.py`): 32 bytes, little-endian,
then JSON, then zeros up to a multiple of 16, then the engine. Two magics are read and written: TR01, and TR02 when an
output is an input, updated in place, which a reader that knows no aliases must refuse.

`engine_key` in the metadata is linkcheck's addition: the engine is not in the blob but in the program's named data,
under that key, where several blobs can share it. The blob's engine size is 0 then. `native/delegate/blob.cpp` reads the
same bytes; tests/blobs holds what both must accept and refuse.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from linkcheck.errors import MalformedBlobError
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

MAGIC = b"TR01"
MAGIC_WITH_ALIASES = b"TR02"
#: magic, u32 metadata offset, u32 metadata size, u32 engine offset, u64 engine size, 8 reserved bytes.
HEADER = struct.Struct("<4sIIIQ8s")
_RESERVED = b"\x01" + bytes(7)
#: Of an inline engine from the blob's start, and of a named one in memory: the delegate refuses others.
ENGINE_ALIGNMENT = 16
#: What an engine of the named data is called; the rest is the SHA-256 of its bytes in hexadecimal digits.
KEY_PREFIX = "tensorrt_engine_"

#: Values of `Alias.kind`: the engine itself says that the output is the input, or only the exporter does.
KV_CACHE_UPDATE = "kv_cache_update"
USER = "user"
_MAX_DEVICE_ID = 2**31 - 1

_Object = dict[str, Any]


class Binding(Value):
    """One input or output of the engine. The exporter leaves `dtype` and `shape` empty: the engine knows them."""

    name: str
    is_input: bool
    dtype: str = ""
    shape: tuple[int, ...] = ()


class Alias(Value):
    """The engine's `output` is its `input`, updated in place."""

    output: str
    input: str
    kind: str = KV_CACHE_UPDATE


class Layout(Value):
    """Where the parts of a blob are, in bytes from its start. Both lie inside of it; `engine_size` may be 0."""

    metadata_offset: int
    metadata_size: int
    engine_offset: int
    engine_size: int


class TensorRTBlob(Value):
    """What a blob says: its metadata, and `engine`, the bytes behind it (not copied), or `engine_key`, where they are.

    A whole blob has one of the two; `read_metadata` gives neither the bytes nor an opinion. `io_bindings` are in the
    order of the delegate's arguments, inputs first. `device_id` is a CUDA ordinal.
    """

    io_bindings: tuple[Binding, ...] = ()
    aliased_io: tuple[Alias, ...] = ()
    device_id: int = 0
    hardware_compatible: bool = False
    serialized_metadata: str = ""
    target_platform: str = ""
    engine: memoryview | bytes | None = None
    engine_key: str | None = None


def parse(data: bytes | bytearray | memoryview) -> TensorRTBlob:
    """Read a blob; its `engine` is a view of `data`.

    Raises MalformedBlobError, which names the offset and the field at fault.
    """
    view = memoryview(data).cast("B")
    layout = read_layout(bytes(view[: HEADER.size]), len(view))
    start = layout.metadata_offset
    blob = read_metadata(bytes(view[start : start + layout.metadata_size]), start)
    check_engine(layout, blob.engine_key)
    engine = view[layout.engine_offset : layout.engine_offset + layout.engine_size] if layout.engine_size else None
    return replace(blob, engine=engine)


def serialize(blob: TensorRTBlob) -> bytes:
    """The bytes of `blob`, equal to those of torch_tensorrt's exporter when the engine is inline.

    Raises MalformedBlobError when `parse` would refuse them.
    """
    if blob.engine is None:
        return serialize_head(blob, 0)
    engine = memoryview(blob.engine).cast("B")
    return b"".join((serialize_head(blob, len(engine)), engine))


def serialize_head(blob: TensorRTBlob, engine_size: int) -> bytes:
    """All bytes that stand before an inline engine of `engine_size` bytes, or the whole of a blob that names one.

    For engines that are copied from file to file: `blob.engine` is not looked at. Raises MalformedBlobError.
    """
    import json

    described: dict[str, object] = {
        "io_bindings": [
            {"name": b.name, "dtype": b.dtype, "shape": list(b.shape), "is_input": b.is_input} for b in blob.io_bindings
        ],
        "aliased_io": [{"output": a.output, "input": a.input, "kind": a.kind} for a in blob.aliased_io],
        "hardware_compatible": blob.hardware_compatible,
        "device_id": blob.device_id,
        "serialized_metadata": blob.serialized_metadata,
        "target_platform": blob.target_platform,
    }
    if blob.engine_key is not None:
        described["engine_key"] = blob.engine_key
    # ASCII only, as the exporter writes it: its C++ reader takes other bytes as they come.
    metadata = json.dumps(described, separators=(",", ":")).encode("ascii")
    engine_offset = -(-(HEADER.size + len(metadata)) // ENGINE_ALIGNMENT) * ENGINE_ALIGNMENT
    magic = MAGIC_WITH_ALIASES if blob.aliased_io else MAGIC
    try:
        header = HEADER.pack(magic, HEADER.size, len(metadata), engine_offset, engine_size, _RESERVED)
    except struct.error as error:
        raise MalformedBlobError(0, "header", f"a size is larger than its field: {error}") from error
    layout = read_layout(header, engine_offset + engine_size)
    check_engine(layout, read_metadata(metadata, HEADER.size).engine_key)
    return (header + metadata).ljust(engine_offset, b"\0")


def read_layout(head: bytes, size: int) -> Layout:
    """Read the header from the first HEADER.size bytes of a blob of `size` bytes. Raises MalformedBlobError."""
    if size < HEADER.size or len(head) < HEADER.size:
        raise MalformedBlobError(0, "header", f"the blob has {size} bytes, and its header alone {HEADER.size}")
    magic, metadata_offset, metadata_size, engine_offset, engine_size, _ = HEADER.unpack(head[: HEADER.size])
    if magic not in (MAGIC, MAGIC_WITH_ALIASES):
        raise MalformedBlobError(0, "magic", f"unknown magic {magic!r}; TR01 and TR02 are known")
    if metadata_offset < HEADER.size:
        raise MalformedBlobError(4, "metadata_offset", f"metadata begins inside the header, at {metadata_offset:#x}")
    if engine_offset % ENGINE_ALIGNMENT != 0:
        raise MalformedBlobError(12, "engine_offset", f"{engine_offset:#x} is not 16-byte aligned")
    if metadata_offset + metadata_size > size:
        end = metadata_offset + metadata_size
        raise MalformedBlobError(8, "metadata_size", f"metadata ends past the blob, at {end:#x} of {size:#x} bytes")
    if engine_offset + engine_size > size:
        end = engine_offset + engine_size
        raise MalformedBlobError(16, "engine_size", f"engine ends past the blob, at {end:#x} of {size:#x} bytes")
    if metadata_offset + metadata_size > engine_offset:
        end = metadata_offset + metadata_size
        raise MalformedBlobError(12, "engine_offset", f"metadata overlaps the engine: it ends at {end:#x}")
    return Layout(metadata_offset, metadata_size, engine_offset, engine_size)


def check_engine(layout: Layout, engine_key: str | None) -> None:
    """Raise MalformedBlobError unless the engine is either in the blob or named."""
    named = engine_key is not None
    if named and layout.engine_size > 0:
        reason = f"the blob holds an engine of {layout.engine_size} bytes and names another, {engine_key}"
        raise MalformedBlobError(16, "engine_size", reason)
    if not named and layout.engine_size == 0:
        raise MalformedBlobError(16, "engine_size", "the blob holds no engine and names none")


def read_metadata(text: bytes, offset: int) -> TensorRTBlob:
    """All that the JSON `text`, which stands at `offset` of a blob, says of it. Raises MalformedBlobError.

    It is as strict as the delegate, and besides about the fields that the delegate does not look at.
    """
    return _MetadataReader(offset).read(text)


class _MetadataReader:
    """Reads one blob's metadata, and says where it is when it refuses something."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def read(self, text: bytes) -> TensorRTBlob:
        values = self._parse(text)
        if not isinstance(values.get("io_bindings"), list):
            self._refuse("io_bindings", "it is no list")
        bindings = tuple(self._binding(f"io_bindings[{i}]", entry) for i, entry in enumerate(values["io_bindings"]))
        seen: set[str] = set()
        for index, binding in enumerate(bindings):
            if binding.name in seen:
                self._refuse(f"io_bindings[{index}].name", f"binding {binding.name!r} is listed twice")
            seen.add(binding.name)
        aliases = values.get("aliased_io", [])
        if not isinstance(aliases, list):
            self._refuse("aliased_io", "it is no list")
        hardware_compatible = values.get("hardware_compatible", False)
        if not isinstance(hardware_compatible, bool):
            self._refuse("hardware_compatible", "it is neither true nor false")
        device_id = values.get("device_id", 0)
        if not _is_integer(device_id) or not 0 <= device_id <= _MAX_DEVICE_ID:
            self._refuse("device_id", "it is no device ordinal")
        return TensorRTBlob(
            io_bindings=bindings,
            aliased_io=tuple(self._alias(f"aliased_io[{i}]", entry) for i, entry in enumerate(aliases)),
            device_id=device_id,
            hardware_compatible=hardware_compatible,
            serialized_metadata=self._any_text("serialized_metadata", values),
            target_platform=self._any_text("target_platform", values),
            engine_key=self._name("engine_key", values["engine_key"]) if "engine_key" in values else None,
        )

    def _parse(self, text: bytes) -> _Object:
        import json

        try:
            decoded = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MalformedBlobError(self.offset + error.start, "metadata", "it is not JSON: not UTF-8") from error
        try:
            values = json.loads(
                decoded,
                object_pairs_hook=self._object,
                parse_float=_parse_float,
                parse_int=_parse_int,
                parse_constant=_refuse_constant,
            )
            if "\\u" in decoded:  # half a surrogate pair is no character, and no engine's name
                json.dumps(values, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            at = self.offset + len(decoded[: error.pos].encode())
            raise MalformedBlobError(at, "metadata", f"it is not JSON: {error.msg}") from error
        except RecursionError as error:
            raise MalformedBlobError(self.offset, "metadata", "it is not JSON that we read: nested too deep") from error
        except UnicodeEncodeError as error:
            raise MalformedBlobError(self.offset, "metadata", "it is not JSON: half a surrogate pair") from error
        except ValueError as error:  # a number that no reader holds
            raise MalformedBlobError(self.offset, "metadata", f"it is not JSON: {error}") from error
        if not isinstance(values, dict):
            self._refuse("metadata", "it is not a JSON object")
        return values

    def _object(self, pairs: list[tuple[str, Any]]) -> _Object:
        """The object of `pairs`. Which of two values of one key counts would be a guess."""
        made: _Object = {}
        for key, value in pairs:
            if key in made:
                self._refuse("metadata", f"it has the key {key} twice")
            made[key] = value
        return made

    def _binding(self, field: str, entry: object) -> Binding:
        if not isinstance(entry, dict):
            self._refuse(field, "it is no object")
        name = self._name(f"{field}.name", entry.get("name"))
        if not isinstance(entry.get("is_input"), bool):
            self._refuse(f"{field}.is_input", f"binding {name!r} does not say is_input")
        shape = entry.get("shape", [])
        if not isinstance(shape, list) or not all(_is_integer(size) for size in shape):
            self._refuse(f"{field}.shape", "it is no list of integers")
        return Binding(name, entry["is_input"], self._any_text("dtype", entry, field), tuple(shape))

    def _alias(self, field: str, entry: object) -> Alias:
        if not isinstance(entry, dict):
            self._refuse(field, "the alias is no object")
        kind = entry.get("kind", KV_CACHE_UPDATE)
        if kind not in (KV_CACHE_UPDATE, USER):
            self._refuse(f"{field}.kind", f"an alias of an unknown kind, {kind!r}")
        output, input_ = (self._name(f"{field}.{key}", entry.get(key)) for key in ("output", "input"))
        return Alias(output, input_, kind)

    def _name(self, field: str, value: object) -> str:
        """A name that something is found by. One with a NUL could never equal an engine's."""
        if not isinstance(value, str) or not value or "\0" in value:
            self._refuse(field, "it is no name (a text of one character or more)")
        return value

    def _any_text(self, key: str, values: Mapping[str, Any], field: str = "") -> str:
        value = values.get(key, "")
        if not isinstance(value, str):
            self._refuse(f"{field}.{key}" if field else key, "it is no text")
        return value

    def _refuse(self, field: str, reason: str) -> NoReturn:
        raise MalformedBlobError(self.offset, field, reason)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _parse_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return value


def _parse_int(text: str) -> int | float:
    """An integer, or -0.0: JSON has a negative zero, which is no ordinal and no size."""
    if len(text) > 300:  # the largest number that a double holds has 309 digits
        _parse_float(text)
    return -0.0 if text == "-0" else int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
