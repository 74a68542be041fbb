"""The yard of the tests about families of link faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.programs.yard import Yard

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Yard:
    monkeypatch.chdir(tmp_path)  # so that no policy file of the checkout is found
    return Yard(tmp_path, capfd)
