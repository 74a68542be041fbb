from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.report.text import NO_POLICY, render_text
from tests.unit.report import hostile
from tests.unit.report.samples import (
    CLEAN,
    FULL,
    MISSING_IMPORT,
    NOTHING,
    RULES,
    UNKNOWN,
    UNRESOLVED,
    report_of,
)

if TYPE_CHECKING:
    from linkcheck.model import Finding
    from linkcheck.report.report import Report

READABLE = """\
error LC301 missing-import: build/bin/runner
  The executable does not import executorch::extension::cuda::getCallerStream(), so it has a private copy of the \
caller stream or never sets it.
  Kernels then run on a stream that nobody chose, and nothing crashes.
  Fix: Link the shared library instead of the archive:
      target_link_libraries(runner PRIVATE executorch::extension_cuda)

warning LC202 unresolved-needed: build/bin/runner
  libnvinfer.so.11 is needed and found in none of the directories searched.
  Fix: Install TensorRT, or name its directory:
      linkcheck verify --library-path DIR build/bin/runner

waived error LC403 duplicate-library: /opt/torch/lib/libgomp.so.1
  Two files have the SONAME libgomp.so.1.
  Fix: Ship one of them.
  Waived until 2027-01-31 by build team: never loaded together [linkcheck.toml:12]

unknown LC302 private-definition: build/lib/libodd.so
  its symbol table lies beyond the end of the file

FAIL: 1 error, 1 warning, 1 waived, 1 passed, 1 not applicable, 1 unknown (profile executorch-caller-stream)
"""


def test_of_many_checks_that_did_not_apply_some_are_shown() -> None:
    skipped = [Check("LC402", f"{number}.pte", Outcome.NOT_APPLICABLE, "not known") for number in range(1000)]
    lines = render_text(report_of(checks=tuple(skipped))).splitlines()
    assert lines[:3] == ["not applicable LC402: 0.pte", "  not known", ""]
    assert sum(line.startswith("not applicable") for line in lines) == 20
    assert lines[-3] == "… and 980 more, all of them in --format json"


def test_a_whole_report_reads_well() -> None:
    assert render_text(FULL, RULES) == READABLE


@pytest.mark.parametrize(
    ("report", "last_line"),
    [
        (CLEAN, "PASS: 0 errors, 0 warnings, 1 passed, 1 not applicable (profile default)"),
        (UNKNOWN, "COULD NOT CHECK: 0 errors, 0 warnings, 1 passed, 1 not applicable, 1 unknown (profile default)"),
        (NOTHING, "COULD NOT CHECK: nothing was checked (profile default)"),
        (
            report_of(replace(UNRESOLVED, severity=Severity.INFO)),
            "PASS: 0 errors, 0 warnings, 1 for information, 0 passed (profile default)",
        ),
    ],
)
def test_the_last_line_has_verdict_counts_and_profile(report: Report, last_line: str) -> None:
    assert render_text(report).splitlines()[-1] == last_line


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("verify", f"{NO_POLICY}: judged by the built-in profile default; --profile default is for any program."),
        ("prebuilt", f"{NO_POLICY}: judged by the built-in profile default."),
        ("pte", ""),
    ],
)
def test_a_profile_that_nobody_chose_is_told_before_the_last_line(command: str, line: str) -> None:
    chosen = replace(UNKNOWN, command=command)
    *told, last = render_text(replace(chosen, by_default=True)).splitlines()
    *others, verdict = render_text(chosen).splitlines()
    assert told == [*others, line][: len(others) + bool(line)]
    assert last == verdict
    assert ("profile" in last) is (command != "pte")


def test_colour_only_adds_escapes() -> None:
    colored = render_text(FULL, RULES, color=True)
    assert colored.startswith("\x1b[1;31merror\x1b[0m ")
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == READABLE


@given(hostile.reports)
def test_colour_escapes_are_the_only_controls(report: Report) -> None:
    colored = render_text(report, color=True)
    assert hostile.is_clean(re.sub(r"\x1b\[(?:[0-9;]+)m", "", colored))


@given(hostile.reports)
def test_no_line_commands_a_ci_system(report: Report) -> None:
    for line in render_text(report).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert "##vso[" not in line


def test_a_line_break_in_a_name_cannot_forge_a_headline_or_a_verdict() -> None:
    name = "x\nPASS: 0 errors\nerror LC999 forged: y"
    forged = replace(MISSING_IMPORT, primary=Location(name, name), message=f"It has {name}.")
    heads = [line for line in render_text(report_of(forged)).splitlines() if line and not line.startswith(" ")]
    assert len(heads) == 2
    assert heads[0].startswith("error LC301 missing-import: x\\nPASS")
    assert heads[1].startswith("FAIL: 1 error")


def test_evidence_is_left_to_the_formats_for_programs() -> None:
    assert "searched:" not in render_text(report_of(replace(UNRESOLVED, evidence={"searched": ["/a", "/b"]})))


def test_one_cure_for_several_findings_is_said_once() -> None:
    first, second = replace(UNRESOLVED, remedy="Do this."), replace(MISSING_IMPORT, remedy="Do this.")
    text = render_text(report_of(second, first))
    assert text.count("Do this.") == 1
    assert "  Fix: as for LC301 missing-import above\n" in text


def test_a_long_reason_of_several_checks_is_shown_once() -> None:
    """Every file for another machine misses other libraries, all of them for one reason."""
    why = "the file is for another machine, " + "and so on " * 10
    checks = [
        Check("LC202", "liba.so", Outcome.UNKNOWN, f"libm.so.6 not found: {why}"),
        Check("LC203", "liba.so", Outcome.UNKNOWN, why),
        Check("LC202", "libb.so", Outcome.UNKNOWN, f"libc.so.6 not found: {why}"),
        Check("LC304", "libb.so", Outcome.UNKNOWN, "not seen: short"),
        Check("LC304", "libc.so", Outcome.UNKNOWN, "not seen: short"),
    ]
    lines = render_text(report_of(checks=tuple(checks))).splitlines()
    above = "the same as for LC202: liba.so above"
    assert [line.strip() for line in lines if line.startswith("  ")] == [
        f"libm.so.6 not found: {why}".strip(),
        above,
        f"libc.so.6 not found: {above}",
        "not seen: short",
        "not seen: short",
    ]


def test_a_list_of_several_findings_is_shown_once() -> None:
    """Every missing library of a process was searched for in the same directories."""

    def missing(name: str, *directories: str) -> Finding:
        message = f"bin/x needs {name}; searched:" + "".join(f"\n    {one}" for one in directories) + "\nIt is wanted."
        return replace(UNRESOLVED, message=message, remedy="", primary=Location("bin/x", name))

    report = report_of(
        missing("liba.so", "/lib", "/usr/lib"),
        missing("libb.so", "/lib", "/usr/lib"),
        missing("libc.so", "/lib", "/opt/lib"),
        missing("libd.so", "/lib"),
        missing("libe.so", "/lib"),
    )
    lines = [line for line in render_text(report).splitlines() if line.startswith("      ")]
    assert lines == [
        "      /lib",
        "      /usr/lib",
        "      the same as for LC202 unresolved-needed: bin/x (liba.so) above",
        "      /lib",
        "      /opt/lib",
        "      /lib",  # a reference would take as much room
        "      /lib",
    ]
    assert render_text(report).count("It is wanted.") == 5


def test_a_remedy_may_begin_with_a_command() -> None:
    text = render_text(report_of(replace(UNRESOLVED, remedy="    make install\nand try again")))
    assert "  Fix:\n      make install\n  and try again\n" in text


def test_a_finding_without_a_remedy_has_no_label() -> None:
    assert "Fix:" not in render_text(report_of(replace(UNRESOLVED, remedy="")))
