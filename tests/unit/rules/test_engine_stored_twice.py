"""LC701 engine-stored-twice, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Location, Outcome
from linkcheck.rules.engine_stored_twice import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import (
    DATA_PATH,
    KEY,
    PATH,
    broken,
    data,
    delegate,
    engine,
    other_backend,
    place,
    program,
    together,
)
from tests.unit.rules.worlds import checks, findings, only_finding, outcomes

FIRST, SECOND = place(0x1000), place(0x2000)
PREFILL, DECODE = delegate("prefill", inline=FIRST), delegate("decode", inline=SECOND)


def test_finds_one_engine_in_two_blobs() -> None:
    engines = (engine(FIRST, PREFILL), engine(SECOND, DECODE))
    finding = only_finding(check_programs(together(program(PREFILL, DECODE), engines=engines), SETTINGS))
    assert "64 bytes at 0x1000 of model.pte" in finding.message
    assert "64 bytes at 0x2000 of model.pte" in finding.message
    assert "used by decode.delegates[0]" in finding.message
    assert finding.primary == Location(PATH, "the engine of decode.delegates[0]")
    assert finding.evidence["sha256"] == 32 * "ab"


def test_finds_one_engine_in_the_program_and_in_its_data_once() -> None:
    there = place(0x100, path=DATA_PATH)
    files = (program(PREFILL), data({KEY: there}))
    engines = (engine(FIRST, PREFILL), engine(there, keys=(KEY,)))
    finding = only_finding(check_programs(together(*files, engines=engines), SETTINGS))
    assert finding.primary == Location(DATA_PATH, KEY)


def test_passes_different_engines_and_one_that_is_shared() -> None:
    engines = (engine(FIRST, PREFILL, DECODE), engine(SECOND, digest="cd"))
    results = check_programs(together(program(PREFILL, DECODE), engines=engines), SETTINGS)
    assert checks(results) == [(PATH, Outcome.PASS, "2 engines, each is stored once")]


def test_passes_two_programs_that_nothing_loads_together() -> None:
    other = delegate(inline=place(0x1000, path="other.pte"), path="other.pte")
    files = (program(PREFILL), program(other, path="other.pte"))
    engines = (engine(FIRST, PREFILL), engine(place(0x1000, path="other.pte"), other))
    assert findings(check_programs(together(*files, engines=engines), SETTINGS)) == []


def test_cannot_see_whether_engines_that_agree_in_samples_are_one_without_reading_them() -> None:
    engines = (engine(FIRST, PREFILL, digest=None), engine(SECOND, DECODE, digest=None))
    programs = together(program(PREFILL, DECODE), engines=engines, hashed=False)
    ((_, outcome, reason),) = checks(check_programs(programs, SETTINGS))
    assert outcome is Outcome.UNKNOWN
    assert "--no-hash" in reason
    engines = (engine(FIRST, PREFILL, digest=None), engine(SECOND, DECODE, digest=None, sample="t"))
    programs = together(program(PREFILL, DECODE), engines=engines, hashed=False)
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.PASS]


def test_does_not_apply_without_engines() -> None:
    assert outcomes(check_programs(together(program(other_backend())), SETTINGS)) == [Outcome.NOT_APPLICABLE]


def test_cannot_see_a_copy_in_an_unread_blob_or_data_file() -> None:
    for subject in (
        together(program(broken())),
        together(program(PREFILL, broken()), engines=(engine(FIRST, PREFILL),)),
    ):
        ((name, outcome, _),) = checks(check_programs(subject, SETTINGS))
        assert (name, outcome) == (f"{PATH}: broken.delegates[0]", Outcome.UNKNOWN)
    programs = together(program(PREFILL), engines=(engine(FIRST, PREFILL),), unread=(DATA_PATH,))
    ((_, outcome, reason),) = checks(check_programs(programs, SETTINGS))
    assert outcome is Outcome.UNKNOWN
    assert DATA_PATH in reason


@pytest.mark.parametrize("digest", [32 * "ab", 32 * "cd", None], ids=["same", "other", "not-hashed"])
def test_finds_a_key_that_the_program_and_its_data_have_whatever_is_under_it(digest: str | None) -> None:
    there, user = place(0x100, path=DATA_PATH), delegate(key=KEY)
    engines = (
        engine(FIRST, keys=(KEY,), digest=digest and 32 * "ab"),
        engine(there, user, keys=(KEY,), digest=digest),
    )
    programs = together(
        program(user, named={KEY: FIRST}), data({KEY: there}), engines=engines, hashed=digest is not None
    )
    results = [*check_programs(programs, SETTINGS)]
    finding = only_finding(results)
    assert "takes the one of engines.ptd; the one of model.pte is never read" in finding.message
    assert finding.primary == Location(DATA_PATH, KEY)
    assert Outcome.UNKNOWN not in outcomes(results)
