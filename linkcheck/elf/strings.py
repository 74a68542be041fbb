"""Reads names from the dynamic string table (DT_STRTAB), each checked against the table's end and a budget.

It does not decode: names are bytes here, and `decode_name` makes text of them for the model.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from linkcheck.elf.limits import MAX_NAME_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.elf.bounded_file import BoundedFile, Span

_SMALL_WINDOW = 1 << 10
_LARGE_WINDOW = 1 << 11
#: Names whose ends are looked for before their lengths are added up.
_NAMES_AT_ONCE = 1 << 10


class Strings:
    """The names of one string table, for as long as `file` is open.

    Reads windows and keeps the last one, because neighbours in a table of records are mostly neighbours here too.
    """

    __slots__ = ("_budget", "_file", "_limit", "_start", "_table", "_window", "_window_size")

    def __init__(self, file: BoundedFile, table: Span, *, budget: int, resident_up_to: int = 0) -> None:
        """Hand out at most `budget` bytes of names.

        For a pass over many names, a table of at most `resident_up_to` bytes is read at once.
        """
        self._file = file
        self._table = table
        self._budget = self._limit = budget
        self._start = 0
        self._window = b""
        self._window_size = _SMALL_WINDOW
        if resident_up_to:
            self._window_size = _LARGE_WINDOW
            if table.size <= resident_up_to:
                self._window = table.read(file, 0, table.size)

    def find(self, offset: int, what: str) -> bytes:
        """The name at `offset`; `what` says whose it is.

        Raises MalformedElfError when the offset is past the table, no NUL ends the name inside the table, the name is
        longer than MAX_NAME_LENGTH, or the budget is used up.
        """
        window, into = self._window, offset - self._start
        end = window.find(b"\0", into) if into >= 0 else -1
        name = window[into:end] if end >= 0 else self._fetch(offset, what)
        self._budget = left = self._budget - len(name)
        if left < 0:
            raise self._file.malformed(f"its names take more than {self._limit} bytes ({self._table.what})")
        return name

    def find_many(self, offsets: Sequence[int], what: str, most: int) -> list[str] | None:
        """The names at `offsets` as text; None when together they are longer than `most` bytes.

        Raises what `find` raises.
        """
        found: list[str] = []
        whole = self._start == 0 and len(self._window) == self._table.size and self._window.isascii()
        text = self._window.decode("ascii") if whole else ""
        for start in range(0, len(offsets), _NAMES_AT_ONCE):
            some = offsets[start : start + _NAMES_AT_ONCE]
            ends = list(map(text.find, repeat("\0"), some))
            if min(ends) >= 0:
                most -= sum(ends) - sum(some)  # before there are names: overlapping ones may take much memory
                if most < 0:
                    return None
                found += [text[offset:end] for offset, end in zip(some, ends, strict=True)]
                continue
            for offset in some:
                name = self.find(offset, what)
                most -= len(name)
                if most < 0:
                    return None
                found.append(decode_name(name))
        return found

    def holds(self, offset: int, name: bytes, what: str) -> bool:
        """Whether `name` stands at `offset`, read without asking for more bytes than that takes."""
        if offset >= self._table.size:
            raise self._past_end(offset, what)
        wanted = name + b"\0"
        return offset + len(wanted) <= self._table.size and (
            self._table.read(self._file, offset, len(wanted)) == wanted
        )

    def _fetch(self, offset: int, what: str) -> bytes:
        left = self._table.size - offset
        if left <= 0:
            raise self._past_end(offset, what)
        size = self._window_size
        # From some way before on: linkers put the names of one kind together, but in no order that a reader knows.
        start = max(0, offset - size // 2)
        into = offset - start
        while True:
            window = self._table.read(self._file, start, into + min(size, left))
            end = window.find(b"\0", into)
            if end >= 0:
                self._start, self._window = start, window
                return window[into:end]
            if size >= left:
                raise self._file.malformed(f"{what} at {offset:#x} of {self._table.what} has no terminating NUL")
            if size >= MAX_NAME_LENGTH:
                raise self._file.malformed(f"{what} is longer than {MAX_NAME_LENGTH} bytes")
            size = min(size * 8, MAX_NAME_LENGTH)

    def _past_end(self, offset: int, what: str) -> Exception:
        return self._file.malformed(
            f"{what}: offset {offset:#x} is past the {self._table.size:#x} bytes of {self._table.what}"
        )


def decode_name(name: bytes) -> str:
    """`name` as text that loses no byte (UTF-8 with surrogateescape)."""
    return name.decode("utf-8", "surrogateescape")


#: Bytes of a name that make its family. The names of one C++ namespace begin alike (`_ZN10executorch…`), so that one
#: search of a table of names answers for all of them.
FAMILY_LENGTH = 15


def encode_name(name: str) -> bytes | None:
    """`name` as the bytes a file would hold; None for text that stands for no bytes, or holds a NUL."""
    try:
        encoded = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    return None if b"\0" in encoded else encoded
