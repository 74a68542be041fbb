"""The outside of a .pte or .ptd file: identifier, header, flatbuffer, segments. Knows no method and no engine.

Sources: ExecuTorch 1.5.1, schema/program.fbs and schema/extended_header.h for .pte,
extension/flat_tensor/serialize/flat_tensor.fbs and flat_tensor_header.h for .ptd.

Both begin as a flatbuffer does (u32 distance to the root table, four characters that identify the schema); then, at
byte 8, comes a header of ExecuTorch's own, and behind the flatbuffer the segments, which hold the bulk of the data.
A program without segments may do without the header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import NotAProgramError
from linkcheck.executorch.facts import Place, ProgramKind
from linkcheck.executorch.flatbuffer import Flatbuffer
from linkcheck.executorch.limits import MAX_SEGMENTS
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.executorch.block_file import BlockFile
    from linkcheck.executorch.flatbuffer import Table

_PROGRAM_IDENTIFIER = b"ET12"
_DATA_IDENTIFIER = b"FT01"
_HEADER_OFFSET = 8
#: "eh00", u32 length, u64 program size, u64 segment base; since ExecuTorch 0.7 also u64 segment data size.
_PROGRAM_MAGIC = b"eh00"
_SHORT_PROGRAM_HEADER, _PROGRAM_HEADER = 24, 32
#: "FH01", u32 length, u64 flatbuffer offset, u64 flatbuffer size, u64 segment base, u64 segment data size.
_DATA_MAGIC = b"FH01"
_DATA_HEADER = 40

#: Field numbers: Program.segments, FlatTensor.segments, DataSegment.offset and size.
_PROGRAM_SEGMENTS = 4
_DATA_SEGMENTS = 1
_SEGMENT_OFFSET, _SEGMENT_SIZE = 0, 1


class Container(Value):
    """An opened file: its root table, and where its segments are."""

    kind: ProgramKind
    root: Table
    segments: tuple[Place, ...]


class _Extent(Value):
    """What a header says: the flatbuffer's end, and where the segments begin (None: nowhere said)."""

    flatbuffer_size: int
    segment_base: int | None


def open_container(file: BlockFile) -> Container:
    """Read the outside of `file`.

    Raises NotAProgramError when it is something else, MalformedProgramError when a number does not fit the file, and
    UnreadableFileError.
    """
    identifier = file.read(4, 4, "the identifier") if file.size >= 8 else b""
    if identifier == _PROGRAM_IDENTIFIER:
        extent = _read_program_header(file)
        root = Flatbuffer(file, extent.flatbuffer_size).root("the program")
        return Container(ProgramKind.PROGRAM, root, _read_segments(file, root, _PROGRAM_SEGMENTS, extent))
    if identifier == _DATA_IDENTIFIER:
        extent = _read_data_header(file)
        root = Flatbuffer(file, extent.flatbuffer_size).root("the data file")
        return Container(ProgramKind.DATA, root, _read_segments(file, root, _DATA_SEGMENTS, extent))
    raise NotAProgramError(file.path, _describe(file, identifier))


def looks_like_program(file: BlockFile) -> bool:
    """Whether `file` has the identifier of a program or a data file, of whatever version."""
    identifier = file.read(4, 4, "the identifier") if file.size >= 8 else b""
    return identifier[:2] in (_PROGRAM_IDENTIFIER[:2], _DATA_IDENTIFIER[:2]) and identifier[2:].isdigit()


def _describe(file: BlockFile, identifier: bytes) -> str:
    if not identifier:
        return f"it has {file.size} bytes"
    for known, name in ((_PROGRAM_IDENTIFIER, "program"), (_DATA_IDENTIFIER, "data")):
        if identifier[:2] == known[:2] and identifier[2:].isalnum():
            return f"a {name} of format {identifier.decode()}, and {known.decode()} is the one we read"
    return f"bytes 4 to 8 are {identifier!r}, not ET12 or FT01"


def _read_program_header(file: BlockFile) -> _Extent:
    if file.size < _HEADER_OFFSET + _SHORT_PROGRAM_HEADER:
        return _Extent(file.size, None)
    head = file.read(_HEADER_OFFSET, _SHORT_PROGRAM_HEADER, "the extended header")
    if head[:4] != _PROGRAM_MAGIC:
        return _Extent(file.size, None)
    length = int.from_bytes(head[4:8], "little")
    if length < _SHORT_PROGRAM_HEADER:
        raise file.malformed(f"its extended header says that it has {length} bytes, not {_SHORT_PROGRAM_HEADER}")
    size, base = (int.from_bytes(head[at : at + 8], "little") for at in (8, 16))
    if size > file.size:
        raise file.malformed(
            f"the program has {size:#x} bytes by its header, and the file {file.size:#x}: it is cut off"
        )
    if length >= _PROGRAM_HEADER and base:
        data = file.read(_HEADER_OFFSET + _SHORT_PROGRAM_HEADER, 8, "the extended header")
        _check_end(file, base, int.from_bytes(data, "little"))
    return _Extent(size, base or None)


def _read_data_header(file: BlockFile) -> _Extent:
    head = file.read(_HEADER_OFFSET, _DATA_HEADER, "the data file's header")
    if head[:4] != _DATA_MAGIC:
        raise file.malformed(f"its header begins with {head[:4]!r}, not FH01")
    length = int.from_bytes(head[4:8], "little")
    if length < _DATA_HEADER:
        raise file.malformed(f"its header says that it has {length} bytes, not {_DATA_HEADER}")
    offset, size, base, data = (int.from_bytes(head[at : at + 8], "little") for at in (8, 16, 24, 32))
    if offset + size > file.size:
        raise file.malformed(f"its tables end at {offset + size:#x}, and the file at {file.size:#x}: it is cut off")
    _check_end(file, base, data)
    return _Extent(offset + size, base or None)


def _check_end(file: BlockFile, base: int, size: int) -> None:
    if base + size > file.size:
        raise file.malformed(f"its segments end at {base + size:#x}, and the file at {file.size:#x}: it is cut off")


def _read_segments(file: BlockFile, root: Table, field: int, extent: _Extent) -> tuple[Place, ...]:
    segments: list[Place] = []
    known: dict[int, Place] = {}
    for index, position in enumerate(root.positions(field, "segment")):
        if index >= MAX_SEGMENTS:
            raise file.malformed(f"segment {index} at {position:#x}: there are more than {MAX_SEGMENTS}")
        if position in known:
            segments.append(known[position])
            continue
        table = root.table_from(position, f"segment {index}")
        if extent.segment_base is None:
            raise file.malformed("it has segments, and no header says where they are")
        offset = extent.segment_base + table.number(_SEGMENT_OFFSET, 8)
        size = table.number(_SEGMENT_SIZE, 8)
        if offset + size > file.size:
            raise file.malformed(
                f"{table.what} has bytes {offset:#x} to {offset + size:#x}, and the file ends at {file.size:#x}"
            )
        known[position] = Place(file.path, offset, size)
        segments.append(known[position])
    refuse_overlaps(file, segments, "segments")
    return tuple(segments)


def refuse_overlaps(file: BlockFile, places: Iterable[Place], what: str) -> None:
    """Raise MalformedProgramError when two of `places` share some of their bytes, but not all.

    Writers put them one behind the other; and without overlaps hashing all of them costs no more than the file has.
    """
    end = 0
    for place in sorted(set(places), key=lambda place: (place.offset, place.size)):
        if place.size and place.offset < end:
            raise file.malformed(f"two of its {what} overlap at {place.offset:#x}")
        end = max(end, place.offset + place.size)
