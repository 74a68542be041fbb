"""`linkcheck pte build`: options without any package, and real builds with TensorRT for RTX, which needs no GPU.

Real builds need the extra `tensorrt-rtx`; each is a process of its own: importing torch takes seconds, and it warns.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from linkcheck.cli.run import COMMANDS, run
from linkcheck.errors import UsageProblemError
from linkcheck.executorch.engine_builder import BUILDERS
from linkcheck.executorch.shapes import ShapeRange, assign_shapes, parse_shapes
from linkcheck.executorch.survey import survey_programs

ROOT = Path(__file__).resolve().parents[2]
MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.linear = torch.nn.Linear(4, 8)

    def forward(self, x, y):
        return torch.relu(self.linear(x)) + 1, y * 2

class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count

def make():
    return Model(), (torch.ones(2, 4), torch.ones(3))

def methods():
    return {"prefill": make(), "decode": make()}

def alone():
    return Model(), (torch.ones(1, 4), torch.ones(3))

def counter():
    return Counter(), torch.ones(2)

def wrong():
    return Model()

def failing():
    return [][0]
"""
ONNX = """
import onnx
from onnx import TensorProto, helper

def value(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

def save(path, output):
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Relu", ["s"], ["r"])]
    graph = helper.make_graph(nodes, "g", [value("a", "batch", 4), value("b", "batch", 4)], [value("r", output, 4)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

save("model.onnx", "batch")
save("strange.onnx", "rows")
"""

# ---------------------------------------------------------------- without any package


def test_shapes_are_read_for_one_method_or_another() -> None:
    shapes = parse_shapes(["x=1x4:2x4:8x4", "decode:y=3"])
    assert shapes == {
        "": {"x": ShapeRange((1, 4), (2, 4), (8, 4))},
        "decode": {"y": ShapeRange((3,), (3,), (3,))},
    }
    assert assign_shapes(shapes, ["decode"])["decode"].keys() == {"x", "y"}


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("x", "write [METHOD:]INPUT=MIN:OPT:MAX"),
        ("=1", "write [METHOD:]INPUT=MIN:OPT:MAX"),
        ("x=1:2", "write [METHOD:]INPUT=MIN:OPT:MAX"),
        ("x=1x0", "'1x0' is no shape"),
        ("x=1:a:3", "'a' is no shape"),
        ("x=1:2x2:3", "differ in their number of dimensions"),
        ("x=1:3:2", "above"),
    ],
)
def test_what_is_no_shape_is_refused(option: str, says: str) -> None:
    with pytest.raises(UsageProblemError, match=re.escape(says)):
        parse_shapes([option])


def test_a_shape_of_no_method_or_of_any_is_refused() -> None:
    with pytest.raises(UsageProblemError, match="write METHOD: before it"):
        assign_shapes(parse_shapes(["x=1"]), ["prefill", "decode"])
    with pytest.raises(UsageProblemError, match="no such method"):
        assign_shapes(parse_shapes(["other:x=1"]), ["forward"])


def test_the_command_offers_the_builders_there_are() -> None:
    from linkcheck.cli.pte_build import command

    (option,) = (one for one in command.params if one.name == "builder")
    assert tuple(option.type.choices) == tuple(BUILDERS)  # type: ignore[attr-defined]
    assert "pte build" in COMMANDS


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_missing_builder_is_one_line_with_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    monkeypatch.setitem(sys.modules, BUILDERS[builder], None)  # Python's way to say that there is no such module
    assert run(["pte", "build", "model.onnx", "-o", "model.pte", "--builder", builder]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"linkcheck: error: {BUILDERS[builder]} cannot be imported")
    assert line.endswith(f"pip install 'linkcheck-elf[{builder}]'")


def test_a_program_called_build_is_still_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["pte", "./build"]) == 2
    assert "./build: cannot be read" in capsys.readouterr().out


# ---------------------------------------------------------------- with TensorRT for RTX


@pytest.fixture(scope="session")
def _builder() -> None:
    """Skips without TensorRT for RTX, ExecuTorch, torch and what torch's exporter to ONNX needs."""
    code = "import onnx, onnxscript, linkcheck.executorch.backend, tensorrt_rtx as t\n"
    code += "assert t.Builder(t.Logger()) is not None"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the extra tensorrt-rtx is not installed: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def build(folder: Path, *arguments: str, output: str = "model.pte") -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom linkcheck.cli import main\nmain()"
    command = [sys.executable, "-W", "ignore", "-c", code, "pte", "build", *arguments, "-o", output]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".linkcheck")] == []
    assert "Traceback" not in done.stderr
    return done


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The line that says what is wrong; others on standard error are torch's."""
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("linkcheck: error: "))
    return line.removeprefix("linkcheck: error: ")


needs_builder = [pytest.mark.slow, pytest.mark.usefixtures("_builder")]


class TestWithTensorRT:
    pytestmark = needs_builder

    def test_methods_with_shapes_of_their_own(self, folder: Path) -> None:
        shapes = ("--shape", "prefill:x=1x4:2x4:64x4", "--shape", "decode:x=2x4")
        done = build(folder, "model.py:methods", *shapes, "--weight-streaming-budget", "1000000", "--device", "1")
        assert done.returncode == 0, done.stderr
        assert "prefill: exporting" in done.stderr
        assert "decode: Building engine" in done.stderr
        survey = survey_programs([str(folder / "model.pte")])
        (program,) = survey.programs.files
        assert survey.errors == ()
        inputs = {}
        for delegate in program.delegates:
            assert delegate.blob is not None
            assert delegate.blob.metadata.device_id == 1
            bindings = delegate.blob.metadata.io_bindings
            assert [b.name for b in bindings if not b.is_input] == ["output_0", "output_1"]
            inputs[delegate.method] = {
                binding.name: (argument.shape, argument.dynamic)
                for binding, argument in zip(bindings, delegate.arguments, strict=True)
                if binding.is_input and argument is not None
            }
        assert inputs == {
            "prefill": {"x": ((64, 4), True), "y": ((3,), False)},
            "decode": {"x": ((2, 4), False), "y": ((3,), False)},
        }
        # The engines were built for different shapes, so they are two; the budget is a compile spec of both.
        assert len(survey.programs.engines) == 2
        assert {engine.plan for engine in survey.programs.engines} == {"TensorRT for RTX plan"}
        assert (folder / "model.pte").read_bytes().count(b"weight_streaming_budget") == 2

    def test_an_onnx_file_beside_a_module(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-c", ONNX], cwd=folder, check=True)
        shapes = ("--shape", "raw:a=1x4:1x4:8x4", "--shape", "raw:b=1x4:1x4:8x4")
        done = build(folder, "model.py:make", "raw=model.onnx", *shapes)
        assert done.returncode == 0, done.stderr
        (program,) = survey_programs([str(folder / "model.pte")]).programs.files
        (raw,) = (delegate for delegate in program.delegates if delegate.method == "raw")
        assert raw.blob is not None
        assert [binding.name for binding in raw.blob.metadata.io_bindings] == ["a", "b", "r"]
        assert [argument and argument.shape for argument in raw.arguments] == [(8, 4)] * 3

    def test_what_cannot_be_built_is_one_line(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-c", ONNX], cwd=folder, check=True)
        (folder / "broken.onnx").write_bytes(b"no model")
        both = ("--shape", "a=1x4:1x4:8x4", "--shape", "b=1x4:1x4:8x4")
        for arguments, says in (
            (("model.onnx",), "model.onnx: the input a has a dynamic shape: --shape a=MIN:OPT:MAX"),
            (("model.onnx", "--shape", "q=1"), "model.onnx: --shape names the input q, and there are a, b"),
            (("model.onnx", "--shape", "a=1x5"), "model.onnx: --shape a: the input is ?x4, where ? is dynamic"),
            (("strange.onnx", *both), "strange.onnx: dimension 0 of the output r is rows, and no input's dimension is"),
            (("broken.onnx",), "broken.onnx: the ONNX parser refuses it: "),
            (("missing.onnx",), "missing.onnx: there is no such file"),
            (("model.onnx", "model.onnx"), "model.onnx: the method forward is model.onnx already"),
            (("model.txt",), "model.txt: neither FILE.onnx nor FILE.py:FUNCTION"),
            (("model.py:wrong",), "model.py:wrong: forward is no pair"),
            (("model.py:failing",), "model.py:failing: IndexError: list index out of range"),
            (("model.py:missing",), "model.py:missing: AttributeError: "),
            (("model.py:counter",), "model.py:counter: forward changes count, and an engine keeps nothing"),
            (("model.py:make", "--shape", "x=4x4:5x4:8x4"), "model.py:make: --shape x: the example's dimension 0 is 2"),
            (("model.py:alone", "--shape", "x=1x4:1x4:8x4"), "model.py:alone: forward: dimension 0 of x stays 1: "),
        ):
            assert refusal(build(folder, *arguments)).startswith(says)
        assert not (folder / "model.pte").exists()

    def test_an_output_that_cannot_be_written_is_one_line(self, folder: Path) -> None:
        assert refusal(build(folder, "model.py:make", output="no/model.pte")).startswith(
            "no/model.pte: cannot be written: "
        )
