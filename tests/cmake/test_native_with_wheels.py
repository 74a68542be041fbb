"""native/ with what others built: ExecuTorch's own caller-stream library under it, its stock Python runtime over it."""

from __future__ import annotations

import importlib.util
import venv
import zipfile
from pathlib import Path

import pytest

from tests.cmake.project import ROOT, Run, cmake, run_command
from tests.cmake.wheels import fetch_member, fetch_wheel

pytestmark = [pytest.mark.cmake, pytest.mark.compile, pytest.mark.network, pytest.mark.slow]

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
