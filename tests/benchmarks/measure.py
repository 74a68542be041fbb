"""Runs commands and takes their whole-process time and peak memory. Knows no subject and prints nothing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Run:
    """One process from its start to its end. Times in seconds, memory in bytes."""

    wall: float
    #: In user and kernel mode, with that of its children.
    processor: float
    peak_memory: int
    #: What a shell would see: the exit status, or 128 and the signal.
    status: int


@dataclass(frozen=True)
class Series:
    """The runs of one command, in the order they were made."""

    label: str
    runs: tuple[Run, ...]

    @property
    def wall_median(self) -> float:
        """In seconds."""
        return median(run.wall for run in self.runs)

    @property
    def wall_minimum(self) -> float:
        """In seconds: what remains when nothing else disturbs."""
        return min(run.wall for run in self.runs)

    @property
    def processor_median(self) -> float:
        """In seconds; a busy machine changes it less than the wall time."""
        return median(run.processor for run in self.runs)

    @property
    def peak_memory(self) -> int:
        """The largest of all runs, in bytes."""
        return max(run.peak_memory for run in self.runs)

    @property
    def statuses(self) -> tuple[int, ...]:
        """Each exit status that occurred, sorted."""
        return tuple(sorted({run.status for run in self.runs}))


def run_once(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Run `command` (the program by its path) with its output thrown away.

    Raises OSError when it cannot be started.
    """
    quiet = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    start = time.perf_counter()
    process = os.posix_spawn(command[0], list(command), environment, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - start
    exit_status = os.waitstatus_to_exitcode(status)
    return Run(
        wall,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        exit_status if exit_status >= 0 else 128 - exit_status,
    )


def alternate(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], *, runs: int, warm_up: int = 2
) -> tuple[Series, ...]:
    """Run every command `runs` times, all in turn, so that what disturbs the machine disturbs all of them.

    The first `warm_up` turns fill the caches of the machine and are not counted.
    """
    counted: dict[str, list[Run]] = {label: [] for label in commands}
    for turn in range(warm_up + runs):
        for label, command in commands.items():
            run = run_once(command, environment)
            if turn >= warm_up:
                counted[label].append(run)
    return tuple(Series(label, tuple(found)) for label, found in counted.items())


def paired_ratio(series: Series, reference: Series) -> float:
    """The median of the quotients of runs that were made one after the other: both had the same disturbance."""
    return median(mine.wall / other.wall for mine, other in zip(series.runs, reference.runs, strict=True))


def minimum_ratio(series: Series, reference: Series) -> float:
    """The quotient of the shortest runs."""
    return series.wall_minimum / reference.wall_minimum


def processor_ratio(series: Series, reference: Series) -> float:
    """As paired_ratio, of the processor times."""
    return median(mine.processor / other.processor for mine, other in zip(series.runs, reference.runs, strict=True))
