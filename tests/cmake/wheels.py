"""Libraries of public wheels, fetched with pip. A test that cannot have one skips and says why."""

from __future__ import annotations

import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.cmake.project import run_command

if TYPE_CHECKING:
    from pathlib import Path


def fetch_member(requirement: str, member: str, folder: Path) -> Path:
    """The file `member` of the wheel of `requirement` (name==version), unpacked to `folder`."""
    with zipfile.ZipFile(fetch_wheel(requirement, folder)) as wheel:
        wheel.extract(member, folder)
    return folder / member


def fetch_wheel(requirement: str, folder: Path) -> Path:
    """The wheel of `requirement` (name==version), in `folder`."""
    run = run_command(
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--disable-pip-version-check", "-d", folder, requirement,
    )  # fmt: skip
    wheels = list(folder.glob("*.whl"))
    if run.status != 0 or not wheels:
        reason = run.raw.strip().splitlines()[-1] if run.raw.strip() else f"pip ended with {run.status}"
        pytest.skip(f"the wheel {requirement} cannot be had: {reason}")
    return wheels[0]
