"""Reads one .pte or .ptd file: methods, delegates, the blobs of TensorRT's, named data. Judges nothing.

Numbers of fields are those of ExecuTorch 1.5.1's schema/program.fbs and flat_tensor.fbs: a table's fields count from 0
in the order of the schema, and a union takes two, its type and its table. Of an engine not one byte is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import MalformedBlobError
from linkcheck.executorch.blob import HEADER, KEY_PREFIX, read_layout, read_metadata
from linkcheck.executorch.container import open_container, refuse_overlaps
from linkcheck.executorch.facts import (
    TENSORRT_BACKEND,
    Argument,
    Blob,
    Delegate,
    Fault,
    NamedData,
    Place,
    ProgramFile,
    ProgramKind,
)
from linkcheck.executorch.limits import (
    MAX_ALL_METADATA,
    MAX_DELEGATES,
    MAX_INSTRUCTIONS,
    MAX_METADATA_MARKS,
    MAX_METADATA_SIZE,
    MAX_NAMED_DATA,
    MAX_NAMED_ENGINES,
    MAX_TENSORRT_DELEGATES,
)
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.block_file import BlockFile
    from linkcheck.executorch.container import Container
    from linkcheck.executorch.flatbuffer import Table

_PROGRAM_PLANS, _PROGRAM_INLINE_DATA, _PROGRAM_NAMED_DATA = 1, 3, 7
_DATA_NAMED_DATA = 2
_NAMED_KEY, _NAMED_SEGMENT = 0, 1
_PLAN_NAME, _PLAN_VALUES, _PLAN_CHAINS, _PLAN_DELEGATES = 0, 2, 5, 7
_DELEGATE_ID, _DELEGATE_PROCESSED = 0, 1
_REFERENCE_LOCATION, _REFERENCE_INDEX = 0, 1
_INLINE_DATA = 0
_CHAIN_INSTRUCTIONS = 2
_INSTRUCTION_TYPE, _INSTRUCTION_TABLE = 0, 1
_CALL_DELEGATE, _CALL_ARGUMENTS = 0, 1
_VALUE_TYPE, _VALUE_TABLE = 0, 1
_TENSOR_DTYPE, _TENSOR_SIZES, _TENSOR_DYNAMISM, _TENSOR_EXTRA = 0, 2, 8, 9
_EXTRA_DEVICE_TYPE, _EXTRA_DEVICE_INDEX = 3, 4

#: Members of the unions InstructionArguments and KernelTypes, and of the enum DataLocation.
_DELEGATE_CALL = 2
_TENSOR = 5
_IN_FLATBUFFER, _IN_SEGMENT = 0, 1

#: ExecuTorch's scalar types, by the names that PyTorch has for them (schema/scalar_type.fbs).
_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    11: "bool",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
_DEVICES = {0: "cpu", 1: "cuda"}


def read_program(file: BlockFile) -> ProgramFile:
    """Everything in `file` that matters for its engines.

    A blob that cannot be read is part of the result. Raises NotAProgramError, MalformedProgramError and
    UnreadableFileError.
    """
    container = open_container(file)
    if container.kind is ProgramKind.DATA:
        named_data = tuple(_read_named_data(file, container, _DATA_NAMED_DATA))
        return ProgramFile(file.path, container.kind, file.size, named_data=named_data)
    reader = _ProgramReader(file, container)
    plans = list(container.root.tables(_PROGRAM_PLANS, "method"))
    delegates = tuple(delegate for plan in plans for delegate in reader.read_delegates(plan))
    inline = (delegate.blob.inline for delegate in delegates if delegate.blob is not None)
    refuse_overlaps(file, (place for place in inline if place is not None), "engines")
    return ProgramFile(
        file.path,
        container.kind,
        file.size,
        methods=tuple(plan.text(_PLAN_NAME) for plan in plans),
        delegates=delegates,
        named_data=tuple(_read_named_data(file, container, _PROGRAM_NAMED_DATA)),
    )


def _read_named_data(file: BlockFile, container: Container, field: int) -> Iterator[NamedData]:
    engines = 0
    for index, table in enumerate(container.root.tables(field, "named data")):
        key = table.text(_NAMED_KEY)
        engines += key.startswith(KEY_PREFIX)
        if index >= MAX_NAMED_DATA or engines > MAX_NAMED_ENGINES:
            limit = f"{MAX_NAMED_DATA} entries, or {MAX_NAMED_ENGINES} engines"
            raise file.malformed(f"its named data has more than {limit}, which we do not list")
        yield NamedData(key, _find_segment(file, container, table.number(_NAMED_SEGMENT, 4), table.what))


def _find_segment(file: BlockFile, container: Container, index: int, what: str) -> Place:
    if index >= len(container.segments):
        raise file.malformed(f"{what} is in segment {index}, and there are {len(container.segments)}")
    return container.segments[index]


class _ProgramReader:
    """Reads the delegates of one program, each blob once, and keeps account of what that cost."""

    def __init__(self, file: BlockFile, container: Container) -> None:
        self._file = file
        self._container = container
        self._blobs: dict[Place, Blob | Fault] = {}
        self._delegates = 0
        self._tensorrt_delegates = 0
        self._instructions_left = MAX_INSTRUCTIONS
        self._metadata_left = MAX_ALL_METADATA
        self._marks_left = MAX_METADATA_MARKS

    def read_delegates(self, plan: Table) -> Iterator[Delegate]:
        """The delegates of one method."""
        method = plan.text(_PLAN_NAME)
        delegates: list[Delegate] = []
        for table in plan.tables(_PLAN_DELEGATES, "delegate"):
            backend = table.text(_DELEGATE_ID)
            self._count(backend)
            place = self._find_processed(table)
            delegates.append(Delegate(self._file.path, method, len(delegates), backend, place))
        calls = self._find_calls(plan) if any(delegate.is_tensorrt for delegate in delegates) else {}
        for delegate in delegates:
            if delegate.backend != TENSORRT_BACKEND:
                yield delegate
                continue
            read = self._read_blob(delegate.place)
            yield replace(
                delegate,
                blob=read if isinstance(read, Blob) else None,
                fault=read if isinstance(read, Fault) else None,
                arguments=self._read_arguments(plan, calls.get(delegate.index, ())),
            )

    def _count(self, backend: str) -> None:
        self._delegates += 1
        self._tensorrt_delegates += backend == TENSORRT_BACKEND
        if self._delegates > MAX_DELEGATES or self._tensorrt_delegates > MAX_TENSORRT_DELEGATES:
            limit = f"{MAX_DELEGATES} delegates, or {MAX_TENSORRT_DELEGATES} of TensorRT's"
            raise self._file.malformed(f"it has more than {limit}, which we do not list")

    def _find_processed(self, delegate: Table) -> Place:
        reference = delegate.table(_DELEGATE_PROCESSED, f"the processed data of {delegate.what}")
        if reference is None:
            raise self._file.malformed(f"{delegate.what} has no processed data")
        location, index = reference.number(_REFERENCE_LOCATION, 1), reference.number(_REFERENCE_INDEX, 4)
        if location == _IN_SEGMENT:
            return _find_segment(self._file, self._container, index, reference.what)
        if location != _IN_FLATBUFFER:
            raise self._file.malformed(f"{reference.what} is at the unknown location {location}")
        table = self._container.root.table_at(_PROGRAM_INLINE_DATA, index, f"backend_delegate_data {index}")
        return Place(self._file.path, *table.data(_INLINE_DATA))

    def _read_blob(self, place: Place) -> Blob | Fault:
        if place not in self._blobs:
            try:
                self._blobs[place] = self._parse_blob(place)
            except MalformedBlobError as error:
                self._blobs[place] = Fault(error.field, error.offset, error.reason)
        return self._blobs[place]

    def _parse_blob(self, place: Place) -> Blob | Fault:
        head = self._file.read(place.offset, min(HEADER.size, place.size), "a blob's header")
        layout = read_layout(head, place.size)
        at, size = layout.metadata_offset, layout.metadata_size
        if size > min(MAX_METADATA_SIZE, self._metadata_left):
            return Fault("metadata", at, f"its {size} bytes are more than we read", unseen=True)
        text = self._file.read(place.offset + at, size, "a blob's metadata")
        self._metadata_left -= size
        self._marks_left -= sum(map(text.count, (b"{", b"[", b",")))
        if self._marks_left < 0:
            return Fault("metadata", at, "it has more brackets and commas than we read", unseen=True)
        # The exporter's own notes may be long, and nothing here is said about them.
        metadata = replace(read_metadata(text, at), serialized_metadata="")
        inline = Place(place.path, place.offset + layout.engine_offset, layout.engine_size)
        return Blob(metadata, inline if inline.size else None)

    def _find_calls(self, plan: Table) -> dict[int, tuple[int, ...]]:
        """For each delegate that is called, the values of its first call."""
        calls: dict[int, tuple[int, ...]] = {}
        for chain in plan.tables(_PLAN_CHAINS, "chain"):
            for instruction in chain.tables(_CHAIN_INSTRUCTIONS, "instruction"):
                self._instructions_left -= 1
                if self._instructions_left < 0:
                    return calls
                if instruction.number(_INSTRUCTION_TYPE, 1) != _DELEGATE_CALL:
                    continue
                call = instruction.table(_INSTRUCTION_TABLE, "a call of a delegate")
                if call is not None and call.number(_CALL_DELEGATE, 4) not in calls:
                    calls[call.number(_CALL_DELEGATE, 4)] = call.numbers(_CALL_ARGUMENTS, 4)
        return calls

    def _read_arguments(self, plan: Table, indices: tuple[int, ...]) -> tuple[Argument | None, ...]:
        return tuple(_read_argument(plan.table_at(_PLAN_VALUES, index, f"value {index}")) for index in indices)


def _read_argument(value: Table) -> Argument | None:
    if value.number(_VALUE_TYPE, 1) != _TENSOR:
        return None
    tensor = value.table(_VALUE_TABLE, f"the tensor of {value.what}")
    if tensor is None:
        return None
    dtype = tensor.number(_TENSOR_DTYPE, 1)
    return Argument(
        _DTYPES.get(dtype, f"scalar type {dtype}"),
        tensor.numbers(_TENSOR_SIZES, 4, signed=True),
        dynamic=tensor.number(_TENSOR_DYNAMISM, 1) != 0,
        device=_read_device(tensor.table(_TENSOR_EXTRA, f"the place of {value.what}")),
    )


def _read_device(extra: Table | None) -> str:
    kind = 0 if extra is None else extra.number(_EXTRA_DEVICE_TYPE, 1)
    if extra is None or kind == 0:
        return _DEVICES[0]
    return f"{_DEVICES.get(kind, f'device type {kind}')}:{extra.number(_EXTRA_DEVICE_INDEX, 1)}"
