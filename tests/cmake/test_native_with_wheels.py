"""native/ with what others built: ExecuTorch's own caller-stream library under it, its stock Python runtime over it."""

from __future__ import annotations

import importlib.util
import json
import struct
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cmake.project import ROOT, Run, cmake, run_command
from tests.cmake.wheels import fetch_member, fetch_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.cmake, pytest.mark.compile, pytest.mark.network, pytest.mark.slow]

#: Of both inputs of export_forms.py, exact as float32 and in the four decimals that the runner prints.
INPUTS = ((1.5, 2.0, 3.0, 4.0, 5.0, -6.25), (10.0, 20.0, 30.0, 40.0, 0.5, 60.0))
EXECUTORCH = "executorch==1.5.1"
#: The torch that this executorch was built for, without a GPU's libraries.
TORCH = "torch==2.13.0+cpu"
#: What torch and executorch.runtime import besides each other.
IMPORTED = (
    *("filelock", "flatbuffers", "fsspec", "jinja2", "networkx", "numpy"),
    *("ruamel.yaml", "setuptools", "sympy", "tabulate", "typing-extensions"),
)
#: What the native build includes from the system, and the Debian package that has it.
HEADERS = {"/usr/include/nlohmann/json.hpp": "nlohmann-json3-dev", "/usr/include/gtest/gtest.h": "libgtest-dev"}
TARGETS = ("executorch_runner", "executorch_trt_backend", "linkcheck_test_program")
EIGHT_TWOS = "  first 8 values:" + " 2.0000" * 8


class Native:
    """A build of native/ on the simulated GPU, of the delegate, the runner and a model for both."""

    def __init__(self, folder: Path, executorch: Path, linkcheck: Path, *options: str) -> None:
        self.folder = folder
        configure = (cmake(), "-S", ROOT / "native", "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={executorch}")
        given = (f"-DLINKCHECK_EXECUTABLE={linkcheck}", "-DLINKCHECK_GPUSIM=ON", "-DLINKCHECK_NATIVE_TESTS=ON")
        self.configured = run_command(*configure, *given, *options).must_succeed()
        run_command(cmake(), "--build", folder, "--target", *TARGETS).must_succeed()

    @property
    def runner(self) -> Path:
        return self.folder / "runner" / "executorch_runner"

    @property
    def backend(self) -> Path:
        return self.folder / "delegate" / "libexecutorch_trt_backend.so"

    @property
    def program(self) -> Path:
        return self.folder / "tests" / "model.pte"

    def run(self, *flags: str, **environment: str) -> Run:
        return run_command(self.runner, f"--model_path={self.program}", *flags, environment=environment)


@pytest.fixture(scope="module")
def executorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed executorch package, else the wheel's, unpacked: CMake's package, headers, libraries, flatc."""
    for header, package in HEADERS.items():
        if not Path(header).exists():
            pytest.skip(f"the native build needs the Debian package {package}")
    spec = importlib.util.find_spec("executorch")
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0])
    folder = tmp_path_factory.mktemp("executorch")
    with zipfile.ZipFile(fetch_wheel(EXECUTORCH, folder)) as wheel:
        wheel.extractall(folder)
    (folder / "executorch" / "data" / "bin" / "flatc").chmod(0o755)
    return folder / "executorch"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    member = "torch_tensorrt_executorch_runtime/libextension_cuda.so"
    return fetch_member("torch-tensorrt-executorch-runtime==0.1.0", member, tmp_path_factory.mktemp("theirs"))


@pytest.fixture(scope="module")
def native(
    tmp_path_factory: pytest.TempPathFactory, executorch: Path, theirs: Path, cudart: Path, linkcheck: Path
) -> Native:
    given = f"-DEXECUTORCH_EXTENSION_CUDA_LIBRARY={theirs}"
    search = [f"-DCMAKE_{kind}_LINKER_FLAGS=-Wl,-rpath-link,{cudart}" for kind in ("EXE", "SHARED")]
    return Native(tmp_path_factory.mktemp("native"), executorch, linkcheck, given, *search)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with torch and executorch, as wheels."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir")
    for requirements in ((*("--no-deps", "--only-binary", ":all:"), TORCH, EXECUTORCH), IMPORTED):
        run = run_command(*install, *requirements)
        if run.status != 0:
            lines = [line for line in run.raw.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            pytest.skip(f"{' '.join(requirements)} cannot be had: {lines[0]}")
    return python


class TestExecutorchsOwnCallerStream:
    def test_it_is_accepted_and_taken(self, native: Native, theirs: Path) -> None:
        assert f"extension_cuda is the prebuilt {theirs}" in native.configured.text

    def test_the_delegate_runs_over_it(self, native: Native, theirs: Path, cudart: Path) -> None:
        loaded = native.run(LD_LIBRARY_PATH=str(cudart), LD_TRACE_LOADED_OBJECTS="1").raw
        assert f"libextension_cuda.so => {theirs} " in loaded
        run = native.run(LD_LIBRARY_PATH=str(cudart)).must_succeed()
        assert "output[0] shape=[2,3,4,4] numel=96 dtype=6" in run.raw.splitlines()
        assert EIGHT_TWOS in run.raw.splitlines()

    def test_the_runners_stream_reaches_the_delegate_through_it(
        self, native: Native, cudart: Path, tmp_path: Path
    ) -> None:
        """Only work on the runner's own stream is confined to its green context."""
        log = tmp_path / "kernels"
        environment = {"LD_LIBRARY_PATH": str(cudart), "GPUSIM_KERNEL_LOG": str(log)}
        native.run("--green_context_sms=4", **environment).must_succeed()
        assert log.read_text() == "kernel on device 0, SMs 0 to 3\n"

    def test_linkcheck_passes_runner_and_delegate(self, native: Native, linkcheck: Path) -> None:
        verify = (linkcheck, "verify", "--profile", "executorch-caller-stream", "--external", "libcudart.so.13")
        run_command(*verify, native.runner, native.backend).must_succeed()


def test_the_backend_runs_under_executorchs_stock_python_runtime(native: Native, cudart: Path, python: Path) -> None:
    test = ROOT / "native" / "tests" / "python_runtime_test.py"
    environment = {"LD_LIBRARY_PATH": str(cudart)}
    run = run_command(python, test, native.backend, native.program, environment=environment).must_succeed()
    assert run.raw.endswith("OK\n")


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Callable[[int], dict[str, Path]]:
    """A program of our partitioner whose engine has so many bytes more than it needs, named and inline."""

    def export(padding: int) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("forms")
        tensors = [
            {"name": name, "input": name in "ab", "dtype": "float32", "shape": [2, 3]}
            for name in ("a", "b", "sum", "product")
        ]
        operations = [
            {"op": op, "a": "a", "b": "b", "out": out} for op, out in (("add", "sum"), ("multiply", "product"))
        ]
        spec = {"tensors": tensors, "operations": operations, "padding": padding}
        (folder / "plan.json").write_text(json.dumps(spec))
        make_plan = ROOT / "native" / "gpusim" / "make_plan.py"
        run_command(python, make_plan, folder / "plan.json", folder / "engine.plan").must_succeed()
        script = ROOT / "tests" / "executorch" / "export_forms.py"
        for form in ("named", "inline"):
            command = (python, "-W", "ignore", script, folder / "engine.plan", folder / f"{form}.pte", form)
            run_command(*command, environment={"PYTHONPATH": str(ROOT)}).must_succeed()
        return {form: folder / f"{form}.pte" for form in ("named", "inline")}

    return export


def test_our_partitioners_programs_run_alike_in_both_runtimes_and_forms(
    native: Native, cudart: Path, python: Path, forms: Callable[[int], dict[str, Path]], tmp_path: Path
) -> None:
    """An engine of 3 MB: of a small one what surrounds it is a large part, see the test below."""
    programs = forms(3 << 20)
    files = []
    for number, values in enumerate(INPUTS):
        files.append(tmp_path / f"{number}.bin")
        files[-1].write_bytes(struct.pack("<6f", *values))
    expected = [
        [a + b for a, b in zip(*INPUTS, strict=True)],
        [a * b for a, b in zip(*INPUTS, strict=True)],
    ]
    environment = {"LD_LIBRARY_PATH": str(cudart)}
    script = ROOT / "tests" / "executorch" / "run_program.py"
    for program in programs.values():
        inputs = ",".join(map(str, files))
        run = run_command(
            native.runner, f"--model_path={program}", f"--inputs={inputs}", environment=environment
        ).must_succeed()
        printed = [line.partition("values: ")[2] for line in run.raw.splitlines() if "values: " in line]
        assert [[float(value) for value in line.split()] for line in printed] == expected
        command = (python, "-W", "ignore", script, native.backend, program)
        answer = run_command(*command, *files, environment=environment).must_succeed().raw.splitlines()
        assert json.loads(next(line for line in answer if line.startswith("[["))) == expected
    named, inline = (programs[form].stat().st_size for form in ("named", "inline"))
    assert abs(named - inline) <= inline / 100


def test_the_named_form_of_a_small_engine_takes_some_hundred_bytes_more(
    forms: Callable[[int], dict[str, Path]],
) -> None:
    """Its key stands in the blob and in the named data, and it begins a segment of its own, aligned."""
    programs = forms(0)
    named, inline = (programs[form].stat().st_size for form in ("named", "inline"))
    assert 0 < named - inline < 1024
