"""LC902 expired-waiver, of what policy/waivers.py found expired."""

from __future__ import annotations

import datetime

from linkcheck.model import Severity
from linkcheck.rules import expired_waiver
from tests.unit.rules.waived import DAY, FINDING, about_waivers, waiver


def test_finds_a_waiver_after_its_day_and_says_whose_it_is() -> None:
    (found,) = about_waivers([FINDING], [waiver()], today=DAY + datetime.timedelta(days=1))
    assert (found.code, found.name) == (expired_waiver.META.code, expired_waiver.META.name)
    assert (found.severity, expired_waiver.META.severity) == (Severity.ERROR, Severity.ERROR)
    assert (
        "expired on 2026-06-30 and accepts nothing any more; its reason was “the reason” (owner: the owner)"
        in found.message
    )
    assert found.message.startswith("the waiver of LC403 on lib/*, line 7, expired on")
    assert "have the owner decide anew" in found.remedy
    assert found.primary.path == "linkcheck.toml"
    assert found.evidence == {
        "line": 7,
        "code": "LC403",
        "path": "lib/*",
        "symbol": None,
        "reason": "the reason",
        "owner": "the owner",
        "expires": "2026-06-30",
    }


def test_passes_a_waiver_on_its_last_day() -> None:
    assert about_waivers([FINDING], [waiver()], today=DAY) == []


def test_cannot_see_whether_the_fault_is_gone_and_reports_the_waiver_all_the_same() -> None:
    (found,) = about_waivers([], [waiver()], today=DAY + datetime.timedelta(days=1))
    assert found.code == "LC902"
