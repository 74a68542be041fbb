"""LC707 engine-key-mismatch, on plain values."""

from __future__ import annotations

from linkcheck.model import Location, Outcome
from linkcheck.rules.engine_key_mismatch import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import KEY, PATH, delegate, engine, place, program, together
from tests.unit.rules.worlds import checks, only_finding, outcomes

USER = delegate(key=KEY)
FILE = program(USER, named={KEY: place()})


def test_finds_bytes_that_are_not_the_keys() -> None:
    programs = together(FILE, engines=(engine(place(), USER, keys=(KEY,), digest=32 * "cd"),))
    finding = only_finding(check_programs(programs, SETTINGS))
    assert f"has the SHA-256 {32 * 'cd'}" in finding.message
    assert finding.primary == Location(PATH, KEY)


def test_passes_the_keys_bytes() -> None:
    programs = together(FILE, engines=(engine(place(), USER, keys=(KEY,)),))
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.PASS]


def test_cannot_see_it_in_another_key_or_without_a_hash() -> None:
    named = program(USER, named={"tensorrt_engine_1": place()})
    programs = together(named, engines=(engine(place(), USER, keys=("tensorrt_engine_1",)),))
    assert [reason for *_, reason in checks(check_programs(programs, SETTINGS))] == ["the key holds no SHA-256"]
    programs = together(FILE, engines=(engine(place(), USER, keys=(KEY,), digest=None),), hashed=False)
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.NOT_APPLICABLE]
