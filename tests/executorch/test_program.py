"""What is read of .pte and .ptd files; the judges are ExecuTorch's flatc and schemas, and its own Python reader."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from linkcheck.executorch.blob import Alias
from linkcheck.executorch.facts import Argument, Place, ProgramKind, ProgramSet
from linkcheck.executorch.plan import describe_plan
from linkcheck.executorch.survey import survey_programs
from tests.executorch.samples import ENGINE, KEY, OTHER_ENGINE, good_program
from tests.executorch.write_program import Delegate, Program, make_blob

WHEEL = "executorch==1.5.1"


def read(*paths: Path, hashed: bool = True) -> ProgramSet:
    survey = survey_programs([str(path) for path in paths], hashed=hashed)
    assert survey.errors == ()
    return survey.programs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.pte"
    path.write_bytes(good_program().to_bytes())
    return path


def test_methods_delegates_and_named_data(path: Path) -> None:
    (program,) = read(path).files
    assert (program.kind, program.size) == (ProgramKind.PROGRAM, path.stat().st_size)
    assert program.methods == ("forward", "decode", "embed")
    assert [(d.name, d.backend) for d in program.delegates] == [
        ("forward.delegates[0]", "TensorRTBackend"),
        ("forward.delegates[1]", "XnnpackBackend"),
        ("decode.delegates[0]", "TensorRTBackend"),
        ("embed.delegates[0]", "TensorRTBackend"),
    ]
    assert [entry.key for entry in program.named_data] == [KEY, "weight", "tied"]
    assert program.named_data[1].place == program.named_data[2].place


def test_every_place_holds_what_it_should(path: Path) -> None:
    content = path.read_bytes()

    def cut(place: Place) -> bytes:
        return content[place.offset : place.offset + place.size]

    programs = read(path)
    (program,) = programs.files
    assert cut(program.delegates[1].place) == b"xnnpack"
    assert cut(program.delegates[0].place).startswith(b"TR01")
    assert cut(program.named_data[1].place) == b"12345678"
    assert [cut(engine.place) for engine in programs.engines] == [ENGINE, OTHER_ENGINE]
    assert all(engine.digest == hashlib.sha256(cut(engine.place)).hexdigest() for engine in programs.engines)


def test_engines_and_who_uses_them(path: Path) -> None:
    shared, inline = read(path).engines
    assert shared.keys == (KEY,)
    assert [user.name for user in shared.users] == ["forward.delegates[0]", "decode.delegates[0]"]
    assert shared.plan == "TensorRT 10.16.0.31 plan"
    assert inline.keys == ()
    assert [user.name for user in inline.users] == ["embed.delegates[0]"]
    assert inline.plan == "plan of the simulated TensorRT"


def test_the_tensors_of_a_delegate_come_from_the_method_that_calls_it(path: Path) -> None:
    (program,) = read(path).files
    forward, xnnpack, decode, _ = program.delegates
    assert forward.arguments == (
        Argument("float16", (1, 4), dynamic=True),
        Argument("float32", (8,), device="cuda:0"),
        Argument("float32", (8,), device="cuda:0"),
    )
    assert decode.arguments == (Argument("float32", (2, 3)), Argument("float32", (2, 3)))
    assert xnnpack.arguments == ()
    assert forward.blob is not None
    assert forward.blob.metadata.aliased_io == (Alias("y", "cache", "user"),)


def test_without_a_call_the_tensors_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "x.pte").write_bytes(Program({"forward": [Delegate(make_blob(ENGINE), arguments=None)]}).to_bytes())
    assert read(tmp_path / "x.pte").files[0].delegates[0].arguments == ()


def test_a_program_without_segments_needs_no_header(tmp_path: Path) -> None:
    content = Program({"forward": [Delegate(make_blob(ENGINE), in_segment=False)]}).to_bytes()
    assert content[8:12] != b"eh00"
    (tmp_path / "x.pte").write_bytes(content)
    (engine,) = read(tmp_path / "x.pte").engines
    assert content[engine.place.offset :].startswith(ENGINE)
    assert engine.place.alignment >= 16


def test_a_short_header_of_an_older_exporter_is_read(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[12:16] = (24).to_bytes(4, "little")
    content[32:40] = b"\xff" * 8  # what was padding then
    path.write_bytes(content)
    assert len(read(path).engines) == 2


def test_data_files_serve_every_program(tmp_path: Path) -> None:
    blob = make_blob(key="tensorrt_engine_1")
    for name in ("a.pte", "b.pte"):
        (tmp_path / name).write_bytes(Program({"forward": [Delegate(blob)]}).to_bytes())
    (tmp_path / "engines.ptd").write_bytes(Program(named={"tensorrt_engine_1": ENGINE}, is_data=True).to_bytes())
    programs = read(*(tmp_path / name for name in ("a.pte", "engines.ptd", "b.pte")))
    assert [file.kind for file in programs.files] == [ProgramKind.PROGRAM, ProgramKind.DATA, ProgramKind.PROGRAM]
    (engine,) = programs.engines
    assert engine.place.path == str(tmp_path / "engines.ptd")
    assert [Path(user.path).name for user in engine.users] == ["a.pte", "b.pte"]


def test_one_file_under_two_names_is_one_file(path: Path) -> None:
    (path.parent / "link.pte").symlink_to(path)
    assert len(read(path, path.parent / "link.pte", path).files) == 1


def test_engines_are_told_apart_without_being_hashed(tmp_path: Path) -> None:
    large = bytes(100_000)
    named = {"tensorrt_engine_1": large, "tensorrt_engine_2": large[:-1] + b"x", "tensorrt_engine_3": bytes(100_000)}
    (tmp_path / "x.ptd").write_bytes(Program(named=dict(named), is_data=True).to_bytes())
    engines = read(tmp_path / "x.ptd", hashed=False).engines
    assert [engine.digest for engine in engines] == [None, None, None]
    assert engines[0].sample == engines[2].sample != engines[1].sample


def test_what_is_no_plan_is_not_called_one() -> None:
    assert describe_plan(b"") == describe_plan(b"ONNX") == ""
    assert describe_plan(b"ftrt") == describe_plan(b"ftrt\1\0\0\0" + bytes(30)) != ""


# ---------------------------------------------------------------- ExecuTorch's own readers


@pytest.fixture(scope="session")
def executorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executorch wheel, unpacked."""
    directory = tmp_path_factory.mktemp("executorch")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["--retries=1", "--timeout=20", "--only-binary=:all:", "--python-version=3.11", "--abi=cp311"]
    command += ["--implementation=cp", "--platform=manylinux_2_28_x86_64", "-d", str(directory), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"cannot get {WHEEL} from the package index: {done.stderr.strip().splitlines()[-1:]}")
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    flatc = directory / "executorch" / "data" / "bin" / "flatc"
    flatc.chmod(0o755)
    return directory


def decompile(executorch: Path, schema: str, path: Path) -> Any:
    """The file as JSON, by flatc and ExecuTorch's schema."""
    package = executorch / "executorch"
    flatc = [str(package / "data" / "bin" / "flatc"), "--json", "--strict-json", "--defaults-json", "--raw-binary"]
    subprocess.run([*flatc, "-o", str(path.parent), str(package / schema), "--", str(path)], check=True)
    return json.loads(path.with_suffix(".json").read_text())


@pytest.mark.network
def test_flatc_reads_the_same_program(executorch: Path, path: Path) -> None:
    theirs = decompile(executorch, "schema/program.fbs", path)
    (program,) = read(path).files
    base = int.from_bytes(path.read_bytes()[24:32], "little")
    places = [Place(str(path), base + segment["offset"], segment["size"]) for segment in theirs["segments"]]
    assert [plan["name"] for plan in theirs["execution_plan"]] == list(program.methods)
    assert {e["key"]: places[e["segment_index"]] for e in theirs["named_data"]} == {
        entry.key: entry.place for entry in program.named_data
    }
    delegates = [(plan, index) for plan in theirs["execution_plan"] for index in range(len(plan["delegates"]))]
    assert len(delegates) == len(program.delegates)
    for (plan, index), ours in zip(delegates, program.delegates, strict=True):
        delegate = plan["delegates"][index]
        assert (delegate["id"], index) == (ours.backend, ours.index)
        if delegate["processed"]["location"] == "SEGMENT":
            assert places[delegate["processed"]["index"]] == ours.place
        else:
            data = theirs["backend_delegate_data"][delegate["processed"]["index"]]["data"]
            assert path.read_bytes()[ours.place.offset : ours.place.offset + ours.place.size] == bytes(data)
        if ours.is_tensorrt:
            (call,) = [i["instr_args"] for i in plan["chains"][0]["instructions"] if _calls(i, index)]
            tensors = [plan["values"][value]["val"] for value in call["args"]]
            assert [tuple(tensor["sizes"]) for tensor in tensors] == [a.shape for a in ours.arguments if a]


def _calls(instruction: Any, index: int) -> bool:
    arguments = instruction["instr_args"]
    return bool(instruction["instr_args_type"] == "DelegateCall" and arguments["delegate_index"] == index)


@pytest.mark.network
def test_flatc_reads_the_same_data_file(executorch: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.ptd"
    path.write_bytes(Program(named={"a": b"123", "tensorrt_engine_1": ENGINE, "b": "a"}, is_data=True).to_bytes())
    theirs = decompile(executorch, "extension/flat_tensor/serialize/flat_tensor.fbs", path)
    (data,) = read(path).files
    base = int.from_bytes(path.read_bytes()[32:40], "little")
    assert [(e.key, e.place.offset - base, e.place.size) for e in data.named_data] == [
        (e["key"], *(theirs["segments"][e["segment_index"]][field] for field in ("offset", "size")))
        for e in theirs["named_data"]
    ]


#: Run in a process of its own: importing ExecuTorch's package imports torch, which takes seconds.
_THEIRS = """
import json, sys
from executorch.exir._serialize._program import deserialize_pte_binary
file = deserialize_pte_binary(open(sys.argv[1], "rb").read())
data = file.named_data
print(json.dumps({
    "delegates": [
        [plan.name, delegate.id, bytes(file.program.backend_delegate_data[delegate.processed.index].data).hex()]
        for plan in file.program.execution_plan
        for delegate in plan.delegates
    ],
    "named_data": {key: bytes(data.buffers[entry.buffer_index]).hex() for key, entry in data.pte_data.items()},
}))
"""


@pytest.mark.network
@pytest.mark.slow
def test_executorchs_python_reader_reads_the_same_program(executorch: Path, path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(executorch), os.environ.get("PYTHONPATH", "")])}
    probe = [sys.executable, "-c", "import executorch.exir._serialize._program"]
    done = subprocess.run(probe, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"ExecuTorch's Python package cannot be imported: {done.stderr.strip().splitlines()[-1]}")
    command = [sys.executable, "-c", _THEIRS, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    content = path.read_bytes()
    (program,) = read(path).files

    def cut(place: Place) -> str:
        return content[place.offset : place.offset + place.size].hex()

    assert theirs["delegates"] == [[d.method, d.backend, cut(d.place)] for d in program.delegates]
    assert theirs["named_data"] == {entry.key: cut(entry.place) for entry in program.named_data}
