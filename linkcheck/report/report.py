"""The report of one run: what was judged, how, and the exit status. Every renderer works from this value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from linkcheck.model import Outcome, Severity

if TYPE_CHECKING:
    from linkcheck.model import Check, Finding
    from linkcheck.policy.settings import Waiver


class ReportOutcome(Enum):
    """The verdict of a run; the values are part of the JSON."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    COULD_NOT_CHECK = "could-not-check"

    @property
    def exit_status(self) -> int:
        """0 clean, 1 findings, 2 could not check."""
        return {ReportOutcome.PASS: 0, ReportOutcome.FAIL: 1}.get(self, 2)


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding and the waiver that accepts it, if any."""

    finding: Finding
    waiver: Waiver | None = None

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that stay the same while code, file name and symbol do.

        Directories, line numbers and wording are left out, so that a finding is recognised across checkouts.
        """
        primary = self.finding.primary
        identity = "\0".join((self.finding.code, primary.path.rpartition("/")[2], primary.symbol or ""))
        return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of `verify` or `prebuilt` came to. `command` is the subcommand's name."""

    command: str
    profile: str
    inputs: tuple[str, ...]
    checks: tuple[Check, ...]
    findings: tuple[ReportedFinding, ...]

    @property
    def outcome(self) -> ReportOutcome:
        """FAIL on an unwaived error; else COULD_NOT_CHECK when something is unknown or nothing was checked."""
        if any(f.waiver is None and f.finding.severity is Severity.ERROR for f in self.findings):
            return ReportOutcome.FAIL
        if not self.checks and not self.findings:
            return ReportOutcome.COULD_NOT_CHECK
        if any(c.outcome is Outcome.UNKNOWN for c in self.checks):
            return ReportOutcome.COULD_NOT_CHECK
        return ReportOutcome.PASS
