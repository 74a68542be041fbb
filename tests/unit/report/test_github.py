from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from linkcheck.model import Location, Severity
from linkcheck.report.github import render_github
from linkcheck.report.printable import printable, printable_lines
from linkcheck.report.text import sort_findings
from tests.unit.report import hostile
from tests.unit.report.samples import CLEAN, FULL, MISSING_IMPORT, RULES, UNKNOWN, UNRESOLVED, WORK, report_of

if TYPE_CHECKING:
    from linkcheck.report.report import Report


def read_command(line: str) -> tuple[str, dict[str, str], str] | None:
    """The command a runner sees in `line`: name, properties, message (GitHub's "Workflow commands" page)."""
    match = re.fullmatch(r"\s*::([a-z-]+)(?: ([^:]*))?::(.*)", line)
    if match is None:
        return None
    pairs = [field.split("=", 1) for field in (match[2] or "").split(",") if field]
    return match[1], {key: unescape(value) for key, value in pairs}, unescape(match[3])


def unescape(text: str) -> str:
    codes = {"%25": "%", "%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}
    return re.sub("%(?:25|0D|0A|3A|2C)", lambda match: codes[match[0]], text)


def test_one_command_a_finding_the_gravest_first_and_a_verdict() -> None:
    *commands, verdict = render_github(FULL, RULES, WORK).splitlines()
    read = [read_command(line) for line in commands]
    assert [(c[0], c[1]) for c in read if c is not None] == [
        ("error", {"file": "build/bin/runner", "title": "LC301 missing-import"}),
        ("warning", {"file": "build/bin/runner", "title": "LC202 unresolved-needed"}),
        ("notice", {"file": "/opt/torch/lib/libgomp.so.1", "title": "waived: LC403 duplicate-library"}),
        ("error", {"title": "LC302 private-definition"}),
    ]
    assert verdict.startswith("linkcheck: FAIL: 1 error, 1 warning, 1 waived")


def test_an_annotation_has_message_and_fix() -> None:
    line = render_github(report_of(MISSING_IMPORT), RULES, WORK).splitlines()[0]
    assert line.startswith("::error file=build/bin/runner,title=LC301 missing-import::The executable does not import ")
    assert "%0A%0AFix: Link the shared library instead of the archive:%0A    target_link_libraries(" in line


def test_information_is_a_notice() -> None:
    assert render_github(report_of(replace(UNRESOLVED, severity=Severity.INFO)), (), WORK).startswith("::notice ")


def test_what_is_unknown_is_an_error_with_its_reason() -> None:
    line = render_github(UNKNOWN, RULES, WORK).splitlines()[0]
    assert line == (
        "::error title=LC302 private-definition::build/lib/libodd.so: could not be checked: "
        "its symbol table lies beyond the end of the file"
    )


def test_no_profile_is_named_where_none_judged() -> None:
    *_, verdict = render_github(replace(CLEAN, command="pte"), RULES, WORK).splitlines()
    assert verdict == "linkcheck: PASS: 0 errors, 0 warnings, 1 passed, 1 not applicable"


def test_a_clean_report_is_one_line() -> None:
    assert render_github(CLEAN, RULES, WORK) == (
        "linkcheck: PASS: 0 errors, 0 warnings, 1 passed, 1 not applicable (profile default)\n"
    )


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("a,title=x::y.so", "file=a%2Ctitle=x%3A%3Ay.so,"),
        ("100%0A.so", "file=100%250A.so,"),
        ("a\n::error::z", "file=a\\n%3A%3Aerror%3A%3Az,"),
        (f"{WORK}/lib/a.so", "file=lib/a.so,"),
    ],
)
def test_properties_are_escaped_as_the_toolkit_does(path: str, written: str) -> None:
    assert written in render_github(report_of(replace(UNRESOLVED, primary=Location(path))), (), WORK)


@given(hostile.reports)
def test_the_runner_reads_back_what_was_meant_and_nothing_else(report: Report) -> None:
    *lines, verdict = render_github(report, (), WORK).split("\n")[:-1]
    assert len(lines) == len(report.findings) + len(report.unanswered)
    assert read_command(verdict) is None
    for line, reported in zip(lines, sort_findings(report.findings), strict=False):
        command = read_command(line)
        assert command is not None
        assert set(command[1]) == {"file", "title"}
        assert command[1]["title"].endswith(printable(f"{reported.finding.code} {reported.finding.name}"))
        assert command[2].startswith("\n".join(printable_lines(reported.finding.message)))
