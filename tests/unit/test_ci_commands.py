"""What ci/gate and ci/test say on a machine that lacks something; a machine that has all runs them for real."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """A folder for PATH with no more on it than the scripts need to start."""
    for command in ("bash", "dirname", "id"):
        found = shutil.which(command)
        assert found is not None, command
        (tmp_path / command).symlink_to(found)
    (tmp_path / "python3").symlink_to(sys.executable)
    return tmp_path


def run(script: str, path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", ROOT / script], env={"PATH": str(path), **variables}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("script", ["ci/gate", "ci/test"])
def test_a_missing_compiler_is_one_line_that_names_the_package(bare_machine: Path, script: str) -> None:
    done = run(script, bare_machine)
    assert (done.returncode, done.stdout) == (2, "")
    headers = {
        "gmock/gmock.h": "libgmock-dev",
        "gtest/gtest.h": "libgtest-dev",
        "nlohmann/json.hpp": "nlohmann-json3-dev",
    }
    absent = [package for header, package in headers.items() if not Path("/usr/include", header).exists()]
    packages = " ".join(sorted(["binutils", "g++", "gcc", "make", *absent]))
    assert done.stderr == f"ci: missing here: as root, apt-get install {packages}\n"


def test_a_missing_python_is_one_line_that_names_the_package(bare_machine: Path) -> None:
    (bare_machine / "python3").unlink()
    done = run("ci/gate", bare_machine)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ci: python3 is missing: install the Debian package python3\n"


def test_an_old_python_is_one_line_that_says_which_is_needed(bare_machine: Path) -> None:
    old = bare_machine / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 || exit 1\n')
    old.chmod(0o755)
    done = run("ci/gate", bare_machine, PYTHON="old-python")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ci: Python 3.9.2 is too old: install Python 3.10 or newer and name it in PYTHON\n"


def test_the_ci_service_calls_ci_test(bare_machine: Path) -> None:
    (bare_machine / "python3").unlink()
    assert run(".ci/run", bare_machine).returncode == run("ci/test", bare_machine).returncode == 2
