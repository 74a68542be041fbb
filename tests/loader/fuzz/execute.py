"""Runs a built graph and reads what the program and its loader say; it compares nothing."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loader.fuzz.graph import Graph


@dataclass
class Report:
    """What the running program says."""

    #: Why the process ended early, or "".
    error: str = ""
    #: How many dlopens it had begun.
    begun: int = 0
    #: Which dlopen failed, and why.
    failed: int | None = None
    failure: str = ""
    maps: list[str] = field(default_factory=list)
    said: dict[tuple[str, int], str] = field(default_factory=dict)


def execute(graph: Graph, folder: Path) -> Report:
    """Run the program of `graph`, built in `folder`."""
    environment = {"LD_BIND_NOW": "1", "LC_ALL": "C"}
    if graph.library_path is not None:
        environment["LD_LIBRARY_PATH"] = graph.library_path
    if graph.preload:
        environment["LD_PRELOAD"] = ":".join(graph.preload)
    words = [f"./{graph.main.path}", *(mode + name for mode, name in graph.opens)]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=20)
    report = Report()
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        first, _, second = rest.partition(" ")
        if kind == "failed":
            report.failed, report.failure = int(first), second
        elif kind == "opening":
            report.begun = int(first) + 1
        elif kind == "map":
            report.maps.append(rest)
        else:
            report.said[(kind, int(first))] = second
    if done.returncode != 0:
        end = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        report.error = f"{done.stderr.strip()}\n{end}"
    return report
