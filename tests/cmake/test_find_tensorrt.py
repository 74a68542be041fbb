"""FindTensorRT.cmake on small trees with the shapes in which TensorRT comes: an SDK, wheels with separate headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cmake.project import run_command, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cmake.conftest import MakeProject

pytestmark = [pytest.mark.cmake, pytest.mark.compile]

LISTFILE = """
cmake_minimum_required(VERSION 3.28)
project(subject LANGUAGES CXX)
find_package(linkcheck REQUIRED)
list(APPEND CMAKE_MODULE_PATH "${linkcheck_MODULE_PATH}")
find_package(TensorRT REQUIRED MODULE %s)
message(STATUS "version=${TensorRT_VERSION} library=${TensorRT_LIBRARY}")
add_executable(program main.cpp)
target_link_libraries(program PRIVATE TensorRT::TensorRT)
"""
MAIN = "#include <NvInfer.h>\nint main() { return buildNothing(); }\n"

#: NvInferVersion.h in its three forms; the numbers as 10 or 11 state them.
PLAIN = """
#define NV_TENSORRT_MAJOR {0} //!< TensorRT major version.
#define NV_TENSORRT_MINOR {1} //!< TensorRT minor version.
#define NV_TENSORRT_PATCH {2} //!< TensorRT patch version.
#define NV_TENSORRT_BUILD 5 //!< TensorRT build number.
"""
ENTERPRISE = """
#define TRT_MAJOR_ENTERPRISE {0}
#define TRT_MINOR_ENTERPRISE {1}
#define TRT_PATCH_ENTERPRISE {2}
#define NV_TENSORRT_MAJOR TRT_MAJOR_ENTERPRISE //!< TensorRT major version.
#define NV_TENSORRT_MINOR TRT_MINOR_ENTERPRISE //!< TensorRT minor version.
#define NV_TENSORRT_PATCH TRT_PATCH_ENTERPRISE //!< TensorRT patch version.
"""


def write_headers(folder: Path, form: str = PLAIN, version: tuple[int, int, int] = (11, 1, 0)) -> Path:
    write(folder / "NvInfer.h", "#include <NvInferVersion.h>\nint buildNothing();\n")
    write(folder / "NvInferVersion.h", form.format(*version))
    return folder


def make_library(folder: Path, soname: str = "libnvinfer.so.11", linker_name: str | None = "libnvinfer.so") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    source = write(folder.parent / f"{soname}.cpp", "int buildNothing() { return 0; }\n")
    made = folder / soname
    run_command("g++", "-shared", "-fPIC", source, f"-Wl,-soname,{soname}", "-o", made).must_succeed()
    if linker_name is not None:
        (folder / linker_name).symlink_to(soname)
    return made


@pytest.mark.parametrize("form", [PLAIN, ENTERPRISE, ENTERPRISE.replace("ENTERPRISE", "RTX")])
def test_an_sdk_is_found_by_its_root_and_linked(make_project: MakeProject, tmp_path: Path, form: str) -> None:
    write_headers(tmp_path / "sdk" / "include", form)
    make_library(tmp_path / "sdk" / "lib")
    project = make_project({"CMakeLists.txt": LISTFILE % "", "main.cpp": MAIN})
    run = project.configure(f"-DTensorRT_ROOT={tmp_path}/sdk").must_succeed()
    assert f"version=11.1.0 library={tmp_path}/sdk/lib/libnvinfer.so" in run.text
    project.build().must_succeed()
    assert project.program("program").status == 0


def test_a_wheels_library_is_found_with_headers_from_elsewhere(make_project: MakeProject, tmp_path: Path) -> None:
    headers = write_headers(tmp_path / "headers")
    make_library(tmp_path / "tensorrt_libs", linker_name=None)
    project = make_project({"CMakeLists.txt": LISTFILE % "11", "main.cpp": MAIN})
    options = (f"-DTensorRT_ROOT={tmp_path}/tensorrt_libs", f"-DTensorRT_INCLUDE_DIR={headers}")
    assert "libnvinfer.so.11" in project.configure(*options).must_succeed().text
    project.build().must_succeed()
    assert project.program("program").status == 0


def test_tensorrt_for_rtx_is_a_component(make_project: MakeProject, tmp_path: Path) -> None:
    both = ENTERPRISE.replace("ENTERPRISE", "RTX") + "#define TRT_MAJOR_ENTERPRISE 10\n"
    write_headers(tmp_path / "sdk" / "include", both, (1, 3, 0))
    make_library(tmp_path / "sdk" / "lib", "libtensorrt_rtx.so.1", linker_name=None)
    listfile = LISTFILE % "COMPONENTS tensorrt_rtx" + "target_link_libraries(program PRIVATE TensorRT::tensorrt_rtx)\n"
    project = make_project({"CMakeLists.txt": listfile, "main.cpp": MAIN})
    assert "version=1.3.0" in project.configure(f"-DTensorRT_ROOT={tmp_path}/sdk").must_succeed().text
    project.build().must_succeed()


def test_headers_and_a_library_of_different_versions_are_refused(make_project: MakeProject, tmp_path: Path) -> None:
    write_headers(tmp_path / "sdk" / "include", version=(10, 16, 1))
    make_library(tmp_path / "sdk" / "lib")
    project = make_project({"CMakeLists.txt": LISTFILE % "", "main.cpp": MAIN})
    project.configure(f"-DTensorRT_ROOT={tmp_path}/sdk").must_fail("headers and library differ", "is 10.16.1", "is 11")


def test_an_older_version_than_asked_for_is_refused(make_project: MakeProject, tmp_path: Path) -> None:
    write_headers(tmp_path / "sdk" / "include")
    make_library(tmp_path / "sdk" / "lib")
    project = make_project({"CMakeLists.txt": LISTFILE % "11.2", "main.cpp": MAIN})
    project.configure(f"-DTensorRT_ROOT={tmp_path}/sdk").must_fail('Found unsuitable version "11.1.0"')


@pytest.mark.parametrize("missing", ["NvInfer.h", "NvInferVersion.h", "lib"])
def test_what_is_missing_is_named(make_project: MakeProject, tmp_path: Path, missing: str) -> None:
    headers = write_headers(tmp_path / "sdk" / "include")
    if missing == "lib":
        expected = "TensorRT_LIBRARY"
    else:
        make_library(tmp_path / "sdk" / "lib")
        (headers / missing).unlink()
        expected = "TensorRT_INCLUDE_DIR" if missing == "NvInfer.h" else "no NvInferVersion.h"
    project = make_project({"CMakeLists.txt": LISTFILE % "", "main.cpp": MAIN})
    # The machine's own TensorRT, if it has one, must not stand in.
    project.configure(f"-DTensorRT_ROOT={tmp_path}/sdk", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF").must_fail(
        "Could NOT find TensorRT", expected
    )


def test_an_unknown_component_is_an_error(make_project: MakeProject) -> None:
    project = make_project({"CMakeLists.txt": LISTFILE % "COMPONENTS parsers", "main.cpp": MAIN})
    project.configure().must_fail("COMPONENTS takes nvinfer or tensorrt_rtx")
