"""JSON for programs: the document that schemas/report-1.json describes. Named so as not to hide Python's json."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from linkcheck.report.printable import encodable

if TYPE_CHECKING:
    from linkcheck.model import Check, Location
    from linkcheck.policy.settings import Waiver
    from linkcheck.report.report import Report, ReportedFinding

#: A change that an old reader would misread makes this the next number, with a schema file of its own.
SCHEMA = "linkcheck/report/1"


def render_json(report: Report) -> str:
    """The whole report, pure ASCII. Control characters in names, and bytes that are no UTF-8, are `\\xNN` in text."""
    return dump_json(describe_report(report))


def describe_report(report: Report) -> dict[str, object]:
    """The values of the JSON document."""
    return {
        "schema": SCHEMA,
        "profile": report.profile,
        "outcome": report.outcome.value,
        "inputs": list(report.inputs),
        "checks": [_describe_check(check) for check in report.checks],
        "findings": [_describe_finding(reported) for reported in report.findings],
        "summary": asdict(report.summary),
    }


def dump_json(document: dict[str, object]) -> str:
    """`document` as indented JSON text of ASCII characters, so that no terminal or parser stumbles over it."""
    text = json.dumps(encodable(document), indent=2, ensure_ascii=True, allow_nan=False)
    # `##[name]` is a command to CI systems anywhere in a line; # stands only inside of strings, which have escapes.
    return (text.replace("##", "#\\u0023") if "##" in text else text) + "\n"


def _describe_check(check: Check) -> dict[str, object]:
    return {
        "code": check.code,
        "subject": check.subject,
        "outcome": check.outcome.value,
        "reason": check.reason,
    }


def _describe_finding(reported: ReportedFinding) -> dict[str, object]:
    finding = reported.finding
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "primary": _describe_location(finding.primary),
        "related": [_describe_location(place) for place in finding.related],
        "evidence": dict(finding.evidence),
        "waiver": None if reported.waiver is None else _describe_waiver(reported.waiver),
    }


def _describe_location(place: Location) -> dict[str, object]:
    return {"path": place.path, "symbol": place.symbol}


def _describe_waiver(waiver: Waiver) -> dict[str, object]:
    return {**waiver.terms, "source": waiver.source or None, "line": waiver.line or None}
