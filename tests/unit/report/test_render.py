from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from linkcheck.errors import UsageProblemError
from linkcheck.model import Location
from linkcheck.report import FORMATS, render
from tests.unit.report import hostile
from tests.unit.report.samples import CLEAN, DUPLICATE, FULL, NOTHING, RULES, UNKNOWN, WORK, report_of

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.report.report import Report


def test_an_unknown_format_is_an_error_that_lists_the_formats() -> None:
    with pytest.raises(UsageProblemError, match="'xml'; one of: text, json, sarif, junit, github, markdown"):
        render(FULL, "xml")


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("report", [FULL, CLEAN, UNKNOWN, NOTHING])
def test_every_format_ends_in_one_line_feed_and_is_the_same_each_time(format_name: str, report: Report) -> None:
    document = render(report, format_name, rules=RULES, directory=WORK)
    assert document.endswith("\n")
    assert not document.endswith("\n\n")
    assert render(report, format_name, rules=RULES, directory=WORK) == document


@pytest.mark.parametrize("format_name", FORMATS)
@given(report=hostile.reports)
def test_no_text_reaches_a_terminal_as_a_control(format_name: str, report: Report) -> None:
    document = render(report, format_name, directory=WORK)
    assert hostile.is_clean(document)
    document.encode("utf-8")


def test_paths_are_relative_to_the_current_directory_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    report = report_of(replace(DUPLICATE, primary=Location(str(tmp_path / "lib/a.so"))))
    assert "file=lib/a.so," in render(report, "github")
    assert '"uri": "lib/a.so"' in render(report, "sarif")


@pytest.mark.parametrize(
    ("format_name", "absent"),
    [
        ("text", {"json", "hashlib", "xml.etree.ElementTree", "urllib.parse", "html"}),
        ("github", {"json", "hashlib", "xml.etree.ElementTree", "urllib.parse", "html"}),
        ("json", {"hashlib", "xml.etree.ElementTree", "linkcheck.report.text"}),
        ("junit", {"json", "hashlib"}),
        ("markdown", {"json", "hashlib", "xml.etree.ElementTree"}),
        ("sarif", {"xml.etree.ElementTree", "linkcheck.report.text"}),
    ],
)
def test_only_what_a_format_needs_is_imported(format_name: str, absent: set[str]) -> None:
    program = (
        "import sys; before = set(sys.modules); from linkcheck.report import render;"
        "from linkcheck.report.report import Report;"
        f"render(Report('verify', 'p', (), (), ()), {format_name!r}); print(sorted(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not absent & set(ast.literal_eval(run.stdout))
