"""Makes small C and C++ libraries flag by flag, opens them in a real process, and asks linkcheck of that process.

It judges nothing. The process is `host`, a program that opens what it is told to, in that order, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkcheck.cli.run import run
from tests.cli.verify_command import Verdict, verify

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

#: Opens each file it is told to, those marked with @ by RTLD_GLOBAL, and prints what `probe` of each one returns.
HOST = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    int global = *names[i] == '@';
    void *library = dlopen(names[i] + global, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library) { printf("%s\\n", dlerror()); return 1; }
    int (*probe)(void) = (int (*)(void))dlsym(library, "probe");
    if (probe) printf("%d ", probe());
  }
  return 0;
}
"""


@dataclass(frozen=True)
class Ran:
    """What a real process came to."""

    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class Opening:
    """One dlopen of the host, in the order of the list it stands in."""

    path: Path | str
    shared: bool = False  # RTLD_GLOBAL

    @property
    def argument(self) -> str:
        return f"{'@' if self.shared else ''}{self.path}"

    @property
    def policy(self) -> str:
        mode = "global" if self.shared else "local"
        return f'[[dlopen]]\nfrom = "host"\npath = "{self.path}"\nmode = "{mode}"\n'


class Yard:
    """A directory with what one test makes."""

    def __init__(self, base: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.base = base
        self._capfd = capfd

    def library(self, path: str, source: str, *flags: str | Path, soname: str | None = None) -> Path:
        """A shared library; its SONAME is the file's name, or none for `soname=""`."""
        name = path.rpartition("/")[2] if soname is None else soname
        naming = [f"-Wl,-soname,{name}"] if name else []
        return self._build(path, source, "-shared", *naming, *flags)

    def program(self, path: str, source: str, *flags: str | Path) -> Path:
        return self._build(path, source, *flags)

    def archive(self, path: str, source: str, *flags: str) -> Path:
        """A static archive of one object file."""
        unit = self._build(f"{path}.o", source, "-c", *flags)
        subprocess.run(["ar", "rcs", self.base / path, unit], check=True)
        return self.base / path

    def host(self) -> Path:
        path = self.base / "host"
        return path if path.exists() else self.program("host", HOST, "-ldl")

    def run(self, program: Path, *arguments: str, **environment: str) -> Ran:
        """Run a program in the directory with nothing but `environment`, so that no LD_LIBRARY_PATH decides."""
        done = subprocess.run(
            [str(program), *arguments],
            env={"LC_ALL": "C", **environment},
            cwd=self.base,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout.strip(), done.stderr)

    def open(self, *openings: Opening | Path) -> Ran:
        """What happens when the host opens these."""
        return self.run(self.host(), *(opening.argument for opening in _as_openings(openings)))

    def judge(self, *openings: Opening | Path, policy: str = "", profile: str | None = None) -> Verdict:
        """What `verify` says of the host that opens these."""
        edges = "".join(opening.policy for opening in _as_openings(openings))
        more = [] if profile is None else ["--profile", profile]
        return self.verify(self.host(), "--policy", self.policy(policy + edges), *more)

    def policy(self, text: str) -> Path:
        """A policy file of this text; it lies beside what is made, and is not found unless it is named."""
        path = self.base / "policy-of-the-test.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def verify(self, *arguments: str | Path) -> Verdict:
        return verify(self._capfd, *arguments)

    def ask(self, command: str, *arguments: str | Path) -> Any:
        """The JSON document of another command, which has to end with 0 or 1."""
        assert run([command, *map(str, arguments), "--format", "json"]) in (0, 1)
        captured = self._capfd.readouterr()
        assert captured.err == ""
        return json.loads(captured.out)

    def _build(self, path: str, source: str, *flags: str | Path) -> Path:
        target = self.base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler, language = ("g++", "c++") if "#c++" in source else ("gcc", "c")
        command = [
            compiler,
            "-O1",
            "-fPIC",
            "-w",
            "-x",
            language,
            "-",
            "-x",
            "none",
            *map(str, flags),
            "-o",
            str(target),
        ]
        text = source.replace("#c++", "")
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=self.base, check=False)
        assert done.returncode == 0, done.stderr
        return target


def _as_openings(openings: Sequence[Opening | Path]) -> list[Opening]:
    return [opening if isinstance(opening, Opening) else Opening(opening) for opening in openings]
