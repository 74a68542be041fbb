"""The blob codec: the vectors that the C++ reader is held to as well, and what only Python does. Writes no program."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.errors import MalformedBlobError
from linkcheck.executorch.blob import Alias, Binding, TensorRTBlob, parse, serialize, serialize_head

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parents[1] / "blobs" / "vectors.txt"


def read_vectors() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for block in VECTORS.read_text(encoding="utf-8").split("\n\n")[1:]:
        heading, *lines = block.strip("\n").split("\n")
        yield heading.strip("[]"), [tuple(line.split(" = ", 1)) for line in lines]  # type: ignore[misc]


@pytest.mark.parametrize("values", [pytest.param(values, id=name) for name, values in read_vectors()])
def test_the_vectors_that_the_delegate_is_held_to(values: list[tuple[str, str]]) -> None:
    data = bytes.fromhex(dict(values).get("bytes", ""))
    if "refused" in dict(values):
        with pytest.raises(MalformedBlobError) as refusal:
            parse(data)
        assert dict(values)["refused"] in str(refusal.value)
        assert refusal.value.field
        assert 0 <= refusal.value.offset <= max(len(data), 16)
        return
    blob = parse(data)
    described = [f"binding = {'input' if b.is_input else 'output'} {b.name}" for b in blob.io_bindings]
    described += [f"alias = {a.output} {a.input} {a.kind}" for a in blob.aliased_io]
    described += ["hardware_compatible = true"] if blob.hardware_compatible else []
    described += [f"device_id = {blob.device_id}"] if blob.device_id else []
    described += [f"engine = {bytes(blob.engine).hex()}"] if blob.engine is not None else []
    described += [f"engine_key = {blob.engine_key}"] if blob.engine_key is not None else []
    assert described == [f"{key} = {value}" for key, value in values if key != "bytes"]


def test_the_vectors_are_those_of_their_script() -> None:
    script = VECTORS.with_name("make_vectors.py")
    made = subprocess.run([sys.executable, str(script)], capture_output=True, check=True).stdout.decode("utf-8")
    assert made == VECTORS.read_text(encoding="utf-8")


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
BLOBS = st.builds(
    TensorRTBlob,
    io_bindings=st.lists(
        st.builds(Binding, NAMES, st.booleans(), st.text("abc"), st.lists(st.integers(-1, 9)).map(tuple)),
        max_size=4,
        unique_by=lambda binding: binding.name,
    ).map(tuple),
    aliased_io=st.lists(st.builds(Alias, NAMES, NAMES, st.sampled_from(["kv_cache_update", "user"])), max_size=2).map(
        tuple
    ),
    device_id=st.integers(0, 2**31 - 1),
    hardware_compatible=st.booleans(),
    serialized_metadata=st.text("aé", max_size=9),
    target_platform=st.text("b😀", max_size=9),
    engine=st.binary(min_size=1, max_size=40),
)


@given(BLOBS, NAMES)
def test_what_is_written_is_read(blob: TensorRTBlob, key: str) -> None:
    assert parse(serialize(blob)) == blob
    named = replace(blob, engine=None, engine_key=key)
    assert parse(serialize(named)) == named


@given(st.binary(max_size=200), st.integers(0, 200), BLOBS)
def test_damaged_blobs_are_read_or_refused(noise: bytes, at: int, blob: TensorRTBlob) -> None:
    data = serialize(blob)
    for damaged in (noise, data[:at], data[:at] + noise + data[at + len(noise) :]):
        try:
            read = parse(damaged)
        except MalformedBlobError:
            continue
        assert read.engine is None or len(read.engine) <= len(damaged)


def test_the_engine_is_a_view_and_aligned() -> None:
    data = serialize(TensorRTBlob(engine=b"ENGINE"))
    engine = parse(data).engine
    assert isinstance(engine, memoryview)
    assert engine.obj is data
    assert (len(data) - len(engine)) % 16 == 0


def test_an_engine_may_be_appended_by_others() -> None:
    blob = TensorRTBlob((Binding("x", True),))
    assert serialize_head(blob, 6) + b"ENGINE" == serialize(replace(blob, engine=b"ENGINE"))


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (TensorRTBlob(), "holds no engine and names none"),
        (TensorRTBlob(engine=b""), "holds no engine and names none"),
        (TensorRTBlob(engine=b"E", engine_key="k"), "names another"),
        (TensorRTBlob((Binding("x", True), Binding("x", False)), engine=b"E"), "listed twice"),
        (TensorRTBlob((Binding("", True),), engine=b"E"), "no name"),
        (TensorRTBlob((Binding("\ud800", True),), engine=b"E"), "surrogate"),
        (TensorRTBlob(aliased_io=(Alias("y", "x", "other"),), engine=b"E"), "unknown kind"),
        (TensorRTBlob(device_id=-1, engine=b"E"), "device ordinal"),
    ],
)
def test_what_could_not_be_read_is_not_written(blob: TensorRTBlob, reason: str) -> None:
    with pytest.raises(MalformedBlobError, match=reason):
        serialize(blob)


def test_a_field_that_the_delegate_does_not_look_at_is_checked_too() -> None:
    for text in (
        b'"serialized_metadata":3',
        b'"target_platform":[]',
        b'"io_bindings":[{"name":"a","is_input":true,"shape":[true]}]',
    ):
        bindings = b"" if b"io_bindings" in text else b',"io_bindings":[]'
        head = serialize_head(TensorRTBlob(), 6)
        metadata = b"{" + text + bindings + b"}"
        data = head[:8] + len(metadata).to_bytes(4, "little") + head[12:32] + metadata.ljust(len(head) - 32, b" ")
        with pytest.raises(MalformedBlobError, match="it is no "):
            parse(data + b"ENGINE")


def test_metadata_nested_too_deep_is_refused() -> None:
    deep = b'{"io_bindings":[],"a":' + 200_000 * b"["
    head = b"TR01" + b"".join(n.to_bytes(4, "little") for n in (32, len(deep), 32 + -(-len(deep) // 16) * 16))
    with pytest.raises(MalformedBlobError, match="JSON"):
        parse((head + (6).to_bytes(8, "little") + bytes(8) + deep).ljust(32 + -(-len(deep) // 16) * 16) + b"ENGINE")


# ---------------------------------------------------------------- the exporter's own codec


@pytest.fixture(scope="module")
def upstream(torch_tensorrt_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """torch_tensorrt's serializer, which imports nothing but the standard library."""
    name = "torch_tensorrt/executorch/serialization.py"
    with zipfile.ZipFile(torch_tensorrt_wheel) as wheel:
        path = wheel.extract(name, tmp_path_factory.mktemp("upstream"))
    spec = importlib.util.spec_from_file_location("upstream_serialization", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.network
@given(blob=BLOBS)
def test_the_exporters_codec_and_ours_read_and_write_the_same(upstream: Any, blob: TensorRTBlob) -> None:
    outputs = {alias.output: alias for alias in blob.aliased_io}  # upstream keeps one alias an output
    blob = replace(blob, aliased_io=tuple(outputs.values()))
    metadata = upstream.TensorRTBlobMetadata(
        io_bindings=[upstream.TensorRTIOBinding(b.name, b.dtype, list(b.shape), b.is_input) for b in blob.io_bindings],
        aliased_io={alias.output: (alias.input, alias.kind) for alias in blob.aliased_io},
        hardware_compatible=blob.hardware_compatible,
        device_id=blob.device_id,
        serialized_metadata=blob.serialized_metadata,
        target_platform=blob.target_platform,
    )
    theirs = upstream.serialize_engine(bytes(blob.engine or b""), metadata)
    assert serialize(blob) == theirs
    assert parse(theirs) == blob
    assert upstream.deserialize_engine(serialize(blob)) == (blob.engine, metadata)


@pytest.mark.network
def test_the_exporters_codec_sees_no_engine_where_ours_names_one(upstream: Any) -> None:
    engine, metadata = upstream.deserialize_engine(serialize(TensorRTBlob((Binding("x", True),), engine_key="k")))
    assert engine == b""
    assert [binding.name for binding in metadata.io_bindings] == ["x"]
