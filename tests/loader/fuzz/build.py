"""Builds a random graph with the compiler and the linker, and keeps one with the script that does it again."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.loader.fuzz.graph import MAIN
from tests.loader.fuzz.source import DRIVER, write_source
from tests.loader.fuzz.toolchain import DRIVERS, link_words

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.model import Libc
    from tests.loader.fuzz.graph import Graph, Part


class Yard:
    """Where graphs are built: compiled objects are shared between graphs, links are not."""

    def __init__(self, base: Path, libc: Libc) -> None:
        self.libc = libc
        self.objects = base / "objects"
        self.objects.mkdir(parents=True, exist_ok=True)

    def compile(self, source: str, name: str, *flags: str, compiler: str = "gcc") -> Path:
        target = self.objects / f"{name}.o"
        if not target.exists():
            written = target.with_suffix(".c")
            written.write_text(source)
            run([compiler, "-O1", "-w", *flags, "-c", str(written), "-o", str(target)])
        return target

    def build(self, graph: Graph, folder: Path) -> list[list[str]]:
        """Build the graph in `folder`; the commands, run there, for the script that does it again."""
        commands: list[list[str]] = []

        def do(command: list[str]) -> None:
            run(command, cwd=folder)
            commands.append(command)

        for directory in ("d0", "d1", "d2", "bin", "obj"):
            (folder / directory).mkdir(parents=True, exist_ok=True)
        scripts = {
            "v1": "V1 { global: acc; var; who_*; where_*; };\n",
            "v2": "V1 { global: acc; }; V2 { global: acc; var; who_*; where_*; } V1;\n",
        }
        for name, text in scripts.items():
            (folder / f"{name}.map").write_text(text)
        for part in graph.parts:
            source = write_source(part.number, part.function, part.object_)
            compiled = self.compile(source, f"m{part.number}-{part.function}-{part.object_}", "-fPIC")
            local = f"obj/m{part.number}.o"
            place(compiled, folder / local)
            linker = "ld.gold" if part.gold and shutil.which("ld.gold") else "ld"
            command = [linker, "-shared", "-o", part.path, local, "--no-as-needed", "--allow-shlib-undefined"]
            if part.soname is not None:
                command += ["-soname", part.soname]
            if part.function == "v1-v2":
                command += ["--version-script", "v2.map"]
            elif part.function.startswith("v1") or part.object_ == "v1":
                command += ["--version-script", "v1.map"]
            if part.symbolic:
                command.append("-Bsymbolic")
            if part.stripped:
                command.append("-s")
            do(command + self._search(part) + self._needs(graph, part))
        source = write_source(MAIN, graph.main.function, graph.main.object_)
        code = "-fno-pic" if graph.static_code else "-fPIE"
        name = f"main-{graph.main.function}-{graph.main.object_}{code}"
        place(self.compile(DRIVER, "driver", "-fPIC", compiler=DRIVERS[self.libc]), folder / "obj/driver.o")
        place(self.compile(source, name, code), folder / "obj/main.o")
        before, after = link_words(self.libc, tuple(graph.flags))
        command = [*before, "-o", graph.main.path, "obj/driver.o", "obj/main.o", "--no-as-needed"]
        command += ["--allow-shlib-undefined", *self._search(graph.main), *self._needs(graph, graph.main), *after]
        do(command)
        if graph.removed is not None:
            do(["rm", graph.removed])
        return commands

    @staticmethod
    def _search(part: Part) -> list[str]:
        if not part.paths:
            return []
        tags = "--enable-new-dtags" if part.tag == "runpath" else "--disable-new-dtags"
        return [tags, f"-rpath={':'.join(part.paths)}"]

    @staticmethod
    def _needs(graph: Graph, part: Part) -> list[str]:
        words = []
        for number in part.needs:
            needed = graph.parts[number]
            # A library without SONAME that is given by path is needed by that path; else by its name.
            # -l: takes the first directory on the line that has the file, so twins need the path.
            has_twin = sum(p.file == needed.file for p in graph.parts) > 1
            by_path = part.by_path or has_twin
            words += [needed.path] if by_path else [f"-L{needed.directory}", f"-l:{needed.file}"]
        return words


def place(compiled: Path, target: Path) -> None:
    """Put a compiled object and its source into a graph's folder."""
    os.link(compiled, target)
    os.link(compiled.with_suffix(".c"), target.with_suffix(".c"))


def run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuildError(f"{shlex.join(command)}\n{done.stderr}")


class CannotBuildError(Exception):
    """The linker refuses this graph (a copy relocation against a protected object, an undefined symbol, …)."""


def keep_folder(graph: Graph, folder: Path, commands: list[list[str]], kept: Path) -> None:
    """Copy a failing graph to `kept`, with the script that builds and runs it."""
    if kept.exists():
        shutil.rmtree(kept)
    shutil.copytree(folder, kept)
    words = [f"./{graph.main.path}", *(mode + name for mode, name in graph.opens)]
    environment = ["LD_BIND_NOW=1"]
    if graph.library_path is not None:
        environment.append(f"LD_LIBRARY_PATH={shlex.quote(graph.library_path)}")
    if graph.preload:
        environment.append(f"LD_PRELOAD={shlex.quote(':'.join(graph.preload))}")
    script = ["#!/bin/sh", f"# {graph}", 'cd "$(dirname "$0")"', *map(shlex.join, commands)]
    script.append(f"{' '.join(environment)} {shlex.join(words)}")
    (kept / "again.sh").write_text("\n".join(script) + "\n")
    (kept / "again.sh").chmod(0o755)
