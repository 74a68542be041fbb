"""What a small file can ask of the search, and how the search ends then."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader import load as loading
from linkcheck.loader.load import load
from linkcheck.loader.search import MAX_PROBES, Probes
from linkcheck.loader.system import System
from linkcheck.model import Check, Finding, Outcome
from linkcheck.policy.load import load_settings
from linkcheck.rules import ALL_CODES, unreachable_needed, unresolved_needed
from tests.elf.builder import Plan, build

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.model import Image
    from linkcheck.policy.settings import Settings


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(rule_codes=ALL_CODES, profile="executorch-caller-stream")


def write(path: Path, needed: int, directories: int) -> str:
    names = tuple(f"libnope{i}.so" for i in range(needed))
    plan = Plan(needed=names, runpath=":".join(f"/nowhere/{i}" for i in range(directories)))
    path.write_bytes(build(plan).data)
    return str(path)


def test_two_thousand_libraries_in_two_thousand_directories_are_given_up(tmp_path: Path, settings: Settings) -> None:
    root = read_image(write(tmp_path / "root.so", 2000, 2000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    load_set = load(root, System(read_image))
    results = [*unresolved_needed.check(load_set, settings), *unreachable_needed.check(load_set, settings)]
    # Without the limit these are four million directories, five seconds and a gigabyte.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 3
    searched = [u for u in load_set.unresolved if not u.given_up]
    assert len(load_set.unresolved) == 2000
    assert 0 < len(searched) <= MAX_PROBES // 2000
    assert len({id(u.directories) for u in searched}) == 1
    findings = [result for result in results if isinstance(result, Finding)]
    assert len(findings) == len(searched)
    assert max(len(finding.message) for finding in findings) < 1000
    assert "and 198" in findings[0].message
    unknown = [r for r in results if isinstance(r, Check) and r.outcome is Outcome.UNKNOWN]
    assert [check.code for check in unknown] == ["LC202", "LC203"]
    assert f"given up after {MAX_PROBES} directories" in unknown[0].reason
    assert not [r for r in results if isinstance(r, Check) and r.outcome is Outcome.PASS]


def test_what_is_found_before_the_limit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libz0.so").write_bytes(build(Plan(soname="libz0.so")).data)
    plan = Plan(needed=("libz0.so", "libz1.so"), runpath=f"/nowhere:{tmp_path}")
    (tmp_path / "root.so").write_bytes(build(plan).data)
    monkeypatch.setattr(loading, "Probes", lambda: Probes(3))
    load_set = load(read_image(str(tmp_path / "root.so")), System(read_image))
    assert [module.requested_as for module in load_set.modules[1:]] == ["libz0.so"]
    assert [(u.needed, bool(u.given_up)) for u in load_set.unresolved] == [("libz1.so", True)]


def test_a_search_that_an_earlier_process_made_counts_as_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("libz0.so", "libz1.so"):
        (tmp_path / name).write_bytes(build(Plan(soname=name)).data)
    plan = Plan(needed=("libz0.so", "libz1.so"), runpath=f"/nowhere:{tmp_path}")
    (tmp_path / "root.so").write_bytes(build(plan).data)
    root = read_image(str(tmp_path / "root.so"))
    system = System(read_image)
    whole = load(root, system)
    assert [module.requested_as for module in whole.modules[1:]] == ["libz0.so", "libz1.so"]
    assert load(root, system) == whole
    monkeypatch.setattr(loading, "Probes", lambda: Probes(3))
    limited = load(root, system)
    assert [module.requested_as for module in limited.modules[1:]] == ["libz0.so"]
    assert [(u.needed, bool(u.given_up)) for u in limited.unresolved] == [("libz1.so", True)]


def test_the_places_of_a_search_decide_what_is_remembered(tmp_path: Path) -> None:
    """Two programs need the same name and search different directories; a third finds none."""
    system = System(read_image)
    found = []
    for place in ("one", "two", "none"):
        (tmp_path / place).mkdir()
        if place != "none":
            (tmp_path / place / "libz0.so").write_bytes(build(Plan(soname="libz0.so")).data)
        root = tmp_path / f"{place}.so"
        root.write_bytes(build(Plan(needed=("libz0.so",), runpath=f"$ORIGIN/{place}")).data)
        found.append([module.image.path for module in load(read_image(str(root)), system).modules[1:]])
    assert found == [[str(tmp_path / "one/libz0.so")], [str(tmp_path / "two/libz0.so")], []]


def test_a_file_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_image(path: str) -> Image:
        opened.append(path)
        return read_image(path)

    (tmp_path / "libz0.so").write_bytes(build(Plan(soname="libz0.so")).data)
    (tmp_path / "root.so").write_bytes(build(Plan(needed=("libz0.so",), runpath=f"{tmp_path}/./.")).data)
    system = System(open_image)
    library = read_image(str(tmp_path / "libz0.so"))
    system.know(library)
    load_set = load(read_image(str(tmp_path / "root.so")), system)
    assert opened == []
    assert load_set.modules[1].image.symbols is library.symbols
    assert load_set.modules[1].image.path == f"{tmp_path}/././libz0.so"
    assert load(read_image(str(tmp_path / "root.so")), system).modules[1].image is load_set.modules[1].image
