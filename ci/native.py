"""Builds native/ with each preset that is named and runs its tests; `ci/native` calls it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from ci.build import ROOT, TOOLS, NoBuildError, build, configure

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PRESETS = ("embedded", "asan")


def main(presets: list[str]) -> int:
    """0 when all tests of all `presets` passed, 1 when some failed, 2 when something could not be built or run."""
    failed = []
    try:
        for preset in presets or DEFAULT_PRESETS:
            print(f"ci: native, preset {preset}", flush=True)
            folder = ROOT / "build" / f"native-{preset}"
            configure(preset, folder)
            build(folder)
            if not passes(folder):
                failed.append(preset)
    except NoBuildError as problem:
        print(f"ci: {problem}", file=sys.stderr)
        return 2
    if failed:
        print(f"ci: native tests failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def passes(folder: Path) -> bool:
    """Whether the tests of the build tree `folder` passed. Raises NoBuildError when they cannot even start."""
    # The script's line and not its parts: so the tests show that the line is right.
    line = library_path_line(folder)
    if line:
        print(f"ci: {line}", flush=True)
    ctest = (str(TOOLS / "ctest"), "--test-dir", str(folder), "--output-on-failure")
    return subprocess.run(["sh", "-c", f'{line}\nexec "$@"', "ctest", *ctest]).returncode == 0


def library_path_line(folder: Path) -> str:
    """What `ci/library-path` says of the build tree; it is empty when nothing is missing. Raises NoBuildError."""
    script = (sys.executable, "-m", "ci.library_path", str(folder))
    done = subprocess.run(script, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise NoBuildError(f"the programs in {folder} would not start, the message is above")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
