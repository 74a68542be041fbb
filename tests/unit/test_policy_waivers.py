"""Which finding a waiver accepts, and which waivers accept none or are past their day."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest

from linkcheck.model import Confidence, Finding, Location, Severity
from linkcheck.policy.settings import Waiver
from linkcheck.policy.waivers import apply_waivers

if TYPE_CHECKING:
    from pathlib import Path

DAY = datetime.date(2026, 6, 30)
CODES = ("LC301", "LC401", "LC403", "LC901", "LC902")
GUARD = "ns::Guard::Guard(CUstream_st*)"
KNOWN = {GUARD: ("_ZN2ns5GuardC1EP11CUstream_st", "_ZN2ns5GuardC2EP11CUstream_st")}


def finding(
    path: str = "lib/liba.so", *, code: str = "LC403", symbol: str | None = None, others: tuple[str | None, ...] = ()
) -> Finding:
    related = tuple(Location(path, other) for other in others)
    return Finding(code, "name", Severity.ERROR, Confidence.HIGH, "message", "remedy", Location(path, symbol), related)


def waiver(
    path: str = "lib/*",
    *,
    code: str = "LC403",
    symbol: str | None = None,
    expires: datetime.date = DAY,
    source: str = "linkcheck.toml",
) -> Waiver:
    return Waiver(code, path, "the reason", "the owner", expires, symbol, source, 7)


def apply(
    findings: list[Finding], waivers: list[Waiver], today: datetime.date = DAY, codes: tuple[str, ...] = CODES
) -> tuple[list[Waiver | None], list[str]]:
    """The waiver of each finding, and what became of the others: "unused" or "expired"."""
    waived = apply_waivers(findings, waivers, today, codes=codes, mangled_names=KNOWN)
    assert [r.finding for r in waived.reported] == findings
    about = [*("unused" for _ in waived.unused), *("expired" for _ in waived.expired)]
    return [r.waiver for r in waived.reported], about


# ---------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("lib/*", "lib/liba.so", True),
        ("lib/*", "lib/deep/liba.so", True),  # * passes over slashes, as in fnmatch
        ("./lib/*", "lib/liba.so", True),
        ("lib/*", "./lib/liba.so", True),
        ("liba.so", "lib/liba.so", True),
        ("liba*", "lib/liba.so", True),
        ("lib[ab].so", "lib/libb.so", True),
        ("lib/liba.so", "other/lib/liba.so", False),
        ("bin/*", "lib/liba.so", False),
        ("lib", "lib/liba.so", False),
        ("LIB/*", "lib/liba.so", False),
        ("*", "/any/where.so", True),
        ("pkg.whl!/lib/*", "pkg.whl!/lib/x.so", True),
        ("*plugin*", "plugin-team/out/runner", False),  # without a slash it is the file's name that counts
        ("*plugin*", "plugin-team/out/libplugin.so", True),
        ("pkg.whl!*", "pkg.whl!/lib/x.so", False),
        ("plugin-team/*", "plugin-team/out/runner", True),
    ],
)
def test_paths_as_shown(pattern: str, path: str, fits: bool) -> None:
    accepted = waiver(pattern)
    assert apply([finding(path)], [accepted])[0] == [accepted if fits else None]


def test_paths_from_the_policys_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build").mkdir()
    accepted = waiver("build/lib/*", source=str(tmp_path / "linkcheck.toml"))
    shown = str(tmp_path / "build/lib/liba.so")
    assert apply([finding(shown)], [accepted])[0] == [accepted]
    monkeypatch.chdir(tmp_path / "build")
    assert apply([finding("lib/liba.so")], [accepted])[0] == [accepted]
    monkeypatch.chdir(tmp_path.parent)
    assert apply([finding("lib/liba.so")], [accepted])[0] == [None]


@pytest.mark.parametrize(("code", "fits"), [("LC403", True), ("LC4", True), ("LC401", False), ("LC40", True)])
def test_codes_are_prefixes(code: str, fits: bool) -> None:
    accepted = waiver(code=code)
    assert apply([finding()], [accepted])[0] == [accepted if fits else None]


@pytest.mark.parametrize(
    ("wanted", "symbol", "fits"),
    [
        (None, None, True),
        (None, "f", True),
        ("f", "f", True),
        ("f", "g", False),
        ("f", None, False),
        (GUARD.replace("*", " *"), KNOWN[GUARD][1], True),
        (GUARD, GUARD, True),
        ("ns::*", "_ZN2ns3fooEv", True),
        ("ns::*", "_ZN5other3fooEv", False),
        ("omp_*", "omp_init_lock", True),
    ],
)
def test_symbols(wanted: str | None, symbol: str | None, fits: bool) -> None:
    accepted = waiver(symbol=wanted)
    assert apply([finding(symbol=symbol)], [accepted])[0] == [accepted if fits else None]


@pytest.mark.parametrize(
    ("wanted", "others", "fits"),
    [
        ("f", ("g",), False),
        ("f", ("f", None), True),  # a place without a symbol, such as the file of the other copy
        ("*", ("g", "h"), True),
        (GUARD, KNOWN[GUARD], True),
        (None, ("g",), True),
    ],
)
def test_every_symbol_of_a_finding_must_be_meant(
    wanted: str | None, others: tuple[str | None, ...], fits: bool
) -> None:
    accepted = waiver(symbol=wanted)
    first = GUARD if wanted == GUARD else "f"
    assert apply([finding(symbol=first, others=others)], [accepted])[0] == [accepted if fits else None]


def test_the_first_of_several_waivers_is_given_and_all_count_as_used() -> None:
    waivers = [waiver("bin/*"), waiver("lib/*"), waiver("*")]
    assert apply([finding()], waivers) == ([waivers[1]], ["unused"])


# ---------------------------------------------------------------- days


def test_the_day_of_expiry_is_valid_and_the_next_is_not() -> None:
    accepted = waiver()
    assert apply([finding()], [accepted], DAY) == ([accepted], [])
    assert apply([finding()], [accepted], DAY + datetime.timedelta(days=1)) == ([None], ["expired"])


@pytest.mark.parametrize(
    ("codes", "about"),
    [
        (CODES, ["unused"]),
        (("LC403",), ["unused"]),
        (("LC301", "LC901"), []),  # the rule that the waiver is about did not run
    ],
)
def test_an_unused_waiver_is_only_judged_when_its_rule_ran(codes: tuple[str, ...], about: list[str]) -> None:
    assert apply([], [waiver()], codes=codes)[1] == about


def test_a_removed_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    accepted = waiver()
    assert apply([finding()], [accepted])[0] == [accepted]
