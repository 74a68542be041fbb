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
    seen = with_copies = 0
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
        assert set(image.symbols.copied(names)) == expected & names, path
        assert expected <= names, path
        seen += 1
        with_copies += bool(expected)
    assert seen > 20
    assert with_copies > 5
