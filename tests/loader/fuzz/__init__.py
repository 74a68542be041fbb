"""Random link graphs, run under the real loader and compared with what the loader package says about the same files.

    python -m tests.loader.fuzz --graphs 1000 --seed 1 [--libc musl] [--keep DIR]

Each module has a function that says whose copy of `acc` (a function) and of `var` (an object) it reaches. A graph on
which the two disagree is kept as a folder with a script that builds and runs it again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from linkcheck.model import Libc
from tests.loader.fuzz.build import CannotBuildError, Yard, keep_folder
from tests.loader.fuzz.compare import compare
from tests.loader.fuzz.graph import invent

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass
class Tally:
    """How a run of the fuzzer went."""

    compared: int = 0
    unbuildable: int = 0
    disagreeing: list[int] = field(default_factory=list)
    #: How the programs ended: "ran", or the kind of failure that the loader reported.
    endings: Counter[str] = field(default_factory=Counter)


def fuzz(seeds: Iterable[int], libc: Libc = Libc.GLIBC, keep: Path | None = None) -> Tally:
    """Build, run and compare the graphs of `seeds`."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as base:
        yard = Yard(Path(base), libc)
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
            comparison = compare(graph, folder, libc)
            tally.compared += 1
            tally.endings[comparison.ending] += 1
            if comparison.differences:
                tally.disagreeing.append(seed)
                print(f"seed {seed}:", *comparison.differences, sep="\n  ", flush=True)
                if keep is not None:
                    keep_folder(graph, folder, commands, keep / str(seed))
                    print(f"  kept in {keep / str(seed)}; run again.sh there", flush=True)
    return tally
