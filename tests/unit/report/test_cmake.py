"""The CMake form of a report, read back by the real cmake."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity
from linkcheck.report.cmake import quote, render_cmake
from linkcheck.report.report import Report, ReportedFinding

VARIABLES = ("OK", "FILE", "KIND", "SONAME", "CODES", "MESSAGE", "REMEDY")


def read_back(text: str, directory: Path) -> dict[str, str]:
    """What cmake finds in each variable after it included `text`; every value is written to a file of its own."""
    # The environment's own cmake, which the test extra brings, need not be on PATH.
    cmake = shutil.which("cmake") or shutil.which("cmake", path=Path(sys.executable).parent)
    if cmake is None:
        pytest.skip("needs cmake")
    (directory / "verdict.cmake").write_text(text, newline="")
    here = "${CMAKE_CURRENT_LIST_DIR}"
    lines = [f"include({here}/verdict.cmake)"]
    lines += [f'file(WRITE "{here}/{name}" "${{LINKCHECK_PREBUILT_{name}}}")' for name in VARIABLES]
    (directory / "read.cmake").write_text("\n".join(lines) + "\n")
    done = subprocess.run([cmake, "-P", directory / "read.cmake"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return {name: (directory / name).read_text() for name in VARIABLES}


def report_of(path: str, *findings: Finding, checks: tuple[Check, ...] = ()) -> Report:
    return Report("prebuilt", "p", (path,), checks, tuple(ReportedFinding(finding) for finding in findings))


def finding(code: str, message: str, remedy: str = "do that", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code, "some-name", severity, Confidence.HIGH, message, remedy, Location("x"))


def test_a_pass(tmp_path: Path) -> None:
    report = report_of("/lib/x.so", checks=(Check("LC101", "/lib/x.so", Outcome.PASS),))
    values = read_back(render_cmake(report, kind="shared-object", soname="libx.so.1"), tmp_path)
    assert values == {
        "OK": "TRUE",
        "FILE": "/lib/x.so",
        "KIND": "shared-object",
        "SONAME": "libx.so.1",
        "CODES": "",
        "MESSAGE": "",
        "REMEDY": "",
    }


def test_findings_are_a_list_of_codes_and_one_line_each(tmp_path: Path) -> None:
    report = report_of("x", finding("LC104", "one\nline"), finding("LC306", "two", "other"), finding("LC306", "three"))
    values = read_back(render_cmake(report, kind="shared-object", soname=None), tmp_path)
    assert values["OK"] == "FALSE"
    assert values["CODES"] == "LC104;LC306"
    assert values["MESSAGE"].split("\n") == [
        "LC104 some-name: one\\nline",
        "LC306 some-name: two",
        "LC306 some-name: three",
    ]
    assert values["REMEDY"].split("\n") == ["do that", "other", "do that"]
    assert values["SONAME"] == ""


def test_what_could_not_be_checked_is_not_ok(tmp_path: Path) -> None:
    report = report_of("x", checks=(Check("LC306", "x", Outcome.UNKNOWN, "no symbol count"),))
    values = read_back(render_cmake(report, kind="shared-object", soname=None), tmp_path)
    assert (values["OK"], values["CODES"]) == ("FALSE", "LC306")
    assert "no symbol count" in values["MESSAGE"]


def test_a_warning_does_not_forbid(tmp_path: Path) -> None:
    report = report_of("x", finding("LC104", "m", severity=Severity.WARNING))
    assert read_back(render_cmake(report, kind="shared-object", soname=None), tmp_path)["OK"] == "TRUE"


@pytest.mark.parametrize(
    "text",
    [
        "]==]",
        "]]",
        "a]=] b]==]",
        "ends in ]",
        "ends in ]=",
        "ends in ]==",
        "]=]=",
        "a;b;c",
        "${CMAKE_VERSION} $ENV{HOME} @X@ $<1:x>",
        '"quoted" \\"',
        "back\\slash \\n \\",
        "# no comment",
        "[==[ ]==] set(X y)",
        ")",
        "é ü 漢",
        "",
    ],
)
def test_no_text_breaks_out(text: str, tmp_path: Path) -> None:
    values = read_back(render_cmake(report_of(text, finding("LC101", text)), kind="x", soname=text), tmp_path)
    assert values["FILE"] == text
    assert values["SONAME"] == text
    assert values["MESSAGE"] == f"LC101 some-name: {text}"
    assert values["REMEDY"] == "do that"


@pytest.mark.parametrize("text", ["a\nset(Y z)", "\r\n", "\x1b[31m", "\udcff", "\0", "\u202e"])
def test_what_is_not_printable_is_escaped(text: str, tmp_path: Path) -> None:
    values = read_back(render_cmake(report_of(text), kind="x", soname=text), tmp_path)
    assert values["FILE"] == values["SONAME"]
    assert values["FILE"].startswith(("a\\n", "\\r\\n", "\\x1b", "\\xff", "\\x00", "\\u202e"))


@pytest.mark.parametrize("text", ["x", "]", "]=", "x]==", "]]=]", "\nx"])
def test_the_closing_bracket_stands_only_at_the_end(text: str) -> None:
    quoted = quote(text)
    closing = "]" + "=" * (quoted.index("[", 1) - 1) + "]"
    assert quoted.index(closing) == len(quoted) - len(closing)
