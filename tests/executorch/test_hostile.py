"""Damaged and malicious programs: what becomes of each, soon and in little memory."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcheck.api import check_programs
from linkcheck.errors import MalformedProgramError, NotAProgramError, UnreadableFileError
from linkcheck.executorch.limits import (
    MAX_DELEGATES,
    MAX_INSTRUCTIONS,
    MAX_METADATA_MARKS,
    MAX_METADATA_SIZE,
    MAX_NAMED_DATA,
)
from linkcheck.executorch.program import read_program
from linkcheck.executorch.survey import survey_programs
from linkcheck.model import Outcome
from linkcheck.policy.settings import Settings
from tests.executorch.samples import ENGINE, good_program
from tests.executorch.write_program import (
    Delegate,
    FlatbufferWriter,
    Number,
    Numbers,
    Program,
    Repeated,
    Shared,
    Table,
    make_blob,
    make_key,
    wrap,
)

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.executorch.block_file import BlockFile
    from linkcheck.executorch.facts import ProgramFile

GOOD = good_program().to_bytes()
DATA = Program(named={"tensorrt_engine_1": ENGINE, "b": b"12"}, is_data=True).to_bytes()
SETTINGS = Settings(profile="test")
#: A promise for an idle machine is a second; the tests' machine is busy. test_sharing.py bounds what is counted.
SECONDS = 5
#: Above the interpreter's own.
MEGABYTES = 64


def refusal(path: Path, content: bytes) -> str:
    """The one error of a file with `content`."""
    path.write_bytes(content)
    survey = survey_programs([str(path)])
    ((named, error),) = survey.errors
    assert named == str(path)
    assert str(error).startswith(f"{path}: ")
    assert "\n" not in str(error)
    return str(error)


def judge(path: Path, content: bytes) -> None:
    """Whatever it comes to, it is a report, and every engine lies inside of the file."""
    path.write_bytes(content)
    verdict = check_programs([str(path)], settings=SETTINGS)
    for engine in verdict.programs.engines:
        assert 0 <= engine.place.offset <= engine.place.offset + engine.place.size <= len(content)


@pytest.mark.parametrize("content", [GOOD, DATA], ids=["program", "data"])
def test_every_truncation_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cut.pte"
    path.write_bytes(content)
    for size in reversed(range(len(content))):
        os.truncate(path, size)
        (error,) = [error for _, error in survey_programs([str(path)]).errors]
        assert isinstance(error, (MalformedProgramError, NotAProgramError)), size


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flips=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_are_judged_or_refused(tmp_path: Path, flips: list[tuple[int, int]]) -> None:
    content = bytearray(GOOD)
    for at, value in flips:
        content[at] = value
    judge(tmp_path / "x.pte", bytes(content))


NUMBERS = st.sampled_from([0, 1, 3, 4, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(GOOD) // 4 - 1), number=NUMBERS, of_data=st.booleans())
def test_wild_numbers_are_judged_or_refused(tmp_path: Path, at: int, number: int, of_data: bool) -> None:
    content = bytearray(DATA if of_data else GOOD)
    struct.pack_into("<I", content, 4 * at % (len(content) - 3), number)
    judge(tmp_path / "x.pte", bytes(content))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(identifier=st.sampled_from([b"ET12", b"FT01"]), root=st.integers(0, 80), noise=st.binary(max_size=300))
def test_noise_is_judged_or_refused(tmp_path: Path, identifier: bytes, root: int, noise: bytes) -> None:
    judge(tmp_path / "x.pte", struct.pack("<I", root) + identifier + noise)


# ---------------------------------------------------------------- one fault each


def flatbuffer(root: Table) -> bytes:
    return FlatbufferWriter(b"ET12").write(root)


def segment(offset: int, size: int) -> Table:
    return {0: Number("Q", offset), 1: Number("Q", size)}


def delegate(location: int, index: int) -> Table:
    return {0: "TensorRTBackend", 1: {0: Number("b", location), 1: Number("I", index)}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it has 0 bytes"),
        (b"PK\3\4" + bytes(60), "not ET12 or FT01"),
        (b"\0\0\0\0ET13" + bytes(60), "a program of format ET13"),
        (b"\0\0\0\0FT02" + bytes(60), "a data of format FT02"),
        (b"\xff\xff\xff\xffET12" + bytes(60), "outside of the program"),
        (b"\x10\0\0\0ET12" + bytes(60), "vtable of 0 bytes"),
        (b"\x10\0\0\0ET12" + bytes(8) + struct.pack("<i", -0x7FFFFFFF) + bytes(60), "outside of the program"),
        (b"\x10\0\0\0ET12" + bytes(8) + struct.pack("<i", 0x7FFFFFFF) + bytes(60), "outside of the program"),
        (b"\x10\0\0\0ET12eh00" + struct.pack("<IQQ", 8, 0, 0) + bytes(60), "extended header says that it has 8 bytes"),
        (b"\x10\0\0\0ET12eh00" + struct.pack("<IQQ", 24, 2**63, 0) + bytes(60), "it is cut off"),
        (b"\x30\0\0\0FT01FH00" + bytes(60), "begins with b'FH00'"),
        (b"\x30\0\0\0FT01FH01" + struct.pack("<I", 39) + bytes(60), "has 39 bytes, not 40"),
        (b"\x30\0\0\0FT01FH01" + struct.pack("<IQQQQ", 40, 2**64 - 1, 2**64 - 1, 0, 0), "it is cut off"),
        (b"\x30\0\0\0FT01FH01" + struct.pack("<IQQQQ", 40, 48, 0, 2**64 - 1, 2**64 - 1), "segments end at"),
        (flatbuffer({4: [{0: Number("Q", 0), 1: Number("Q", 0)}]}), "no header says where they are"),
        (wrap(b"ET12", {4: [{0: Number("Q", 2**64 - 1), 1: Number("Q", 2**64 - 1)}]}, b"x", 16), "the file ends at"),
        (wrap(b"ET12", {4: [segment(0, 9), segment(8, 8)]}, bytes(16), 16), "two of its segments overlap"),
        (wrap(b"ET12", {4: [segment(0, 9), segment(8, 1)]}, bytes(16), 16), "two of its segments overlap"),
        (wrap(b"ET12", {7: [{0: "k", 1: Number("I", 2**32 - 1)}]}, b"x", 16), "is in segment 4294967295"),
        (flatbuffer({1: [{0: "f", 7: [delegate(0, 0)]}]}), "backend_delegate_data 0 is asked for, but there are 0"),
        (flatbuffer({1: [{0: "f", 7: [delegate(1, 0)]}]}), "is in segment 0, and there are 0"),
        (flatbuffer({1: [{0: "f", 7: [delegate(7, 0)]}]}), "unknown location 7"),
        (flatbuffer({1: [{0: "f", 7: [{0: "TensorRTBackend"}]}]}), "has no processed data"),
        (flatbuffer({1: [{0: "f" * 5000}]}), "a name of 5000 bytes"),
    ],
)
def test_each_fault_has_its_words(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refusal(tmp_path / "x.pte", content)


def test_a_count_that_does_not_fit_is_refused_before_anything_is_made_of_it(tmp_path: Path) -> None:
    content = bytearray(flatbuffer({1: [{0: "forward"}]}))
    at = content.index(struct.pack("<I", 7) + b"forward")
    struct.pack_into("<I", content, at, 0xFFFFFFFF)
    assert "has 4294967295 elements of 1 bytes" in refusal(tmp_path / "x.pte", bytes(content))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    ((_, directory), (_, fifo), (_, missing)) = survey_programs(
        [str(tmp_path), str(tmp_path / "fifo"), str(tmp_path / "missing")]
    ).errors
    assert "a directory" in str(directory)
    assert "no regular file" in str(fifo)
    assert isinstance(missing, UnreadableFileError)


# ---------------------------------------------------------------- cost

_PLAN: Table = {0: "f", 7: Repeated(delegate(0, 0), 50_000)}
_ARGUMENTS = Shared(Numbers("i", [0] * 60_000))
_CALL: Table = {0: Number("B", 2), 1: {0: Number("i", 5), 1: []}}
_DEEP = b'{"io_bindings":[],"a":' + b"[" * 100_000
_WIDE = b'{"io_bindings":[],"a":[' + b"{}," * 600_000 + b"{}]}"


def blob(metadata: bytes) -> bytes:
    size = len(metadata)
    return b"TR01" + struct.pack("<IIIQQ", 32, size, -(-(32 + size) // 16) * 16, 0, 1) + metadata + bytes(16)


@dataclass(frozen=True)
class Costly:
    """A file, and what becomes of it: the status, and words of the report, which say what was met."""

    status: int
    words: str
    content: bytes


COSTLY = {
    "tables that are shared, two levels deep": Costly(
        2, "there are more than 12288 delegates", flatbuffer({1: Repeated(_PLAN, 50_000), 3: [{0: b"TR01"}]})
    ),
    "a long name that all methods have": Costly(
        2, "a name of 65536 bytes", flatbuffer({1: Repeated({0: "m" * 65_536}, 20_000)})
    ),
    "a name of the longest length that all methods have": Costly(
        2, "with it a report lists more than", flatbuffer({1: Repeated({0: "m" * 4096}, 10_000)})
    ),
    "a name that all methods have, each with a delegate": Costly(
        2,
        "with it a report lists more than",
        flatbuffer({1: Repeated({0: "m" * 4096, 7: [delegate(0, 0)]}, 1000), 3: [{0: make_blob(ENGINE)}]}),
    ),
    "a long id that all delegates have": Costly(
        2,
        "x" * 4096,
        flatbuffer({1: [{0: "f", 7: Repeated({**delegate(0, 0), 0: "x" * 4096}, 4096)}], 3: [{0: b"TR01"}]}),
    ),
    "a long key that all named data has": Costly(
        2,
        "with it a report lists more than",
        wrap(b"ET12", {7: Repeated({0: "k" * 4096}, 16_000), 4: [segment(0, 1)]}, b"x", 16),
    ),
    "arguments that calls of absent delegates share": Costly(
        0,
        "its engine is stored once",
        flatbuffer(
            {
                1: [
                    {
                        0: "f",
                        5: [{2: [{0: Number("B", 2), 1: {0: Number("i", i), 1: _ARGUMENTS}} for i in range(30_000)]}],
                        7: [delegate(0, 0)],
                    }
                ],
                3: [{0: make_blob(ENGINE)}],
            }
        ),
    ),
    "as many engines as are listed, none of which is used": Costly(
        1,
        "15384 more findings of this rule",
        wrap(
            b"ET12",
            {
                7: [{0: f"tensorrt_engine_{number}", 1: Number("I", number)} for number in range(MAX_NAMED_DATA)],
                1: [{0: "f"}],
                4: [segment(number, 1) for number in range(MAX_NAMED_DATA)],
            },
            bytes(MAX_NAMED_DATA),
            16,
        ),
    ),
    "more delegates than are listed": Costly(
        2,
        "there are more than 12288 delegates",
        flatbuffer({1: [{0: "f", 7: Repeated(delegate(0, 0), MAX_DELEGATES + 1)}], 3: [{0: make_blob(ENGINE)}]}),
    ),
    "as many delegates as are listed, each with the same bad blob": Costly(
        1,
        "11288 more findings of this rule",
        flatbuffer({1: [{0: "f", 7: Repeated(delegate(0, 0), MAX_DELEGATES)}], 3: [{0: b"TR01"}]}),
    ),
    "as many delegates as are listed, none of which has an engine": Costly(
        1,
        "11288 more findings of this rule",
        flatbuffer({1: [{0: "f", 7: Repeated(delegate(0, 0), MAX_DELEGATES)}], 3: [{0: make_blob()}]}),
    ),
    "as many delegates as are listed, whose engine is missing": Costly(
        1,
        "11288 more findings of this rule",
        flatbuffer({1: [{0: "f", 7: Repeated(delegate(0, 0), MAX_DELEGATES)}], 3: [{0: make_blob(key="k" * 100)}]}),
    ),
    "a million instructions": Costly(
        0,
        "its engine is stored once",
        flatbuffer(
            {1: [{0: "f", 5: [{2: Repeated(_CALL, 1_000_000)}], 7: [delegate(0, 0)]}], 3: [{0: make_blob(ENGINE)}]}
        ),
    ),
    "more engines than are listed, in one place": Costly(
        2,
        "there are more than 16384 entries",
        wrap(b"ET12", {7: Repeated({0: "tensorrt_engine_1"}, 20_000), 4: [segment(0, 1)]}, b"x", 16),
    ),
    "many keys, looked for in many entries": Costly(
        1,
        "tensorrt_engine_999",
        wrap(
            b"ET12",
            {
                1: [{0: "f", 7: [delegate(0, number) for number in range(1000)]}],
                3: [{0: make_blob(key=f"tensorrt_engine_{number}")} for number in range(1000)],
                4: [segment(0, 1)],
                7: Repeated({0: "weight"}, 16_000),
            },
            b"x",
            16,
        ),
    ),
    "named data that is all one entry": Costly(
        2, "there are more than 16384 entries", wrap(b"ET12", {7: Repeated({0: "k"}, 1_000_000), 4: [{}]}, b"x", 16)
    ),
    "metadata that nests": Costly(
        2,
        "more brackets and commas than we read",
        flatbuffer({1: [{0: "f", 7: [delegate(0, 0)]}], 3: [{0: blob(_DEEP)}]}),
    ),
    "metadata of many objects": Costly(
        2,
        "more brackets and commas than we read",
        flatbuffer({1: [{0: "f", 7: [delegate(0, 0)]}], 3: [{0: blob(_WIDE)}]}),
    ),
    "metadata of 20 MB": Costly(
        2,
        "its 20000001 bytes are more than we read",
        flatbuffer({1: [{0: "f", 7: [delegate(0, 0)]}], 3: [{0: blob(b'"' + b"x" * 20_000_000)}]}),
    ),
}


@pytest.mark.parametrize("format_name", ["text", "json"])
@pytest.mark.parametrize("costly", COSTLY.values(), ids=COSTLY)
def test_a_hostile_program_costs_little(tmp_path: Path, costly: Costly, format_name: str) -> None:
    (tmp_path / "x.pte").write_bytes(costly.content)
    cost = measure(tmp_path / "x.pte", "--format", format_name)
    assert (cost.status, costly.words in cost.printed) == (costly.status, True)
    assert cost.seconds < SECONDS
    assert cost.megabytes < MEGABYTES


@pytest.mark.parametrize("format_name", ["text", "json"])
def test_nothing_shared_costs_little_either(tmp_path: Path, format_name: str) -> None:
    """Four blobs of twenty thousand inputs each, every one with a tensor and a shape of its own: below the limits."""
    inputs, blobs = 20_000, 4
    values = [{0: Number("B", 5), 1: {2: Numbers("i", [1000 + number])}} for number in range(inputs * blobs)]
    calls = [
        {0: Number("B", 2), 1: {0: Number("i", index), 1: Numbers("i", [*range(index * inputs, (index + 1) * inputs)])}}
        for index in range(blobs)
    ]
    described = [[f'{{"name":"{index}-{i}","is_input":true}}' for i in range(inputs)] for index in range(blobs)]
    metadata = [f'{{"io_bindings":[{",".join(bindings)}],"engine_key":"k"}}'.encode() for bindings in described]
    plan: Table = {0: "f", 2: values, 5: [{2: calls}], 7: [delegate(0, index) for index in range(blobs)]}
    program = {1: [plan], 3: [{0: blob(text)[:16] + bytes(8) + blob(text)[24:]} for text in metadata]}
    (tmp_path / "x.pte").write_bytes(flatbuffer(program))
    cost = measure(tmp_path / "x.pte", "--format", format_name)
    assert cost.status == 1  # nobody has the engine k
    assert cost.seconds < SECONDS
    assert cost.megabytes < MEGABYTES


#: Runs the command, as main does without the search for cycles, and says what it took: its imports included, the bare
#: interpreter not. Not the rusage of a child: that counts its parent's memory, too. What wants three times the bound
#: is refused by the system, so that a mistake here costs the tests' machine nothing.
_MEASURED = """
import gc, resource, sys, time
def read(name):
    (value,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith(name)]
    return int(value) / 1024
before = read("VmHWM")
limit = int(read("VmSize") + 200) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
gc.disable()
from linkcheck.cli.run import run
status = run(sys.argv[1:])
print(time.process_time(), read("VmHWM") - before, status, file=sys.stderr)
"""


@dataclass(frozen=True)
class Cost:
    """CPU seconds of the whole command, resident megabytes above the interpreter's, its status and what it printed."""

    seconds: float
    megabytes: float
    status: int
    printed: str


def measure(path: Path, *options: str) -> Cost:
    """What `linkcheck pte` on the file at `path` costs."""
    command = [sys.executable, "-c", _MEASURED, "pte", str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    seconds, megabytes, status = done.stderr.split()[-3:]
    assert "internal error" not in done.stderr
    return Cost(float(seconds), float(megabytes), int(status), done.stdout)


def test_the_limits_are_those_that_the_costly_files_pass() -> None:
    assert MAX_INSTRUCTIONS < 1_000_000
    assert MAX_METADATA_SIZE < 20_000_000
    assert MAX_METADATA_MARKS < 600_000


_ENGINES = {make_key(engine): engine for engine in (ENGINE + str(number).encode() for number in range(10_000))}
#: Each of ten thousand delegates with its own engine and its own blob, called with two tensors.
LARGE = {
    "methods": Program({f"method_{number}": [Delegate(make_blob(key=k))] for number, k in enumerate(_ENGINES)}),
    "delegates of one method": Program({"forward": [Delegate(make_blob(key=key)) for key in _ENGINES]}),
    "delegates of another backend": Program({"f": [Delegate(b"x", "XnnpackBackend")] * 10_000}),
}


@pytest.mark.parametrize("format_name", ["text", "json", "sarif", "markdown"])
@pytest.mark.parametrize("program", LARGE.values(), ids=LARGE)
def test_a_large_program_is_no_hostile_one(tmp_path: Path, program: Program, format_name: str) -> None:
    named: dict[str, bytes | str] = {} if program is LARGE["delegates of another backend"] else {**_ENGINES}
    program.methods["small"] = [Delegate(make_blob(ENGINE))]
    content = replace(program, named=named, alignment=16).to_bytes()
    (tmp_path / "x.pte").write_bytes(content)
    cost = measure(tmp_path / "x.pte", "--format", format_name)
    assert cost.status == 0
    assert cost.megabytes < MEGABYTES


def test_ten_gigabytes_are_checked_at_once_when_not_hashed(tmp_path: Path) -> None:
    """A sparse file: the header and the tables of a real one, and engines that take no room on this disk."""
    size = 5 << 30
    head = wrap(
        b"ET12",
        {
            1: [{0: "f", 7: [delegate(0, 0), delegate(0, 1)]}],
            3: [{0: make_blob(key="tensorrt_engine_1")}, {0: make_blob(key="tensorrt_engine_2")}],
            4: [{0: Number("Q", 0), 1: Number("Q", size)}, {0: Number("Q", size), 1: Number("Q", size - 4096)}],
            7: [{0: "tensorrt_engine_1"}, {0: "tensorrt_engine_2", 1: Number("I", 1)}],
        },
        b"\0",
        4096,
    )
    base = int.from_bytes(head[24:32], "little")
    path = tmp_path / "large.pte"
    path.write_bytes(head[:32] + (2 * size - 4096).to_bytes(8, "little") + head[40:])
    os.truncate(path, base + 2 * size - 4096)
    cost = measure(path, "--no-hash")
    assert cost.status == 0
    assert cost.seconds < 1
    assert cost.megabytes < MEGABYTES


def test_segments_may_be_one_and_the_same_or_empty(tmp_path: Path) -> None:
    path = tmp_path / "x.pte"
    path.write_bytes(wrap(b"ET12", {4: [segment(0, 16), segment(0, 16), segment(3, 0)]}, bytes(16), 16))
    assert survey_programs([str(path)]).errors == ()


def test_metadata_that_is_not_read_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "x.pte"
    path.write_bytes(COSTLY["metadata of 20 MB"].content)
    report = check_programs([str(path)], settings=SETTINGS).report
    assert [check.outcome for check in report.checks if check.code == "LC705"] == [Outcome.UNKNOWN]


def test_a_program_that_changes_while_it_is_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pte"
    path.write_bytes(Program({"f": [Delegate(make_blob(ENGINE))]}).to_bytes())

    def read_and_change(file: BlockFile) -> ProgramFile:
        program = read_program(file)
        path.write_bytes(path.read_bytes() + b"more")
        return program

    monkeypatch.setattr("linkcheck.executorch.survey.read_program", read_and_change)
    ((_, error),) = survey_programs([str(path)]).errors
    assert "it changed since it was first read" in str(error)
