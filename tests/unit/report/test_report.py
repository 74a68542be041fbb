from __future__ import annotations

from dataclasses import replace

from linkcheck.model import Check, Outcome, Severity
from linkcheck.report.report import ReportedFinding, ReportOutcome, Summary, name_rules
from tests.unit.report.samples import (
    CHECKS,
    CLEAN,
    DUPLICATE,
    FULL,
    MISSING_IMPORT,
    NOTHING,
    RULES,
    UNKNOWN,
    UNRESOLVED,
    WAIVER,
    report_of,
)


def test_an_error_that_no_waiver_accepts_fails() -> None:
    assert FULL.outcome is ReportOutcome.FAIL
    assert FULL.outcome.exit_status == 1


def test_warnings_information_and_waived_errors_pass() -> None:
    info = replace(UNRESOLVED, severity=Severity.INFO)
    assert report_of(UNRESOLVED, info).outcome is ReportOutcome.PASS
    assert report_of(DUPLICATE, waiver=WAIVER).outcome is ReportOutcome.PASS
    assert CLEAN.outcome.exit_status == 0


def test_what_could_not_be_seen_is_no_pass_and_no_failure() -> None:
    assert UNKNOWN.outcome is ReportOutcome.COULD_NOT_CHECK
    assert NOTHING.outcome is ReportOutcome.COULD_NOT_CHECK
    assert report_of(MISSING_IMPORT, checks=CHECKS).outcome is ReportOutcome.FAIL
    assert UNKNOWN.outcome.exit_status == 2


def test_what_did_not_apply_is_the_reason_where_nothing_else_was_checked() -> None:
    skipped = Check("LC402", "model.pte", Outcome.NOT_APPLICABLE, "which program runs it is not known")
    silent = replace(skipped, subject="other.pte", reason="")
    assert report_of(checks=(skipped, silent)).unanswered == (skipped,)
    unknown = replace(skipped, outcome=Outcome.UNKNOWN)
    assert report_of(checks=(skipped, unknown)).unanswered == (unknown,)
    assert report_of(checks=(skipped, replace(skipped, outcome=Outcome.PASS))).unanswered == ()


def test_what_is_said_of_the_policy_shows_nothing_checked() -> None:
    """A warning about a waiver or an entry must not turn "nothing was checked" into a pass."""
    warning = ReportedFinding(replace(UNRESOLVED, severity=Severity.WARNING), about_policy=True)
    skipped = Check("LC301", "x", Outcome.NOT_APPLICABLE)
    assert replace(report_of(checks=(skipped,)), findings=(warning,)).outcome is ReportOutcome.COULD_NOT_CHECK
    passed = Check("LC301", "x", Outcome.PASS)
    assert replace(report_of(checks=(passed,)), findings=(warning,)).outcome is ReportOutcome.PASS


def test_every_check_and_finding_is_counted_once() -> None:
    assert FULL.summary == Summary(errors=1, warnings=1, infos=0, waived=1, passed=1, not_applicable=1, unknown=1)


def test_a_checks_rule_is_named_by_the_rules_or_by_a_finding() -> None:
    names = name_rules(FULL, RULES)
    assert names["LC302"] == "private-definition"
    assert names["LC403"] == "duplicate-library"
    assert name_rules(FULL, ()) == {
        "LC202": "unresolved-needed",
        "LC301": "missing-import",
        "LC403": "duplicate-library",
    }
    assert name_rules(report_of(checks=(Check("LC204", "x", Outcome.PASS),)), ()) == {}
