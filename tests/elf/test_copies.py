"""Copy relocations, as readelf lists them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.errors import LinkcheckError
from linkcheck.model import SymbolType

READELF = shutil.which("readelf")


@pytest.mark.skipif(READELF is None, reason="needs readelf (Debian package binutils)")
def test_programs_of_this_machine() -> None:
    assert READELF is not None
    seen = with_copies = with_aliases = 0
    for path in sorted(Path("/usr/bin").iterdir())[:400]:
        try:
            image = read_image(str(path))
        except LinkcheckError:
            continue
        listing = subprocess.run([READELF, "-rW", str(path)], capture_output=True, text=True, check=False).stdout
        copies = set(re.findall(r"R_\S+_COPY\s+\S+\s+([^\s@]+)(?:@(\S+))?", listing))
        expected = {name for name, _ in copies}
        demands = image.symbols.copy_demands(weak=True)
        assert {(name, version or "") for name, version, _ in demands} == copies, path
        weak = {symbol.name for symbol in image.symbols if symbol.weak}
        assert image.symbols.copy_demands(weak=False) == tuple(one for one in demands if one[0] not in weak), path
        names = {symbol.name for symbol in image.symbols if symbol.defined and symbol.type == SymbolType.OBJECT}
        assert expected <= names, path
        # Names at the address that a relocation fills are names of the same room.
        rooms = set(re.findall(r"^([0-9a-f]+)\s.*R_\S+_COPY", listing, re.MULTILINE))
        table = subprocess.run([READELF, "--dyn-syms", "-W", path], capture_output=True, text=True, check=False).stdout
        objects = re.findall(r":\s+([0-9a-f]+)\s+\d+\s+OBJECT\s+\S+\s+\S+\s+\d+\s+([^\s@]+)", table)
        shared = {name for address, name in objects if address in rooms}
        assert set(image.symbols.copied(names)) == shared, path
        assert {image.symbols.copied_as(name) for name in shared} == expected, path
        assert all(image.symbols.copied_as(name) == name for name in expected), path
        for address, name in objects:
            if name in shared:
                assert name in image.symbols.objects_at(int(address, 16)), path
        seen += 1
        with_copies += bool(expected)
        with_aliases += shared > expected
    assert seen > 20
    assert with_copies > 5
    assert with_aliases > 2
