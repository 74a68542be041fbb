"""The report of one run: what was judged, how, and the exit status. Every renderer works from this value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import Choice
from linkcheck.model import Outcome, Severity
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from linkcheck.model import Check, Finding
    from linkcheck.policy.settings import Waiver
else:
    Protocol = object  # while a program runs a Protocol does nothing, and making one takes as long as reading a file


class ReportOutcome(Choice):
    """The verdict of a run; the values are part of the JSON."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    COULD_NOT_CHECK = "could-not-check"

    @property
    def exit_status(self) -> int:
        """0 clean, 1 findings, 2 could not check."""
        return {ReportOutcome.PASS: 0, ReportOutcome.FAIL: 1}.get(self, 2)


class ReportedFinding(Value):
    """A finding and the waiver that accepts it, if any."""

    finding: Finding
    waiver: Waiver | None = None
    #: It is about the policy and not about a file, so it does not show that anything was checked.
    about_policy: bool = False


class Summary(Value):
    """How many of what. `errors`, `warnings` and `infos` count findings that no waiver accepts."""

    errors: int
    warnings: int
    infos: int
    waived: int
    passed: int
    not_applicable: int
    unknown: int


class Report(Value):
    """What one run of `verify` or `prebuilt` came to. `command` is the subcommand's name."""

    command: str
    profile: str
    inputs: tuple[str, ...]
    checks: tuple[Check, ...]
    findings: tuple[ReportedFinding, ...]
    #: Nobody chose the profile (Settings.by_default).
    by_default: bool = False

    @property
    def outcome(self) -> ReportOutcome:
        """FAIL on an unwaived error; else COULD_NOT_CHECK when something is unknown or nothing was checked."""
        if any(f.waiver is None and f.finding.severity is Severity.ERROR for f in self.findings):
            return ReportOutcome.FAIL
        judged = any(not f.about_policy for f in self.findings)
        if not judged and not any(c.outcome is Outcome.PASS for c in self.checks):
            return ReportOutcome.COULD_NOT_CHECK
        if self.unknown:
            return ReportOutcome.COULD_NOT_CHECK
        return ReportOutcome.PASS

    @property
    def unknown(self) -> tuple[Check, ...]:
        """The checks that could not be made, each with its reason."""
        return tuple(c for c in self.checks if c.outcome is Outcome.UNKNOWN)

    @property
    def unanswered(self) -> tuple[Check, ...]:
        """The checks that say why something could not be checked: the unknown ones, or when nothing else happened those
        that did not apply.
        """
        if self.unknown or self.outcome is not ReportOutcome.COULD_NOT_CHECK:
            return self.unknown
        return tuple(c for c in self.checks if c.outcome is Outcome.NOT_APPLICABLE and c.reason)

    @property
    def summary(self) -> Summary:
        """The counts that every format shows."""
        severities = [f.finding.severity for f in self.findings if f.waiver is None]
        outcomes = [c.outcome for c in self.checks]
        return Summary(
            errors=severities.count(Severity.ERROR),
            warnings=severities.count(Severity.WARNING),
            infos=severities.count(Severity.INFO),
            waived=len(self.findings) - len(severities),
            passed=outcomes.count(Outcome.PASS),
            not_applicable=outcomes.count(Outcome.NOT_APPLICABLE),
            unknown=outcomes.count(Outcome.UNKNOWN),
        )


class RuleCard(Protocol):
    """What a report says about a rule; `rules.rule.RuleMeta` is one."""

    @property
    def code(self) -> str:
        """Such as "LC301"."""

    @property
    def name(self) -> str:
        """Such as "missing-import"."""

    @property
    def summary(self) -> str:
        """One sentence."""

    @property
    def severity(self) -> Severity:
        """What a finding of this rule is when nothing changes it."""


class DescribedRule(Protocol):
    """A rule as a report needs it; `rules.rule.Rule` is one, so that `report` need not know the rules."""

    @property
    def meta(self) -> RuleCard:
        """The card."""

    @property
    def page(self) -> str:
        """The manual page, in Markdown."""


def name_rules(report: Report, rules: Sequence[DescribedRule]) -> dict[str, str]:
    """The name of every code in `rules` and in the findings; a Check carries only its code."""
    names = {f.finding.code: f.finding.name for f in report.findings}
    names.update((rule.meta.code, rule.meta.name) for rule in rules)
    return names
