"""The few phrases that several formats for people share, so that they say the same. Already printable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.report.printable import printable
from linkcheck.report.report import ReportOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linkcheck.model import Check, Finding, Location
    from linkcheck.policy.settings import Waiver
    from linkcheck.report.report import Report, ReportedFinding

VERDICTS = {
    ReportOutcome.PASS: "PASS",
    ReportOutcome.FAIL: "FAIL",
    ReportOutcome.COULD_NOT_CHECK: "COULD NOT CHECK",
}
#: Said instead of counts when a run looked at nothing.
NOTHING_CHECKED = "nothing was checked"


def count_outcomes(report: Report) -> str:
    """Such as "1 error, 0 warnings, 12 passed, 1 unknown"; counts that a reader does not miss are left out at 0."""
    if not report.checks and not report.findings:
        return NOTHING_CHECKED
    summary = report.summary
    counts = [_count(summary.errors, "error"), _count(summary.warnings, "warning")]
    if summary.infos:
        counts.append(f"{summary.infos} for information")
    if summary.waived:
        counts.append(f"{summary.waived} waived")
    counts.append(f"{summary.passed} passed")
    if summary.not_applicable:
        counts.append(f"{summary.not_applicable} not applicable")
    if summary.unknown:
        counts.append(f"{summary.unknown} unknown")
    return ", ".join(counts)


def asks_profile(report: Report) -> bool:
    """Whether a profile had a say: the rules about ExecuTorch programs ask none anything."""
    return report.command != "pte"


def name_profile(report: Report) -> str:
    """Such as "profile default"; "" where none had a say."""
    return f"profile {printable(report.profile)}" if asks_profile(report) else ""


def name_rule(code: str, names: Mapping[str, str]) -> str:
    """Such as "LC301 missing-import", or the code alone when its name is not known."""
    name = names.get(code)
    return printable(code if name is None else f"{code} {name}")


def name_finding(finding: Finding) -> str:
    """Such as "LC301 missing-import"."""
    return printable(f"{finding.code} {finding.name}")


def name_place(place: Location) -> str:
    """The path, and the symbol in parentheses when there is one."""
    return printable(place.path if place.symbol is None else f"{place.path} ({place.symbol})")


def name_severity(reported: ReportedFinding) -> str:
    """Such as "error", or "waived error"."""
    severity = reported.finding.severity.value
    return severity if reported.waiver is None else f"waived {severity}"


def describe_waiver(waiver: Waiver, *, word: str = "waived") -> str:
    """That it is waived, until when, by whom, why, and where that is written; `word` is the first one."""
    where = "" if not waiver.source else f" [{waiver.source}:{waiver.line}]" if waiver.line else f" [{waiver.source}]"
    return printable(f"{word} until {waiver.expires.isoformat()} by {waiver.owner}: {waiver.reason}{where}")


def describe_unknown(check: Check) -> str:
    """Why a check could not be made; never empty."""
    return printable(check.reason) or "no reason was given"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
