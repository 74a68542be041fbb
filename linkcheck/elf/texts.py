"""Which C strings stand in the bytes that a process maps of one file. It does not say what the file does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.header import PT_LOAD, read_header
from linkcheck.elf.limits import BLOCK_SIZE
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection

#: What an identifier is made of.
_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


class FoundTexts(Value):
    """Those of the texts that were looked for that are there: as `whole` words, or only as the `ends` of longer ones.

    A linker stores a string that is the end of another one there (gABI, "Sections", SHF_MERGE with SHF_STRINGS), so
    "no such Backend" may be the string "Backend", too, and what stands before it says how likely that is.
    """

    whole: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()


def find_texts(path: str, wanted: Collection[str]) -> FoundTexts:
    """Look for each of `wanted`, with a NUL behind it, in the PT_LOAD segments of the ELF file at `path`.

    All segments count, because older linkers put constants beside the code, and an array may be writable. Raises
    UnreadableFileError, NotAnImageError and MalformedElfError.
    """
    whole: set[str] = set()
    ends: set[str] = set()
    encoded = {text: text.encode("utf-8", "surrogateescape") + b"\0" for text in wanted}
    longest = max(map(len, encoded.values()), default=0)
    with BoundedFile(path) as file:
        for segment in read_header(file).segments:
            if segment.type != PT_LOAD:
                continue
            for at in range(0, segment.file_size, BLOCK_SIZE):
                # A block begins a byte early, for what stands before a text, and ends late, so that none is cut.
                start = max(at - 1, 0)
                size = min(at + BLOCK_SIZE + longest, segment.file_size) - start
                block = file.read(segment.offset + start, size, "a PT_LOAD segment")
                for text, data in encoded.items():
                    if text not in whole:
                        _look(block, at - start, text, data, whole, ends)
                if len(whole) == len(encoded):
                    return FoundTexts(frozenset(whole))
    return FoundTexts(frozenset(whole), frozenset(ends - whole))


def _look(block: bytes, first: int, text: str, data: bytes, whole: set[str], ends: set[str]) -> None:
    at = block.find(data, first)
    while at >= 0:
        if at == 0 or block[at - 1] not in _WORD:
            whole.add(text)
            return
        ends.add(text)
        at = block.find(data, at + 1)
