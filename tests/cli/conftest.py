"""What tests of several commands run them by; it judges nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: Root reads everything; without these two capabilities the modes of its own files hold for it, too.
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


@pytest.fixture
def prefix(tmp_path: Path) -> tuple[str, ...]:
    """What a command is run by, so that a file of mode 0 is unreadable for it."""
    if os.geteuid() != 0:
        return ()
    probe = tmp_path / "probe"
    probe.touch(mode=0)
    if shutil.which("setpriv") is None or subprocess.run([*WITHOUT_OVERRIDE, "true"], check=False).returncode:
        pytest.skip("root reads every file, and there is no setpriv that may take this away")
    assert subprocess.run([*WITHOUT_OVERRIDE, "test", "-r", str(probe)], check=False).returncode == 1
    return WITHOUT_OVERRIDE
