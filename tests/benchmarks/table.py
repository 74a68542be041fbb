"""Measured series as a Markdown table. Plain values in, text out; measures nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.benchmarks.measure import minimum_ratio, paired_ratio, processor_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.measure import Series

_HEAD = (
    "| command | median | ratio | minimum | ratio | processor time | ratio | peak memory | status |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def make_table(series: Sequence[Series], *, floor: int) -> list[str]:
    """One row a series. Ratios are to the first one, whose row says 1.

    `floor` is the memory in bytes below which the system cannot tell a process from the one that started it.
    """
    reference = series[0]
    return [*_HEAD, *(_make_row(one, reference, floor) for one in series)]


def _make_row(one: Series, reference: Series, floor: int) -> str:
    cells = (
        one.label,
        show_time(one.wall_median),
        f"{paired_ratio(one, reference):.2f}",
        show_time(one.wall_minimum),
        f"{minimum_ratio(one, reference):.2f}",
        show_time(one.processor_median),
        f"{processor_ratio(one, reference):.2f}",
        show_memory(one.peak_memory, floor),
        ", ".join(map(str, one.statuses)),
    )
    return f"| {' | '.join(cells)} |"


def show_time(seconds: float) -> str:
    """Such as `61.3 ms`, or `3.31 s` from one second on."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def show_memory(size: int, floor: int) -> str:
    """Such as `16.5 MiB`; at most the floor for what is not above it."""
    if size <= floor:
        return f"at most {floor / 2**20:.1f} MiB"
    return f"{size / 2**20:.1f} MiB"
