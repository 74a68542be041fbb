"""Whether a file is seen to reach an object of its own; the compiler made it, so the source is the judge."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler  # for x86-64

#: The type of `v`, what the file does with it, and whether that is seen.
USES = {
    "nothing": ("int", "", False),
    "nothing, but with what is beside it": ("int", "w = 7; w += 5; if (w == 700) w ^= 1; w2 = 7; w8 <<= 3;", False),
    "reads": ("int", "sink = v;", True),
    "reads a byte": ("char", "sink = v;", True),
    "lends": ("int", "sink = (long)&v;", True),
    "sets to 0": ("int", "v = 0;", True),
    "sets to a number": ("int", "v = 700;", True),
    "sets two bytes": ("short", "v = 700;", True),
    "sets eight bytes": ("long", "v = 700;", True),
    "sets a byte": ("char", "v = 7;", True),
    "compares to a number": ("int", "if (v == 700) sink = 1;", True),
    "compares to a small number": ("int", "if (v == 7) sink = 1;", True),
    "compares two bytes": ("short", "if (v == 700) sink = 1;", True),
    "tests a bit": ("int", "if (v & 0x10000) sink = 1;", True),
    "negates": ("int", "v = -v;", True),
    "shifts": ("int", "v <<= 3;", True),
    "multiplies": ("int", "sink = v * 700;", True),
    "multiplies by a small number": ("int", "sink = v * 7;", True),
    "counts": ("int", "__atomic_fetch_add(&v, sink, 5);", True),
    "calculates": ("double", "d = v * d;", True),
    "rounds": ("double", "d = __builtin_floor(v);", True),
    "keeps its address": ("int", "static int *volatile kept = &v; sink = *kept;", True),
    "nothing, and it is large": ("struct { long a[4]; }", "", False),
    "nothing, large, but with what is beside it": ("struct { long a[4]; }", "w = 7; w2 = 7; w8 <<= 3;", False),
    "nothing, and lends what is beside it": ("struct { long a[4]; }", "sink = (long)&w2;", None),
    "keeps its end": ("struct { long a[4]; }", "static void *volatile kept = &v + 1; sink = (long)kept;", None),
    "lends its end": ("struct { long a[4]; }", "sink = (long)(&own + 1);", None),
    "lends what would be before it": ("struct { long a[4]; }", "sink = (long)((char *)&own - 97 * 8);", None),
    "its last part": ("struct { long a[4]; }", "sink = v.a[3];", True),
}
SOURCE = """
HIDDEN long w8 = 1;
HIDDEN int w = 2, before = 3;
TYPE v = {1};
extern HIDDEN __typeof__(v) own __attribute__((alias("v")));
HIDDEN short w2 = 2;
HIDDEN int after = 4;
static volatile long sink;
static volatile double d = 2;
void f(void) { USE }
"""
FLAGS = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-w", "-xc", "-"]


@pytest.mark.parametrize("more", [(), ("-msse4.1",), ("-mavx2",), ("-Wl,-z,pack-relative-relocs",)], ids=" ".join)
@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
@pytest.mark.parametrize("use", USES)
def test_what_reaches_an_object(tmp_path: Path, use: str, optimised: str, more: tuple[str, ...]) -> None:
    type_, code, reached = USES[use]
    source = SOURCE.replace("HIDDEN", '__attribute__((visibility("hidden")))').replace("TYPE", type_)
    path = tmp_path / "libx.so"
    command = ["gcc", optimised, *more, *FLAGS, "-o", str(path)]
    subprocess.run(command, input=source.replace("USE", code), text=True, check=True)
    symbols = read_image(str(path)).symbols
    (v,) = symbols.exported("v")
    assert symbols.reaches_object(v.value, v.size) is reached


def test_of_a_program_at_a_fixed_address_it_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "program"
    source = "int v = 1; int main(void) { return v; }"
    subprocess.run(["gcc", "-no-pie", "-rdynamic", "-xc", "-", "-o", path], input=source, text=True, check=True)
    symbols = read_image(str(path)).symbols
    (v,) = symbols.exported("v")
    assert symbols.reaches_object(v.value, v.size) is None
