"""docs/delegate.md names tests that exist. Whether they show what the page says is for its readers."""

from __future__ import annotations

import re

from ci.docs import ROOT

PAGE = (ROOT / "docs" / "delegate.md").read_text()
NATIVE = ROOT / "native"
#: A test of GoogleTest's, in the page and in its source.
NAMED = re.compile(r"`([A-Z]\w+\.[A-Z]\w+)`")
WRITTEN = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
#: A test function of Python's.
NAMED_FUNCTION = re.compile(r"`(test_\w+)`")
WRITTEN_FUNCTION = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)


def test_each_test_that_the_page_names_is_there() -> None:
    sources = [path.read_text() for folder in (NATIVE, ROOT / "tests") for path in folder.rglob("*_test.cpp")]
    written = {".".join(match) for source in sources for match in WRITTEN.findall(source)}
    named = set(NAMED.findall(PAGE))
    assert len(named) > 80
    assert named - written == set()


def test_each_python_test_that_the_page_names_is_there() -> None:
    sources = [*(NATIVE / "tests").glob("*_test.py"), *(ROOT / "tests").rglob("test_*.py")]
    written = {name for source in sources for name in WRITTEN_FUNCTION.findall(source.read_text())}
    named = set(NAMED_FUNCTION.findall(PAGE))
    assert len(named) > 15
    assert named - written == set()
