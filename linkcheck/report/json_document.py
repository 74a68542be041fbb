"""JSON for programs: the document that schemas/report-1.json describes. Named so as not to hide Python's json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from linkcheck.report.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from linkcheck.model import Check, Location
    from linkcheck.policy.settings import Waiver
    from linkcheck.report.report import Report, ReportedFinding

#: A change that an old reader would misread makes this the next number, with a schema file of its own.
SCHEMA = "linkcheck/report/1"
#: Of a list with more entries each is on one line, which takes a third of the time and of the room.
_LONGEST_INDENTED = 1000
_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False)


class Entries:
    """A list in a document: `values`, each of which is described only when it is written."""

    def __init__(self, values: Sequence[Any], describe: Callable[[Any], object]) -> None:
        """`describe` gives what JSON can hold, or a dictionary that has `Entries` in it."""
        self.values = values
        self.describe = describe


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
        "checks": Entries(report.checks, _describe_check),
        "findings": Entries(report.findings, _describe_finding),
        "summary": asdict(report.summary),
    }


def dump_json(document: dict[str, object]) -> str:
    """`document` as indented JSON text of ASCII characters, so that no terminal or parser stumbles over it."""
    return "".join(stream_json(document))


def stream_json(document: dict[str, object]) -> Iterator[str]:
    """As `dump_json`, a piece at a time, so that a report about ten thousand engines is never in memory as a whole."""
    yield from _write(document, "\n")
    yield "\n"


def _write(value: object, line: str) -> Iterator[str]:
    """`value` as JSON; `line` begins a new line at the indent where it stands.

    The indent of `json` is not used: what it makes for each call are cycles, and nothing looks for those (cli.main).
    """
    inner = line + "  "
    if isinstance(value, Entries):
        is_long = len(value.values) > _LONGEST_INDENTED
        for index, entry in enumerate(value.values):
            yield ("," if index else "[") + inner
            described = value.describe(entry)
            yield from (_dump(_expand(described)),) if is_long else _write(described, inner)
        yield line + "]" if value.values else "[]"
    elif isinstance(value, Mapping) and value:
        for index, (key, entry) in enumerate(value.items()):
            yield f"{',' if index else '{'}{inner}{_dump(key)}: "
            yield from _write(entry, inner)
        yield line + "}"
    elif isinstance(value, (list, tuple)) and value:
        yield from _write(Entries(value, _as_it_is), line)
    else:
        yield _dump(value)


def _as_it_is(value: object) -> object:
    return value


def _expand(value: object) -> object:
    """`value` with lists in place of the `Entries` in it."""
    if isinstance(value, Entries):
        return [_expand(value.describe(entry)) for entry in value.values]
    return {key: _expand(entry) for key, entry in value.items()} if isinstance(value, dict) else value


def _dump(value: object) -> str:
    text = _ENCODER.encode(encodable(value))
    # `##[name]` is a command to CI systems anywhere in a line; # stands only inside of strings, which have escapes.
    return text.replace("##", "#\\u0023") if "##" in text else text


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
