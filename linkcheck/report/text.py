"""Text for people, on a terminal or in a build log. Nothing is wrapped, so paths and commands can be copied."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from linkcheck.model import Outcome, Severity
from linkcheck.report.phrases import (
    VERDICTS,
    count_outcomes,
    describe_unknown,
    describe_waiver,
    name_finding,
    name_place,
    name_profile,
    name_rule,
    name_severity,
)
from linkcheck.report.printable import defuse_commands, printable, printable_lines
from linkcheck.report.report import ReportOutcome, name_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Finding
    from linkcheck.report.report import DescribedRule, Report, ReportedFinding

#: What a line of a message or remedy begins with when it is a command or part of a build file (model.Finding).
CODE_INDENT = "    "
REMEDY_LABEL = "Fix:"
#: Said where the profile is nobody's choice, so that its demands surprise nobody; the last line stays what it is.
NO_POLICY = "No policy (linkcheck.toml, or [tool.linkcheck] in pyproject.toml) was found"
#: Commands whose question is the same by each profile; `prebuilt` asks about another library by another profile.
ASKS_THE_SAME = frozenset({"verify", "scan", "live"})
#: Passed checks that a clean run shows, and checks that did not apply where there are no others; a directory of
#: libraries has hundreds.
LONGEST_PASS_LIST = 20
#: Lines of a list in a message that are not shown twice; a reference takes one.
SHORTEST_LIST = 2
#: Characters of a reason that is not shown twice.
SHORTEST_REASON = 100

#: ECMA-48 "select graphic rendition" parameters.
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = "1", "2", "1;31", "1;32", "1;33", "1;36"
_SEVERITY_STYLES = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.INFO: _CYAN}
_VERDICT_STYLES = {ReportOutcome.PASS: _GREEN, ReportOutcome.FAIL: _RED, ReportOutcome.COULD_NOT_CHECK: _YELLOW}
_URGENCY = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def render_text(report: Report, rules: Sequence[DescribedRule] = (), *, color: bool = False) -> str:
    """Findings, the gravest first and the waived last; then what could not be checked; then one line of summary."""
    names = name_rules(report, rules)
    lines: list[str] = []
    fixed_by: dict[str, str] = {}
    listed_by: dict[tuple[str, ...], str] = {}
    for reported in sort_findings(report.findings):
        lines.append(_head(reported, color))
        # One fault often has several findings with one cure; said once, it stays readable.
        earlier = fixed_by.setdefault(reported.finding.remedy, name_finding(reported.finding))
        repeated = earlier if reported.finding.remedy and earlier != name_finding(reported.finding) else None
        told = describe_finding(reported, fixed_as=repeated, listed_by=listed_by)
        lines += [f"  {_paint_label(line, color)}" for line in told]
        lines.append("")
    told_by: dict[str, str] = {}
    shown = report.unanswered if report.unknown else report.unanswered[:LONGEST_PASS_LIST]
    for check in shown:
        word = _paint(check.outcome.value.replace("-", " "), _YELLOW, color)
        what = f"{name_rule(check.code, names)}: {printable(check.subject)}"
        lines += [f"{word} {what}", f"  {_shorten_reason(describe_unknown(check), told_by, what)}", ""]
    if len(shown) < len(report.unanswered):
        lines += [f"… and {len(report.unanswered) - len(shown)} more, all of them in --format json", ""]
    if report.outcome is ReportOutcome.PASS:
        lines += _describe_passes(report, names, color)
    verdict = _paint(VERDICTS[report.outcome], _VERDICT_STYLES[report.outcome], color)
    profile = name_profile(report)
    if profile and report.by_default:
        others = "; --profile default is for any program" if report.command in ASKS_THE_SAME else ""
        lines.append(_paint(f"{NO_POLICY}: judged by the built-in {profile}{others}.", _DIM, color))
    lines.append(f"{verdict}: {count_outcomes(report)}{' ' + _paint(f'({profile})', _DIM, color) if profile else ''}")
    return "".join(f"{defuse_commands(line)}\n" for line in lines)


def _describe_passes(report: Report, names: dict[str, str], color: bool) -> Iterator[str]:
    """What a clean run has shown, as far as a check can say it in words: a verdict without a reason is not trusted."""
    told = [check for check in report.checks if check.outcome is Outcome.PASS and check.reason]
    for check in told[:LONGEST_PASS_LIST]:
        head = f"{_paint('ok', _GREEN, color)} {name_rule(check.code, names)}: {printable(check.subject)}"
        yield f"{head}: {printable(check.reason)}"
    if len(told) > LONGEST_PASS_LIST:
        yield f"ok … and {len(told) - LONGEST_PASS_LIST} more, all of them in --format json"
    if told:
        yield ""


def sort_findings(findings: Sequence[ReportedFinding]) -> list[ReportedFinding]:
    """Unwaived errors, warnings, information, then what is waived; otherwise in the report's order."""
    return sorted(findings, key=lambda f: (f.waiver is not None, _URGENCY.index(f.finding.severity)))


def describe_finding(
    reported: ReportedFinding, *, fixed_as: str | None = None, listed_by: dict[tuple[str, ...], str] | None = None
) -> Iterator[str]:
    """The lines below a finding's headline, printable: message, remedy (or the finding that has the same), waiver.

    The evidence is for programs (JSON, SARIF); a message says in words what of it matters. `listed_by` remembers the
    lists of earlier messages and whose they were; this message then refers to one that it would repeat.
    """
    finding = reported.finding
    message = printable_lines(finding.message)
    yield from message if listed_by is None else _shorten_lists(message, listed_by, finding)
    if fixed_as is not None:
        yield f"{REMEDY_LABEL} as for {fixed_as} above"
    elif finding.remedy:
        yield from _describe_remedy(printable_lines(finding.remedy))
    if reported.waiver is not None:
        yield describe_waiver(reported.waiver, word="Waived")


def _shorten_lists(message: list[str], listed_by: dict[tuple[str, ...], str], finding: Finding) -> Iterator[str]:
    """`message` with each list of several lines that an earlier finding has shown already in one line."""
    for is_list, group in groupby(message, lambda line: line.startswith(CODE_INDENT)):
        lines = tuple(group)
        if not is_list or len(lines) < SHORTEST_LIST:
            yield from lines
            continue
        owner = f"{name_finding(finding)}: {name_place(finding.primary)}"
        earlier = listed_by.setdefault(lines, owner)
        yield from lines if earlier is owner else (f"{CODE_INDENT}the same as for {earlier} above",)


def _shorten_reason(reason: str, told_by: dict[str, str], what: str) -> str:
    """`reason` without what an earlier check has told already; `told_by` remembers what each one told.

    Of a directory of files for another machine every file has the same long one, after the names of what it misses.
    """
    head, colon, tail = reason.partition(": ")
    for told, before in ((tail, head + colon), (reason, "")):
        if len(told) >= SHORTEST_REASON and (earlier := told_by.setdefault(told, what)) is not what:
            return f"{before}the same as for {earlier} above"
    return reason


def _describe_remedy(lines: list[str]) -> Iterator[str]:
    """The remedy under one label; lines of code keep the indent that makes them stand out, and no more."""
    if lines[0].startswith(CODE_INDENT):
        yield REMEDY_LABEL
    else:
        yield f"{REMEDY_LABEL} {lines.pop(0)}"
    yield from lines


def _head(reported: ReportedFinding, color: bool) -> str:
    finding = reported.finding
    word = _paint(name_severity(reported), _DIM if reported.waiver else _SEVERITY_STYLES[finding.severity], color)
    return f"{word} {_paint(name_finding(finding), _BOLD, color)}: {printable(finding.primary.path)}"


def _paint_label(line: str, color: bool) -> str:
    if line.startswith(REMEDY_LABEL):
        return _paint(REMEDY_LABEL, _BOLD, color) + line.removeprefix(REMEDY_LABEL)
    return line


def _paint(text: str, style: str, color: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if color else text
