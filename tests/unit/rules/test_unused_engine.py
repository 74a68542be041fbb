"""LC706 unused-engine, on plain values."""

from __future__ import annotations

from linkcheck.model import Location, Outcome, Severity
from linkcheck.rules.unused_engine import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import DATA_PATH, KEY, PATH, broken, data, delegate, engine, place, program, together
from tests.unit.rules.worlds import checks, findings, only_finding, outcomes

NAMED = {KEY: place()}


def test_finds_an_engine_that_nobody_names() -> None:
    programs = together(program(delegate(inline=place(0x2000)), named=NAMED), engines=(engine(keys=(KEY,)),))
    finding = only_finding(check_programs(programs, SETTINGS))
    assert finding.primary == Location(PATH, KEY)
    assert finding.severity is Severity.WARNING


def test_finds_one_in_a_data_file_that_no_program_names() -> None:
    there = place(path=DATA_PATH)
    programs = together(program(delegate()), data({KEY: there}), engines=(engine(there, keys=(KEY,)),))
    assert only_finding(check_programs(programs, SETTINGS)).primary == Location(DATA_PATH, KEY)


def test_passes_an_engine_that_is_used() -> None:
    user = delegate(key=KEY)
    programs = together(program(user, named=NAMED), engines=(engine(place(), user, keys=(KEY,)),))
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.PASS]


def test_cannot_see_who_uses_it_when_a_blob_is_malformed() -> None:
    programs = together(program(broken(), named=NAMED), engines=(engine(keys=(KEY,)),))
    ((_, outcome, reason),) = checks(check_programs(programs, SETTINGS))
    assert outcome is Outcome.UNKNOWN
    assert "broken.delegates[0]" in reason
    assert findings(check_programs(programs, SETTINGS)) == []


def test_cannot_see_the_programs_of_a_data_file_alone() -> None:
    there = place(path=DATA_PATH)
    programs = together(data({KEY: there}), engines=(engine(there, keys=(KEY,)),))
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.NOT_APPLICABLE]


def test_cannot_see_whether_an_unread_program_names_it() -> None:
    there = place(path=DATA_PATH)
    files = (data({KEY: there}), program(delegate(inline=place())))
    for given in (files, files[:1]):
        programs = together(*given, engines=(engine(there, keys=(KEY,)),), unread=("other.pte",))
        ((_, outcome, reason), *_) = checks(check_programs(programs, SETTINGS))
        assert outcome is Outcome.UNKNOWN
        assert "other.pte" in reason
        assert findings(check_programs(programs, SETTINGS)) == []


def test_finds_it_when_only_a_data_file_is_unread() -> None:
    programs = together(
        program(delegate(inline=place(0x2000)), named=NAMED), engines=(engine(keys=(KEY,)),), unread=(DATA_PATH,)
    )
    assert len(findings(check_programs(programs, SETTINGS))) == 1
