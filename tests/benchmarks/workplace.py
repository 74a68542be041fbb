"""What the benchmark measures and with what: wheels, environments and tools, made in a temporary directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


class NotAvailableError(Exception):
    """Something to measure, or to compare with, cannot be had here; the text says what and why."""


def clean_environment() -> dict[str, str]:
    """The environment without Python's own variables: PYTHONDONTWRITEBYTECODE alone doubles the time of a start."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def find_tool(name: str) -> str:
    """The path of the program `name`. Raises NotAvailableError when PATH has none."""
    path = shutil.which(name)
    if path is None:
        raise NotAvailableError(f"{name}: not on PATH")
    return path


def make_environment(directory: Path, *requirements: str) -> Path:
    """A virtual environment with `requirements`, and nothing in it editable: an editable install slows every start.

    Returns its `bin`. Raises NotAvailableError when pip cannot install them.
    """
    _run([sys.executable, "-m", "venv", str(directory)], f"an environment for {' '.join(requirements)}")
    binaries = directory / "bin"
    install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, *requirements], " ".join(requirements))
    return binaries


def copy_project(directory: Path) -> Path:
    """A copy of this project to install from: building in place leaves files behind, and takes in what is left."""
    unwanted = shutil.ignore_patterns(".git", ".?*_cache", "__pycache__", "build", "*.egg-info", "venv", ".venv")
    return Path(shutil.copytree(PROJECT, directory, symlinks=False, ignore=unwanted))


def fetch_wheel(requirement: str, directory: Path) -> Path:
    """The directory that the wheel of `requirement` is unpacked into; NotAvailableError when there is none."""
    unpacked = directory / requirement.partition("==")[0].replace("-", "_")
    with zipfile.ZipFile(download_wheel(requirement, directory)) as archive:
        archive.extractall(unpacked)
    return unpacked


def download_wheel(requirement: str, directory: Path) -> Path:
    """The wheel file of `requirement`, below `directory`; NotAvailableError when there is none."""
    downloads = directory / "downloads"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    _run([*download, "--dest", str(downloads), requirement], requirement)
    name = requirement.partition("==")[0].replace("-", "_")
    (wheel,) = downloads.glob(f"{name}-*.whl")
    return wheel


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, cwd="/", env=clean_environment(), capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise NotAvailableError(f"{what}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise NotAvailableError(f"{what}: {last[0]}")
