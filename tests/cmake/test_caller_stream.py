"""The bundled libextension_cuda.so: its own tests, what it exports, and that it is exchangeable with ExecuTorch's."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cmake.programs import CONSUMERS, DELEGATE, RUNNER, SHARED_STREAM
from tests.cmake.project import CALLER_STREAM, PREAMBLE, Run, cmake, run_command, write
from tests.cmake.wheels import fetch_member

if TYPE_CHECKING:
    from tests.cmake.conftest import MakeProject

pytestmark = [pytest.mark.cmake, pytest.mark.compile]

NAMESPACE = "_ZN10executorch9extension4cuda"
INTERFACE = {
    f"{NAMESPACE}15getCallerStreamEv",
    f"{NAMESPACE}17CallerStreamGuardC1EP11CUstream_st",
    f"{NAMESPACE}17CallerStreamGuardC2EP11CUstream_st",
    f"{NAMESPACE}17CallerStreamGuardD1Ev",
    f"{NAMESPACE}17CallerStreamGuardD2Ev",
}
#: What older linkers put into the dynamic symbol table of every file.
LINKER_SYMBOLS = {"_end", "_edata", "__bss_start"}
PROBE_TEXT = """\
no guard: none
selected: 0x123456789a
explicit null: 0x0
explicit per-thread: 0x2
restored: 0x123456789a
frame: intact
after the guards: none
"""
HEADER = CALLER_STREAM / "include"
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++")


@dataclass(frozen=True, slots=True)
class Build:
    """native/caller_stream built alone."""

    folder: Path

    @property
    def library(self) -> Path:
        return self.folder / "libextension_cuda.so"

    def program(self, name: str) -> Path:
        return self.folder / "tests" / name


@pytest.fixture(scope="module")
def builds() -> dict[str, Build]:
    """Build type -> its build. Filled by `build`, which pytest may set up several times for one type."""
    return {}


@pytest.fixture(scope="module", params=["Debug", "Release"])
def build(request: pytest.FixtureRequest, builds: dict[str, Build], tmp_path_factory: pytest.TempPathFactory) -> Build:
    kind: str = request.param
    if kind not in builds:
        builds[kind] = build_alone(tmp_path_factory.mktemp(kind), f"-DCMAKE_BUILD_TYPE={kind}")
    return builds[kind]


def build_alone(folder: Path, *options: str) -> Build:
    """native/caller_stream with its tests, every warning an error; skips the test when there is no GoogleTest."""
    strict = ("-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", "-G", "Ninja", *options)
    run = run_command(cmake(), "-S", CALLER_STREAM, "-B", folder, *strict)
    if run.status != 0 and "Could NOT find GTest" in run.text:
        pytest.skip("needs GoogleTest (Debian: libgtest-dev)")
    run.must_succeed()
    run_command(cmake(), "--build", folder).must_succeed()
    return Build(folder)


def exports(library: Path) -> set[str]:
    """The defined global dynamic symbols, as binutils reads them."""
    lines = run_command("nm", "-D", "--defined-only", "--format=posix", library).must_succeed().raw.splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def run_with(library: Path, program: Path, *further: Path) -> Run:
    """`program` with `library`'s folder in front of what its own search path says."""
    path = ":".join(str(folder) for folder in (library.parent, *further))
    return run_command(program, environment={"LD_LIBRARY_PATH": path})


def loaded(library: Path, program: Path, *further: Path) -> str:
    """Which file ld.so takes for the library, by ld.so's own word."""
    path = ":".join(str(folder) for folder in (library.parent, *further))
    environment = {"LD_LIBRARY_PATH": path, "LD_TRACE_LOADED_OBJECTS": "1"}
    found = re.search(r"libextension_cuda\.so => (\S+)", run_command(program, environment=environment).raw)
    assert found is not None
    return found[1]


class TestBundledLibrary:
    def test_its_own_tests_pass(self, build: Build) -> None:
        run = run_command(Path(cmake()).with_name("ctest"), "--output-on-failure", cwd=build.folder).must_succeed()
        for case in (
            "IsEmptyWithoutAGuard",
            "IsTheGuardsStreamAndEmptyAgainAfterwards",
            "TakesAnExplicitNullStreamAsAChoice",
            "TakesAnExplicitPerThreadStreamAsAChoice",
            "NestedGuardsRestoreTheOuterChoice",
            "IsAChoiceOfOneThread",
            "WhatALibraryChoosesTheProgramAndTheOtherLibraryObserve",
            "TheLibraryDoesNotSeeWhatTheProgramChose",
        ):
            assert re.search(rf"\.{case} \.+ +Passed", run.raw), f"{case} did not run:\n{run.raw}"

    def test_its_own_tests_pass_under_the_sanitizers(self, tmp_path: Path) -> None:
        flags = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
        build = build_alone(tmp_path, f"-DCMAKE_CXX_FLAGS={flags}")
        run = run_command(Path(cmake()).with_name("ctest"), "--output-on-failure", cwd=build.folder).must_succeed()
        assert "100% tests passed" in run.raw
        assert "__asan_init" in run_command("nm", "-D", build.library).raw, "the sanitizer was not in force"
        assert exports(build.library) == INTERFACE

    def test_it_exports_the_interface_and_nothing_else(self, build: Build) -> None:
        assert exports(build.library) == INTERFACE

    def test_its_soname_and_its_thread_local(self, build: Build) -> None:
        assert "Library soname: [libextension_cuda.so]" in run_command("readelf", "-dW", build.library).raw
        tls = [
            line.split() for line in run_command("readelf", "-lW", build.library).raw.splitlines() if " TLS " in line
        ]
        assert [int(fields[5], 16) for fields in tls] == [16], "one stream and one flag"

    def test_linkcheck_passes_the_shared_build_and_sees_the_duplicate(self, build: Build, linkcheck: Path) -> None:
        verify = (linkcheck, "verify", "--profile", "executorch-caller-stream")
        run_command(*verify, build.program("one_choice_test")).must_succeed()
        run = run_command(*verify, build.program("duplicate_test")).must_fail("LC301", "LC401")
        assert run.status == 1
        assert str(build.program("duplicate_test")) in run.text
        assert str(build.library) in run.text

    def test_linkcheck_sees_the_duplicate_after_strip(self, build: Build, linkcheck: Path, tmp_path: Path) -> None:
        stripped = tmp_path / "duplicate_test"
        shutil.copy(build.program("duplicate_test"), stripped)
        run_command("strip", "-s", stripped).must_succeed()
        verify = (linkcheck, "verify", "--profile", "executorch-caller-stream")
        assert run_command(*verify, stripped).must_fail("LC301", "caller stream").status == 1


class TestHeader:
    def test_it_compiles_alone_without_the_cuda_toolkit(self, tmp_path: Path) -> None:
        use = write(tmp_path / "use.cpp", "#include <executorch/extension/cuda/caller_stream.h>\nint main() {}\n")
        run_command("g++", *STRICT, "-pedantic-errors", "-I", HEADER, use).must_succeed()

    @pytest.mark.parametrize("first", ["cuda", "caller_stream"])
    def test_it_agrees_with_cudas_declarations_in_either_order(self, tmp_path: Path, first: str) -> None:
        # The words of CUDA's driver_types.h, when this machine has no toolkit to take them from.
        stand_in = write(tmp_path / "stand_in" / "cuda_runtime.h", "typedef struct CUstream_st *cudaStream_t;\n")
        toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
        cuda = toolkit if (toolkit / "cuda_runtime.h").exists() else stand_in.parent
        includes = ["#include <cuda_runtime.h>\n", "#include <executorch/extension/cuda/caller_stream.h>\n"]
        if first == "caller_stream":
            includes.reverse()
        body = "cudaStream_t f(cudaStream_t s) { executorch::extension::cuda::CallerStreamGuard g{s}; return s; }\n"
        use = write(tmp_path / "use.cpp", "".join(includes) + body)
        run_command("g++", *STRICT, "-I", HEADER, "-isystem", cuda, use).must_succeed()

    def test_its_types_cannot_be_something_else_unnoticed(self, tmp_path: Path) -> None:
        """The assertions in the header are alive: a guard with one more member does not compile."""
        text = (HEADER / "executorch" / "extension" / "cuda" / "caller_stream.h").read_text()
        member = "  std::optional<cudaStream_t> previous_;\n"
        assert member in text
        header = write(tmp_path / "wrong.h", text.replace(member, member + "  int more_ = 0;\n"))
        run_command("g++", *STRICT, header).must_fail("the guard is its earlier choice and nothing else")


WHEELS = {
    "torch-tensorrt==2.14.0": "torch_tensorrt/lib/libextension_cuda.so",
    "torch-tensorrt-executorch-runtime==0.1.0": "torch_tensorrt_executorch_runtime/libextension_cuda.so",
}


@pytest.fixture(scope="module", params=list(WHEELS))
def theirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    requirement: str = request.param
    return fetch_member(requirement, WHEELS[requirement], tmp_path_factory.mktemp("wheel"))


@pytest.mark.network
class TestExecutorchsOwn:
    """Against the libraries that ExecuTorch's own build made, from the public wheels."""

    def test_it_exports_what_ours_does(self, theirs: Path) -> None:
        assert exports(theirs) - LINKER_SYMBOLS == INTERFACE

    def test_a_program_built_against_ours_runs_against_theirs(self, build: Build, theirs: Path, cudart: Path) -> None:
        probe = build.program("caller_stream_probe")
        assert run_command(probe).raw == PROBE_TEXT
        # This program's RUNPATH names our folder; LD_LIBRARY_PATH comes first.
        assert loaded(theirs, probe, cudart) == str(theirs)
        assert run_with(theirs, probe, cudart).must_succeed().raw == PROBE_TEXT

    def test_a_program_built_against_theirs_runs_against_ours(
        self, build: Build, theirs: Path, cudart: Path, tmp_path: Path
    ) -> None:
        probe = tmp_path / "probe"
        sources = CALLER_STREAM / "tests" / "probe.cpp"
        search = f"-Wl,-rpath-link,{cudart}"
        run_command("g++", "-std=c++17", "-O2", "-I", HEADER, sources, theirs, search, "-o", probe).must_succeed()
        for library in (theirs, build.library):
            assert loaded(library, probe, cudart) == str(library)
            assert run_with(library, probe, cudart).must_succeed().raw == PROBE_TEXT

    def test_libraries_built_against_ours_share_one_choice_over_theirs(
        self, build: Build, theirs: Path, cudart: Path
    ) -> None:
        program = build.program("one_choice_test")
        assert loaded(theirs, program, cudart) == str(theirs)
        run_with(theirs, program, cudart).must_succeed()

    def test_it_is_selected_as_a_prebuilt_library_and_passes_the_gate(
        self, make_project: MakeProject, theirs: Path, cudart: Path
    ) -> None:
        gate = "linkcheck_add_gate(TARGET runner PROFILE executorch-caller-stream EXTERNAL libcudart.so.13)\n"
        listfile = f"{PREAMBLE}enable_testing()\nlinkcheck_select_extension_cuda()\n{CONSUMERS}{gate}"
        project = make_project({"CMakeLists.txt": listfile, "runner.cpp": RUNNER, "delegate.cpp": DELEGATE})
        project.configure(
            f"-DEXECUTORCH_EXTENSION_CUDA_LIBRARY={theirs}", f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{cudart}"
        ).must_succeed()
        project.build().must_succeed()
        project.test().must_succeed()
        environment = {"LD_LIBRARY_PATH": str(cudart)}
        assert run_command(project.build_folder / "runner", environment=environment).raw == SHARED_STREAM
