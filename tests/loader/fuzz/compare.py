"""Compares what a program said when it ran with what the loader package says about the same files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from linkcheck.elf.reader import read_image
from linkcheck.loader.files import Files
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.lookup import bindings
from linkcheck.loader.system import System
from linkcheck.model import FoundBy, Libc
from tests.loader.fuzz.endings import foresee, read_faults
from tests.loader.fuzz.execute import execute
from tests.loader.fuzz.graph import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Binding, LoadSet
    from tests.loader.fuzz.execute import Report
    from tests.loader.fuzz.graph import Graph


@dataclass
class Comparison:
    """How the program ended, and the disagreements."""

    ending: str
    differences: list[str]


def compare(graph: Graph, folder: Path, libc: Libc) -> Comparison:
    """Run the program of `graph`, built in `folder`, and compare."""
    report = execute(graph, folder)
    system = System(
        read_image,
        Files(working_directory=str(folder)),
        library_path=() if graph.library_path is None else (graph.library_path,),
    )
    opens = [Dlopen(name, mode == "g", mode == "d") for mode, name in graph.opens]
    root = read_image(str(folder / graph.main.path))

    def load_with(count: int) -> LoadSet:
        load_set = load(root, system, preload=graph.preload, dlopen=opens[:count])
        assert load_set.libc is libc
        return load_set

    if report.error:
        faults = read_faults(report.error, libc)
        ending = " and ".join(sorted({kind for kind, _ in faults})) or "unknown message"
        # musl reports everything that is wrong at the start, glibc ends with the first.
        complete = libc is Libc.MUSL and not report.begun
        foreseen = foresee(load_with(report.begun if report.failed is None else report.failed), graph.preload)
        return Comparison(ending, list(compare_faults(faults, foreseen, complete, report)))
    done = len(opens) if report.failed is None else report.failed
    # Where a failed dlopen was undone, nothing is left of it.
    load_set = load_with(done)
    differences = []
    if foreseen := foresee(load_set, graph.preload):
        differences.append(f"runs, but we foresee {sorted(foreseen)}")
    if report.failed is not None:
        faults = read_faults(report.failure, libc)
        differences += compare_faults(faults, foresee(load_with(done + 1), graph.preload), False, report)
    if not differences:
        differences += compare_process(graph, folder, load_set, report)
    return Comparison("ran" if report.failed is None else "a dlopen failed", differences)


def compare_faults(
    said: set[tuple[str, str]], foreseen: set[tuple[str, str]], complete: bool, report: Report
) -> Iterator[str]:
    """Whether we foresee what the loader said; `complete`: it said everything that is wrong."""
    if not said:
        yield f"unexpected failure: {report.error or report.failure}"
    elif said != foreseen if complete else not said <= foreseen:
        yield f"the loader says {sorted(said)}, we foresee {sorted(foreseen)}"


def compare_process(graph: Graph, folder: Path, load_set: LoadSet, report: Report) -> Iterator[str]:
    """Compare what is mapped, in order, and what every module reaches."""
    ours = [m.image.path for m in load_set.modules[1:] if m.found_by is not FoundBy.INTERPRETER]
    loader = {os.path.realpath(m.image.path) for m in load_set.modules if m.found_by is FoundBy.INTERPRETER}
    loader.add(os.path.realpath(str(load_set.root.interpreter)))
    maps = [os.path.join(folder, name) for name in report.maps if name and "linux-vdso" not in name]
    maps = [path for path in maps if os.path.realpath(path) not in loader]
    if ours != maps:
        yield f"maps {maps}, ours {ours}"
        return
    numbers = {str(folder / part.path): part.number for part in (*graph.parts, graph.main)}
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
        real = read_provider(binding, said, folder, identities)
        if real != provider:
            yield f"{binding.symbol} of {number} ({binding.kind.value}): really {real}, ours {provider}"


def read_provider(binding: Binding, said: str, folder: Path, identities: dict[int, int]) -> int | None:
    """The number of the module that a module said it reached."""
    if binding.symbol == "acc":
        return int(said) % 100 if int(said) >= 0 else None
    return None if said == "-" else identities.get(os.stat(folder / said).st_ino)
