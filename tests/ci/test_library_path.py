"""`ci/library-path` on build trees that CMake made; ld.so says whether its line is right."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from ci import native
from ci.build import NoBuildError
from tests.cmake.project import ROOT, Run, cmake, run_command, write

pytestmark = [pytest.mark.cmake, pytest.mark.compile]

#: Names that no machine has, in the form of an SDK's.
ENGINE, RUNTIME, DRIVER = "libnvinfer_lc.so.11", "libcudart_lc.so.13", "libcuda_lc.so.1"

#: A test program whose run path leads nowhere: what CMake writes, cut off as an SDK's own build scripts do.
LISTS = """
cmake_minimum_required(VERSION 3.28)
project(tree LANGUAGES CXX)
find_library(ENGINE_LIBRARY nvinfer_lc HINTS "${SDK}/stubs" REQUIRED)
add_executable(gpu_test main.cpp)
target_link_libraries(gpu_test PRIVATE "${ENGINE_LIBRARY}")
target_link_options(gpu_test PRIVATE -Wl,--no-as-needed "-Wl,-rpath-link,${RUNTIME}" -Wl,--allow-shlib-undefined)
set_target_properties(gpu_test PROPERTIES SKIP_BUILD_RPATH ON)
"""


class Sdk:
    """`stubs/libnvinfer_lc.so` links to the versioned file in a second folder, which needs the runtime of a third."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = self.make(folder / "trt" / ENGINE, folder / "cuda" / RUNTIME)
        (folder / "stubs").mkdir()
        (folder / "stubs" / "libnvinfer_lc.so").symlink_to(self.engine)

    def make(self, library: Path, *needs: Path) -> Path:
        for other in needs:
            self.make(other)
        library.parent.mkdir(parents=True, exist_ok=True)
        source = write(library.with_suffix(".c"), f"int {library.name.partition('.')[0]}(void) {{ return 0; }}\n")
        flags = ("-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{library.name}", "-Wl,--no-as-needed")
        run_command("gcc", source, *flags, "-o", library, *needs).must_succeed()
        return library

    @property
    def line(self) -> str:
        places = f"{self.folder}/trt:{self.folder}/cuda"
        return f'export LD_LIBRARY_PATH="${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}{places}"\n'


@pytest.fixture
def sdk(tmp_path: Path) -> Sdk:
    return Sdk(tmp_path / "sdk")


def make_tree(folder: Path, sdk: Sdk, generator: str = "Ninja", lists: str = LISTS) -> Path:
    write(folder / "source" / "main.cpp", "int main() {}\n")
    write(folder / "source" / "CMakeLists.txt", lists)
    tree = folder / "build"
    options = (f"-DSDK={sdk.folder}", f"-DRUNTIME={sdk.folder}/cuda")
    run_command(cmake(), "-S", folder / "source", "-B", tree, "-G", generator, *options).must_succeed()
    run_command(cmake(), "--build", tree).must_succeed()
    return tree


def library_path(*trees: Path | str, cwd: Path | None = None) -> Run:
    return run_command(ROOT / "ci" / "library-path", *trees, environment={"PYTHON": sys.executable}, cwd=cwd)


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_the_line_starts_the_program(tmp_path: Path, sdk: Sdk, generator: str) -> None:
    tree = make_tree(tmp_path, sdk, generator)
    run_command(tree / "gpu_test").must_fail(f"{ENGINE}: cannot open shared object file")
    printed = library_path(tree).must_succeed().raw
    assert printed == sdk.line
    for before in ("", "/before"):
        command = f'{printed}echo "$LD_LIBRARY_PATH"; exec {shlex.quote(str(tree / "gpu_test"))}'
        run = run_command("sh", "-c", command, environment={"LD_LIBRARY_PATH": before} if before else {})
        assert run.must_succeed().raw.startswith("/before:/" if before else "/")
    assert library_path("build", cwd=tmp_path).must_succeed().raw == sdk.line


def test_ctest_runs_behind_the_line(
    tmp_path: Path, sdk: Sdk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = make_tree(tmp_path, sdk, lists=f"{LISTS}enable_testing()\nadd_test(NAME gpu_test COMMAND gpu_test)\n")
    monkeypatch.setattr(native, "TOOLS", Path(cmake()).parent)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert native.passes(tree)
    assert f"ci: {sdk.line}" in capfd.readouterr().out
    monkeypatch.setattr(native, "library_path_line", lambda folder: "")
    assert not native.passes(tree)
    monkeypatch.undo()
    sdk.engine.unlink()
    with pytest.raises(NoBuildError, match="would not start"):
        native.passes(tree)


def test_several_trees_share_one_line(tmp_path: Path, sdk: Sdk) -> None:
    other = Sdk(tmp_path / "other sdk")
    trees = make_tree(tmp_path / "one", sdk), make_tree(tmp_path / "two", other)
    # The first folder that holds a name serves both.
    assert library_path(*trees).must_succeed().raw == sdk.line


def test_nothing_is_printed_when_nothing_is_missing(tmp_path: Path, sdk: Sdk) -> None:
    lists = LISTS.replace("SKIP_BUILD_RPATH ON", 'BUILD_RPATH "${SDK}/trt;${SDK}/cuda"')
    tree = make_tree(
        tmp_path, sdk, lists=lists.replace("-Wl,--no-as-needed", "-Wl,--no-as-needed -Wl,--disable-new-dtags")
    )
    run_command(tree / "gpu_test").must_succeed()
    assert library_path(tree).must_succeed().raw == ""


@pytest.mark.parametrize("gone", [ENGINE, RUNTIME])
def test_a_library_that_is_nowhere_is_named(tmp_path: Path, sdk: Sdk, gone: str) -> None:
    tree = make_tree(tmp_path, sdk)
    (found,) = sdk.folder.rglob(gone)
    found.unlink()
    run = library_path(tree)
    assert run.status == 1
    needer = tree / "gpu_test" if gone == ENGINE else sdk.engine
    assert run.raw.startswith(f"library-path: {needer} needs {gone}, which is in none of the ")


def test_a_library_for_another_machine_does_not_count(tmp_path: Path, sdk: Sdk) -> None:
    tree = make_tree(tmp_path, sdk)
    data = bytearray(sdk.engine.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
    sdk.engine.write_bytes(data)
    assert library_path(tree).status == 1


def test_a_line_that_would_replace_a_library_is_refused(tmp_path: Path, sdk: Sdk) -> None:
    """LD_LIBRARY_PATH comes before DT_RUNPATH: the SDK's folder holds an older copy of the project's own library."""
    sdk.make(sdk.folder / "trt" / "libown.so")
    lists = LISTS + "add_library(own SHARED main.cpp)\nadd_executable(second main.cpp)\n"
    lists += "target_link_libraries(second PRIVATE own)\ntarget_link_options(second PRIVATE -Wl,--no-as-needed)\n"
    tree = make_tree(tmp_path, sdk, lists=lists)
    run = library_path(tree)
    assert run.status == 1
    assert f"{tree}/second loads {tree}/libown.so, and " in run.raw
    assert f"would load {sdk.folder}/trt/libown.so instead" in run.raw


def test_what_debuggers_keep_needs_nothing_and_what_cannot_be_read_is_an_error(tmp_path: Path, sdk: Sdk) -> None:
    tree = make_tree(tmp_path, sdk)
    run_command("objcopy", "--only-keep-debug", tree / "gpu_test", tree / "gpu_test.debug").must_succeed()
    assert library_path(tree).must_succeed().raw == sdk.line
    (tree / "cut").write_bytes((tree / "gpu_test").read_bytes()[:100])
    run = library_path(tree)
    assert run.status == 2
    assert run.raw.startswith(f"library-path: {tree}/cut: malformed ELF: truncated")


def test_what_is_no_build_tree_is_an_error_of_its_own(tmp_path: Path) -> None:
    run = library_path(tmp_path)
    assert (run.status, run.text) == (
        2,
        f"library-path: {tmp_path} is no CMake build tree: there is no CMakeCache.txt in it",
    )
    assert library_path().status == 2
