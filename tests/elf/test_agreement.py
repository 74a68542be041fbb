"""Our reader agrees with pyelftools and LIEF on real files; and the comparison would notice if it did not."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.elf import agreement
from tests.elf.agreement import Facts, SymbolFact, differ, read_ours, read_with_lief, read_with_pyelftools

_PROJECT = Path(__file__).parents[2]


def _compare_below(folder: str) -> tuple[int, int]:
    """Files and symbols compared below `folder`, when all agree; fails with what differs."""
    command = [sys.executable, "-m", "tests.elf.agreement", folder]
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"(\d+) files, (\d+) dynamic symbols, 0 files differ", done.stdout)
    assert counts, done.stdout
    return int(counts[1]), int(counts[2])


@pytest.mark.slow
def test_on_every_elf_file_of_the_system() -> None:
    files, symbols = _compare_below("/usr/lib")
    assert files > 100
    assert symbols > 10_000


@pytest.mark.network
@pytest.mark.slow
def test_on_every_elf_file_of_the_executorch_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "executorch==1.5.1", "-d", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"executorch 1.5.1 cannot be had: {(done.stderr.strip() or 'pip failed').splitlines()[-1]}")
    (wheel,) = tmp_path.glob("executorch-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    files, symbols = _compare_below(str(tmp_path / "wheel"))
    assert files >= 5
    assert symbols > 1_000


@pytest.fixture
def facts() -> Facts:
    symbols = (SymbolFact("f", 1, 2, 0, True, "V1", False), SymbolFact("g", 1, 2, 0, False, "", False))
    return Facts(("libc.so.6",), "libx.so", None, "$ORIGIN", 8, 1, symbols)


def test_every_fact_is_compared(facts: Facts) -> None:
    assert list(differ(facts, facts)) == []
    assert list(differ(facts, replace(facts, symbols=None))) == []  # pyelftools without section headers
    other = Facts((), None, "/lib", None, 0, 0, ())
    for field in fields(Facts):
        (line,) = differ(facts, replace(facts, **{field.name: getattr(other, field.name)}))
        assert field.name in line


def test_every_fact_of_a_symbol_is_compared(facts: Facts) -> None:
    assert facts.symbols is not None
    first, second = facts.symbols
    other = SymbolFact("h", 2, 1, 3, False, "V2", True)
    for field in fields(SymbolFact):
        changed = replace(first, **{field.name: getattr(other, field.name)})
        assert len(list(differ(facts, replace(facts, symbols=(changed, second))))) == 1


def test_the_three_views_are_full_ones() -> None:
    path = str(Path(sys.executable).resolve())
    views = [read(path) for read in (read_ours, read_with_pyelftools, read_with_lief)]
    assert views[0] == views[1] == views[2]
    assert views[0].symbols
    assert any(symbol.version for symbol in views[0].symbols)


def test_a_difference_is_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.so"
    path.write_bytes(Path(sys.executable).resolve().read_bytes()[:3000])
    assert agreement.compare(str(path)).differences
    assert agreement.main([str(tmp_path)]) == 1
    assert "1 files differ" in capsys.readouterr().out
