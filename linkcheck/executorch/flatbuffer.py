"""A lazy reader of flatbuffer tables that trusts no number of the file. Knows the encoding, and no schema.

Source of the encoding: the FlatBuffers project's page "FlatBuffers internals". A table begins with the signed distance
back to its vtable; the vtable holds its own size, the table's size, and for each field its distance from the table's
start (0: not there). Everything that is no scalar is reached through an unsigned distance, so only forward.

The generated readers and the `flatbuffers` package check none of these numbers. Here each must lie inside the buffer,
and the tables and strings that are visited are counted: tables may be shared, so that a few bytes describe billions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.executorch.limits import MAX_NAME_LENGTH, MAX_NUMBERS, MAX_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.errors import MalformedProgramError
    from linkcheck.executorch.block_file import BlockFile


class Flatbuffer:
    """The first `size` bytes of a file as a flatbuffer, and how much of it may still be visited."""

    def __init__(self, file: BlockFile, size: int) -> None:
        self.file = file
        self.size = size
        self._left = MAX_TABLES

    def root(self, what: str) -> Table:
        """The root table, to which the first four bytes lead."""
        return Table(self, self.unsigned(0, 4, what), what)

    def unsigned(self, position: int, size: int, what: str) -> int:
        """The little-endian number in the `size` bytes at `position`."""
        return int.from_bytes(self.read(position, size, what), "little")

    def read(self, position: int, size: int, what: str) -> bytes:
        """Exactly `size` bytes at `position`. Raises MalformedProgramError when they are not inside the buffer."""
        if position < 0 or position + size > self.size:
            raise self.malformed(
                f"{what} at {position:#x} ({size} bytes) is outside of the program's {self.size:#x} bytes"
            )
        return self.file.read(position, size, what)

    def follow(self, position: int, what: str) -> int:
        """Where the distance at `position` leads."""
        distance = self.unsigned(position, 4, what)
        if distance < 4:
            raise self.malformed(f"{what} at {position:#x} leads {distance} bytes on, to itself")
        return position + distance

    def visit(self) -> None:
        """Count one more table or string."""
        self._left -= 1
        if self._left < 0:
            raise self.malformed(f"it leads to more than {MAX_TABLES} tables, which no program of its kind has")

    def malformed(self, reason: str) -> MalformedProgramError:
        """The error that says `reason` about this file, to be raised by the caller."""
        return self.file.malformed(reason)


class Table:
    """One table; fields are asked for by their number, in the schema's order (a union takes two)."""

    __slots__ = ("_buffer", "_position", "_size", "_vtable", "_vtable_size", "what")

    def __init__(self, buffer: Flatbuffer, position: int, what: str) -> None:
        """`what` names the table in messages. Raises MalformedProgramError when it does not fit the buffer."""
        buffer.visit()
        self.what = what
        self._buffer = buffer
        self._position = position
        back = int.from_bytes(buffer.read(position, 4, what), "little", signed=True)
        self._vtable = position - back
        head = buffer.read(self._vtable, 4, f"the vtable of {what}")
        self._vtable_size = int.from_bytes(head[:2], "little")
        self._size = int.from_bytes(head[2:], "little")
        if self._vtable_size < 4 or self._vtable_size % 2 or self._size < 4:
            raise buffer.malformed(f"{what} at {position:#x} has a vtable of {self._vtable_size} bytes")
        buffer.read(self._vtable, self._vtable_size, f"the vtable of {what}")
        buffer.read(position + self._size - 1, 1, what)

    def number(self, field: int, size: int, default: int = 0) -> int:
        """The unsigned scalar of `size` bytes in `field`, or `default` when it is not there."""
        at = self._find(field, size)
        return default if at is None else self._buffer.unsigned(at, size, self.what)

    def table(self, field: int, what: str) -> Table | None:
        """The table that `field` leads to, or None."""
        at = self._find(field, 4)
        return None if at is None else Table(self._buffer, self._buffer.follow(at, what), what)

    def tables(self, field: int, what: str) -> Iterator[Table]:
        """Each table of a vector, in order."""
        start, count = self._vector(field, 4) or (0, 0)
        for index in range(count):
            name = f"{what} {index}"
            yield Table(self._buffer, self._buffer.follow(start + 4 * index, name), name)

    def table_at(self, field: int, index: int, what: str) -> Table:
        """One table of a vector. Raises MalformedProgramError when the vector has no such entry."""
        start, count = self._vector(field, 4) or (0, 0)
        if index >= count:
            raise self._buffer.malformed(f"{what} is asked for, but there are {count}")
        return Table(self._buffer, self._buffer.follow(start + 4 * index, what), what)

    def data(self, field: int) -> tuple[int, int]:
        """Where the bytes of a vector of bytes are, and how many; (0, 0) when it is not there."""
        return self._vector(field, 1) or (0, 0)

    def numbers(self, field: int, size: int, *, signed: bool = False) -> tuple[int, ...]:
        """All scalars, of `size` bytes each, of a vector."""
        start, count = self._vector(field, size) or (0, 0)
        if count > MAX_NUMBERS:
            raise self._buffer.malformed(f"{self.what} has a list of {count} numbers, more than {MAX_NUMBERS}")
        data = self._buffer.read(start, count * size, self.what)
        return tuple(
            int.from_bytes(data[at : at + size], "little", signed=signed) for at in range(0, count * size, size)
        )

    def text(self, field: int) -> str:
        """The string in `field`, empty when it is not there; bytes that are no UTF-8 become surrogates (PEP 383)."""
        start, count = self._vector(field, 1) or (0, 0)
        self._buffer.visit()
        if count > MAX_NAME_LENGTH:
            raise self._buffer.malformed(f"{self.what} has a name of {count} bytes, more than {MAX_NAME_LENGTH}")
        return self._buffer.read(start, count, self.what).decode("utf-8", "surrogateescape")

    def _find(self, field: int, size: int) -> int | None:
        """Where `field` is in the buffer; None when the table has none."""
        slot = 4 + 2 * field
        if slot + 2 > self._vtable_size:
            return None
        offset = self._buffer.unsigned(self._vtable + slot, 2, f"the vtable of {self.what}")
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._size:
            raise self._buffer.malformed(
                f"field {field} of {self.what} is at byte {offset} of a table of {self._size} bytes"
            )
        return self._position + offset

    def _vector(self, field: int, size: int) -> tuple[int, int] | None:
        """Where the elements of a vector begin and how many, all inside of the buffer; None when it is not there."""
        at = self._find(field, 4)
        if at is None:
            return None
        start = self._buffer.follow(at, self.what)
        count = self._buffer.unsigned(start, 4, self.what)
        room = self._buffer.size - start - 4
        if count * size > room:
            raise self._buffer.malformed(
                f"field {field} of {self.what} has {count} elements of {size} bytes, and {room} bytes are left"
            )
        return start + 4, count
