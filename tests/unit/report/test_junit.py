from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from hypothesis import given

from linkcheck.model import Outcome, Severity
from linkcheck.report.junit import render_junit
from linkcheck.report.printable import printable
from tests.unit.report import hostile
from tests.unit.report.samples import CLEAN, FULL, NOTHING, RULES

if TYPE_CHECKING:
    from linkcheck.report.report import Report


def suite_of(report: Report) -> ElementTree.Element:
    root = ElementTree.fromstring(render_junit(report, RULES))
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    return suite


def outcomes(suite: ElementTree.Element) -> dict[str, list[str]]:
    return {
        f"{case.get('classname')}: {case.get('name')}": [child.tag for child in case]
        for case in suite.findall("testcase")
    }


def test_each_check_and_finding_is_a_case_with_its_outcome() -> None:
    symbol = "_ZN10executorch9extension4cuda15getCallerStreamEv"
    assert outcomes(suite_of(FULL)) == {
        "duplicate-library: /opt/torch/lib/libgomp.so.1": ["skipped"],
        "unresolved-needed: build/bin/runner (libnvinfer.so.11)": ["system-out"],
        f"missing-import: build/bin/runner ({symbol})": ["failure"],
        "missing-import: build/lib/libdelegate.so": [],
        "forbidden-needed: build/lib/libdelegate.so": ["skipped"],
        "private-definition: build/lib/libodd.so": ["error"],
    }


def test_the_counts_are_those_of_the_cases() -> None:
    suite = suite_of(FULL)
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "6",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
        "time": "0",
    }


def test_a_failure_says_what_where_and_how_to_fix_it() -> None:
    failure = suite_of(FULL).find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "LC301 missing-import"
    assert str(failure.get("message")).startswith("The executable does not import")
    assert "Fix: Link the shared library instead" in str(failure.text)


def test_a_waiver_and_a_reason_are_the_message_of_what_is_skipped() -> None:
    messages = [skipped.get("message") for skipped in suite_of(FULL).iter("skipped")]
    assert messages == [
        "waived until 2027-01-31 by build team: never loaded together [linkcheck.toml:12]",
        "the profile forbids nothing for libraries",
    ]


def test_a_report_of_nothing_is_an_error_because_an_empty_suite_would_pass() -> None:
    suite = suite_of(NOTHING)
    assert suite.get("errors") == "1"
    assert [error.get("message") for error in suite.iter("error")] == ["nothing was checked"]


def test_the_profile_is_a_property() -> None:
    properties = {p.get("name"): p.get("value") for p in suite_of(CLEAN).iter("property")}
    assert properties == {"profile": "default", "outcome": "pass"}


@given(hostile.reports)
def test_any_report_is_well_formed_and_counts_right(report: Report) -> None:
    suite = suite_of(report)
    cases = suite.findall("testcase")
    assert len(cases) == max(1, len(report.checks) + len(report.findings))
    if report.findings:
        failures = sum(f.waiver is None and f.finding.severity is Severity.ERROR for f in report.findings)
        assert suite.get("failures") == str(failures)
    unknown = sum(check.outcome is Outcome.UNKNOWN for check in report.checks)
    if report.checks:
        assert suite.get("errors") == str(unknown)
    names = [case.get("name") for case in cases[len(report.findings) :]]
    if report.checks:
        assert names == [printable(check.subject) for check in report.checks]


@pytest.mark.parametrize("report", [FULL, CLEAN, NOTHING])
def test_another_tools_parser_reads_the_same(report: Report) -> None:
    junitparser: Any = pytest.importorskip("junitparser", reason="junitparser is not installed (extra: test)")
    document = junitparser.JUnitXml.fromstring(render_junit(report, RULES).encode("utf-8"))
    (suite,) = document
    ours = suite_of(report)
    assert [suite.tests, suite.failures, suite.errors, suite.skipped] == [
        int(str(ours.get(key))) for key in ("tests", "failures", "errors", "skipped")
    ]
    suite.update_statistics()
    assert [suite.tests, suite.failures, suite.errors, suite.skipped] == [
        int(str(ours.get(key))) for key in ("tests", "failures", "errors", "skipped")
    ]
    read = {f"{case.classname}: {case.name}": [type(r).__name__.lower() for r in case.result] for case in suite}
    assert read == {name: [tag for tag in tags if tag != "system-out"] for name, tags in outcomes(ours).items()}
