"""Reads one .pte or .ptd file: methods, delegates, the blobs of TensorRT's, named data. Judges nothing.

Numbers of fields are those of ExecuTorch 1.5.1's schema/program.fbs and flat_tensor.fbs: a table's fields count from 0
in the order of the schema, and a union takes two, its type and its table. Of an engine not one byte is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import MalformedBlobError
from linkcheck.executorch.blob import HEADER, Binding, read_layout, read_metadata
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
    MAX_ALL_METADATA_MARKS,
    MAX_BACKENDS,
    MAX_DELEGATES,
    MAX_INSTRUCTIONS,
    MAX_METADATA_MARKS,
    MAX_METADATA_SIZE,
    MAX_METHODS,
    MAX_NAMED_DATA,
    MAX_REASON,
)
from linkcheck.executorch.listing import Listing
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.blob import TensorRTBlob
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
    listing = Listing()
    if container.kind is ProgramKind.DATA:
        named_data = tuple(_read_named_data(file, container, listing, _DATA_NAMED_DATA))
        return ProgramFile(file.path, container.kind, file.size, named_data=named_data)
    reader = _ProgramReader(file, container, listing)
    methods: list[str] = []
    delegates: list[Delegate] = []
    for plan in container.root.tables(_PROGRAM_PLANS, "method"):
        if len(methods) >= MAX_METHODS:
            raise plan.malformed(f"there are more than {MAX_METHODS} methods")
        method = plan.text(_PLAN_NAME)
        listing.add_entry(plan, method)
        methods.append(method)
        delegates += reader.read_delegates(plan, method)
    inline = (delegate.blob.inline for delegate in delegates if delegate.blob is not None)
    refuse_overlaps(file, (place for place in inline if place is not None), "engines")
    return ProgramFile(
        file.path,
        container.kind,
        file.size,
        methods=tuple(methods),
        delegates=tuple(delegates),
        named_data=tuple(_read_named_data(file, container, listing, _PROGRAM_NAMED_DATA)),
    )


def _read_named_data(file: BlockFile, container: Container, listing: Listing, field: int) -> Iterator[NamedData]:
    for index, table in enumerate(container.root.tables(field, "named data")):
        if index >= MAX_NAMED_DATA:
            raise table.malformed(f"there are more than {MAX_NAMED_DATA} entries")
        key = table.text(_NAMED_KEY)
        listing.add_entry(table, key)
        yield NamedData(key, _find_segment(file, container, table.number(_NAMED_SEGMENT, 4), table.what))


def _find_segment(file: BlockFile, container: Container, index: int, what: str) -> Place:
    if index >= len(container.segments):
        raise file.malformed(f"{what} is in segment {index}, and there are {len(container.segments)}")
    return container.segments[index]


class _ProgramReader:
    """Reads the delegates of one program, each blob and each tensor once, and keeps account of what that cost."""

    def __init__(self, file: BlockFile, container: Container, listing: Listing) -> None:
        self._file = file
        self._container = container
        self._listing = listing
        self._blobs: dict[Place, Blob | Fault] = {}
        self._values: dict[int, Argument | None] = {}
        self._backends: set[str] = set()
        self._delegates = 0
        self._instructions_left = MAX_INSTRUCTIONS
        self._metadata_left = MAX_ALL_METADATA
        self._marks_left = MAX_ALL_METADATA_MARKS

    def read_delegates(self, plan: Table, method: str) -> Iterator[Delegate]:
        """The delegates of the method at `plan`."""
        calls: dict[int, Table] | None = None
        for index, table in enumerate(plan.tables(_PLAN_DELEGATES, "delegate")):
            backend = table.text(_DELEGATE_ID)
            self._count(table, method, backend)
            place = self._find_processed(table)
            if backend != TENSORRT_BACKEND:
                yield Delegate(self._file.path, method, index, backend, place, None, None, ())
                continue
            calls = self._find_calls(plan) if calls is None else calls
            read = self._read_blob(place)
            if isinstance(read, Fault):
                yield Delegate(self._file.path, method, index, backend, place, None, read, ())
                continue
            arguments = self._read_arguments(plan, calls.get(index), len(read.metadata.io_bindings))
            self._listing.add_blob(table, read.metadata, arguments)
            yield Delegate(self._file.path, method, index, backend, place, read, None, arguments)

    def _count(self, delegate: Table, method: str, backend: str) -> None:
        self._delegates += 1
        self._backends.add(backend)
        if self._delegates > MAX_DELEGATES:
            raise delegate.malformed(f"there are more than {MAX_DELEGATES} delegates")
        if len(self._backends) > MAX_BACKENDS:
            raise delegate.malformed(f"there are delegates for more than {MAX_BACKENDS} backends")
        self._listing.add_delegate(delegate, method, backend)

    def _find_processed(self, delegate: Table) -> Place:
        reference = delegate.table(_DELEGATE_PROCESSED, f"the processed data of {delegate.what}")
        if reference is None:
            raise self._file.malformed(f"{delegate.what} has no processed data")
        location, index = reference.number(_REFERENCE_LOCATION, 1), reference.number(_REFERENCE_INDEX, 4)
        if location == _IN_SEGMENT:
            return _find_segment(self._file, self._container, index, reference.what)
        if location != _IN_FLATBUFFER:
            raise self._file.malformed(f"{reference.what} is at the unknown location {location}")
        what = f"backend_delegate_data {index}"
        root = self._container.root
        table = root.table_from(root.position_at(_PROGRAM_INLINE_DATA, index, what), what)
        return Place(self._file.path, *table.data(_INLINE_DATA))

    def _read_blob(self, place: Place) -> Blob | Fault:
        if place not in self._blobs:
            try:
                self._blobs[place] = self._parse_blob(place)
            except MalformedBlobError as error:
                field, reason = error.field[:MAX_REASON], error.reason[:MAX_REASON]
                self._blobs[place] = Fault(field, error.offset, reason)
        return self._blobs[place]

    def _parse_blob(self, place: Place) -> Blob | Fault:
        head = self._file.read(place.offset, min(HEADER.size, place.size), "a blob's header")
        layout = read_layout(head, place.size)
        at, size = layout.metadata_offset, layout.metadata_size
        if size > min(MAX_METADATA_SIZE, self._metadata_left):
            return Fault("metadata", at, f"its {size} bytes are more than we read", unseen=True)
        text = self._file.read(place.offset + at, size, "a blob's metadata")
        marks = sum(map(text.count, (b"{", b"[", b",")))
        self._metadata_left -= size
        if marks > min(MAX_METADATA_MARKS, self._marks_left):
            return Fault("metadata", at, "it has more brackets and commas than we read", unseen=True)
        self._marks_left -= marks
        inline = Place(place.path, place.offset + layout.engine_offset, layout.engine_size)
        return Blob(_drop_notes(read_metadata(text, at)), inline if inline.size else None)

    def _find_calls(self, plan: Table) -> dict[int, Table]:
        """For each delegate that `plan` has and calls, its first call."""
        calls: dict[int, Table] = {}
        count = plan.count(_PLAN_DELEGATES, 4)
        for chain in plan.tables(_PLAN_CHAINS, "chain"):
            for instruction in chain.tables(_CHAIN_INSTRUCTIONS, "instruction"):
                self._instructions_left -= 1
                if self._instructions_left < 0 or len(calls) == count:
                    return calls
                if instruction.number(_INSTRUCTION_TYPE, 1) != _DELEGATE_CALL:
                    continue
                call = instruction.table(_INSTRUCTION_TABLE, "a call of a delegate")
                if call is not None and (index := call.number(_CALL_DELEGATE, 4)) < count:
                    calls.setdefault(index, call)
        return calls

    def _read_arguments(self, plan: Table, call: Table | None, count: int) -> tuple[Argument | None, ...]:
        """The values that `call` gives to a delegate with `count` bindings; none when it gives more or fewer."""
        if call is None or call.count(_CALL_ARGUMENTS, 4) != count:
            return ()
        return tuple(self._read_value(plan, index & 0xFFFFFFFF) for index in call.numbers(_CALL_ARGUMENTS, 4))

    def _read_value(self, plan: Table, index: int) -> Argument | None:
        what = f"value {index}"
        position = plan.position_at(_PLAN_VALUES, index, what)
        if position not in self._values:
            self._values[position] = _read_argument(plan.table_from(position, what))
        return self._values[position]


def _drop_notes(blob: TensorRTBlob) -> TensorRTBlob:
    """`blob` without what may be long and nobody here asks for: the exporter's own notes, and shapes it has guessed."""
    bindings = blob.io_bindings
    if any(binding.dtype or binding.shape for binding in bindings):
        bindings = tuple(Binding(binding.name, binding.is_input) for binding in bindings)
    return replace(blob, io_bindings=bindings, serialized_metadata="")


def _read_argument(value: Table) -> Argument | None:
    if value.number(_VALUE_TYPE, 1) != _TENSOR:
        return None
    tensor = value.table(_VALUE_TABLE, f"the tensor of {value.what}")
    if tensor is None:
        return None
    dtype = tensor.number(_TENSOR_DTYPE, 1)
    return Argument(
        _DTYPES.get(dtype, f"scalar type {dtype}"),
        tensor.numbers(_TENSOR_SIZES, 4),
        tensor.number(_TENSOR_DYNAMISM, 1) != 0,
        _read_device(tensor.table(_TENSOR_EXTRA, f"the place of {value.what}")),
    )


def _read_device(extra: Table | None) -> str:
    kind = 0 if extra is None else extra.number(_EXTRA_DEVICE_TYPE, 1)
    if extra is None or kind == 0:
        return _DEVICES[0]
    return f"{_DEVICES.get(kind, f'device type {kind}')}:{extra.number(_EXTRA_DEVICE_INDEX, 1)}"
