"""What every CMake test needs: the linkcheck command of this checkout, a project folder, and a library to select."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.cmake.libraries import Libraries
from tests.cmake.project import ROOT, Project, run_command, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class MakeProject(Protocol):
    def __call__(self, files: Mapping[str, str], generator: str = "Ninja") -> Project: ...


@pytest.fixture(scope="session")
def linkcheck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `linkcheck` command that runs this checkout, whatever is installed."""
    command = write(
        tmp_path_factory.mktemp("bin") / "linkcheck",
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m linkcheck "$@"\n',
    )
    command.chmod(0o755)
    return command


@pytest.fixture
def make_project(tmp_path: Path, linkcheck: Path) -> MakeProject:
    def make(files: Mapping[str, str], generator: str = "Ninja") -> Project:
        return Project(tmp_path / "project", files, linkcheck=linkcheck, generator=generator)

    return make


@pytest.fixture(scope="session")
def cudart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty libcudart.so.13: their library needs the file and imports nothing of it."""
    folder = tmp_path_factory.mktemp("cudart")
    empty = write(folder / "empty.c", "")
    name = "libcudart.so.13"
    run_command("gcc", "-shared", "-nostdlib", empty, f"-Wl,-soname,{name}", "-o", folder / name).must_succeed()
    return folder


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    return Libraries(tmp_path_factory.mktemp("libraries"))
