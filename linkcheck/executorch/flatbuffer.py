"""A lazy reader of flatbuffer tables that trusts no number of the file. Knows the encoding, and no schema.

Source of the encoding: the FlatBuffers project's page "FlatBuffers internals". A table begins with the signed distance
back to its vtable; the vtable holds its own size, the table's size, and for each field its distance from the table's
start (0: not there). Everything that is no scalar is reached through an unsigned distance, so only forward.

The generated readers and the `flatbuffers` package check none of these numbers. Here each must lie inside the buffer.
Tables, strings and vectors may be shared, so that a few bytes describe billions: what is decoded is counted for the
whole file, and a string or a vector of numbers is decoded and held once, whoever refers to it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from linkcheck.executorch.limits import MAX_DECODED, MAX_NAME_LENGTH, MAX_TABLES, MAX_VTABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.errors import MalformedProgramError
    from linkcheck.executorch.block_file import BlockFile

#: Fields of a table that can be asked for, and bytes of a vtable and of a table that are read at once: no schema here
#: needs more.
_MOST_FIELDS = 16
_VTABLE_READ = 4 + 2 * _MOST_FIELDS
_TABLE_READ = 128
#: Distances of a vector of tables that are read at once.
_ENTRIES_READ = 1024

#: Bytes that a number counts for: in memory it takes more of them than in the file.
_NUMBER_SIZE = 16

_HEAD = struct.Struct("<HH")
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}


class Flatbuffer:
    """The first `size` bytes of a file as a flatbuffer, and how much of it may still be visited and decoded."""

    def __init__(self, file: BlockFile, size: int) -> None:
        self.file = file
        self.size = size
        #: Tables that were visited and bytes that were decoded so far; deterministic, so tests bound the cost by them.
        self.visited = 0
        self.decoded = 0
        self._texts: dict[int, str] = {}
        self._numbers: dict[tuple[int, str], tuple[int, ...]] = {}
        self._vtables: dict[int, tuple[int, tuple[int, ...]]] = {}

    def root(self, what: str) -> Table:
        """The root table, to which the first four bytes lead."""
        return Table(self, self.unsigned(0, 4, what), what)

    def unsigned(self, position: int, size: int, what: str) -> int:
        """The little-endian number in the `size` bytes at `position`."""
        return int.from_bytes(self.read(position, size, what), "little")

    def read(self, position: int, size: int, what: str) -> bytes:
        """Exactly `size` bytes at `position`. Raises MalformedProgramError when they are not inside the buffer."""
        if position < 0 or position + size > self.size:
            raise self._outside(position, size, what)
        return self.file.read(position, size, what)

    def _read_some(self, position: int, most: int, least: int, what: str) -> bytes:
        """As `read`: `most` bytes, or as many as there are, but not less than `least`."""
        if 0 <= position <= self.size - most:
            return self.file.read(position, most, what)
        return self.read(position, max(self.size - position, least), what)

    def read_table(self, position: int, what: str) -> tuple[bytes, int, tuple[int, ...]]:
        """The first bytes of the table at `position`, its size, and where its fields are in it; counts it."""
        self.visited += 1
        if self.visited > MAX_TABLES:
            raise self.malformed(f"{what} at {position:#x}: the file leads to more than {MAX_TABLES} tables")
        data = self._read_some(position, _TABLE_READ, 4, what)
        at = position - int.from_bytes(data[:4], "little", signed=True)
        vtable = self._vtables.get(at)
        if vtable is None:
            if len(self._vtables) >= MAX_VTABLES:
                self._vtables.clear()
            vtable = self._vtables[at] = self._read_vtable(at, f"the vtable of {what}")
        size, fields = vtable
        if position + size > self.size:
            raise self._outside(position, size, what)
        return data, size, fields

    def _read_vtable(self, position: int, what: str) -> tuple[int, tuple[int, ...]]:
        data = self._read_some(position, _VTABLE_READ, _HEAD.size, what)
        size, table_size = _HEAD.unpack_from(data)
        if size < _HEAD.size or size % 2 or table_size < 4:
            raise self.malformed(f"{what} at {position:#x} is a vtable of {size} bytes for a table of {table_size}")
        if position + size > self.size:
            raise self._outside(position, size, what)
        count = min((size - _HEAD.size) // 2, _MOST_FIELDS)
        return table_size, struct.unpack_from(f"<{count}H", data, _HEAD.size)

    def text(self, start: int, size: int, what: str) -> str:
        """The string of `size` bytes at `start`; bytes that are no UTF-8 become surrogates (PEP 383)."""
        known = self._texts.get(start)
        if known is not None:  # its length stands before it, so it is the same for all who refer to it
            return known
        if size > MAX_NAME_LENGTH:
            raise self.malformed(f"{what} at {start:#x}: a name of {size} bytes, more than {MAX_NAME_LENGTH}")
        self._count(size, start, what)
        text = self._texts[start] = self.read(start, size, what).decode("utf-8", "surrogateescape")
        return text

    def numbers(self, start: int, count: int, code: str, what: str) -> tuple[int, ...]:
        """The `count` scalars at `start`, each of the type that `code` is to the module struct."""
        key = start, code
        if key not in self._numbers:
            self._count(count * _NUMBER_SIZE, start, what)
            data = self.read(start, count * struct.calcsize(code), what)
            self._numbers[key] = struct.unpack(f"<{count}{code}", data)
        return self._numbers[key]

    def follow(self, position: int, distance: int, what: str) -> int:
        """Where the `distance` that stands at `position` leads."""
        if distance < 4:
            raise self.malformed(f"{what} at {position:#x} leads {distance} bytes on, to itself")
        return position + distance

    def _count(self, size: int, position: int, what: str) -> None:
        self.decoded += size
        if self.decoded > MAX_DECODED:
            reason = f"with these {size} bytes its names and numbers have more than {MAX_DECODED}"
            raise self.malformed(f"{what} at {position:#x}: {reason}")

    def _outside(self, position: int, size: int, what: str) -> MalformedProgramError:
        reason = f"{what} at {position:#x} ({size} bytes) is outside of the program's {self.size:#x} bytes"
        return self.malformed(reason)

    def malformed(self, reason: str) -> MalformedProgramError:
        """The error that says `reason` about this file, to be raised by the caller."""
        return self.file.malformed(reason)


class Table:
    """One table; fields are asked for by their number, in the schema's order (a union takes two)."""

    __slots__ = ("_buffer", "_data", "_fields", "_size", "position", "what")

    def __init__(self, buffer: Flatbuffer, position: int, what: str) -> None:
        """`what` names the table in messages. Raises MalformedProgramError when it does not fit the buffer."""
        self.what = what
        self.position = position
        self._buffer = buffer
        self._data, self._size, self._fields = buffer.read_table(position, what)

    def number(self, field: int, size: int, default: int = 0) -> int:
        """The unsigned scalar of `size` bytes in `field`, or `default` when it is not there."""
        at = self._find(field, size)
        return default if at is None else self._scalar(at, size)

    def table(self, field: int, what: str) -> Table | None:
        """The table that `field` leads to, or None."""
        at = self._follow(field, what)
        return None if at is None else Table(self._buffer, at, what)

    def tables(self, field: int, what: str) -> Iterator[Table]:
        """Each table of a vector, in order."""
        for index, position in enumerate(self.positions(field, what)):
            yield Table(self._buffer, position, f"{what} {index}")

    def positions(self, field: int, what: str) -> Iterator[int]:
        """Where each table of a vector is, in order; those that are at one place are one table."""
        start, count = self._vector(field, 4) or (0, 0)
        for first in range(0, count, _ENTRIES_READ):
            number = min(_ENTRIES_READ, count - first)
            at = start + 4 * first
            for distance in struct.unpack(f"<{number}I", self._buffer.read(at, 4 * number, what)):
                yield self._buffer.follow(at, distance, what)
                at += 4

    def position_at(self, field: int, index: int, what: str) -> int:
        """Where one table of a vector is. Raises MalformedProgramError when the vector has no such entry."""
        start, count = self._vector(field, 4) or (0, 0)
        if index >= count:
            raise self._buffer.malformed(f"{what} is asked for, but there are {count}")
        at = start + 4 * index
        return self._buffer.follow(at, self._buffer.unsigned(at, 4, what), what)

    def table_from(self, position: int, what: str) -> Table:
        """The table at a `position` that one of this table's vectors names."""
        return Table(self._buffer, position, what)

    def data(self, field: int) -> tuple[int, int]:
        """Where the bytes of a vector of bytes are, and how many; (0, 0) when it is not there."""
        return self._vector(field, 1) or (0, 0)

    def count(self, field: int, size: int) -> int:
        """How many elements, of `size` bytes each, a vector has."""
        return (self._vector(field, size) or (0, 0))[1]

    def numbers(self, field: int, size: int) -> tuple[int, ...]:
        """All signed scalars, of `size` bytes each, of a vector."""
        found = self._vector(field, size)
        return () if found is None else self._buffer.numbers(*found, _CODES[size], self.what)

    def text(self, field: int) -> str:
        """The string in `field`, empty when it is not there; bytes that are no UTF-8 become surrogates (PEP 383)."""
        found = self._vector(field, 1)
        return "" if found is None else self._buffer.text(*found, self.what)

    def malformed(self, reason: str) -> MalformedProgramError:
        """The error that says `reason` about this table, to be raised by the caller."""
        return self._buffer.malformed(f"{self.what} at {self.position:#x}: {reason}")

    def _find(self, field: int, size: int) -> int | None:
        """Where `field` is in the table; None when the table has none."""
        offset = self._fields[field] if field < len(self._fields) else 0
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._size:
            raise self._buffer.malformed(
                f"field {field} of {self.what} at {self.position:#x} is at byte {offset} "
                f"of a table of {self._size} bytes"
            )
        return offset

    def _scalar(self, offset: int, size: int) -> int:
        if offset + size <= len(self._data):
            return int.from_bytes(self._data[offset : offset + size], "little")
        return self._buffer.unsigned(self.position + offset, size, self.what)

    def _follow(self, field: int, what: str) -> int | None:
        """Where the distance in `field` leads; None when the table has none."""
        offset = self._find(field, 4)
        if offset is None:
            return None
        return self._buffer.follow(self.position + offset, self._scalar(offset, 4), what)

    def _vector(self, field: int, size: int) -> tuple[int, int] | None:
        """Where the elements of a vector begin and how many, all inside of the buffer; None when it is not there."""
        start = self._follow(field, self.what)
        if start is None:
            return None
        count = self._buffer.unsigned(start, 4, self.what)
        room = self._buffer.size - start - 4
        if count * size > room:
            raise self._buffer.malformed(
                f"field {field} of {self.what} at {start:#x} has {count} elements of {size} bytes, "
                f"and {room} bytes are left"
            )
        return start + 4, count
