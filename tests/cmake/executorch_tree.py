"""A small tree with the shape of an ExecuTorch checkout: as much as its extension/cuda needs, written for the tests."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.cmake.project import CALLER_STREAM, write

if TYPE_CHECKING:
    from pathlib import Path

# As there, the listfile rests on variables of ExecuTorch's top level, carries the project's version in its name, and
# installs into an export set of the whole.
LISTFILE = """
cmake_minimum_required(VERSION 3.19)
if(NOT EXECUTORCH_ROOT)
  message(FATAL_ERROR "EXECUTORCH_ROOT is not set")
endif()
add_library({target} {library_type} caller_stream.cpp)
target_include_directories({target} PUBLIC ${{_common_include_directories}})
target_compile_options({target} PUBLIC ${{_common_compile_options}})
set_target_properties({target} PROPERTIES
  OUTPUT_NAME executorch_extension_cuda VERSION "${{PROJECT_VERSION}}" SOVERSION "${{PROJECT_VERSION_MAJOR}}")
install(TARGETS {target} EXPORT ExecuTorchTargets
  LIBRARY DESTINATION ${{CMAKE_INSTALL_LIBDIR}} ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}}
  INCLUDES DESTINATION ${{_common_include_directories}})
"""


def write_executorch_tree(root: Path, *, target: str = "extension_cuda", library_type: str = "SHARED") -> Path:
    """Write the tree to `root` and return it."""
    extension = root / "extension" / "cuda"
    write(extension / "CMakeLists.txt", LISTFILE.format(target=target, library_type=library_type))
    shutil.copy(CALLER_STREAM / "caller_stream.cpp", extension)
    shutil.copy(CALLER_STREAM / "include" / "executorch" / "extension" / "cuda" / "caller_stream.h", extension)
    write(root / "version.txt", "1.5.1a0\n")
    (root / "runtime" / "core" / "portable_type" / "c10").mkdir(parents=True)
    return root
