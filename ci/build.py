"""Configures and builds native/ with the tools of this environment; ci/gate and ci/native share it. It runs no test."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "native"
#: cmake, ctest, ninja and linkcheck lie beside the interpreter of the environment.
TOOLS = Path(sys.executable).parent


class NoBuildError(Exception):
    """native/ could not be built; the text is one line that says what failed. The tool's own message came before."""


def executorch_folder() -> Path:
    """The folder of the installed `executorch` package. Raises NoBuildError when there is none."""
    found = importlib.util.find_spec("executorch")
    if found is None or not found.submodule_search_locations:
        raise NoBuildError("the Python package executorch is not installed here")
    return Path(found.submodule_search_locations[0])


def configure(preset: str, folder: Path, *options: str) -> None:
    """Configure `preset` in `folder`. Raises NoBuildError."""
    prefix = f"-DCMAKE_PREFIX_PATH={executorch_folder()}"
    call(TOOLS / "cmake", "--preset", preset, "-B", folder, prefix, "--log-level=WARNING", *options)


def build(folder: Path, *targets: str) -> None:
    """Build `targets`, or all that is built by default. Raises NoBuildError."""
    call(TOOLS / "cmake", "--build", folder, *(part for target in targets for part in ("--target", target)))


def call(*command: str | Path) -> None:
    """Run `command` in native/, where the presets are. Raises NoBuildError."""
    words = [str(word) for word in command]
    try:
        status = subprocess.run(words, cwd=NATIVE).returncode
    except OSError as problem:
        raise NoBuildError(f"{words[0]}: {problem.strerror}") from problem
    if status != 0:
        raise NoBuildError(f"{Path(words[0]).name} {words[1]} ended with status {status}, its message is above")
