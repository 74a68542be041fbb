"""SARIF 2.1.0 for code scanning services; section numbers are those of the OASIS text with errata 01."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from linkcheck.model import Severity
from linkcheck.report.fingerprint import fingerprint_findings
from linkcheck.report.json_document import Entries, dump_json
from linkcheck.report.phrases import NOTHING_CHECKED, describe_unknown, name_rule
from linkcheck.report.place import make_uri
from linkcheck.report.printable import printable, printable_lines
from linkcheck.report.report import name_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from linkcheck.model import Finding, Location
    from linkcheck.policy.settings import Waiver
    from linkcheck.report.report import DescribedRule, Report, ReportedFinding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
#: What a SARIF consumer would take for a placeholder (3.11.5) or for the end of an embedded link's text (3.11.6).
#: Other braces are left alone, though the text asks to double them: consumers show a message without arguments as
#: it is, and a doubled `${ORIGIN}` in a remedy would be wrong when copied.
_PLACEHOLDER = re.compile(r"\{(\d+)\}")
_LINK = "]("

_Object = dict[str, object]


def render_sarif(report: Report, rules: Sequence[DescribedRule], directory: str) -> str:
    """The findings as results and the unknown checks as notifications; passed checks have no place in SARIF's use.

    Waived findings stay, as suppressed results (3.27.23), so that a service can close their alerts and keep why.
    """
    from linkcheck import __version__

    descriptors = _describe_rules(report, rules)
    indices = {str(descriptor["id"]): index for index, descriptor in enumerate(descriptors)}
    fingerprints = fingerprint_findings(report.findings)
    run: _Object = {
        "tool": {"driver": {"name": "linkcheck", "version": __version__, "rules": descriptors}},
        "invocations": [_describe_invocation(report, name_rules(report, rules), indices)],
        # Described when they are written: ten thousand of them would take 50 MB.
        "results": Entries(
            tuple(zip(report.findings, fingerprints, strict=True)),
            lambda entry: _describe_result(entry[0], entry[1], indices, directory),
        ),
        "properties": {
            "profile": report.profile,
            "inputs": list(report.inputs),
            "outcome": report.outcome.value,
            "summary": asdict(report.summary),
        },
    }
    return dump_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _describe_rules(report: Report, rules: Sequence[DescribedRule]) -> list[_Object]:
    """Every rule given, and a short descriptor for each other code that a finding or a check has."""
    descriptors: dict[str, _Object] = {}
    for rule in rules:
        card = rule.meta
        descriptors[card.code] = {
            "id": card.code,
            "name": card.name,
            "shortDescription": {"text": _message(card.summary)},
            "fullDescription": {"text": _message(card.summary)},
            "defaultConfiguration": {"level": _LEVELS[card.severity]},
            # The page is ours, so it is not escaped; a service shows `markdown` and falls back on `text`.
            "help": {"text": rule.page, "markdown": rule.page},
        }
    for reported in report.findings:
        finding = reported.finding
        descriptors.setdefault(finding.code, {"id": finding.code, "name": printable(finding.name)})
    for check in report.unknown:
        descriptors.setdefault(check.code, {"id": check.code})
    return list(descriptors.values())


def _describe_invocation(report: Report, names: Mapping[str, str], indices: Mapping[str, int]) -> _Object:
    """Not successful when something is unknown, whatever was found besides: the results are not all (appendix I)."""
    notifications: list[_Object] = [
        {
            "level": "error",
            "message": {
                "text": _message(f"{name_rule(check.code, names)}: {check.subject}: {describe_unknown(check)}")
            },
            "associatedRule": {"id": check.code, "index": indices[check.code]},
        }
        for check in report.unknown
    ]
    if not report.checks and not report.findings:
        notifications.append({"level": "error", "message": {"text": NOTHING_CHECKED}})
    invocation: _Object = {"executionSuccessful": not notifications}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    return invocation


def _describe_result(
    reported: ReportedFinding, fingerprint: str, indices: Mapping[str, int], directory: str
) -> _Object:
    finding = reported.finding
    result: _Object = {
        "ruleId": finding.code,
        "ruleIndex": indices[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _describe_message(finding)},
        "locations": [_describe_location(finding.primary, directory)],
        "partialFingerprints": {
            "linkcheck/v1": fingerprint,
            # The only one GitHub reads. Left to itself its upload action hashes the first line of the file, which
            # is the same for all findings of a binary and another after each build.
            "primaryLocationLineHash": f"{fingerprint}:1",
        },
        # Always there: where one result of a run has suppressions, every one must (3.27.23).
        "suppressions": [] if reported.waiver is None else [_describe_suppression(reported.waiver, directory)],
        "properties": {
            "confidence": finding.confidence.value,
            "remedy": finding.remedy,
            "evidence": dict(finding.evidence),
        },
    }
    if finding.related:
        places: list[_Object] = []
        for place in finding.related:
            location = _describe_location(place, directory)
            if location not in places:  # SARIF forbids repetitions here
                places.append(location)
        result["relatedLocations"] = places
    return result


def _describe_message(finding: Finding) -> str:
    return _message(finding.message if not finding.remedy else f"{finding.message}\n\nFix: {finding.remedy}")


def _describe_location(place: Location, directory: str) -> _Object:
    location: _Object = {"physicalLocation": _describe_line(place.path, 1, directory)}
    if place.symbol:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(place.symbol)}]
    return location


def _describe_line(path: str, line: int, directory: str) -> _Object:
    """A line of a file. A binary has no lines; line 1 stands for it, because services show alerts by line."""
    return {"artifactLocation": {"uri": make_uri(path, directory)}, "region": {"startLine": line}}


def _describe_suppression(waiver: Waiver, directory: str) -> _Object:
    suppression: _Object = {
        "kind": "external",
        "status": "accepted",
        "justification": printable(waiver.reason),
        "properties": {"owner": waiver.owner, "expires": waiver.expires.isoformat()},
    }
    if waiver.source:
        suppression["location"] = {"physicalLocation": _describe_line(waiver.source, waiver.line or 1, directory)}
    return suppression


def _message(text: str) -> str:
    lines = "\n".join(printable_lines(text))
    return _PLACEHOLDER.sub(r"{{\1}}", lines).replace(_LINK, f"\\{_LINK}")
