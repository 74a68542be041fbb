"""LC705 blob-malformed, on plain values."""

from __future__ import annotations

from linkcheck.model import Location, Outcome
from linkcheck.rules.blob_malformed import check_programs
from tests.unit.rules.candidates import SETTINGS
from tests.unit.rules.programs import PATH, broken, delegate, other_backend, place, program, together
from tests.unit.rules.worlds import checks, only_finding, outcomes


def test_finds_a_blob_that_the_delegate_refuses_and_says_where() -> None:
    finding = only_finding(check_programs(together(program(broken("unknown magic b'TR03'"))), SETTINGS))
    assert "magic at 0x0 of the blob (0x400 of the file): unknown magic b'TR03'" in finding.message
    assert finding.primary == Location(PATH, "broken.delegates[0]")


def test_passes_a_blob_that_could_be_read() -> None:
    assert outcomes(check_programs(together(program(delegate(inline=place()))), SETTINGS)) == [Outcome.PASS]


def test_cannot_see_what_is_larger_than_we_read() -> None:
    ((subject, outcome, reason),) = checks(
        check_programs(together(program(broken("too large", unseen=True))), SETTINGS)
    )
    assert (subject, outcome) == ("model.pte: broken.delegates[0]", Outcome.UNKNOWN)
    assert "too large" in reason
    assert outcomes(check_programs(together(program(other_backend())), SETTINGS)) == [Outcome.NOT_APPLICABLE]
