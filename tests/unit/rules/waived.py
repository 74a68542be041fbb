"""A finding and a waiver of plain values, for tests of the two rules about waivers."""

from __future__ import annotations

import datetime

from linkcheck.model import Confidence, Finding, Location, Severity
from linkcheck.policy.settings import Waiver
from linkcheck.policy.waivers import apply_waivers

DAY = datetime.date(2026, 6, 30)
FINDING = Finding("LC403", "name", Severity.ERROR, Confidence.HIGH, "message", "remedy", Location("lib/liba.so"))


def waiver(path: str = "lib/*") -> Waiver:
    """A waiver of FINDING's rule whose last day is DAY."""
    return Waiver("LC403", path, "the reason", "the owner", DAY, None, "linkcheck.toml", 7)


def about_waivers(
    findings: list[Finding],
    waivers: list[Waiver],
    *,
    today: datetime.date = DAY,
    codes: tuple[str, ...] = ("LC403", "LC901", "LC902"),
) -> list[Finding]:
    """What is said about the waivers themselves."""
    return list(apply_waivers(findings, waivers, today, codes=codes, mangled_names={})[1])
