"""Every rule's page tells the truth: its Bad is reported, its Good is clean, and each command shows what it prints."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from linkcheck.model import Severity
from linkcheck.rules.program_rules import ALL_RULES
from tests.console import run_blocks, sections
from tests.executorch import write_program
from tests.programs.build import SOURCES

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.rules.rule import Rule
    from tests.console import Ran

pytestmark = pytest.mark.compile

#: The runner of the pages: it selects a stream and asks for it. The other sources are those of tests/programs.
RUNNER = """\
#include "caller_stream.h"

int main() {
  const executorch::extension::cuda::CallerStreamGuard guard(nullptr);
  return executorch::extension::cuda::getCallerStream().has_value() ? 0 : 1;
}
"""


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """The folder in which somebody follows a page."""
    for name in ("caller_stream.h", "caller_stream.cpp", "delegate.h", "delegate.cpp"):
        shutil.copy(SOURCES / name, tmp_path)
    (tmp_path / "runner.cpp").write_text(RUNNER, encoding="utf-8")
    shutil.copy(write_program.__file__, tmp_path)
    return tmp_path


def follow(rule: Rule, heading: str, reader: Path) -> list[Ran]:
    """Run a section's commands, check what it shows of their output, and give linkcheck's answers."""
    ran = run_blocks(sections(rule.page)[heading], reader)
    for one in ran:
        if one.shown:
            assert [line.rstrip() for line in one.output.splitlines()] == one.shown.splitlines(), one
        if not one.by_linkcheck:
            assert one.status == 0, one
    verdicts = [one for one in ran if one.by_linkcheck]
    assert verdicts, f"{heading} never asks linkcheck"
    return verdicts


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.meta.code)
def test_what_a_page_calls_bad_is_reported(rule: Rule, reader: Path) -> None:
    headline = f"{rule.meta.severity.value} {rule.meta.code} {rule.meta.name}: "
    for verdict in follow(rule, "Bad", reader):
        assert headline in verdict.output, verdict
        assert verdict.status == (1 if rule.meta.severity is Severity.ERROR else 0), verdict


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.meta.code)
def test_what_a_page_calls_good_passes(rule: Rule, reader: Path) -> None:
    for verdict in follow(rule, "Good", reader):
        reported = re.findall(rf"^(?:error|warning|info|unknown) {rule.meta.code} .*", verdict.output, re.MULTILINE)
        assert (verdict.status, reported) == (0, []), verdict
        assert "PASS: 0 errors, 0 warnings, " in verdict.output, verdict
