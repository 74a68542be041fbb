"""Runs the command as users do, in a process of its own, with a bound on its time; it judges nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import linkcheck

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMAND = (sys.executable, "-m", "linkcheck")
TREE = str(Path(linkcheck.__file__).parent.parent)
#: Whatever takes longer waits for something that never comes.
SECONDS = 30


@dataclass(frozen=True)
class Ended:
    """How the process ended and what it wrote."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def errors(self) -> list[str]:
        """The lines of standard error."""
        return self.err.decode("utf-8", "surrogateescape").splitlines()


def environment(**changes: str) -> dict[str, str]:
    """The environment of a user's shell: this one without what belongs to the tests."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")}
    return {**kept, "PYTHONPATH": TREE, "LC_ALL": "C.UTF-8", **changes}


def linkcheck_command(
    *arguments: str | bytes | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    shell: str | None = None,
    prefix: Sequence[str] = (),
) -> Ended:
    """Run linkcheck with `arguments`.

    `prefix` is a command that runs it, and `shell` is shell text around `"$@"`, such as '"$@" >/dev/full'.
    """
    command: Sequence[str | bytes | Path] = (*prefix, *COMMAND, *arguments)
    if shell is not None:
        command = ("bash", "-c", shell, "bash", *command)
    done = subprocess.run(command, cwd=cwd, env=env or environment(), capture_output=True, timeout=SECONDS, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)
