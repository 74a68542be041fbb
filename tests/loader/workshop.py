"""Makes small ELF files with the C compiler, one call a file, and asks the real ld.so about them; it judges nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMPILER = shutil.which("gcc") or shutil.which("cc")
#: What tests that make programs are marked with; the reason is shown when they are skipped.
needs_compiler = [
    pytest.mark.compile,
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler (Debian package gcc)"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the graphs are written for x86-64 and glibc"),
]


def find_program(name: str) -> str | None:
    """The program `name` on PATH, past the scripts of that name which an environment of Python may have before it."""
    for directory in os.environ["PATH"].split(os.pathsep):
        found = shutil.which(name, path=directory)
        if found is not None:
            with open(found, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return found
    return None


START = 'void _start(void) { __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall"); }'


@dataclass
class Workshop:
    """A directory in which libraries and executables are made."""

    base: Path
    stubs: dict[str, Path] = field(default_factory=dict)

    def library(
        self,
        path: str,
        *,
        soname: str | None = None,
        needs: tuple[str, ...] = (),
        rpath: str | None = None,
        runpath: str | None = None,
        flags: tuple[str, ...] = (),
        source: str = "int unused;",
    ) -> Path:
        """A shared object at `path` below the base; `needs` become its DT_NEEDED as they are written."""
        more = ["-shared", *flags]
        if soname is not None:
            more.append(f"-Wl,-soname,{soname}")
        return self._link(path, source, needs, rpath, runpath, more)

    def executable(
        self,
        path: str,
        *,
        needs: tuple[str, ...] = (),
        rpath: str | None = None,
        runpath: str | None = None,
        flags: tuple[str, ...] = ("-pie",),
        source: str = START,
    ) -> Path:
        """An executable that only exits, with the usual interpreter."""
        more = ["-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2", *flags]
        return self._link(path, source, needs, rpath, runpath, more)

    def _stub(self, soname: str) -> Path:
        if soname not in self.stubs:
            directory = self.base / ".stubs"
            directory.mkdir(exist_ok=True)
            path = directory / f"{len(self.stubs)}.so"
            compile_c("int unused;", path, "-shared", f"-Wl,-soname,{soname}")
            self.stubs[soname] = path
        return self.stubs[soname]

    def _link(
        self,
        path: str,
        source: str,
        needs: tuple[str, ...],
        rpath: str | None,
        runpath: str | None,
        more: list[str],
    ) -> Path:
        target = self.base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if rpath is not None:
            more += ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{rpath}"]
        if runpath is not None:
            more += ["-Wl,--enable-new-dtags", f"-Wl,-rpath,{runpath}"]
        stubs = [str(self._stub(name)) for name in needs]
        compile_c(source, target, "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", *more, *stubs)
        return target


def compile_c(source: str, target: Path, *flags: str) -> None:
    """Compile and link `source` to `target`, without the C library."""
    assert COMPILER is not None
    command = [COMPILER, "-fPIC", "-O1", "-nostdlib", "-w", "-x", "c", "-", "-x", "none", *flags, "-o", str(target)]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Trace:
    """What the real ld.so did: the files in load order, the names it did not find, every path it tried, its error."""

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    tried: tuple[str, ...]
    error: str


def trace(
    program: Path,
    *,
    library_path: str | None = None,
    preload: str | None = None,
    prefix: tuple[str, ...] = (),
    cwd: Path,
) -> Trace:
    """Let the real ld.so load `program` without running it (LD_TRACE_LOADED_OBJECTS, as ldd does).

    `prefix` is a command that runs it.
    """
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_DEBUG": "libs", "LC_ALL": "C"}
    if library_path is not None:
        environment["LD_LIBRARY_PATH"] = library_path
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    if prefix:  # whose own libraries are nobody's business
        settings = [f"{name}={value}" for name, value in environment.items()]
        command, environment = [*prefix, "env", *settings, str(program)], {"PATH": os.environ["PATH"]}
    else:
        command = [str(program)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)
    loaded, missing = [], []
    for line in done.stdout.splitlines():
        name, arrow, where = line.strip().partition(" => ")
        if arrow and where == "not found":
            missing.append(name)
        # The loader itself is mapped whoever needs it: glibc 2.41 lists it always, 2.36 only when something needs it.
        elif not name.startswith("linux-vdso") and not (not arrow and "/ld-linux" in name):
            loaded.append(os.path.join(cwd, re.sub(r" \(0x[0-9a-f]+\)$", "", where or name)))
    tried = tuple(os.path.join(cwd, path) for path in re.findall(r"trying file=(\S+)", done.stderr))
    errors = re.findall(r"error while loading shared libraries: (.*)", done.stderr)
    return Trace(tuple(loaded), tuple(missing), tried, errors[0] if errors else "")
