"""Files that are small for what they ask: many needs, many imports, segments over one another."""

from __future__ import annotations

import resource
import struct
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.limits import MAX_NEEDED
from linkcheck.elf.reader import read_image
from linkcheck.errors import MalformedElfError
from tests.elf.builder import Plan, Sym, build

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, plan: Plan) -> str:
    path.write_bytes(build(plan).data)
    return str(path)


def test_needs_are_bounded_by_number(tmp_path: Path) -> None:
    names = tuple(f"lib{i}.so" for i in range(MAX_NEEDED + 1))
    assert len(read_image(write(tmp_path / "most", Plan(needed=names[1:]))).needed) == MAX_NEEDED
    with pytest.raises(MalformedElfError, match=f"more than {MAX_NEEDED} DT_NEEDED"):
        read_image(write(tmp_path / "more", Plan(needed=names)))


def test_needs_are_bounded_by_length(tmp_path: Path) -> None:
    with pytest.raises(MalformedElfError, match="names of its DT_NEEDED"):
        read_image(write(tmp_path / "long", Plan(needed=tuple(f"{i:0>4000}" for i in range(300)))))


def test_more_imports_than_are_indexed_are_answered_for_cheaply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkcheck.elf.import_index.MAX_INDEXED_IMPORTS", 1000)
    count = 4000
    symbols = tuple(Sym(f"_ZN4acme1fEv{i}", defined=False) for i in range(count))
    table = read_image(write(tmp_path / "many", Plan(symbols=symbols))).symbols
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    assert table.imported("_ZN4acme1fEv0") is not None
    assert table.imported(f"_ZN4acme1fEv{count - 1}") is not None
    assert [name for i in range(200) if table.imported(name := f"nobody{i}") is not None] == []
    # None of the 200 read the names of the 4000; that would take a second.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 0.3
    assert table.count_imports() == count


@pytest.mark.parametrize(
    ("address", "offset", "words"),
    [
        (0x10100, 0x100, "overlaps segment 0"),
        (0x1000, 0, "below segment 0"),
        (0x20000, 0, None),
    ],
)
def test_segments_over_one_another_are_refused(tmp_path: Path, address: int, offset: int, words: str | None) -> None:
    built = build(Plan(soname="libx.so", needed=("liby.so",), stack=6))
    spare = built.find_segment("GNU_STACK")
    struct.pack_into("<IIQQQQQQ", built.data, spare, 1, 4, offset, address, address, 0x100, 0x100, 1)
    (tmp_path / "x").write_bytes(built.data)
    if words is None:
        assert read_image(str(tmp_path / "x")).soname == "libx.so"
    else:
        with pytest.raises(MalformedElfError, match=words):
            read_image(str(tmp_path / "x"))


def test_segments_that_share_a_page_but_not_of_the_file_are_refused(tmp_path: Path) -> None:
    built = build(Plan(soname="libx.so", stack=6))
    address = 0x10000 + len(built.data)
    struct.pack_into("<Q", built.data, built.find_segment("LOAD") + 40, len(built.data))  # p_memsz
    spare = built.find_segment("GNU_STACK")
    struct.pack_into("<IIQQQQQQ", built.data, spare, 1, 4, 0, address, address, 0x10, 0x10, 1)
    (tmp_path / "x").write_bytes(built.data)
    with pytest.raises(MalformedElfError, match="shares a page"):
        read_image(str(tmp_path / "x"))
