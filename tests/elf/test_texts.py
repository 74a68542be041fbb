"""C strings in the mapped bytes of files: made with the compiler, and found again by strings(1)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.limits import BLOCK_SIZE
from linkcheck.elf.texts import find_texts
from linkcheck.errors import MalformedElfError, NotAnImageError
from tests.elf.workshop import make, run_tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile


def library(folder: Path, source: str, *flags: str) -> Path:
    (folder / "x.c").write_text(source)
    make("gcc", "-shared", "-nostdlib", "-fPIC", "-O1", *flags, folder / "x.c", "-o", folder / "libx.so")
    return folder / "libx.so"


def strings(path: Path) -> set[str]:
    """What another tool finds in the file."""
    return set(run_tool("strings", "-a", path).stdout.splitlines())


@pytest.mark.parametrize(
    "declared", ["const char *id = ", "static const char id[] __attribute__((used)) = ", "char id[] = "]
)
def test_a_string_is_found_in_whatever_segment_it_is(tmp_path: Path, declared: str) -> None:
    path = library(tmp_path, f'{declared}"AcmeBackend";')
    assert "AcmeBackend" in strings(path)
    assert find_texts(str(path), ["AcmeBackend", "OtherBackend"]).whole == {"AcmeBackend"}
    assert find_texts(str(path), ["Acme"]).whole == set()  # no NUL behind it


def test_the_end_of_a_sentence_counts_and_the_end_of_a_name_does_not(tmp_path: Path) -> None:
    """A linker makes one string of both, whichever was meant: what readelf shows is the longer one only."""
    source = 'const char *a = "no such AcmeBackend", *b = "AcmeBackend", *c = "MyBackend", *d = "Backend";'
    path = library(tmp_path, source)
    assert not {"AcmeBackend", "Backend"} & strings(path), "the linker merges no ends"
    found = find_texts(str(path), ["AcmeBackend", "Backend", "MyBackend"])
    assert found.whole == {"AcmeBackend", "MyBackend"}
    assert found.ends == {"Backend"}


def test_what_is_not_mapped_does_not_count(tmp_path: Path) -> None:
    path = library(tmp_path, 'int AcmeBackend_local; __asm__(".section .comment\\n.string \\"AcmeBackend\\"");')
    assert "AcmeBackend" in strings(path)
    assert find_texts(str(path), ["AcmeBackend"]).whole == set()


@pytest.mark.parametrize("before", range(-12, 3))
def test_a_string_across_two_blocks_is_found(tmp_path: Path, before: int) -> None:
    """Of a large array of X, wherever the string begins near the end of a block."""
    path = library(tmp_path, f"char filler[{2 * BLOCK_SIZE}] = {{1}};")
    data = bytearray(path.read_bytes())
    segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    (offset,) = (int(line.split()[1], 16) for line in segments.splitlines() if "LOAD" in line and " RW " in line)
    at = offset + BLOCK_SIZE + before
    data[at - 1 : at + 12] = b"\0AcmeBackend\0"
    path.write_bytes(data)
    assert find_texts(str(path), ["AcmeBackend"]).whole == {"AcmeBackend"}
    data[at - 1 : at] = b"y"
    path.write_bytes(data)
    assert find_texts(str(path), ["AcmeBackend"]).ends == {"AcmeBackend"}


def test_what_is_no_image_or_ends_early_is_refused(tmp_path: Path) -> None:
    path = library(tmp_path, f"char filler[{BLOCK_SIZE}] = {{1}};")
    path.write_bytes(path.read_bytes()[: BLOCK_SIZE // 2])
    with pytest.raises(MalformedElfError, match="PT_LOAD"):
        find_texts(str(path), ["AcmeBackend"])
    path.write_text("no ELF")
    with pytest.raises(NotAnImageError):
        find_texts(str(path), ["AcmeBackend"])
