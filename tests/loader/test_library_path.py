"""Which directories complete LD_LIBRARY_PATH; the real ld.so says what the program finds with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import complete_library_path
from linkcheck.errors import ReplacedLibraryError, UnplacedLibraryError
from tests.loader.workshop import Workshop, compile_c, needs_compiler, trace

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_the_places_are_found_one_after_the_other(shop: Workshop) -> None:
    shop.library("second/liblc_second.so", soname="liblc_second.so")
    shop.library("first/liblc_first.so", soname="liblc_first.so", needs=("liblc_second.so",))
    program = shop.executable("program", needs=("liblc_first.so",))
    first, second, other = (str(shop.base / name) for name in ("first", "second", "other"))
    os.mkdir(other)
    assert trace(program, library_path=None, preload=None, cwd=shop.base).missing
    assert complete_library_path([str(program)], places=[other, second, first]) == (first, second)
    assert not trace(program, library_path=f"{first}:{second}", preload=None, cwd=shop.base).missing
    assert trace(program, library_path=first, preload=None, cwd=shop.base).missing


def test_a_complete_path_stays_as_it_is_and_an_object_file_needs_nothing(shop: Workshop) -> None:
    compile_c("int unused;", shop.base / "object.o", "-c")
    paths = [str(shop.executable("program")), str(shop.base / "object.o")]
    assert complete_library_path(paths, places=[str(shop.base)]) == ()


def test_a_library_in_none_of_the_places_is_named(shop: Workshop) -> None:
    program = shop.executable("program", needs=("liblc_nowhere.so",))
    with pytest.raises(UnplacedLibraryError, match=r"program needs liblc_nowhere\.so, .* none of the 1 directories"):
        complete_library_path([str(program)], places=[str(shop.base)])


def test_a_place_that_would_hide_what_was_found_is_refused(shop: Workshop) -> None:
    shop.library("own/liblc_kept.so", soname="liblc_kept.so")
    shop.library("place/liblc_kept.so", soname="liblc_kept.so")
    shop.library("place/liblc_lost.so", soname="liblc_lost.so")
    program = shop.executable("program", needs=("liblc_kept.so", "liblc_lost.so"), runpath="$ORIGIN/own")
    place = str(shop.base / "place")
    with pytest.raises(ReplacedLibraryError, match=r"loads .*/own/liblc_kept\.so, .* would load .*/place/liblc_kept"):
        complete_library_path([str(program)], places=[place])
    assert f"{place}/liblc_kept.so" in trace(program, library_path=place, preload=None, cwd=shop.base).loaded
