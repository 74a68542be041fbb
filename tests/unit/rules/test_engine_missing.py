"""LC703 engine-missing, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Outcome
from linkcheck.rules.engine_missing import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import DATA_PATH, KEY, broken, data, delegate, other_backend, place, program, together
from tests.unit.rules.worlds import checks, findings, only_finding, outcomes


def test_finds_a_key_that_is_nowhere() -> None:
    other = {"tensorrt_engine_1": place(), "weights": place(0x2000)}
    finding = only_finding(check_programs(together(program(delegate(key=KEY), named=other)), SETTINGS))
    assert f"runs the engine {KEY}, and there is no such key in model.pte" in finding.message
    assert finding.evidence["engines"] == ["tensorrt_engine_1"]
    assert "linkcheck pte model.pte DATA.ptd" in finding.remedy


def test_finds_a_key_that_only_another_program_has() -> None:
    files = (program(delegate(key=KEY)), program(named={KEY: place(path="b.pte")}, path="b.pte"))
    assert len(findings(check_programs(together(*files), SETTINGS))) == 1


def test_finds_an_entry_with_nothing_in_it() -> None:
    programs = together(program(delegate(key=KEY), named={KEY: place(size=0)}))
    assert "that entry is empty" in only_finding(check_programs(programs, SETTINGS)).message


def test_passes_a_key_of_the_program_or_of_its_data() -> None:
    programs = together(program(delegate(key=KEY), named={KEY: place()}))
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.PASS]
    programs = together(data({KEY: place(path=DATA_PATH)}), program(delegate(key=KEY)))
    assert Outcome.PASS in outcomes(check_programs(programs, SETTINGS))
    assert findings(check_programs(programs, SETTINGS)) == []


def test_cannot_see_engines_where_none_is_named() -> None:
    for subject in (delegate(inline=place()), other_backend()):
        assert outcomes(check_programs(together(program(subject)), SETTINGS)) == [Outcome.NOT_APPLICABLE]


@pytest.mark.parametrize("path", [DATA_PATH, "engines.bin"])
def test_cannot_see_what_an_unread_data_file_holds(path: str) -> None:
    programs = together(program(delegate(key=KEY)), unread=(path,))
    ((_, outcome, reason),) = checks(check_programs(programs, SETTINGS))
    assert outcome is Outcome.UNKNOWN
    assert path in reason
    assert findings(check_programs(programs, SETTINGS)) == []


def test_finds_a_missing_key_and_an_empty_entry_whatever_else_is_unread() -> None:
    programs = together(program(delegate(key=KEY)), unread=("other.pte",))
    assert len(findings(check_programs(programs, SETTINGS))) == 1
    programs = together(program(delegate(key=KEY), named={KEY: place(size=0)}), unread=(DATA_PATH,))
    assert len(findings(check_programs(programs, SETTINGS))) == 1


def test_cannot_see_what_an_unread_blob_names() -> None:
    programs = together(program(broken(), delegate(key=KEY), named={KEY: place()}))
    assert outcomes(check_programs(programs, SETTINGS)) == [Outcome.UNKNOWN, Outcome.PASS]
