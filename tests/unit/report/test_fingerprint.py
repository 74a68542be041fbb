from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from linkcheck.model import Location, Severity
from linkcheck.report.fingerprint import fingerprint_findings
from linkcheck.report.report import Report, ReportedFinding
from tests.unit.report import hostile
from tests.unit.report.samples import FULL, MISSING_IMPORT, UNRESOLVED, WAIVER


def fingerprint(reported: ReportedFinding) -> str:
    return fingerprint_findings([reported])[0]


BASE = fingerprint(ReportedFinding(MISSING_IMPORT))


def test_a_fingerprint_never_changes_between_releases() -> None:
    # Written down on purpose: a change here opens every alert of every user again.
    assert BASE == "eafb6c490dcc87cd79a9d846ad791b98"


def test_directory_wording_severity_evidence_and_waiver_do_not_matter() -> None:
    assert MISSING_IMPORT.primary.symbol is not None
    same = replace(
        MISSING_IMPORT,
        message="other words",
        remedy="",
        severity=Severity.WARNING,
        evidence={},
        related=(),
        primary=Location("/elsewhere/runner", MISSING_IMPORT.primary.symbol),
    )
    assert fingerprint(ReportedFinding(same, WAIVER)) == BASE


def test_code_file_and_symbol_matter() -> None:
    others = [
        replace(MISSING_IMPORT, code="LC302"),
        replace(MISSING_IMPORT, primary=Location("build/bin/other", MISSING_IMPORT.primary.symbol)),
        replace(MISSING_IMPORT, primary=Location("build/bin/runner", "another")),
        replace(MISSING_IMPORT, primary=Location("build/bin/runner")),
    ]
    names = {fingerprint(ReportedFinding(finding)) for finding in others}
    assert len(names) == len(others)
    assert BASE not in names


def test_two_needed_of_one_file_differ() -> None:
    other = replace(UNRESOLVED, primary=Location(UNRESOLVED.primary.path, "libcudart.so.13"))
    first, second = fingerprint_findings([ReportedFinding(UNRESOLVED), ReportedFinding(other)])
    assert first != second
    assert first == fingerprint(ReportedFinding(UNRESOLVED))


def test_files_of_one_name_are_numbered_whatever_the_order_and_the_other_findings() -> None:
    twins = [
        ReportedFinding(replace(MISSING_IMPORT, primary=replace(MISSING_IMPORT.primary, path=f"{folder}/runner")))
        for folder in ("a", "b", "c")
    ]
    names = dict(zip(("a", "b", "c"), fingerprint_findings(twins), strict=True))
    assert len(set(names.values())) == 3
    others = [*FULL.findings[:2], *reversed(twins)]
    for reported, name in zip(others, fingerprint_findings(others), strict=True):
        if reported in twins:
            assert name == names[reported.finding.primary.path.partition("/")[0]]


@given(hostile.reports)
def test_fingerprints_of_one_report_are_all_different(report: Report) -> None:
    names = fingerprint_findings([*report.findings, *report.findings])
    assert len(set(names)) == 2 * len(report.findings)
