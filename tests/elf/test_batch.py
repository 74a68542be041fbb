"""Questions about many symbols at once answer as the same ones one by one, which pyelftools and LIEF have judged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf import batch
from linkcheck.elf.reader import read_image
from linkcheck.errors import MalformedElfError
from tests.elf.builder import Plan, Sym, build
from tests.elf.workshop import make

if TYPE_CHECKING:
    from linkcheck.model import Symbol

FILES = [
    path
    for path in (
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/git",
        sys.executable,
    )
    if Path(path).exists()
]


def version(symbol: Symbol) -> str | None:
    return None if symbol.version is None or symbol.version.base else symbol.version.name


@pytest.mark.parametrize("most_resident", [None, 0])
@pytest.mark.parametrize("path", FILES)
def test_many_names_are_found_as_one_by_one(
    path: str, most_resident: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most_resident is not None:  # every table counts as too large to be read at once
        monkeypatch.setattr(batch, "MAX_RESIDENT_TABLE", most_resident)
    table = read_image(path).symbols
    names = list(dict.fromkeys(symbol.name for symbol in table.exports()))[:1500]
    wanted = [*names, "no_such_name", "", "é", "\udcff"]
    found = table.offers(wanted)
    assert list(found) == names
    assert table.offers(wanted) == table.offers(wanted) == found  # the hash table is kept by then
    assert {name: sorted(map(str, v)) for name, v in found.items()} == {
        name: sorted(str(version(symbol)) for symbol in table.exported(name)) for name in names
    }


def test_the_hash_tables_of_all_files_together_are_kept_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    path = FILES[0]
    names = [symbol.name for symbol in read_image(path).symbols.exports()][:50]
    kept = []
    images = [read_image(path) for _ in range(3)]
    before = batch.Offers.all_kept
    for image in images:
        answers = [image.symbols.offers(names) for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert len(answers[0]) == len(set(names))
        kept.append(batch.Offers.all_kept)
        monkeypatch.setattr(batch, "MAX_TABLES_KEPT", before + 2 * (kept[0] - before))
    assert before < kept[0] < kept[1] == kept[2]
    images.clear()
    del image
    assert batch.Offers.all_kept == before


@pytest.mark.parametrize("path", FILES)
def test_demands_are_the_imports_that_are_not_weak(path: str) -> None:
    table = read_image(path).symbols
    expected = [
        (s.name, version(s), s.version.library if s.version and not s.version.base else None)
        for s in table.imports()
        if not s.weak
    ]
    assert list(table.demands() or ()) == expected


@pytest.mark.parametrize("visibility", [0, 2])
def test_imports_anywhere_in_the_table_are_demands_by_binding_and_visibility(tmp_path: Path, visibility: int) -> None:
    symbols = (
        Sym("strong", defined=False),
        Sym("weak", defined=False, binding=2),
        Sym("local", defined=False, binding=0),
        Sym("unique", defined=False, binding=10),
        Sym("own", defined=False, visibility=visibility),
        Sym("café", defined=False),
        Sym("defined"),
        Sym("late"),
    )
    built = build(Plan(symbols=symbols))
    library = tmp_path / "libx.so"
    # Behind a definition, where linkers put none.
    built.patch(built.at["symtab"] + 8 * 24 + 6, "H", 0)
    library.write_bytes(built.data)
    table = read_image(str(library)).symbols
    expected = ["strong", "unique", *(["own"] if visibility == 0 else []), "café", "late"]
    assert [name for name, _, _ in table.demands() or ()] == expected
    assert [symbol.name for symbol in table.imports() if not symbol.weak] == expected


@pytest.mark.compile
def test_a_hash_table_that_lies_is_malformed(tmp_path: Path) -> None:
    """A bucket below the first hashed symbol."""
    source = tmp_path / "x.c"
    source.write_text("int alpha; int beta; int gamma_; extern int outside; int *p = &outside;")
    library = tmp_path / "libx.so"
    make("gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=gnu", source, "-o", library)
    good = library.read_bytes()
    names = ("alpha", "beta", "gamma_")
    assert set(read_image(str(library)).symbols.offers(names)) == set(names)
    place = _find_hash_table(library)
    buckets, first, words = (int.from_bytes(good[place + 4 * i : place + 4 * i + 4], "little") for i in range(3))
    at = place + 16 + 8 * words
    low = bytearray(good)
    low[at : at + 4 * buckets] = (first - 1).to_bytes(4, "little") * buckets
    library.write_bytes(low)
    with pytest.raises(MalformedElfError, match="a bucket of DT_GNU_HASH"):
        read_image(str(library)).symbols.offers(names)


def _find_hash_table(library: Path) -> int:
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".gnu.hash")
        assert section is not None
        return int(section["sh_offset"])
