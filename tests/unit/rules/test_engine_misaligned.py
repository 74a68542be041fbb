"""LC704 engine-misaligned, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Outcome
from linkcheck.rules.engine_misaligned import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import KEY, broken, delegate, engine, other_backend, place, program, together
from tests.unit.rules.worlds import only_finding, outcomes


@pytest.mark.parametrize(("offset", "alignment"), [(0x1008, 8), (0x1004, 4), (0x1001, 1)])
def test_finds_a_named_engine_that_the_delegate_refuses(offset: int, alignment: int) -> None:
    user = delegate(key=KEY)
    engines = (engine(place(offset), user, keys=(KEY,)),)
    finding = only_finding(check_programs(together(program(user), engines=engines), SETTINGS))
    assert f"aligned to {alignment} bytes only" in finding.message
    assert "does not load it" in finding.message
    assert finding.evidence["alignment"] == alignment


def test_finds_an_inline_engine_whose_blob_is_misplaced() -> None:
    user = delegate(inline=place(0x1008))
    finding = only_finding(check_programs(together(program(user), engines=(engine(place(0x1008), user),)), SETTINGS))
    assert "The engine of forward.delegates[0], 64 bytes" in finding.message
    assert "The blob's format promises 16" in finding.message


@pytest.mark.parametrize("offset", [0x10, 0x1000, 0x12340])
def test_passes_multiples_of_16(offset: int) -> None:
    engines = (engine(place(offset), keys=(KEY,)),)
    assert outcomes(check_programs(together(program(delegate(key=KEY)), engines=engines), SETTINGS)) == [Outcome.PASS]


def test_cannot_see_anything_without_engines() -> None:
    assert outcomes(check_programs(together(program(other_backend())), SETTINGS)) == [Outcome.NOT_APPLICABLE]


def test_cannot_see_the_engine_of_an_unread_blob() -> None:
    assert outcomes(check_programs(together(program(broken())), SETTINGS)) == [Outcome.UNKNOWN]
