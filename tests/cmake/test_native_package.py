"""What `cmake --install` and CPack make of native/: one tree that runs and can be built against wherever it is put."""

from __future__ import annotations

import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ci.gate import make_model
from linkcheck.api import load_settings, verify
from tests.cmake.executorch_wheel import executorch_directory
from tests.cmake.project import ROOT, cmake, run_command, write

if TYPE_CHECKING:
    from tests.cmake.project import Run

pytestmark = [pytest.mark.cmake, pytest.mark.compile, pytest.mark.network, pytest.mark.slow]

NATIVE = ROOT / "native"
ACCESSOR = "executorch::extension::cuda::getCallerStream()"
TWOS = "  first 8 values: " + " ".join(["2.0000"] * 8)

CONSUMER = """
cmake_minimum_required(VERSION 3.28)
project(consumer LANGUAGES CXX)
find_package(linkcheck_native 0.1 REQUIRED)
add_executable(consumer main.cpp)
target_link_options(consumer PRIVATE -Wl,--as-needed)
target_link_libraries(consumer PRIVATE linkcheck::trt_backend linkcheck::extension_cuda)
"""
#: Refers to nothing of the delegate by symbol: the backend is there only if the target keeps the library.
CONSUMER_MAIN = """
#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/runtime/backend/interface.h>
#include <cstdio>

int main() {
  const executorch::extension::cuda::CallerStreamGuard guard(nullptr);
  const bool chosen = executorch::extension::cuda::getCallerStream().has_value();
  const bool there = executorch::runtime::get_backend_class("TensorRTBackend") != nullptr;
  std::printf("stream %s, backend %s\\n", chosen ? "chosen" : "none", there ? "registered" : "absent");
}
"""


@dataclass(frozen=True, slots=True)
class Native:
    """native/ built once with the preset `embedded`, without its tests."""

    executorch: Path
    build: Path
    model: Path


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Native:
    executorch = executorch_directory(lambda: tmp_path_factory.mktemp("executorch"))
    build = tmp_path_factory.mktemp("native")
    options = ("-DLINKCHECK_NATIVE_TESTS=OFF", "-DLINKCHECK_CALLER_STREAM_TESTS=OFF")
    configured = run_command(
        cmake(), "--preset", "embedded", "-B", build, f"-DCMAKE_PREFIX_PATH={executorch}", *options, cwd=NATIVE
    )
    if "nlohmann_json" in configured.raw and configured.status != 0:
        pytest.skip("nlohmann-json is not installed (Debian: nlohmann-json3-dev)")
    configured.must_succeed()
    run_command(cmake(), "--build", build).must_succeed()
    return Native(executorch, build, make_model(tmp_path_factory.mktemp("model"), executorch))


@pytest.fixture(scope="module")
def installed(native: Native, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed tree, moved after it was installed."""
    first = tmp_path_factory.mktemp("first") / "prefix"
    run_command(cmake(), "--install", native.build, "--prefix", first).must_succeed()
    return Path(shutil.move(first, tmp_path_factory.mktemp("moved") / "else where"))


@pytest.fixture(scope="module")
def unpacked(native: Native, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one folder in CPack's archive."""
    folder = tmp_path_factory.mktemp("packed")
    cpack = Path(cmake()).with_name("cpack")
    run_command(cpack, "-G", "TGZ", "-B", folder / "made", cwd=native.build).must_succeed()
    (archive,) = (folder / "made").glob("*.tar.gz")
    assert re.fullmatch(r"linkcheck-native-\d+\.\d+\.\d+-Linux-\w+\.tar\.gz", archive.name)
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "unpacked")
    (tree,) = (folder / "unpacked").iterdir()
    return tree


@pytest.fixture(params=["installed", "unpacked"])
def tree(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


def run_model(tree: Path, model: Path) -> Run:
    # From the root directory, so that nothing relative to a working directory can help.
    return run_command(tree / "bin" / "executorch_runner", f"--model_path={model}", cwd=Path("/"))


def test_it_runs_where_it_lies(tree: Path, native: Native) -> None:
    lines = run_model(tree, native.model).must_succeed().raw.splitlines()
    assert "output[0] shape=[2,3,4,4] numel=96 dtype=6" in lines
    assert TWOS in lines


def test_it_uses_nothing_of_the_build_tree(tree: Path) -> None:
    environment = {"LD_TRACE_LOADED_OBJECTS": "1"}
    for program in (tree / "bin" / "executorch_runner", tree / "lib" / "libexecutorch_trt_backend.so"):
        # Without a program of its own to start, a library is listed by the loader.
        loader = () if "bin" in program.parts else (interpreter(tree / "bin" / "executorch_runner"),)
        listed = run_command(*loader, program, environment=environment).must_succeed().raw
        found = dict(re.findall(r"(\S+) => (.+) \(0x", listed))
        ours = {name: path for name, path in found.items() if re.match("lib(executorch|extension|gpusim)", name)}
        assert {"libexecutorch.so", "libextension_cuda.so", "libgpusim.so"} <= set(ours)
        assert {Path(path).resolve().parent for path in ours.values()} == {tree / "lib"}


def interpreter(program: Path) -> str:
    found = re.search(r"program interpreter: (\S+)\]", run_command("readelf", "-lW", program).must_succeed().raw)
    assert found is not None
    return found[1]


def test_there_is_exactly_one_caller_stream_library(tree: Path) -> None:
    found = [path.relative_to(tree).as_posix() for path in tree.rglob("*extension_cuda*")]
    assert found == ["lib/libextension_cuda.so"]


def test_no_run_path_is_absolute(tree: Path) -> None:
    files = [tree / "bin" / "executorch_runner", *(tree / "lib").glob("*.so*")]
    assert len(files) == 6
    for file in files:
        entries = re.findall(r"(?:RUNPATH|RPATH)\).*\[(.*)\]", run_command("readelf", "-dW", file).must_succeed().raw)
        assert all(part.startswith("$ORIGIN") for entry in entries for part in entry.split(":")), (file, entries)
    assert "[$ORIGIN/../lib]" in run_command("readelf", "-dW", files[0]).raw


def test_linkcheck_passes_it(tree: Path) -> None:
    settings = load_settings(profile="executorch-caller-stream", require_import=(ACCESSOR,))
    runner, delegate = tree / "bin" / "executorch_runner", tree / "lib" / "libexecutorch_trt_backend.so"
    assert verify([str(runner), str(delegate)], settings=settings).outcome.exit_status == 0
    assert verify([str(tree)], settings=load_settings(profile="executorch-caller-stream")).outcome.exit_status == 0


def test_it_has_the_licenses_of_what_is_in_it(tree: Path) -> None:
    licenses = {path.name: path.read_text() for path in (tree / "share" / "doc").rglob("LICENSE*")}
    assert set(licenses) == {"LICENSE", "LICENSE.executorch"}
    assert "BSD" in licenses["LICENSE.executorch"]


def configure(tree: Path, native: Native, folder: Path, listfile: str) -> Run:
    write(folder / "source" / "CMakeLists.txt", listfile)
    write(folder / "source" / "main.cpp", CONSUMER_MAIN)
    prefixes = f"-DCMAKE_PREFIX_PATH={tree};{native.executorch}"
    return run_command(cmake(), "-S", folder / "source", "-B", folder / "build", "-G", "Ninja", prefixes)


def test_a_project_builds_against_it(tree: Path, native: Native, tmp_path: Path) -> None:
    configure(tree, native, tmp_path, CONSUMER).must_succeed()
    run_command(cmake(), "--build", tmp_path / "build").must_succeed()
    program = tmp_path / "build" / "consumer"
    assert run_command(program).must_succeed().raw == "stream chosen, backend registered\n"
    settings = load_settings(profile="executorch-caller-stream")
    assert verify([str(program)], settings=settings).outcome.exit_status == 0


SELECT = f'list(APPEND CMAKE_MODULE_PATH "{ROOT / "cmake"}")\ninclude(linkcheck_select_extension_cuda)\n'


def test_the_selection_takes_the_packages_library(installed: Path, native: Native, tmp_path: Path) -> None:
    listfile = CONSUMER + SELECT + "linkcheck_select_extension_cuda()\n"
    listfile += "get_target_property(origin linkcheck::extension_cuda LINKCHECK_ORIGIN)\n"
    listfile += "get_target_property(library linkcheck::extension_cuda LINKCHECK_LIBRARY_TARGET)\n"
    listfile += "get_target_property(file ${library} LOCATION)\nmessage(STATUS ${origin}=${file})\n"
    run = configure(installed, native, tmp_path, listfile).must_succeed()
    assert f"package={installed}/lib/libextension_cuda.so" in run.text


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("add_library(extension_cuda SHARED main.cpp)", "the target extension_cuda is there already"),
        (
            f"{SELECT}set(LINKCHECK_BUNDLED_EXTENSION_CUDA ON)\nlinkcheck_select_extension_cuda()",
            "before linkcheck_select_extension_cuda()",
        ),
        (
            """add_library(executorch::extension_cuda SHARED IMPORTED)
            set_target_properties(
                executorch::extension_cuda PROPERTIES IMPORTED_LOCATION /x/libexecutorch_extension_cuda.so)
            """,
            "the delegate of this package is linked to libextension_cuda.so",
        ),
    ],
)
def test_a_second_caller_stream_is_refused(
    installed: Path, native: Native, tmp_path: Path, before: str, message: str
) -> None:
    listfile = CONSUMER.replace("find_package", f"{before}\nfind_package")
    configure(installed, native, tmp_path, listfile).must_fail(message)


def test_executorchs_own_library_of_the_same_name_is_the_one(installed: Path, native: Native, tmp_path: Path) -> None:
    library = shutil.copy(installed / "lib" / "libextension_cuda.so", tmp_path)
    own = "add_library(executorch::extension_cuda SHARED IMPORTED)\nset_target_properties(executorch::extension_cuda "
    own += f"PROPERTIES IMPORTED_LOCATION {library})\nfind_package"
    configure(installed, native, tmp_path, CONSUMER.replace("find_package", own)).must_succeed()
    run_command(cmake(), "--build", tmp_path / "build").must_succeed()
    program = tmp_path / "build" / "consumer"
    assert run_command(program).must_succeed().raw == "stream chosen, backend registered\n"
    listed = run_command(program, environment={"LD_TRACE_LOADED_OBJECTS": "1"}).must_succeed().raw
    assert re.findall(r"extension_cuda\S* => (.+) \(0x", listed) == [str(library)]
