"""Programs exported by ExecuTorch itself with our backend, as `linkcheck pte` reads them. Runs none.

Needs ExecuTorch and torch (extra `executorch`). Each export is a process of its own: importing them takes seconds, and
they warn.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from linkcheck.executorch.survey import survey_programs
from tests.executorch.samples import ENGINE, KEY

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.executorch.facts import ProgramSet

pytestmark = pytest.mark.slow

_PROGRAM = """
import torch
from executorch.exir import to_edge_transform_and_lower
from linkcheck.executorch import TensorRTPartitioner
from linkcheck.executorch.blob import Alias

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, y):
        z = y * self.weight
        return x + z, z - 1

def export(path, partitioners):
    example = (torch.ones(2, 4), torch.ones(1, 4))
    programs = {name: torch.export.export(Model().eval(), example) for name in partitioners}
    lowered = to_edge_transform_and_lower(programs, partitioner={n: [p] for n, p in partitioners.items()})
    with open(path, "wb") as file:
        lowered.to_executorch().write_to_file(file)
"""


@pytest.fixture(scope="session")
def _executorch() -> None:
    """Skips without ExecuTorch and torch."""
    probe = [sys.executable, "-c", "import linkcheck.executorch.backend"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"ExecuTorch and torch cannot be imported: {done.stderr.strip().splitlines()[-1]}")


def export(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` behind _PROGRAM, in a folder that has the engine as engine.plan."""
    (folder / "engine.plan").write_bytes(ENGINE)
    (folder / "tmp").mkdir()
    program = f"import tempfile; tempfile.tempdir = 'tmp'\n{_PROGRAM}\n{textwrap.dedent(code)}"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def exported(folder: Path, code: str) -> ProgramSet:
    done = export(folder, code)
    assert done.returncode == 0, done.stderr
    assert list((folder / "tmp").glob("*.plan")) == [], "copies of engines are left behind"
    survey = survey_programs([str(folder / "model.pte")])
    assert survey.errors == ()
    return survey.programs


@pytest.mark.usefixtures("_executorch")
def test_methods_with_one_engine_share_it(tmp_path: Path) -> None:
    programs = exported(
        tmp_path,
        """
        names = {"input_names": ["a", "b"], "output_names": ["c", "d"], "device_id": 1}
        export("model.pte", {
            "prefill": TensorRTPartitioner("engine.plan", **names),
            "decode": TensorRTPartitioner(open("engine.plan", "rb").read(), **names),
            "build": TensorRTPartitioner(lambda program: memoryview(open("engine.plan", "rb").read()), **names),
        })
        """,
    )
    (engine,) = programs.engines
    assert engine.keys == (KEY,)
    assert engine.digest == KEY.removeprefix("tensorrt_engine_")
    assert engine.is_aligned
    assert sorted(user.method for user in engine.users) == ["build", "decode", "prefill"]
    delegate = engine.users[0]
    assert delegate.blob is not None
    assert delegate.blob.metadata.device_id == 1
    # Names in the method's order belong to tensors of different shapes: whichever comes first, they must go together.
    shapes = {b.name: a.shape for b, a in zip(delegate.blob.metadata.io_bindings, delegate.arguments, strict=True) if a}
    assert shapes == {"a": (2, 4), "b": (1, 4), "c": (2, 4), "d": (1, 4)}
    assert [binding.is_input for binding in delegate.blob.metadata.io_bindings] == [True, True, False, False]


@pytest.mark.usefixtures("_executorch")
def test_a_part_of_a_method_may_be_an_engines(tmp_path: Path) -> None:
    programs = exported(
        tmp_path,
        """
        names = {"input_names": {"y": "in"}, "output_names": {"aten_mul_tensor": "out"}}
        part = TensorRTPartitioner("engine.plan", covers=lambda node: "mul" in str(node.target), **names)
        export("model.pte", {"forward": part})
        """,
    )
    (delegate,) = programs.files[0].delegates
    assert len(delegate.arguments) == 2  # y in, the product out: the weight is inside of the engine
    assert delegate.blob is not None
    bindings = [(binding.name, binding.is_input) for binding in delegate.blob.metadata.io_bindings]
    assert bindings == [("in", True), ("out", False)]


@pytest.mark.usefixtures("_executorch")
def test_names_that_do_not_fit_the_subgraph_are_refused(tmp_path: Path) -> None:
    done = export(tmp_path, 'export("model.pte", {"forward": TensorRTPartitioner("engine.plan", input_names=["a"])})')
    assert done.returncode == 1
    assert "the method has 2 inputs (x, y), and 1 are named" in done.stderr.strip().splitlines()[-1]
