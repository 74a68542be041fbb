from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from linkcheck.model import Location
from linkcheck.report.markdown import render_markdown
from linkcheck.report.printable import printable
from linkcheck.report.text import sort_findings
from tests.unit.report import hostile
from tests.unit.report.samples import CLEAN, DUPLICATE, FULL, MISSING_IMPORT, NOTHING, RULES, WAIVER, report_of

if TYPE_CHECKING:
    from linkcheck.report.report import Report


class Page(HTMLParser):
    """The tags of a page, and the text of each table cell, code block and list item."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.blocks: list[str] = []
        self.text = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if "pre" in self._open:
            self.blocks[-1] += data
        elif "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data


OURS = {
    *("h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "b", "strong", "code", "pre", "ul", "li"),
}


def read(report: Report) -> Page:
    markdown_it: Any = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed (extra: test)")
    page = Page()
    page.feed(markdown_it.MarkdownIt("commonmark").enable("table").render(render_markdown(report, RULES)))
    return page


def test_a_whole_report_reads_well() -> None:
    report = report_of(MISSING_IMPORT)
    assert render_markdown(report) == (
        "## ❌ linkcheck: fail\n"
        "\n"
        "1 error, 0 warnings, 0 passed; profile `default`\n"
        "\n"
        "| severity | rule | file | concerns |\n"
        "| --- | --- | --- | --- |\n"
        "| error | LC301 missing-import | `build/bin/runner` "
        "| `_ZN10executorch9extension4cuda15getCallerStreamEv` |\n"
        "\n"
        "<details open><summary><b>LC301 missing-import</b> <code>build/bin/runner</code></summary>\n"
        "\n"
        "The executable does not import executorch::extension::cuda::getCallerStream(), so it has a private copy of "
        "the caller stream or never sets it.\n"
        "Kernels then run on a stream that nobody chose, and nothing crashes.\n"
        "\n"
        "**Fix:** Link the shared library instead of the archive:\n"
        "\n"
        "```\n"
        "target_link_libraries(runner PRIVATE executorch::extension_cuda)\n"
        "```\n"
        "\n"
        "- needed: libstdc++.so.6, libc.so.6\n"
        "- tls bytes: 8\n"
        "- stripped: yes\n"
        "- see also `build/lib/libextension_cuda.so (_ZN10executorch9extension4cuda15getCallerStreamEv)`\n"
        "\n"
        "</details>\n"
    )


@pytest.mark.parametrize(
    ("report", "head"),
    [
        (FULL, "## ❌ linkcheck: fail"),
        (CLEAN, "## ✅ linkcheck: pass"),
        (NOTHING, "## ⚠️ linkcheck: could not check"),
    ],
)
def test_the_first_line_is_the_verdict(report: Report, head: str) -> None:
    assert render_markdown(report).splitlines()[0] == head


def test_what_is_waived_is_folded_and_says_why() -> None:
    text = render_markdown(report_of(DUPLICATE, waiver=WAIVER))
    assert "| waived error | LC403 duplicate-library |" in text
    assert "<details><summary>" in text
    assert "- waived until 2027-01-31 by build team: never loaded together" in text


def test_what_could_not_be_checked_is_listed() -> None:
    page = read(FULL)
    assert "LC302 private-definition, build/lib/libodd.so: its symbol table lies beyond" in page.text


def test_commands_are_code_blocks() -> None:
    assert read(FULL).blocks == [
        "target_link_libraries(runner PRIVATE executorch::extension_cuda)\n",
        "linkcheck verify --library-path DIR build/bin/runner\n",
    ]


def test_a_remedy_cannot_close_its_block_or_its_section() -> None:
    remedy = "    ```\n    </details>\n    ````x\n# not a heading\n1. nor a list\n---"
    page = read(report_of(replace(MISSING_IMPORT, remedy=remedy)))
    assert page.blocks == ["```\n</details>\n````x\n"]
    assert "h1" not in page.tags
    assert {"ol", "hr"}.isdisjoint(page.tags)


@pytest.mark.parametrize("name", ["a|b", "a\\|b", "a`b", "``", "a``b|c", "<i>x</i>", "&amp;", "*x*_y_", "@team", "x\\"])
def test_a_name_is_shown_in_its_cell_as_it_is(name: str) -> None:
    page = read(report_of(replace(MISSING_IMPORT, primary=Location(name, name))))
    assert page.rows[1] == ["error", "LC301 missing-import", name, name]


@pytest.mark.parametrize("text", ["@team", "see #12", "http://h/x", "www.h.org"])
def test_names_notify_nobody_and_link_nowhere(text: str) -> None:
    source = render_markdown(report_of(replace(MISSING_IMPORT, message=f"It needs {text}.")))
    assert text not in source
    assert text in read(report_of(replace(MISSING_IMPORT, message=f"It needs {text}."))).text


@given(hostile.reports)
def test_any_report_has_our_markup_only_and_a_row_of_four_cells_a_finding(report: Report) -> None:
    page = read(report)
    assert page.tags <= OURS
    assert [len(row) for row in page.rows] == ([4] * (1 + len(report.findings)) if report.findings else [])
    for row, reported in zip(page.rows[1:], sort_findings(report.findings), strict=True):
        path = printable(reported.finding.primary.path)
        assert " ".join(row[2].split()) == (" ".join(path.split()) or "(empty)")


def test_a_long_list_of_evidence_is_a_list_in_its_list() -> None:
    entries = [f"/a/long/directory/number/{number}" for number in range(5)]
    page = render_markdown(report_of(replace(DUPLICATE, evidence={"searched": [*entries]})))
    assert "- searched:\n" + "\n".join(f"  - {entry}" for entry in entries) in page


def test_a_profile_is_named_only_where_it_judged() -> None:
    assert "; profile `default`\n" in render_markdown(CLEAN)
    assert "profile" not in render_markdown(replace(CLEAN, command="pte"))
