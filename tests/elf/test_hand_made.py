"""The hand-made ELF files are what they claim to be; pyelftools and readelf are the judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from tests.elf.hand_made import SHAPES, write_core, write_shared_object
from tests.elf.workshop import run_tool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("machine", SHAPES)
def test_pyelftools_reads_the_library(machine: str, tmp_path: Path) -> None:
    shape = SHAPES[machine]
    path = write_shared_object(tmp_path / "lib.so", shape, soname="libx.so.1", exports=("one", "two"))
    with path.open("rb") as file:
        elf = ELFFile(file)
        assert (elf.elfclass, elf.little_endian) == (shape.bits, shape.order == "<")
        assert elf.header["e_type"] == "ET_DYN"
        dynamic = next(segment for segment in elf.iter_segments() if isinstance(segment, DynamicSegment))
        assert [vars(tag)["soname"] for tag in dynamic.iter_tags("DT_SONAME")] == ["libx.so.1"]
    # readelf knows that s390x has a DT_HASH of 64-bit words; pyelftools does not.
    symbols = run_tool("readelf", "--use-dynamic", "--symbols", "-W", path).stdout
    assert [line.split()[-1] for line in symbols.splitlines() if " FUNC " in line] == ["one", "two"]


def test_pyelftools_reads_the_core(tmp_path: Path) -> None:
    path = write_core(tmp_path / "core", SHAPES["x86-64"])
    with path.open("rb") as file:
        assert ELFFile(file).header["e_type"] == "ET_CORE"
