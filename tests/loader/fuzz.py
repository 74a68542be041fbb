"""Random link graphs, run under the real ld.so and compared with what the loader package says about the same files.

    python -m tests.loader.fuzz --graphs 1000 --seed 1 [--keep DIR]

Each module has a function that says whose copy of `acc` (a function) and of `var` (an object) it reaches. A graph on
which the two disagree is kept as a folder with a script that builds and runs it again.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from linkcheck.elf.reader import read_image
from linkcheck.loader.files import Files
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.lookup import bindings
from linkcheck.loader.system import System

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import LoadSet

MAIN = 99
IMPORTS = ("import", "weak-import")
FUNCTIONS = (*IMPORTS, "plain", "weak", "hidden", "protected", "none", "v1", "v1-hidden", "v1-v2")
MAIN_KINDS = (*IMPORTS, "plain", "weak", "none")
OBJECTS = (*IMPORTS, "plain", "weak", "hidden", "protected", "unique", "none", "v1")

DRIVER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
static void *handles[16];
static int opened;
static void *find(const char *kind, int id) {
  char name[32];
  snprintf(name, sizeof name, "%s_%d", kind, id);
  void *found = dlsym(RTLD_DEFAULT, name);
  for (int i = 0; !found && i < opened; i++) found = dlsym(handles[i], name);
  return found;
}
static void say_function(int id, int (*who)(void)) { if (who) printf("acc %d %d\n", id, who()); }
static void say_object(int id, void *(*where)(void)) {
  if (!where) return;
  void *address = where();
  Dl_info info = {0};
  printf("var %d %s\n", id, !address ? "-" : dladdr(address, &info) ? info.dli_fname : "?");
}
int who_99(void);
void *where_99(void);
int main(int count, char **arguments) {
  setvbuf(stdout, 0, _IONBF, 0);
  for (int i = 1; i < count; i++) {
    int mode = RTLD_NOW | (arguments[i][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL);
    if (arguments[i][0] == 'd') mode |= RTLD_DEEPBIND;
    void *handle = dlopen(arguments[i] + 1, mode);
    if (!handle) { printf("failed %d %s\n", i - 1, dlerror()); break; }
    handles[opened++] = handle;
  }
  for (struct link_map *map = _r_debug.r_map; map; map = map->l_next) printf("map %s\n", map->l_name);
  for (int id = 0; id < 20; id++) {
    say_function(id, (int (*)(void))find("who", id));
    say_object(id, (void *(*)(void))find("where", id));
  }
  say_function(99, who_99);
  say_object(99, where_99);
  return 0;
}
"""


def write_source(number: int, function: str, object_: str) -> str:
    """The C of one module."""
    lines = []
    attribute = {
        "weak": "__attribute__((weak)) ",
        "hidden": '__attribute__((visibility("hidden"))) ',
        "protected": '__attribute__((visibility("protected"))) ',
    }
    if function == "import":
        lines.append("extern int acc(void);")
    elif function == "weak-import":
        lines.append("extern int acc(void) __attribute__((weak));")
    elif function == "v1-v2":
        lines.append('__asm__(".symver acc_old, acc@V1\\n.symver acc_new, acc@@V2");')
        lines.append(f"int acc_old(void) {{ return {number + 100}; }} int acc_new(void) {{ return {number}; }}")
        lines.append("extern int acc(void);")
    elif function == "v1-hidden":
        lines.append('__asm__(".symver acc_old, acc@V1");')
        lines.append(f"int acc_old(void) {{ return {number}; }}")
    elif function != "none":
        lines.append(f"{attribute.get(function, '')}int acc(void) {{ return {number}; }}")
    if object_ == "import":
        lines.append("extern int var;")
    elif object_ == "weak-import":
        lines.append("extern int var __attribute__((weak));")
    elif object_ == "unique":
        lines.append('extern int var; __asm__(".pushsection .data\\n.globl var\\n.type var, @gnu_unique_object\\n')
        lines[-1] += f'.size var, 4\\nvar: .long {number}\\n.popsection");'
    elif object_ != "none":
        lines.append(f"{attribute.get(object_, '')}int var = {number};")
    if function not in ("none", "v1-hidden", "v1-v2"):
        call = "acc ? acc() : -1" if function == "weak-import" else "acc()"
        lines.append(f"int who_{number}(void) {{ return {call}; }}")
    if object_ != "none":
        lines.append(f"void *where_{number}(void) {{ return &var; }}")
    if number == MAIN:
        if function == "none":
            lines.append("int who_99(void) { return -2; }")
        if object_ == "none":
            lines.append("void *where_99(void) { return 0; }")
    return "\n".join(lines) + "\n"


@dataclass
class Part:
    """One module of a graph, before it is built."""

    number: int
    directory: str
    file: str
    soname: str | None
    function: str
    object_: str
    needs: list[int]
    by_path: bool
    paths: list[str] = field(default_factory=list)
    tag: str = "runpath"
    symbolic: bool = False
    stripped: bool = False

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.file}"


@dataclass
class Graph:
    """A program: its libraries in build order, how the executable is linked, and what it opens."""

    seed: int
    parts: list[Part]
    main: Part
    flags: list[str]
    static_code: bool
    opens: list[tuple[str, str]]
    preload: list[str]
    library_path: str | None
    removed: str | None


def invent(seed: int) -> Graph:
    """The graph of this seed."""
    chance = random.Random(seed)
    parts: list[Part] = []
    directories = ["d0", "d1", "d2"]

    def paths() -> list[str]:
        picked = chance.sample(directories, chance.choice((0, 1, 2, 3, 3, 3)))
        return [f"$ORIGIN/../{directory}" for directory in picked]

    count = chance.randint(2, 7)
    liking = chance.choice(("plain", "hidden", "unique", "v1", "weak", "protected", "any"))

    def pick(kinds: tuple[str, ...]) -> str:
        roll = chance.random()
        if roll < 0.4:
            return chance.choice(IMPORTS if roll < 0.05 else ("import",))
        if liking in kinds and roll < 0.7:
            return liking
        return chance.choice(kinds)

    for number in range(count):
        name = f"libm{number}.so"
        soname: str | None = name
        directory = chance.choice(directories)
        if parts and chance.random() < 0.15:
            twin = chance.choice(parts)
            name, soname = twin.file, twin.soname
            others = [d for d in directories if all(p.path != f"{d}/{name}" for p in parts)]
            if not others:
                name, soname = f"libm{number}.so", f"libm{number}.so"
            else:
                directory = chance.choice(others)
        elif chance.random() < 0.15:
            soname = None
        elif chance.random() < 0.1:
            soname = f"libm{number}.so.1"
        parts.append(
            Part(
                number,
                directory,
                name,
                soname,
                pick(FUNCTIONS),
                pick(OBJECTS),
                sorted(
                    chance.sample(range(number), min(number, chance.choice((0, 0, 1, 1, 2, 3)))),
                    key=lambda _: chance.random(),
                ),
                chance.random() < 0.15,
                paths(),
                chance.choice(("rpath", "runpath", "runpath")),
                chance.random() < 0.2,
                chance.random() < 0.3,
            )
        )
    needs = chance.sample(range(count), chance.randint(0, min(3, count)))
    function, object_ = pick(MAIN_KINDS), pick(MAIN_KINDS)
    # The linker wants every strong import of an executable defined by something on its own line.
    if function in IMPORTS and not any(
        parts[n].function not in (*IMPORTS, "hidden", "none", "v1-hidden") for n in needs
    ):
        function = chance.choice(("plain", "none"))
    if object_ in IMPORTS and not any(parts[n].object_ not in (*IMPORTS, "hidden", "none") for n in needs):
        object_ = chance.choice(("plain", "none"))
    main = Part(MAIN, "bin", "main", None, function, object_, needs, chance.random() < 0.1)
    main.paths = [f"$ORIGIN/../{d}" for d in chance.sample(directories, 3 if chance.random() < 0.8 else 1)]
    main.tag = chance.choice(("rpath", "rpath", "runpath"))
    static_code = chance.random() < 0.4
    flags = ["-no-pie"] if static_code else ["-pie"]
    if chance.random() < 0.5:
        flags.append("-rdynamic")
    opens = []
    for part in chance.sample(parts, chance.choice((0, 1, 1, 2, 3)) if count > 3 else 1):
        name = part.file if chance.random() < 0.2 else part.path
        opens.append((chance.choice("llggd"), name))
    preload = [part.path for part in chance.sample(parts, 1)] if chance.random() < 0.15 else []
    library_path = chance.choice((None, None, None, "d0", "d1:d2", "d2:"))
    removed = chance.choice(parts).path if chance.random() < 0.05 else None
    return Graph(seed, parts, main, flags, static_code, opens, preload, library_path, removed)


class Yard:
    """Where graphs are built: compiled objects are shared between graphs, links are not."""

    def __init__(self, base: Path) -> None:
        self.objects = base / "objects"
        self.objects.mkdir(parents=True, exist_ok=True)

    def compile(self, source: str, name: str, *flags: str) -> Path:
        target = self.objects / f"{name}.o"
        if not target.exists():
            written = target.with_suffix(".c")
            written.write_text(source)
            run(["gcc", "-O1", "-w", *flags, "-c", str(written), "-o", str(target)])
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
            shutil.copy(compiled, folder / local)
            shutil.copy(compiled.with_suffix(".c"), folder / f"obj/m{part.number}.c")
            command = ["ld", "-shared", "-o", part.path, local, "--no-as-needed", "--allow-shlib-undefined"]
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
            do(command + self._search(part, "") + self._needs(graph, part))
        source = write_source(MAIN, graph.main.function, graph.main.object_)
        code = "-fno-pic" if graph.static_code else "-fPIE"
        name = f"main-{graph.main.function}-{graph.main.object_}{code}"
        for compiled, local in (
            (self.compile(DRIVER, "driver", "-fPIC"), "obj/driver.o"),
            (self.compile(source, name, code), "obj/main.o"),
        ):
            shutil.copy(compiled, folder / local)
            shutil.copy(compiled.with_suffix(".c"), (folder / local).with_suffix(".c"))
        command = ["gcc", *graph.flags, "-o", graph.main.path, "obj/driver.o", "obj/main.o", "-Wl,--no-as-needed"]
        command += ["-Wl,--allow-shlib-undefined", *self._search(graph.main, "-Wl,")]
        do(command + self._needs(graph, graph.main))
        if graph.removed is not None:
            do(["rm", graph.removed])
        return commands

    @staticmethod
    def _search(part: Part, prefix: str) -> list[str]:
        if not part.paths:
            return []
        tags = "--enable-new-dtags" if part.tag == "runpath" else "--disable-new-dtags"
        separator = "," if prefix else "="
        return [f"{prefix}{tags}", f"{prefix}-rpath{separator}{':'.join(part.paths)}"]

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


def run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuildError(f"{shlex.join(command)}\n{done.stderr}")


class CannotBuildError(Exception):
    """The linker refuses this graph (a copy relocation against a protected object, an undefined symbol, …)."""


@dataclass
class Report:
    """What the running program says."""

    error: str
    failed: int | None
    failure: str
    maps: list[str]
    said: dict[tuple[str, int], str]


def execute(graph: Graph, folder: Path) -> Report:
    environment = {"LD_BIND_NOW": "1", "LC_ALL": "C"}
    if graph.library_path is not None:
        environment["LD_LIBRARY_PATH"] = graph.library_path
    if graph.preload:
        environment["LD_PRELOAD"] = ":".join(graph.preload)
    words = [f"./{graph.main.path}", *(mode + name for mode, name in graph.opens)]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=20)
    report = Report("", None, "", [], {})
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        first, _, second = rest.partition(" ")
        if kind == "failed":
            report.failed, report.failure = int(first), second
        elif kind == "map":
            report.maps.append(rest)
        else:
            report.said[(kind, int(first))] = second
    if done.returncode != 0:
        report.error = done.stderr.strip() or f"exit status {done.returncode}"
    return report


def compare(graph: Graph, folder: Path) -> Iterator[str]:
    """The disagreements between the run and the loader package."""
    report = execute(graph, folder)
    system = System(
        read_image,
        Files(working_directory=str(folder)),
        library_path=() if graph.library_path is None else (graph.library_path,),
    )
    done = len(graph.opens) if report.failed is None else report.failed
    opens = [Dlopen(name, mode == "g", mode == "d") for mode, name in graph.opens]
    root = read_image(str(folder / graph.main.path))
    preload = graph.preload
    if report.error:
        load_set = load(root, system, preload=preload)
        yield from explain_failure(load_set, report.error)
        return
    load_set = load(root, system, preload=preload, dlopen=opens[:done])
    # A preload that is not there is passed over.
    names = [u.needed for u in load_set.unresolved if u.needed not in preload]
    if names:
        yield f"runs, but we say unresolved: {names}"
        return
    ours = [m.image.path for m in load_set.modules[1:]]
    maps = [os.path.join(folder, name) for name in report.maps if name and "linux-vdso" not in name]
    if report.failed is not None:
        # Where a failed dlopen was undone, nothing is left of it.
        after = load(root, system, preload=preload, dlopen=opens[: done + 1])
        yield from explain_failure(after, report.failure)
    if sorted(ours) != sorted(maps) or [p for p in ours if "ld-linux" not in p] != [
        p for p in maps if "ld-linux" not in p
    ]:
        yield f"maps {maps}, ours {ours}"
        return
    numbers = {str(folder / part.path): part.number for part in graph.parts}
    numbers[str(folder / graph.main.path)] = MAIN
    identities = {Path(path).stat().st_ino: number for path, number in numbers.items() if Path(path).exists()}
    by_index = [identities.get(module.image.inode) for module in load_set.modules]
    for binding in bindings(load_set, ["acc", "var"]):
        number = by_index[binding.module]
        if number is None or binding.kind.value == "hidden":
            continue
        said = report.said.get((binding.symbol, number))
        part = graph.main if number == MAIN else graph.parts[number]
        # A module of two versions has its own uses bound by the assembler's rules, and says nothing.
        if said is None or (binding.symbol == "acc" and part.function.startswith("v1-")):
            continue
        provider = None if binding.provider is None else by_index[binding.provider]
        if binding.symbol == "acc":
            real = int(said) % 100 if int(said) >= 0 else None
        elif said == "-":
            real = None
        else:
            real = identities.get(os.stat(folder / said).st_ino)
        if real != provider:
            yield f"{binding.symbol} of {number} ({binding.kind.value}): really {real}, ours {provider}"


def explain_failure(load_set: LoadSet, message: str) -> Iterator[str]:
    """Whether we, too, see why the program could not start or open a library."""
    if match := re.search(r"undefined symbol: (\w+)", message):
        unbound = [b for b in bindings(load_set, [match[1]]) if b.provider is None and not b.weak]
        if not unbound and not load_set.unresolved:
            yield f"{message}, but we find everything bound"
    elif "cannot open shared object file" in message:
        if not load_set.unresolved:
            yield f"{message}, but we find every file"
    # A file that lacks the versions it was linked with (glibc before 2.41 aborts where it has none at all).
    elif not re.search(r"version `\w+' not found|no version information|check_match: Assertion", message):
        yield f"unexpected failure: {message}"


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


@dataclass
class Tally:
    """How a run of the fuzzer went."""

    compared: int = 0
    unbuildable: int = 0
    disagreeing: list[int] = field(default_factory=list)


def fuzz(seeds: range, keep: Path | None = None) -> Tally:
    """Build, run and compare the graphs of `seeds`."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as base:
        yard = Yard(Path(base))
        for seed in seeds:
            graph = invent(seed)
            folder = Path(base).resolve() / "graph"
            if folder.exists():
                shutil.rmtree(folder)
            try:
                commands = yard.build(graph, folder)
            except CannotBuildError:
                tally.unbuildable += 1
                continue
            differences = list(compare(graph, folder))
            tally.compared += 1
            if differences:
                tally.disagreeing.append(seed)
                print(f"seed {seed}:", *differences, sep="\n  ")
                if keep is not None:
                    keep_folder(graph, folder, commands, keep / str(seed))
                    print(f"  kept in {keep / str(seed)}; run again.sh there")
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--graphs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "linkcheck-graphs")
    options = parser.parse_args()
    tally = fuzz(range(options.seed, options.seed + options.graphs), options.keep)
    print(
        f"{tally.compared} graphs compared, {tally.unbuildable} not buildable, {len(tally.disagreeing)} disagreements"
    )
    return 1 if tally.disagreeing else 0


if __name__ == "__main__":
    sys.exit(main())
