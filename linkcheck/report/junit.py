"""JUnit XML for CI systems that show test results: one test case for each check and each finding.

All text goes through `printable`, which leaves no character that XML 1.0 forbids (production 2, "Char": controls,
surrogates, U+FFFE, U+FFFF); ElementTree escapes the markup.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from linkcheck.model import Outcome, Severity
from linkcheck.report.phrases import (
    NOTHING_CHECKED,
    describe_unknown,
    describe_waiver,
    name_finding,
    name_place,
    name_rule,
)
from linkcheck.report.printable import printable, printable_lines
from linkcheck.report.report import name_rules
from linkcheck.report.text import describe_finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from linkcheck.model import Check
    from linkcheck.report.report import DescribedRule, Report, ReportedFinding


def render_junit(report: Report, rules: Sequence[DescribedRule] = ()) -> str:
    """A test suite. Failure: an unwaived error. Error: unknown. Skipped: not applicable, or waived.

    Warnings and information pass and carry their text as output, as they fail no run. A report of nothing holds one
    error, because a suite without tests counts as passed.
    """
    names = name_rules(report, rules)
    cases = [_describe_finding(reported) for reported in report.findings]
    cases += [_describe_check(check, names) for check in report.checks if check.outcome is not Outcome.FINDING]
    if not cases:
        empty = _case("linkcheck", report.command)
        _add(empty, "error", NOTHING_CHECKED, "could-not-check")
        cases = [empty]

    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", name=printable(f"linkcheck {report.command}"))
    for element in (root, suite):
        element.set("tests", str(len(cases)))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if element is suite or tag != "skipped":
                element.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
        element.set("time", "0")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("profile", report.profile), ("outcome", report.outcome.value)):
        ElementTree.SubElement(properties, "property", name=name, value=printable(value))
    suite.extend(cases)
    ElementTree.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
    # What a CI system would take for a command in a log (printable.defuse_commands), as references: XML loses nothing.
    return re.sub(r"^(\s*):(?=:)", r"\1&#58;", text.replace("##", "#&#35;"), flags=re.MULTILINE)


def _describe_finding(reported: ReportedFinding) -> ElementTree.Element:
    finding = reported.finding
    case = _case(finding.name, name_place(finding.primary))
    text = "\n".join(describe_finding(reported))
    first_line = printable_lines(finding.message)[0]
    if reported.waiver is not None:
        _add(case, "skipped", describe_waiver(reported.waiver), None, text)
    elif finding.severity is Severity.ERROR:
        _add(case, "failure", first_line, name_finding(finding), text)
    else:
        output = ElementTree.SubElement(case, "system-out")
        output.text = f"{finding.severity.value} {name_finding(finding)}\n{text}"
    return case


def _describe_check(check: Check, names: Mapping[str, str]) -> ElementTree.Element:
    case = _case(names.get(check.code, check.code), check.subject)
    if check.outcome is Outcome.UNKNOWN:
        _add(case, "error", describe_unknown(check), name_rule(check.code, names))
    elif check.outcome is Outcome.NOT_APPLICABLE:
        _add(case, "skipped", printable(check.reason), None)
    return case


def _case(class_name: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=printable(class_name), name=printable(name), time="0")


def _add(case: ElementTree.Element, tag: str, message: str, kind: str | None, text: str = "") -> None:
    element = ElementTree.SubElement(case, tag, message=message)
    if kind is not None:
        element.set("type", kind)
    element.text = text or None
