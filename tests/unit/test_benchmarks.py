"""The arithmetic and the table of tests/benchmarks, on plain values and on processes whose cost is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.measure import Run, Series, alternate, minimum_ratio, paired_ratio, processor_ratio, run_once
from tests.benchmarks.peers import elf_files, make_row
from tests.benchmarks.table import make_table, show_memory, show_time

MIB = 1 << 20


def series(label: str, *walls: float, processor: float = 0.05, memory: int = 20 * MIB, status: int = 0) -> Series:
    return Series(label, tuple(Run(wall, processor, memory, status) for wall in walls))


def test_the_middle_and_the_least_of_a_series() -> None:
    one = series("x", 0.5, 0.1, 0.2)
    assert (one.wall_median, one.wall_minimum) == (0.2, 0.1)
    assert series("x", 0.1, 0.2).wall_median == pytest.approx(0.15)


def test_the_peak_of_a_series_is_its_largest() -> None:
    runs = (Run(0.1, 0.1, 5 * MIB, 0), Run(0.1, 0.1, 7 * MIB, 1), Run(0.1, 0.1, 6 * MIB, 0))
    assert Series("x", runs).peak_memory == 7 * MIB
    assert Series("x", runs).statuses == (0, 1)


def test_a_disturbance_of_neighbouring_runs_changes_no_paired_ratio() -> None:
    reference = series("reference", 0.1, 0.9, 0.1)
    assert paired_ratio(series("x", 0.15, 1.35, 0.15), reference) == pytest.approx(1.5)
    assert processor_ratio(series("x", 1.0, processor=0.2), series("r", 1.0, processor=0.1)) == pytest.approx(2)
    assert minimum_ratio(series("x", 0.3, 0.9), series("r", 0.4, 0.2)) == pytest.approx(1.5)


def test_series_of_different_lengths_have_no_paired_ratio() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_ratio(series("x", 0.1), series("r", 0.1, 0.2))


@pytest.mark.parametrize(("seconds", "shown"), [(0.0613, "61.3 ms"), (0.9994, "999.4 ms"), (3.314, "3.31 s")])
def test_times_have_a_unit(seconds: float, shown: str) -> None:
    assert show_time(seconds) == shown


def test_memory_that_cannot_be_told_from_the_measuring_process_is_a_bound() -> None:
    assert show_memory(17 * MIB, 14 * MIB) == "17.0 MiB"
    assert show_memory(14 * MIB, 14 * MIB) == "at most 14.0 MiB"
    assert show_memory(3 * MIB, 14 * MIB) == "at most 14.0 MiB"


def test_the_table_has_a_row_a_command_and_ratios_to_the_first() -> None:
    rows = make_table([series("click", 0.05, 0.05), series("verify", 0.075, 0.06, status=1)], floor=MIB)
    assert len({row.count("|") for row in rows}) == 1
    assert rows[2].split(" | ") == [
        "| click",
        "50.0 ms",
        "1.00",
        "50.0 ms",
        "1.00",
        "50.0 ms",
        "1.00",
        "20.0 MiB",
        "0 |",
    ]
    assert rows[3].split(" | ") == [
        "| verify",
        "67.5 ms",
        "1.35",
        "60.0 ms",
        "1.20",
        "50.0 ms",
        "1.00",
        "20.0 MiB",
        "1 |",
    ]


def test_commands_take_turns(tmp_path: object) -> None:
    log = f"{tmp_path}/log"
    commands = {
        name: [sys.executable, "-c", f"open({log!r}, 'a').write({name!r}); raise SystemExit({status})"]
        for name, status in (("a", 0), ("b", 3))
    }
    first, second = alternate(commands, {}, runs=2, warm_up=1)
    with open(log, encoding="utf-8") as file:
        assert file.read() == "ababab"
    assert (first.label, len(first.runs), first.statuses) == ("a", 2, (0,))
    assert (second.label, len(second.runs), second.statuses) == ("b", 2, (3,))


def test_the_time_of_a_process_is_its_own() -> None:
    run = run_once([sys.executable, "-c", "import time; time.sleep(0.3)"], {})
    assert run.wall >= 0.3 > run.processor


def test_the_memory_of_a_process_is_its_own() -> None:
    """Measured by a small process: what is measured counts as large as who started it, and pytest may be large."""
    code = f"""
import sys
from tests.benchmarks.measure import run_once
print(run_once([sys.executable, "-c", "pass"], {{}}).peak_memory)
print(run_once([sys.executable, "-c", "x = bytearray({200 * MIB}); x[::4096] = x[::4096]"], {{}}).peak_memory)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    small, large = map(int, done.stdout.split())
    assert small < 200 * MIB <= large


def test_a_signal_is_told_as_a_shell_tells_it() -> None:
    assert run_once([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], {}).status == 137


def test_what_cannot_be_started_is_an_error() -> None:
    with pytest.raises(OSError, match="No such file"):
        run_once(["/nowhere/at/all"], {})


def test_a_peer_is_shown_as_ratios_to_the_first() -> None:
    first, peer = series("ours", 0.5, memory=20 * MIB), series("peer", 2.0, memory=50 * MIB, status=1)
    assert make_row(peer, first, MIB) == "| peer | 1 | 2.00 s | 4.00 | 50.0 ms | 1.00 | 50.0 MiB | 2.50 | 1 |"


def test_memory_that_cannot_be_told_apart_is_no_ratio() -> None:
    small, large = series("small", 0.5, memory=20 * MIB), series("large", 0.5, memory=50 * MIB)
    floor = 25 * MIB
    assert "| at most 25.0 MiB | not told apart |" in make_row(small, series("ours", 0.5, memory=10 * MIB), floor)
    assert "| 50.0 MiB | at least 2.00 |" in make_row(large, small, floor)
    assert "| at most 25.0 MiB | at most 0.50 |" in make_row(small, large, floor)


def test_a_peer_that_was_ended_says_so() -> None:
    peer = series("peer", 40.0, status=124)
    first = series("ours", 0.5, 0.5)  # what took long has fewer runs
    row = make_row(peer, first, MIB)
    assert "| more than 40.00 s | more than 80.00 |" in row
    assert row.endswith("| ended by the limit |")


def test_elf_files_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "one").write_bytes(b"\x7fELF...")
    (tmp_path / "text.so").write_text("text")
    (tmp_path / "link").symlink_to("below/one")
    assert list(elf_files(tmp_path)) == [str(tmp_path / "below" / "one")]
