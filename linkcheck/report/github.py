"""GitHub Actions workflow commands: each finding becomes an annotation of the run and of the file, if it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Severity
from linkcheck.report.phrases import (
    VERDICTS,
    count_outcomes,
    describe_unknown,
    describe_waiver,
    name_finding,
    name_profile,
    name_rule,
)
from linkcheck.report.place import path_below
from linkcheck.report.printable import defuse_commands, printable, printable_lines
from linkcheck.report.report import name_rules
from linkcheck.report.text import sort_findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.report.report import DescribedRule, Report, ReportedFinding

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_github(report: Report, rules: Sequence[DescribedRule], directory: str) -> str:
    """One command a finding, one a check that could not be made, and a last line with the verdict for the log.

    GitHub shows ten annotations of each kind a step, so the gravest come first. What is waived is a notice.
    """
    names = name_rules(report, rules)
    lines = [_annotate(reported, directory) for reported in sort_findings(report.findings)]
    lines += [
        _command(
            "error",
            f"{printable(check.subject)}: could not be checked: {describe_unknown(check)}",
            title=name_rule(check.code, names),
        )
        for check in report.unanswered
    ]
    profile = name_profile(report)
    verdict = f"linkcheck: {VERDICTS[report.outcome]}: {count_outcomes(report)}{f' ({profile})' if profile else ''}"
    lines.append(defuse_commands(verdict))
    return "".join(f"{line}\n" for line in lines)


def _annotate(reported: ReportedFinding, directory: str) -> str:
    finding = reported.finding
    path = path_below(finding.primary.path, directory) or finding.primary.path
    text = printable_lines(finding.message)
    if finding.remedy:
        first, *others = printable_lines(finding.remedy)
        text += ["", f"Fix: {first}", *others]
    command, title = _COMMANDS[finding.severity], name_finding(finding)
    if reported.waiver is not None:
        command, title = "notice", f"waived: {title}"
        text += ["", describe_waiver(reported.waiver, word="Waived")]
    return _command(command, "\n".join(text), file=printable(path), title=title)


def _command(name: str, message: str, **properties: str) -> str:
    """`::name key=value,…::message`, escaped as GitHub's toolkit does it (actions/toolkit, core/src/command.ts)."""
    fields = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
    return f"::{name} {fields}::{_escape_message(message)}"


def _escape_message(text: str) -> str:
    # The per cent sign first, or the escapes themselves would be escaped.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
