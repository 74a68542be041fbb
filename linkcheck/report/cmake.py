"""The verdict on a prebuilt file as lines of CMake, to be `include()`d. Decides nothing about the file.

Variables: LINKCHECK_PREBUILT_OK (TRUE or FALSE), _FILE, _KIND, _SONAME, _CODES (a list), _MESSAGE and _REMEDY (a line
for each finding).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Severity
from linkcheck.report.printable import printable
from linkcheck.report.report import ReportOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.report.report import Report


def render_cmake(report: Report, *, kind: str, soname: str | None) -> str:
    """`report` of one `prebuilt` file as `set()` lines, ending in a line feed.

    `kind` is the kind as in JSON, such as "shared-object"; `soname` is empty in the output when the file has none.
    """
    failing = [f.finding for f in report.findings if f.waiver is None and f.finding.severity is Severity.ERROR]
    messages = [f"{finding.code} {finding.name}: {finding.message}" for finding in failing]
    messages += [f"{check.code}: {check.subject}: could not be checked: {check.reason}" for check in report.unknown]
    codes = [finding.code for finding in failing] + [check.code for check in report.unknown]
    values = {
        "OK": "TRUE" if report.outcome is ReportOutcome.PASS else "FALSE",
        "FILE": printable(report.inputs[0]) if report.inputs else "",
        "KIND": kind,
        "SONAME": printable(soname or ""),
        "CODES": ";".join(dict.fromkeys(codes)),
        "MESSAGE": _join_lines(messages),
        "REMEDY": _join_lines(finding.remedy for finding in failing),
    }
    return "".join(f"set(LINKCHECK_PREBUILT_{name} {quote(value)})\n" for name, value in values.items())


def quote(value: str) -> str:
    """`value` as a CMake bracket argument that no text in it can end (cmake-language(7), "Bracket Argument").

    Nothing inside one is evaluated: no `${}`, no escape, no `;`. The value must be printable but for line feeds.
    """
    length = 0
    while f"]{'=' * length}]" in f"{value}]":
        length += 1
    # CMake drops a line feed right after the opening bracket.
    start = "\n" if value.startswith("\n") else ""
    return f"[{'=' * length}[{start}{value}]{'=' * length}]"


def _join_lines(texts: Iterable[str]) -> str:
    """One line for each text: what CMake prints must not look like several."""
    return "\n".join(printable(text) for text in texts)
