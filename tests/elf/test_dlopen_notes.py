"""Dlopen metadata (.note.dlopen) in files made by the compiler: what is read, and what is passed over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from linkcheck.elf.dlopen_notes import parse_dlopen_notes
from linkcheck.elf.limits import MAX_DLOPEN_NOTES, MAX_DLOPEN_SONAMES
from linkcheck.elf.reader import read_image
from linkcheck.model import DlopenNote
from tests.elf.workshop import make, run_tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile

NOTE = """
__attribute__((used, aligned({align}), section("{section}")))
static const struct {{ unsigned n, d, t; char owner[4]; char content[{size}]; }} note_{number} =
  {{ 4, {size}, {type}, {owner}, {content} }};
"""


def write_note(
    number: int, content: str, *, type_: int = 0x407C0C0A, owner: str = "FDO", section: str = ".note.dlopen"
) -> str:
    size = len(content.encode()) + 1
    return NOTE.format(
        number=number,
        align=4,
        section=section,
        size=size,
        type=type_,
        owner=json.dumps(owner),
        content=json.dumps(content),
    )


def build(directory: Path, *notes: str, flags: tuple[str, ...] = ()) -> Path:
    source, target = directory / "x.c", directory / "libx.so"
    source.write_text("\n".join(notes) + "\nint x;\n")
    make("gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=0xc0ffee", *flags, source, "-o", target)
    return target


ZSTD = {"feature": "zstd", "description": "Support for zstd", "priority": "required", "soname": ["libzstd.so.1"]}
TWO = {"soname": ["libb.so.2", "libb.so.1"]}


def test_entries_are_read_in_order_and_beside_the_build_id(tmp_path: Path) -> None:
    library = build(tmp_path, write_note(1, json.dumps([ZSTD])), write_note(2, json.dumps([TWO, ZSTD])))
    image = read_image(str(library))
    assert image.dlopen_notes == (
        DlopenNote(("libzstd.so.1",), "required", "zstd", "Support for zstd"),
        DlopenNote(("libb.so.2", "libb.so.1"), "recommended"),
    )
    assert image.build_id == "c0ffee"
    with library.open("rb") as file:  # pyelftools finds the same notes
        section = ELFFile(file).get_section_by_name(".note.dlopen")
        assert isinstance(section, NoteSection)
        assert [(note["n_name"], note["n_descsz"]) for note in section.iter_notes()] == [
            ("FDO", len(json.dumps([ZSTD])) + 1),
            ("FDO", len(json.dumps([TWO, ZSTD])) + 1),
        ]


def test_a_file_without_sections_keeps_its_notes(tmp_path: Path) -> None:
    library = build(tmp_path, write_note(1, json.dumps([ZSTD])))
    data = bytearray(library.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)  # e_shoff, e_shnum and e_shstrndx
    library.write_bytes(data)
    assert "no sections" in run_tool("readelf", "-S", library).stdout
    assert [note.sonames for note in read_image(str(library)).dlopen_notes] == [("libzstd.so.1",)]


@pytest.mark.parametrize(
    "note",
    [
        write_note(1, json.dumps([ZSTD]), type_=0xCAFE1A7E),
        write_note(1, json.dumps([ZSTD]), owner="GNU"),
        "",
    ],
)
def test_other_notes_are_none_of_it(tmp_path: Path, note: str) -> None:
    assert read_image(str(build(tmp_path, note))).dlopen_notes == ()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "{}",
        "null",
        "7",
        '{"soname": ["a.so"]}',
        "[7]",
        '[{"soname": "a.so"}]',
        '[{"soname": []}]',
        '[{"soname": [7, null, "", "a\\u0000b", "\\ud800"]}]',
        "[" * 60000,
        "[1" + "0" * 60000 + "]",
    ],
)
def test_what_is_no_metadata_is_passed_over(tmp_path: Path, content: str) -> None:
    assert parse_dlopen_notes([content.encode()]) == ()
    if len(content) < 1000:
        assert read_image(str(build(tmp_path, write_note(1, content)))).dlopen_notes == ()


@pytest.mark.parametrize("content", [b"\xff\xfe[", b"\0" * 64])
def test_bytes_that_are_no_text_are_passed_over(content: bytes) -> None:
    assert parse_dlopen_notes([content]) == ()


@pytest.mark.parametrize("priority", ["optional", 7, None, [], "REQUIRED"])
def test_an_unknown_priority_is_the_default(priority: Any) -> None:
    (note,) = parse_dlopen_notes([json.dumps([{**ZSTD, "priority": priority}]).encode()])
    assert note.priority == "recommended"


def test_bad_entries_cost_only_themselves_and_their_number_is_bounded() -> None:
    entries: list[Any] = [7, {"soname": ["a.so", 7]}, *({"soname": [f"l{n}.so"]} for n in range(2 * MAX_DLOPEN_NOTES))]
    notes = parse_dlopen_notes([json.dumps(entries).encode()])
    assert notes[0].sonames == ("a.so",)
    assert len(notes) == MAX_DLOPEN_NOTES
    (many,) = parse_dlopen_notes([json.dumps([{"soname": [f"l{n}.so" for n in range(99)]}]).encode()])
    assert len(many.sonames) == MAX_DLOPEN_SONAMES
