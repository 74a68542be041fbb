"""A process that maps one file, or very many files, thousands of times: the work grows as the mappings do."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.inputs.mapped import find_images
from linkcheck.inputs.proc import read_process
from linkcheck.value import replace
from tests.live.workshop import STATE
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from _typeshed import TraceFunction

    from linkcheck.inputs.mapped import MappedFiles
    from linkcheck.inputs.proc import Mapping, ProcessFacts
    from tests.live.workshop import LiveShop

pytestmark = needs_compiler

MANY = 3000


def count_steps(facts: ProcessFacts, limit: float = math.inf) -> tuple[MappedFiles, int]:
    """What find_images answers and how many instructions of the Python interpreter that took, up to `limit`."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction:
        nonlocal steps
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            assert steps < limit, f"{steps} steps for {len(facts.mappings)} mappings, and no end in sight"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return find_images(facts), steps
    finally:
        sys.settrace(before)


def find_in_few_steps(facts: ProcessFacts, many: Callable[[Mapping], bool]) -> MappedFiles:
    """What find_images answers, when the steps grow no faster than the mappings do from a tenth of the `many` on."""
    ours = [mapping for mapping in facts.mappings if many(mapping)]
    left_out = {id(mapping) for mapping in ours[: len(ours) * 9 // 10]}
    few = replace(facts, mappings=tuple(mapping for mapping in facts.mappings if id(mapping) not in left_out))
    _, steps = count_steps(few)
    return count_steps(facts, 1.2 * steps * len(facts.mappings) / len(few.mappings))[0]


@pytest.mark.parametrize(("how", "flags"), [("n", ()), ("x", ()), ("n", ("-Wl,-z,noseparate-code",))])
def test_a_file_that_is_mapped_thousands_of_times(shop: LiveShop, how: str, flags: tuple[str, ...]) -> None:
    library = shop.library("libstate.so", STATE, *flags)
    host = shop.host("host", f"-DMANY={MANY}")
    with shop.running(host, f"l:{library}", f"{how}:{library}") as told:
        facts = read_process(told.pid)
        assert sum(mapping.path == str(library) for mapping in facts.mappings) > MANY
        files = find_in_few_steps(facts, lambda mapping: mapping.path == str(library))
    assert not told.errors
    (found,) = [one for one in files.images if one.image.path == str(library)]
    assert found.times == 1  # what is mapped besides holds no code, or not where a loader puts it


def test_a_file_whose_code_is_mapped_thousands_of_times(shop: LiveShop) -> None:
    # Its first page is all that a loader maps of it as code; its data lies behind one of these mappings only.
    library = shop.library("libstate.so", STATE, "-Wl,-z,noseparate-code")
    host = shop.host("host", f"-DMANY={MANY}")
    with shop.running(host, f"l:{library}", f"x:{library}") as told:
        files = find_in_few_steps(read_process(told.pid), lambda mapping: mapping.path == str(library))
    (found,) = [one for one in files.images if one.image.path == str(library)]
    assert found.times == 1


def test_hundreds_of_files(shop: LiveShop) -> None:
    names = [shop.base / f"data{number}" for number in range(400)]
    for name in names:
        name.write_bytes(b"not ELF" * 1000)
    host = shop.host("host")
    with shop.running(host, *(f"d:{name}" for name in names)) as told:
        facts = read_process(told.pid)
        assert {Path(mapping.path) for mapping in facts.mappings} >= set(names)
        find_in_few_steps(facts, lambda mapping: Path(mapping.path) in names)
