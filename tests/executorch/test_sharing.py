"""Files in which much refers to one thing: it is decoded and held once, and what is listed of it has a bound.

Judged by what the reader counts (tables visited, bytes decoded), which is the same on every machine.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcheck.errors import MalformedProgramError, NotAProgramError
from linkcheck.executorch import limits
from linkcheck.executorch.block_file import BlockFile
from linkcheck.executorch.flatbuffer import Flatbuffer
from linkcheck.executorch.program import read_program
from tests.executorch.samples import ENGINE
from tests.executorch.write_program import FlatbufferWriter, Number, Numbers, Repeated, Shared, Table, make_blob, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from linkcheck.executorch.facts import ProgramFile


@pytest.fixture(scope="module")
def buffers() -> Iterator[list[Flatbuffer]]:
    """The flatbuffers that were opened; each knows what was visited and decoded of it."""
    opened: list[Flatbuffer] = []

    class Counted(Flatbuffer):
        def __init__(self, file: BlockFile, size: int) -> None:
            super().__init__(file, size)
            opened.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linkcheck.executorch.container.Flatbuffer", Counted)
        yield opened


def flatbuffer(root: Table) -> bytes:
    return FlatbufferWriter(b"ET12").write(root)


def delegate(index: int, backend: object = "TensorRTBackend", location: int = 0) -> Table:
    return {0: backend, 1: {0: Number("b", location), 1: Number("I", index)}}


def call(index: int, arguments: object) -> Table:
    return {0: Number("B", 2), 1: {0: Number("i", index), 1: arguments}}


def tensor(sizes: object) -> Table:
    return {0: Number("B", 5), 1: {0: Number("b", 6), 2: sizes}}


def read(path: Path, content: bytes) -> ProgramFile:
    path.write_bytes(content)
    with BlockFile(str(path)) as file:
        return read_program(file)


def test_a_name_of_a_thousand_methods_is_decoded_and_held_once(tmp_path: Path, buffers: list[Flatbuffer]) -> None:
    program = read(tmp_path / "x.pte", flatbuffer({1: Repeated({0: "m" * 4000}, 1000)}))
    assert buffers[-1].decoded == 4000
    assert len({id(name) for name in program.methods}) == 1
    assert len(program.methods) == 1000


def test_a_key_and_a_segment_of_a_thousand_entries_are_held_once(tmp_path: Path, buffers: list[Flatbuffer]) -> None:
    content = wrap(b"ET12", {7: Repeated({0: "k" * 4000}, 1000), 4: Repeated({}, 1000)}, b"x", 16)
    program = read(tmp_path / "x.pte", content)
    assert buffers[-1].decoded == 4000
    assert len({(id(entry.key), id(entry.place)) for entry in program.named_data}) == 1
    assert buffers[-1].visited == 1 + 1 + 1000  # the root, the segment, and each entry


def test_arguments_that_many_calls_share_are_read_once(tmp_path: Path, buffers: list[Flatbuffer]) -> None:
    arguments, value = Shared(Numbers("i", [0, 1])), Shared(tensor(Shared(Numbers("i", [7, 8, 9]))))
    plan: Table = {
        0: "f",
        2: [value, value],
        5: [{2: [call(index, arguments) for index in range(100)]}],
        7: Repeated(delegate(0), 100),
    }
    program = read(tmp_path / "x.pte", flatbuffer({1: [plan], 3: [{0: make_blob(ENGINE)}]}))
    assert {argument.shape for d in program.delegates for argument in d.arguments if argument} == {(7, 8, 9)}
    assert len({id(argument) for d in program.delegates for argument in d.arguments}) == 1
    assert buffers[-1].decoded == len("f" + "TensorRTBackend") + 16 * (2 + 3)


def test_calls_of_delegates_that_are_not_there_are_not_looked_at(tmp_path: Path, buffers: list[Flatbuffer]) -> None:
    long = Shared(Numbers("i", [0] * 60_000))
    calls = [*(call(index, long) for index in range(1, 3000)), call(0, Numbers("i", [0, 0]))]
    plan: Table = {0: "f", 2: [tensor(Numbers("i", [5]))], 5: [{2: calls}], 7: [delegate(0)]}
    program = read(tmp_path / "x.pte", flatbuffer({1: [plan], 3: [{0: make_blob(ENGINE)}]}))
    assert [argument.shape for argument in program.delegates[0].arguments if argument] == [(5,), (5,)]
    assert buffers[-1].decoded == len("f" + "TensorRTBackend") + 16 * (2 + 1)


def test_a_call_with_more_arguments_than_its_blob_has_says_no_shapes(tmp_path: Path, buffers: list[Flatbuffer]) -> None:
    plan: Table = {0: "f", 5: [{2: [call(0, Numbers("i", [0] * 60_000))]}], 7: [delegate(0)]}
    program = read(tmp_path / "x.pte", flatbuffer({1: [plan], 3: [{0: make_blob(ENGINE)}]}))
    assert program.delegates[0].arguments == ()
    assert buffers[-1].decoded == len("f" + "TensorRTBackend")


_BLOB: list[Table] = [{0: make_blob(ENGINE)}]
_METHODS, _DELEGATES, _ENTRIES = limits.MAX_METHODS, limits.MAX_DELEGATES, limits.MAX_NAMED_DATA
_LONG = "n" * limits.MAX_NAME_LENGTH
_SEGMENT: list[Table] = [{0: Number("Q", 0), 1: Number("Q", 1)}]

#: What is one too many, and the words of the error; each leads there by sharing, so the file is small.
REFUSED = {
    "methods": (flatbuffer({1: Repeated({0: "m"}, _METHODS + 1)}), f"there are more than {_METHODS} methods"),
    "delegates": (
        flatbuffer({1: [{0: "f", 7: Repeated(delegate(0), _DELEGATES + 1)}], 3: _BLOB}),
        f"there are more than {_DELEGATES} delegates",
    ),
    "delegates of several methods": (
        flatbuffer({1: Repeated({0: "f", 7: Repeated(delegate(0, "other"), 100)}, 1000), 3: _BLOB}),
        f"there are more than {_DELEGATES} delegates",
    ),
    "backends": (
        flatbuffer({1: [{0: "f", 7: [delegate(0, f"backend {number}") for number in range(65)]}], 3: _BLOB}),
        "there are delegates for more than 64 backends",
    ),
    "entries": (
        wrap(b"ET12", {7: Repeated({0: "k"}, _ENTRIES + 1), 4: _SEGMENT}, b"x", 16),
        f"there are more than {_ENTRIES} entries",
    ),
    "segments": (wrap(b"ET12", {4: Repeated({}, limits.MAX_SEGMENTS + 1)}, b"x", 16), "there are more than 32768"),
    "tables": (
        flatbuffer({1: [{0: "f", 5: Repeated({2: []}, limits.MAX_TABLES), 7: [delegate(0)]}], 3: _BLOB}),
        f"the file leads to more than {limits.MAX_TABLES} tables",
    ),
    "a name's bytes": (flatbuffer({1: [{0: _LONG + "n"}]}), "a name of 4097 bytes, more than 4096"),
    "all names' bytes": (
        flatbuffer({1: [{0: f"{number:08}" + _LONG[8:]} for number in range(1025)]}),
        f"names and numbers have more than {limits.MAX_DECODED}",
    ),
    "numbers": (
        flatbuffer(
            {
                1: [
                    {
                        0: "f",
                        2: [tensor(Numbers("i", [0] * 300_000))],
                        5: [{2: [call(0, Numbers("i", [0, 0]))]}],
                        7: [delegate(0)],
                    }
                ],
                3: _BLOB,
            }
        ),
        f"names and numbers have more than {limits.MAX_DECODED}",
    ),
    "a long name of many methods": (flatbuffer({1: Repeated({0: _LONG}, 10_000)}), "a report lists more than"),
    "a long backend of many delegates": (
        flatbuffer({1: [{0: "f", 7: Repeated(delegate(0, _LONG), 10_000)}], 3: _BLOB}),
        "a report lists more than",
    ),
    "a long name of many methods with a delegate": (
        flatbuffer({1: Repeated({0: _LONG, 7: [delegate(0)]}, 10_000), 3: _BLOB}),
        "a report lists more than",
    ),
    "a long key of many entries": (
        wrap(b"ET12", {7: Repeated({0: _LONG}, 10_000), 4: _SEGMENT}, b"x", 16),
        "a report lists more than",
    ),
    "many bindings of many delegates": (
        flatbuffer(
            {
                1: [{0: "f", 7: Repeated(delegate(0), 10_000)}],
                3: [{0: make_blob(ENGINE, inputs=tuple(map(str, range(100))))}],
            }
        ),
        "a report lists more than",
    ),
    "a long shape of many delegates": (
        flatbuffer(
            {
                1: [
                    {
                        0: "f",
                        2: Repeated(tensor(Numbers("i", [0] * 60_000)), 2),
                        5: [{2: [call(index, Numbers("i", [0, 1])) for index in range(100)]}],
                        7: Repeated(delegate(0), 100),
                    }
                ],
                3: _BLOB,
            }
        ),
        "a report lists more than",
    ),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_too_much_is_one_error_that_says_where(
    tmp_path: Path, buffers: list[Flatbuffer], content: bytes, words: str
) -> None:
    with pytest.raises(MalformedProgramError) as refusal:
        read(tmp_path / "x.pte", content)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(f"{tmp_path / 'x.pte'}: ")
    assert " at 0x" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300 + len(str(tmp_path))
    assert buffers[-1].visited <= limits.MAX_TABLES + 1


def test_blocks_are_read_again_only_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkcheck.executorch.block_file.MAX_BLOCK_READS", 3)
    (tmp_path / "x").write_bytes(bytes(10 * limits.BLOCK_SIZE))
    with BlockFile(str(tmp_path / "x")) as file:
        for number in (0, 1, 2, 2, 1):
            file.read(number * limits.BLOCK_SIZE, 4, "a table")
        with pytest.raises(MalformedProgramError, match="a table at 0xc000: its tables lie in more than"):
            file.read(3 * limits.BLOCK_SIZE, 4, "a table")


# ---------------------------------------------------------------- any sharing

NAMES = st.sampled_from(["", "f", "forward", "TensorRTBackend", "XnnpackBackend", "n" * 50, "n" * 5000])


@st.composite
def shared_programs(draw: st.DrawFn) -> bytes:
    """A program whose parts are drawn from a few, so that everything may be everybody's."""

    def pool(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        return st.sampled_from([Shared(value) for value in draw(st.lists(values, min_size=1, max_size=3))])

    def lists(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        return st.lists(values, max_size=4) | st.builds(list, st.lists(values, max_size=2).map(lambda few: few * 20))

    names = pool(NAMES)
    numbers = pool(st.builds(Numbers, st.just("i"), st.lists(st.integers(-1, 4), max_size=4)))
    tensors = pool(st.builds(lambda sizes: {0: Number("B", 5), 1: {2: sizes}}, numbers))
    blobs = pool(st.sampled_from([make_blob(ENGINE), make_blob(key="f"), make_blob(), b"", b"TR01" + bytes(40)]))
    references = pool(
        st.builds(lambda place, index: {0: Number("b", place), 1: Number("I", index)}, *[st.integers(0, 1)] * 2)
    )
    delegates = pool(st.builds(lambda name, reference: {0: name, 1: reference}, names, references))
    calls = pool(st.builds(call, st.integers(0, 3), numbers))
    chains = pool(st.builds(lambda entries: {2: entries}, lists(calls)))
    plans = pool(
        st.builds(
            lambda name, values, chains, delegates: {0: name, 2: values, 5: chains, 7: delegates},
            *(names, lists(tensors), lists(chains), lists(delegates)),
        )
    )
    entries = pool(st.builds(lambda name, index: {0: name, 1: Number("I", index)}, names, st.integers(0, 1)))
    root: Table = {
        1: draw(lists(plans)),
        3: draw(lists(st.builds(lambda data: {0: data}, blobs))),
        4: [{0: Number("Q", 0), 1: Number("Q", 16)}, {0: Number("Q", 16), 1: Number("Q", 8)}],
        7: draw(lists(entries)),
    }
    return wrap(b"ET12", root, bytes(32), 16)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=shared_programs())
def test_whatever_is_shared_is_decoded_once(tmp_path: Path, buffers: list[Flatbuffer], content: bytes) -> None:
    try:
        read(tmp_path / "x.pte", content)
    except MalformedProgramError as error:
        assert "\n" not in str(error)  # a name of 5000 bytes, or what is not there
    # A number takes four bytes and counts for sixteen; nothing is counted twice, whoever refers to it.
    assert buffers[-1].decoded <= 4 * len(content)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=shared_programs(), changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 400)), max_size=3))
def test_references_that_lead_elsewhere_are_judged_or_refused(
    tmp_path: Path, buffers: list[Flatbuffer], content: bytes, changes: list[tuple[int, int]]
) -> None:
    """Distances are replaced, so that things overlap and are taken for what they are not."""
    changed = bytearray(content)
    for at, distance in changes:
        struct.pack_into("<I", changed, at % (len(content) // 4) * 4, 4 * distance)
    try:
        program = read(tmp_path / "x.pte", bytes(changed))
    except (MalformedProgramError, NotAProgramError) as error:
        assert "\n" not in str(error)
    else:
        assert all(d.place.offset + d.place.size <= len(content) for d in program.delegates)
    assert buffers[-1].visited <= limits.MAX_TABLES
    assert buffers[-1].decoded <= limits.MAX_DECODED
