from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.report.printable import defuse_commands, encodable, printable, printable_lines
from tests.unit.report import hostile


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("libx.so.1", "libx.so.1"),
        ("名前 é 😀", "名前 é 😀"),
        ("C:\\dir", "C:\\dir"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
        (b"lib\xff.so".decode("utf-8", "surrogateescape"), "lib\\xff.so"),
        ("\x9b", "\\u009b"),
        ("\u202e\u2066\u200b\ufeff", "\\u202e\\u2066\\u200b\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_only_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(hostile.text)
def test_any_text_becomes_one_printable_line_of_valid_utf8(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert printable(shown) == shown


@given(hostile.text)
def test_lines_are_split_at_line_feeds_only(text: str) -> None:
    lines = printable_lines(text)
    assert len(lines) == text.count("\n") + 1
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::x", "\\x3a:error::x"),
        ("  ::set-output name=a::b", "  \\x3a:set-output name=a::b"),
        ("see ##[error]x", "see \\x23#[error]x"),
        ("##vso[task.x]", "\\x23#vso[task.x]"),
        ("executorch::extension::cuda", "executorch::extension::cuda"),
        ("## heading [x]", "## heading [x]"),
    ],
)
def test_no_line_is_a_command_to_a_ci_system(line: str, shown: str) -> None:
    assert defuse_commands(line) == shown


def test_json_values_keep_everything_that_json_can_hold() -> None:
    value = {"a\udcff": ["\x1b", "é", 1, True, None, ("\ud800",)], "f": 1.5}
    assert encodable(value) == {"a\\xff": ["\x1b", "é", 1, True, None, ["\\ud800"]], "f": 1.5}


@given(st.floats())
def test_numbers_that_json_lacks_become_text(number: float) -> None:
    shown = encodable(number)
    assert shown == number if isinstance(shown, float) else shown in ("nan", "inf", "-inf")
