"""A library whose section headers are broken: linkers refuse it and ld.so loads it, and so do the two commands."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import verify
from tests.elf.workshop import LINKERS, Workshop, load, make_workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("section_table")
    make_workshop(directory)
    return directory


@pytest.fixture
def shop(base: Path, tmp_path: Path) -> Workshop:
    return Workshop(base, tmp_path)


def _table(shop: Workshop) -> int:
    """Where the section headers begin: behind all that a process maps."""
    return int.from_bytes(shop.good.read_bytes()[40:48], "little")


#: What was done to the file, and what LC103 says of it.
BROKEN: dict[str, tuple[Callable[[Workshop], Path], str]] = {
    "cut off before the table": (lambda shop: shop.cut(_table(shop)), "the section header table"),
    "cut off in the table": (lambda shop: shop.cut(_table(shop) + 640), "the section header table"),
    "one byte short": (lambda shop: shop.cut(shop.size - 1), "the section header table"),
    "table far away": (lambda shop: shop.patched(40, struct.pack("<Q", 1 << 40)), "the section header table"),
    "e_shoff 0": (lambda shop: shop.patched(40, bytes(8)), "e_shoff is 0, but e_shnum is"),
    "e_shentsize": (lambda shop: shop.patched(58, struct.pack("<H", 60)), "e_shentsize is 60, not 64"),
    "e_shnum 0": (lambda shop: shop.patched(60, bytes(2)), "e_shnum is 0"),
    "e_shstrndx": (lambda shop: shop.patched(62, struct.pack("<H", 999)), "e_shstrndx names section 999 of"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_linkers_and_ld_so_differ_and_so_do_the_commands(
    name: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    make, words = BROKEN[name]
    library = make(shop)
    for linker in LINKERS:
        assert shop.link_program(library, linker=linker).returncode != 0, linker
    loaded = load(library)
    assert loaded.returncode == 0, loaded.stderr

    status = run(["prebuilt", "--format", "json", str(library)])
    report = json.loads(capfd.readouterr().out)
    assert status == 1
    (finding,) = report["findings"]
    assert (finding["code"], finding["severity"]) == ("LC103", "error")
    assert words in finding["message"]
    assert "ld.so does not look at section headers and would load it" in finding["message"]

    loaded_by_itself = verify(capfd, library)
    assert (loaded_by_itself.status, loaded_by_itself.findings) == (0, [])


def test_a_broken_table_does_not_hide_what_else_keeps_a_file_out(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is still the library that its segments say it is: the missing exports are named as well."""
    other = shop.here / "other.cpp"
    other.write_text("int something_else;\n")
    library = shop.library(source=other)
    library.write_bytes(library.read_bytes()[:-1])
    assert run(["prebuilt", "--format", "json", str(library)]) == 1
    codes = {finding["code"] for finding in json.loads(capfd.readouterr().out)["findings"]}
    assert codes == {"LC103", "LC306"}


def test_what_ld_so_refuses_both_commands_refuse(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    at, fields = shop.segment(1)
    library = shop.patched(at + 16, struct.pack("<Q", fields[3] + 8))  # p_vaddr no longer fits p_offset
    loaded = load(library)
    assert loaded.returncode != 0
    assert "aligned" in loaded.stderr
    assert run(["prebuilt", "--format", "json", str(library)]) == 1
    judged = json.loads(capfd.readouterr().out)["findings"]
    verified = verify(capfd, library)
    assert verified.status == 1
    messages = {finding["message"] for finding in (*judged, *verified.findings)}
    assert len(messages) == 1
    assert "differ in alignment" in messages.pop()
