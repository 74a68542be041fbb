"""Markdown (GitHub's flavour) for a pull request's comment or a job's summary."""

from __future__ import annotations

import html
import re
from itertools import groupby
from typing import TYPE_CHECKING

from linkcheck.report.evidence import describe_evidence
from linkcheck.report.phrases import (
    VERDICTS,
    asks_profile,
    count_outcomes,
    describe_unknown,
    describe_waiver,
    name_finding,
    name_place,
    name_rule,
    name_severity,
)
from linkcheck.report.printable import defuse_commands, printable, printable_lines
from linkcheck.report.report import ReportOutcome, name_rules
from linkcheck.report.text import CODE_INDENT, REMEDY_LABEL, sort_findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.report.report import DescribedRule, Report, ReportedFinding

_SIGNS = {ReportOutcome.PASS: "✅", ReportOutcome.FAIL: "❌", ReportOutcome.COULD_NOT_CHECK: "⚠️"}

#: Characters that could begin markup anywhere in a line; an underscore inside a word cannot.
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
#: What would begin a heading, a list, a rule or a table's second line.
_BLOCK_START = re.compile(r"^([-+=#])|^(\d+)([.)])")
#: What GitHub turns into links or notifications without markup: @name, #123, http://…, www.…; and what a log takes
#: for a command (printable.defuse_commands): :: at the start of a line, ##[
_AUTOLINK = re.compile(r"(?<!\w)@(?=\w)|#(?=\d)|:(?=//)|^:(?=:)|#(?=#)|(?<=\bwww)\.", re.IGNORECASE)


def render_markdown(report: Report, rules: Sequence[DescribedRule] = ()) -> str:
    """The verdict, a table of the findings, a folded section for each, and a list of what could not be checked."""
    names = name_rules(report, rules)
    findings = sort_findings(report.findings)
    lines = [
        f"## {_SIGNS[report.outcome]} linkcheck: {VERDICTS[report.outcome].lower()}",
        "",
        count_outcomes(report) + (f"; profile {_code(report.profile)}" if asks_profile(report) else ""),
        "",
    ]
    if findings:
        lines += ["| severity | rule | file | concerns |", "| --- | --- | --- | --- |"]
        lines += [_row(reported) for reported in findings]
        lines.append("")
    for reported in findings:
        lines += [*_section(reported), ""]
    if report.unanswered:
        lines += ["### Could not be checked", ""]
        lines += [
            f"- {_prose(name_rule(check.code, names))}, {_code(check.subject)}: {_prose(describe_unknown(check))}"
            for check in report.unanswered
        ]
        lines.append("")
    # No block of code holds an empty line (see _paragraphs), so doubled ones and the last are only seams.
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "\n".join(kept).rstrip("\n") + "\n"


def render_table(heading: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A section to be put behind a report: `rows` of names and numbers as they are; nothing when there are none."""
    if not rows:
        return ""
    lines = ["", f"### {heading}", "", f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    lines += [f"| {' | '.join(_code(cell, in_table=True) if cell else '' for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _row(reported: ReportedFinding) -> str:
    finding = reported.finding
    symbol = "" if finding.primary.symbol is None else _code(finding.primary.symbol, in_table=True)
    path = _code(finding.primary.path, in_table=True)
    return f"| {name_severity(reported)} | {_prose(name_finding(finding))} | {path} | {symbol} |"


def _section(reported: ReportedFinding) -> Iterator[str]:
    finding = reported.finding
    path = _html(printable(finding.primary.path)).replace("##", "#&#35;")
    head = f"<b>{_html(name_finding(finding))}</b> <code>{path}</code>"
    # Open where somebody has to act, folded where it is only good to know.
    yield f"<details{' open' if reported.waiver is None else ''}><summary>{head}</summary>"
    yield ""
    yield from _paragraphs(finding.message)
    if finding.remedy:
        yield ""
        yield from _paragraphs(finding.remedy, label=f"**{REMEDY_LABEL}** ")
    # Indented lines are the entries of the one above: a list in its list.
    facts = [
        f"{'  ' if line.startswith('  ') else ''}- {_prose(line.strip())}"
        for line in describe_evidence(finding.evidence)
    ]
    facts += [f"- see also {_code(name_place(place))}" for place in finding.related]
    if reported.waiver is not None:
        facts.append(f"- {_prose(describe_waiver(reported.waiver))}")
    if facts:
        yield ""
        yield from facts
    yield ""
    yield "</details>"


def _paragraphs(text: str, label: str = "") -> Iterator[str]:
    """Prose with its markup escaped, and runs of indented lines as code blocks, to be copied as they are."""
    lines = printable_lines(text)
    if lines[0].startswith(CODE_INDENT) and label:
        yield label.rstrip()
        label = ""
    for is_code, run in groupby(lines, key=lambda line: line.startswith(CODE_INDENT)):
        if not is_code:
            for line in run:
                yield label + _prose(line.strip())
                label = ""
            continue
        block = [line.removeprefix(CODE_INDENT) for line in run]
        fence = "`" * max(3, 1 + _longest_run(block))
        yield from ("", fence, *map(defuse_commands, block), fence, "")


def _prose(line: str) -> str:
    """One printable line as Markdown that shows exactly its characters."""
    escaped = _MARKUP.sub(lambda match: f"\\{match[0]}", line)
    escaped = _AUTOLINK.sub(lambda match: f"&#{ord(match[0])};", _html(escaped, quote=False))
    return _BLOCK_START.sub(lambda match: f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}", escaped)


def _code(text: str, in_table: bool = False) -> str:
    """`text` as inline code that shows its characters, in one cell when it is in a table."""
    shown = printable(text)
    if not shown.strip():
        return "(empty)"
    if "`" not in shown and "##" not in shown and not (in_table and ("|" in shown or "\\" in shown)):
        return f"`{shown}`"
    # A table splits at a pipe even in a code span, and how `\|` is read differs; entities mean the same everywhere.
    return f"<code>{re.sub('[^A-Za-z0-9 /.-]', lambda match: f'&#{ord(match[0])};', shown)}</code>"


def _html(text: str, quote: bool = True) -> str:
    return html.escape(text, quote=quote)


def _longest_run(lines: Sequence[str]) -> int:
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
