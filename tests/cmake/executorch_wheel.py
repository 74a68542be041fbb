"""The installed executorch wheel that native/ builds against. A test that cannot have it skips and says why."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cmake.project import ROOT, run_command

if TYPE_CHECKING:
    from collections.abc import Callable


def pinned() -> str:
    """`executorch==<version>` as ci/ installs it."""
    text = (ROOT / "ci" / "constraints.txt").read_text(encoding="utf-8")
    found = re.search(r"^executorch==\S+$", text, re.MULTILINE)
    assert found is not None, "ci/constraints.txt pins no executorch"
    return found[0]


def executorch_directory(make_folder: Callable[[], Path]) -> Path:
    """The package's folder: that of this environment, as ci/ makes it, or one installed into `make_folder()`."""
    found = importlib.util.find_spec("executorch")
    if found is not None and found.submodule_search_locations:
        return Path(found.submodule_search_locations[0])
    folder = make_folder()
    pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
    run = run_command(*pip, "--target", folder, pinned())
    if run.status != 0:
        reason = run.raw.strip().splitlines()[-1] if run.raw.strip() else f"pip ended with {run.status}"
        pytest.skip(f"{pinned()} cannot be had: {reason}")
    return folder / "executorch"
