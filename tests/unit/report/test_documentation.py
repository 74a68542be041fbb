from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from linkcheck.report import FORMATS, render
from tests.unit.report.samples import DOCUMENTED, RULES, WORK

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8")


def sample_of(format_name: str) -> str:
    """The first block of code below a format's heading; its fence has four marks, as Markdown has some of three."""
    match = re.search(rf"^## {format_name}\n.*?^````\w*\n(.*?)^````\n", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None, f"docs/formats.md has no sample of {format_name}"
    return match[1]


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "sarif"])
def test_the_sample_is_what_linkcheck_prints(format_name: str) -> None:
    assert sample_of(format_name) == render(DOCUMENTED, format_name, rules=RULES, directory=WORK)


def test_the_sarif_sample_is_a_result_as_linkcheck_prints_it() -> None:
    (run,) = json.loads(render(DOCUMENTED, "sarif", rules=RULES, directory=WORK))["runs"]
    assert json.loads(sample_of("sarif")) == run["results"][0]
