"""LC901 unused-waiver, of what policy/waivers.py found unused; what fits is in test_policy_waivers.py."""

from __future__ import annotations

from dataclasses import replace

from linkcheck.model import Location, Severity
from linkcheck.rules import unused_waiver
from tests.unit.rules.waived import DAY, FINDING, about_waivers, waiver


def test_finds_a_waiver_that_accepts_nothing() -> None:
    (found,) = about_waivers([FINDING], [waiver(path="lib/other.so")])
    assert found.evidence["line"] == 7
    assert (found.code, found.name) == (unused_waiver.META.code, unused_waiver.META.name)
    assert (found.severity, unused_waiver.META.severity) == (Severity.WARNING, Severity.WARNING)
    assert "the waiver of LC403 on lib/other.so, line 7, accepts no finding of this run" in found.message
    assert found.primary.path == "linkcheck.toml"


def test_names_the_symbols_of_the_finding_that_only_the_symbol_misses() -> None:
    about_two = replace(FINDING, primary=Location("lib/liba.so", "a_get"), related=(Location("lib/liba.so", "a_put"),))
    (found,) = about_waivers([about_two], [waiver(symbol="a_get")])
    assert "the finding of LC403 on such a file is about a_get and a_put" in found.message
    assert found.remedy == "Correct `symbol`, or leave it out."
    (elsewhere,) = about_waivers([about_two], [waiver(path="lib/other.so", symbol="a_get")])
    assert "is about" not in elsewhere.message
    assert about_waivers([about_two], [waiver(symbol="a_*")]) == []


def test_passes_a_waiver_that_accepts_a_finding() -> None:
    assert about_waivers([FINDING], [waiver()]) == []


def test_cannot_see_whether_a_waiver_is_used_when_its_rules_do_not_run() -> None:
    assert about_waivers([], [waiver()], codes=("LC301", "LC901", "LC902"), today=DAY) == []
