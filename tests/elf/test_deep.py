"""What `.symtab` adds for files that were not stripped, and that damage to it is never an error."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.deep import list_symtab_names, list_symtab_names_with
from linkcheck.elf.header import read_header
from linkcheck.elf.reader import read_image
from linkcheck.errors import LinkcheckError

if TYPE_CHECKING:
    from collections.abc import Collection

pytestmark = pytest.mark.compile

_SOURCE = """
static __attribute__((used)) int quiet(void) { return 1; }
__attribute__((visibility("hidden"), used)) int inner(void) { return 2; }
int given(void) { return 3; }
extern int taken(void);
int caller(void) { return taken(); }
"""
_NAMES = ("quiet", "inner", "given", "taken", "iet", "nothing", "", "odd\0name", "\ud800")


def _compile(folder: Path, *flags: str, source: str = _SOURCE) -> str:
    path = folder / "made"
    code = folder / "made.c"
    code.write_text(source)
    subprocess.run(["gcc", str(code), "-o", str(path), *flags], check=True, capture_output=True)
    return str(path)


def _look(path: str, names: Collection[str] = _NAMES) -> tuple[str, ...]:
    with BoundedFile(path) as file:
        return list_symtab_names(file, read_header(file), names)


@pytest.mark.parametrize("bits", ["-m64", "-m32"])
def test_local_hidden_and_exported_definitions_are_found(tmp_path: Path, bits: str) -> None:
    path = _compile(tmp_path, "-shared", "-fPIC", "-nostdlib", bits)
    assert _look(path) == ("given", "inner", "quiet")
    readelf = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    table = [line.split() for line in readelf.partition("'.symtab'")[2].splitlines() if line.endswith(_look(path))]
    assert sorted((words[7], words[4]) for words in table) == [
        ("given", "GLOBAL"),
        ("inner", "LOCAL"),
        ("quiet", "LOCAL"),
    ]
    assert read_image(path).symbols.private(_NAMES) == ("inner", "quiet")


@pytest.mark.parametrize("flags", [("-static",), ("-static-pie", "-fPIE"), ("-pie", "-fPIE"), ("-no-pie", "-fno-pie")])
def test_a_program_keeps_its_functions_to_itself(tmp_path: Path, flags: tuple[str, ...]) -> None:
    source = (
        _SOURCE.replace("extern int taken(void);", "int taken(void) { return 0; }") + "int main(void) { return 0; }"
    )
    path = _compile(tmp_path, *flags, source=source)
    assert read_image(path).symbols.private(("given", "main", "quiet", "nothing")) == ("given", "main", "quiet")


def test_what_a_program_exports_is_not_private(tmp_path: Path) -> None:
    path = _compile(tmp_path, "-rdynamic", source=_SOURCE.replace("taken", "given") + "int main(void) { return 0; }")
    assert read_image(path).symbols.private(("given", "quiet")) == ("quiet",)


def test_a_stripped_file_says_nothing(tmp_path: Path) -> None:
    path = _compile(tmp_path, "-shared", "-fPIC", "-nostdlib", "-s")
    assert _look(path) == ()
    assert read_image(path).symbols.private(_NAMES) == ()


def test_a_name_across_the_edge_of_a_block_is_found(tmp_path: Path) -> None:
    # The names take more than the megabyte that is read at once; they are looked for everywhere.
    source = "".join(f"static int {'n' * 900}_{number:04}; " for number in range(1500))
    path = _compile(tmp_path, "-shared", "-fPIC", "-nostdlib", "-O0", source=source)
    names = [f"{'n' * 900}_{number:04}" for number in range(1500)]
    assert set(_look(path, names)) == set(names)


def test_names_that_hold_every_part_are_found_also_across_the_edge_of_a_block(tmp_path: Path) -> None:
    source = "".join(f"static int {'n' * 900}_{number:04}; " for number in range(1500))
    path = _compile(tmp_path, "-shared", "-fPIC", "-nostdlib", "-O0", source=f"{source} int given;")
    names = {f"{'n' * 900}_{number:04}" for number in range(1500)}
    with BoundedFile(path) as file:
        header = read_header(file)
        for number in range(0, 1500, 100):  # those of the first megabyte, of the second, and of its edge
            wanted = {name for name in names if f"_{number // 100:02}1" in name}
            assert set(list_symtab_names_with(file, header, (f"n_{number // 100:02}1", "nnn"))) == wanted
        assert list_symtab_names_with(file, header, ()) == ()
        assert list_symtab_names_with(file, header, ("nnn",)) == (), "more than the limit"
    assert read_image(path).symbols.private_with(("ive",)) == (), "exported"


def test_damaged_section_headers_hide_the_table_and_are_no_error(tmp_path: Path) -> None:
    path = Path(_compile(tmp_path, "-shared", "-fPIC", "-nostdlib"))
    healthy = path.read_bytes()
    start = int.from_bytes(healthy[40:48], "little")
    chance = random.Random(7)
    unseen = 0
    for _ in range(600):
        data = bytearray(healthy)
        for _ in range(chance.choice((1, 2, 5))):
            at = chance.choice((chance.randrange(start, len(data)), chance.randrange(40, 64)))
            data[at : at + 4] = chance.choice((b"\xff" * 4, bytes(4), bytes([chance.randrange(256)]) * 4))
        path.write_bytes(data[: len(healthy)])
        try:
            image = read_image(str(path))
        except LinkcheckError:  # e_phnum and its neighbours are damaged, too
            continue
        image.symbols.private(_NAMES)
        unseen += _look(str(path)) == ()
    assert unseen > 50


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys, linkcheck.elf.reader as r; r.read_image(sys.executable); "
    code += "print(sorted({'elftools', 'lief', 'json', 'hashlib', 'click'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
