"""The report of a run, and one renderer a format. Knows no rule's inside and reads no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.report.report import DescribedRule, Report

#: The values of --format, the default first.
FORMATS = ("text", "json", "sarif", "junit", "github", "markdown")


def render(
    report: Report,
    format_name: str,
    *,
    color: bool = False,
    rules: Sequence[DescribedRule] = (),
    directory: str | None = None,
) -> str:
    """`report` in one of FORMATS, ending in a line feed; only that renderer is imported.

    `color` is for the text format and the caller's decision. `rules` gives SARIF its rule descriptors and names the
    rule of a check that came to no finding. Paths in `sarif` and `github` are relative to `directory`, the current
    one by default. Raises UsageProblemError for a format that is not in FORMATS.
    """
    import os

    try:
        where = os.getcwd() if directory is None else directory
    except FileNotFoundError:  # the working directory was removed: nothing is below it
        where = "/proc/self/cwd"
    if format_name == "text":
        from linkcheck.report.text import render_text

        return render_text(report, rules, color=color)
    if format_name == "json":
        from linkcheck.report.json_document import render_json

        return render_json(report)
    if format_name == "sarif":
        from linkcheck.report.sarif import render_sarif

        return render_sarif(report, rules, where)
    if format_name == "junit":
        from linkcheck.report.junit import render_junit

        return render_junit(report, rules)
    if format_name == "github":
        from linkcheck.report.github import render_github

        return render_github(report, rules, where)
    if format_name == "markdown":
        from linkcheck.report.markdown import render_markdown

        return render_markdown(report, rules)
    from linkcheck.errors import UsageProblemError

    raise UsageProblemError(f"unknown format {format_name!r}; one of: {', '.join(FORMATS)}")
