"""LC702 engine-inline-and-named, on plain values."""

from __future__ import annotations

from linkcheck.model import Location, Outcome
from linkcheck.rules.engine_inline_and_named import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import KEY, PATH, broken, delegate, other_backend, place, program, together
from tests.unit.rules.worlds import only_finding, outcomes


def test_finds_a_blob_that_does_both() -> None:
    finding = only_finding(check_programs(together(program(delegate(inline=place(), key=KEY))), SETTINGS))
    assert f"holds an engine of 64 bytes and also names {KEY}" in finding.message
    assert finding.primary == Location(PATH, "forward.delegates[0]")


def test_finds_a_blob_that_does_neither() -> None:
    finding = only_finding(check_programs(together(program(delegate())), SETTINGS))
    assert "holds no engine and names none" in finding.message


def test_passes_one_or_the_other() -> None:
    programs = together(program(delegate(inline=place()), delegate("decode", key=KEY)))
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.PASS, Outcome.PASS]


def test_cannot_see_a_blob_that_is_malformed_or_none() -> None:
    assert outcomes(check_programs(together(program(broken())), SETTINGS)) == [Outcome.UNKNOWN]
    assert outcomes(check_programs(together(program(other_backend())), SETTINGS)) == [Outcome.NOT_APPLICABLE]
