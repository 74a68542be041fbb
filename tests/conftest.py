"""What several parts of the tests share and is costly to get: fetched once a run."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

RUNNER_WHEEL = "torch-tensorrt==2.14.0"
RUNTIME_WHEEL = "torch-tensorrt-executorch-runtime==0.1.0"
#: One build of each wheel, whichever Python runs the tests: it is only read.
TAG = ("--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311")
PLATFORM = "--platform=manylinux_2_28_x86_64"


def pytest_configure() -> None:
    """Whoever runs the tests in the background (`&`, nohup) ignores SIGINT and SIGHUP, and so would their programs: a
    process that execve starts takes over what is ignored (man 7 signal)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def torch_tensorrt_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public wheel that ships an ExecuTorch runner with a shared caller stream; for tests marked `network`."""
    return _fetch(RUNNER_WHEEL, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def executorch_runtime_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public wheel that ships the same delegate for Python, with another build of the caller stream."""
    return _fetch(RUNTIME_WHEEL, tmp_path_factory.mktemp("wheel"))


def _fetch(requirement: str, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["--retries=1", "--timeout=20", *TAG, PLATFORM, "-d", str(directory), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        problem = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except subprocess.TimeoutExpired:
        problem = ["it took more than 300 seconds"]
    wheels = sorted(directory.glob("*.whl"))
    if problem or len(wheels) != 1:
        pytest.skip(f"cannot get {requirement} from the package index: {' '.join(problem) or 'no wheel came'}")
    return wheels[0]
