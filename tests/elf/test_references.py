"""Which symbols relocations refer to, as readelf lists them."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from tests.elf.workshop import make, run_tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile

SOURCE = """
int called(void) { return 1; }
int taken(void) { return 2; }
int quiet(void) { return 3; }
int data = 4, unused = 5;
int (*table[3])(void) = { taken, 0, taken };
static int own;
int *relative = &own;
int use(void) { return called() + data; }
"""
NAMES = ("called", "taken", "quiet", "data", "unused", "absent")


@pytest.mark.parametrize("bits", ["-m64", "-m32"])
@pytest.mark.parametrize(
    "flags",
    [(), ("-Wl,-Bsymbolic-functions",), ("-Wl,-Bsymbolic",), ("-fno-plt",), ("-Wl,-z,nocombreloc",), ("-Wl,-z,relro",)],
    ids=" ".join,
)
def test_every_table_of_relocations_is_read(tmp_path: Path, flags: tuple[str, ...], bits: str) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    path = tmp_path / "a.so"
    make("gcc", "-shared", "-fPIC", "-nostdlib", bits, *flags, tmp_path / "a.c", "-o", path)
    listing = run_tool("readelf", "-rW", path).stdout
    expected = set(re.findall(r"^[0-9a-f]+ +[0-9a-f]+ +R_\S+ +[0-9a-f]+ +([^\s@]+)", listing, re.MULTILINE))
    found = read_image(str(path)).symbols.referenced(NAMES)
    assert found is not None
    assert set(found) == expected & set(NAMES)
    assert ("called" in found) is not any("symbolic" in flag for flag in flags)


def test_a_static_program_refers_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("void _start(void) {}")
    subprocess.run(["gcc", "-static", "-nostdlib", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    assert read_image(str(tmp_path / "a")).symbols.referenced(NAMES) == ()
