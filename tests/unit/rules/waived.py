"""A finding and a waiver of plain values, for tests of the two rules about waivers."""

from __future__ import annotations

import datetime

from linkcheck.model import Confidence, Finding, Location, Severity
from linkcheck.policy.settings import Settings, Waiver
from linkcheck.policy.waivers import apply_waivers
from linkcheck.rules.program_rules import ALL_RULES
from linkcheck.rules.rule import PolicyUse

DAY = datetime.date(2026, 6, 30)
FINDING = Finding("LC403", "name", Severity.ERROR, Confidence.HIGH, "message", "remedy", Location("lib/liba.so"))


def waiver(path: str = "lib/*", symbol: str | None = None) -> Waiver:
    """A waiver of FINDING's rule whose last day is DAY."""
    return Waiver("LC403", path, "the reason", "the owner", DAY, symbol, "linkcheck.toml", 7)


def about_waivers(
    findings: list[Finding],
    waivers: list[Waiver],
    *,
    today: datetime.date = DAY,
    codes: tuple[str, ...] = ("LC403", "LC901", "LC902"),
) -> list[Finding]:
    """What is said about the waivers themselves."""
    waived = apply_waivers(findings, waivers, today, codes=codes, mangled_names={})
    use = PolicyUse(waived.unused, waived.expired, missed=waived.missed)
    checks = [rule.check_policy for rule in ALL_RULES if rule.check_policy is not None and rule.meta.code in codes]
    return [found for check in checks for found in check(use, Settings("p"))]
