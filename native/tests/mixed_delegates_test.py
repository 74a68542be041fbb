"""Two delegates on one caller stream, and the same program with the caller-stream library there twice.

    mixed_delegates_test.py PROGRAM DUPLICATE_PROGRAM LINKCHECK_PACKAGE_DIR

The first passes. The second is the same program over a copy delegate that has the library's code linked in: there the
same test must fail, because the delegates work on two streams, and linkcheck must say so without running it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def run(*command: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) if path is None else {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def expect(holds: bool, what: str, result: subprocess.CompletedProcess[str]) -> None:
    if not holds:
        raise SystemExit(f"{what}\n{result.stdout}{result.stderr}")


def main(arguments: list[str]) -> int:
    program, duplicate, package_dir = map(Path, arguments)
    alone = run(program)
    expect(alone.returncode == 0, "one library: the delegates must be ordered", alone)
    twice = run(duplicate)
    expect(twice.returncode == 1, "two libraries: the same test must fail", twice)
    expect("nothing orders them" in twice.stdout, "it must fail because nothing orders the two", twice)
    if importlib.util.find_spec("click") is None:
        print("click, which linkcheck needs, is not installed: it is not asked")
        return SKIPPED
    verify = (sys.executable, "-m", "linkcheck", "verify", "--profile", "executorch-caller-stream")
    checked = run(*verify, program, path=package_dir)
    expect(checked.returncode == 0, "linkcheck must pass the program with one library", checked)
    checked = run(*verify, duplicate, path=package_dir)
    expect(checked.returncode == 1 and "LC401" in checked.stdout, "linkcheck must see the duplicate", checked)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
