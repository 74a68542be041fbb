"""Which directories complete LD_LIBRARY_PATH; the real ld.so says what the program finds with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import complete_library_path
from linkcheck.errors import (
    MalformedElfError,
    NotAnImageError,
    ReplacedLibraryError,
    UnplacedLibraryError,
    UnreadableFileError,
    UsageProblemError,
)
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
    with pytest.raises(
        UnplacedLibraryError, match=r"program needs liblc_nowhere\.so, which is not in the one directory$"
    ):
        complete_library_path([str(program)], places=[str(shop.base)])
    with pytest.raises(UnplacedLibraryError, match=r"which is in none of the 2 directories$") as raised:
        complete_library_path([str(program)], places=[str(shop.base), "/nowhere"])
    assert raised.value.exit_status == 2


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("unit.c", b"int unit;\n", "a text file"),
        ("libowner.so", b"!<arch>\n", "a static archive"),
        ("empty.so", b"", "an empty file"),
        (".", None, "a directory"),
    ],
)
def test_what_is_no_program_is_no_complete_one(tmp_path: Path, name: str, text: bytes | None, what: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(NotAnImageError, match=f"{what}$"):
        complete_library_path([str(path)], places=[])


def test_an_empty_name_is_refused(shop: Workshop) -> None:
    for paths, places in ((("",), ()), ((str(shop.executable("program")),), ("",))):
        with pytest.raises(UsageProblemError, match="an empty name names no file"):
            complete_library_path(paths, places=places)


def test_a_library_that_is_there_and_cannot_be_read_is_the_error(shop: Workshop) -> None:
    """ld.so stops at it, too; a linker script and a link to nothing are passed over."""
    program = shop.executable("program", needs=("liblc_odd.so",))
    shop.library("good/liblc_odd.so", soname="liblc_odd.so")
    for name in ("cut", "script", "dangling", "loop"):
        (shop.base / name).mkdir()
    whole = (shop.base / "good/liblc_odd.so").read_bytes()
    (shop.base / "cut/liblc_odd.so").write_bytes(whole[:40])
    (shop.base / "script/liblc_odd.so").write_text("INPUT(liblc_odd.so.1)\n")
    (shop.base / "dangling/liblc_odd.so").symlink_to("gone.so")
    (shop.base / "loop/liblc_odd.so").symlink_to("liblc_odd.so")

    def complete(*places: str) -> tuple[str, ...]:
        return complete_library_path([str(program)], places=[str(shop.base / place) for place in places])

    assert complete("script", "dangling", "good") == (str(shop.base / "good"),)
    with pytest.raises(MalformedElfError, match=r"cut/liblc_odd\.so: malformed ELF: truncated"):
        complete("cut", "good")
    error = trace(program, library_path=str(shop.base / "cut"), preload=None, cwd=shop.base).error
    assert "cut/liblc_odd.so: file too short" in error
    with pytest.raises(UnreadableFileError, match=r"loop/liblc_odd\.so: cannot be read: Too many levels"):
        complete("loop", "good")


def test_a_place_that_would_hide_what_was_found_is_refused(shop: Workshop) -> None:
    shop.library("own/liblc_kept.so", soname="liblc_kept.so")
    shop.library("place/liblc_kept.so", soname="liblc_kept.so")
    shop.library("place/liblc_lost.so", soname="liblc_lost.so")
    program = shop.executable("program", needs=("liblc_kept.so", "liblc_lost.so"), runpath="$ORIGIN/own")
    place = str(shop.base / "place")
    with pytest.raises(ReplacedLibraryError, match=r"loads .*/own/liblc_kept\.so, .* would load .*/place/liblc_kept"):
        complete_library_path([str(program)], places=[place])
    assert f"{place}/liblc_kept.so" in trace(program, library_path=place, preload=None, cwd=shop.base).loaded
