"""A NEEDED with a slash, which a library without SONAME leaves: LC202's advice is followed, and ld.so is the judge."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

LIBRARY = "int g(void) { return 0; }"
PROGRAM = "int g(void); int main(void) { return g(); }"
SEARCH = "-Wl,-rpath,$ORIGIN/moved"


def _move(yard: Yard) -> None:
    """As a build directory is gone on the machine that the program is shipped to."""
    shutil.copytree(yard.base / "build", yard.base / "moved")
    shutil.rmtree(yard.base / "build")


def test_search_paths_do_not_help_and_are_not_advised(yard: Yard) -> None:
    library = yard.library("build/libg.so", LIBRARY, soname="")
    program = yard.program("program", PROGRAM, library, SEARCH)
    _move(yard)
    assert yard.run(program, LD_LIBRARY_PATH=str(yard.base / "moved")).status == 127
    (finding,) = yard.verify(program, "--select", "LC2", "--profile", "default").errors
    assert finding["code"] == "LC202"
    assert "LD_LIBRARY_PATH" not in finding["remedy"]
    assert "-Wl,-soname,libg.so" in finding["remedy"]
    assert "-L<directory> -lg" in finding["remedy"]


def test_a_soname_with_a_token_is_told_as_the_cause(yard: Yard) -> None:
    library = yard.library("build/libg.so", LIBRARY, soname="$ORIGIN/build/libg.so")
    program = yard.program("program", PROGRAM, library, SEARCH)
    assert yard.run(program).status == 0
    _move(yard)
    assert yard.run(program, LD_LIBRARY_PATH=str(yard.base / "moved")).status == 127
    (finding,) = yard.verify(program, "--select", "LC202", "--profile", "default").errors
    assert "no SONAME, or one with a slash" in finding["remedy"]
    assert "as it stands" not in finding["remedy"]


@pytest.mark.parametrize(("soname", "by_name"), [(None, False), ("", True)])
def test_the_advice_works(yard: Yard, soname: str | None, by_name: bool) -> None:
    library = yard.library("build/libg.so", LIBRARY, soname=soname)
    link = [f"-L{library.parent}", "-lg"] if by_name else [library]
    program = yard.program("program", PROGRAM, *link, SEARCH)
    _move(yard)
    assert yard.run(program).status == 0
    assert not yard.verify(program, "--select", "LC2", "--profile", "default").errors
