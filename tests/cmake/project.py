"""A throw-away CMake project: a dict becomes files, and the real cmake configures, builds and tests it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "cmake"
CALLER_STREAM = ROOT / "native" / "caller_stream"
#: What the modules ask for (cmake_policy(VERSION 3.28...)), and ExecuTorch's package as well.
OLDEST_CMAKE = (3, 28)
#: What a user's environment may hold and would change what cmake or ld.so does.
STRANGERS = re.compile(
    r"LD_.*|CMAKE_.*|CTEST_.*|CFLAGS|CXXFLAGS|LDFLAGS|CC|CXX|LINKCHECK_.*|PYTHON.*|DESTDIR|MAKEFLAGS"
)

PREAMBLE = """
cmake_minimum_required(VERSION 3.28)
project(subject LANGUAGES CXX)
find_package(linkcheck REQUIRED)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What a command answered. `text` has all it printed with runs of white space as one: cmake wraps its messages."""

    status: int
    raw: str

    @property
    def text(self) -> str:
        return " ".join(self.raw.split())

    def must_succeed(self) -> Run:
        assert self.status == 0, self.raw
        return self

    def must_fail(self, *messages: str) -> Run:
        """It failed, and said each of `messages`."""
        assert self.status != 0, f"it should have failed:\n{self.raw}"
        for message in messages:
            assert message in self.text, f"“{message}” is not in:\n{self.raw}"
        return self


class Project:
    """One project folder with one build folder."""

    def __init__(self, folder: Path, files: Mapping[str, str], *, linkcheck: Path, generator: str = "Ninja") -> None:
        self.source = folder / "source"
        self.build_folder = folder / "build"
        self.linkcheck = linkcheck
        self.generator = generator
        for name, text in files.items():
            write(self.source / name, text)

    def configure(self, *options: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> Run:
        """Configure with linkcheck's modules and command given; an option given here wins over that."""
        return run_command(
            cmake(),
            "-S",
            self.source,
            "-B",
            self.build_folder,
            "-G",
            self.generator,
            f"-Dlinkcheck_DIR={MODULES}",
            f"-DLINKCHECK_EXECUTABLE={self.linkcheck}",
            *options,
            cwd=cwd,
            environment=environment,
        )

    def build(self, *arguments: str) -> Run:
        return run_command(cmake(), "--build", self.build_folder, *arguments)

    def test(self) -> Run:
        return run_command(Path(cmake()).with_name("ctest"), "--output-on-failure", cwd=self.build_folder)

    def program(self, name: str) -> Run:
        return run_command(self.build_folder / name)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def run_command(*command: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> Run:
    """Run `command` in an environment without what is in STRANGERS, with `environment` laid over it."""
    clean = {name: value for name, value in os.environ.items() if not STRANGERS.fullmatch(name)}
    clean["LC_ALL"] = "C"
    # pip's ninja lies beside this interpreter, and the environment need not be activated.
    clean["PATH"] = f"{Path(sys.executable).parent}:{clean['PATH']}"
    clean.update(environment or {})
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return Run(done.returncode, done.stdout)


@cache
def cmake() -> str:
    """A cmake that is new enough: pip's beside this interpreter, else the machine's; skips the test without one."""
    for candidate in (Path(sys.executable).with_name("cmake"), shutil.which("cmake")):
        if candidate is None or not Path(candidate).exists():
            continue
        version = re.search(r"version (\d+)\.(\d+)", run_command(candidate, "--version").raw)
        if version is not None and (int(version[1]), int(version[2])) >= OLDEST_CMAKE:
            return str(candidate)
    pytest.skip("needs cmake 3.28 or newer: pip install cmake")
