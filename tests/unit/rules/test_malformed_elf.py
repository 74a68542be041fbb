"""LC103 malformed-elf, on plain values."""

from __future__ import annotations

from linkcheck.model import FileIdentity, FileKind, Outcome
from linkcheck.rules import malformed_elf
from linkcheck.rules.rule import Candidate
from tests.unit.rules.candidates import SETTINGS, candidate
from tests.unit.rules.worlds import checks, only_finding, outcomes


def test_finds_a_malformed_file_and_says_what_does_not_fit() -> None:
    subject = Candidate(
        FileIdentity("lib/x.so", FileKind.MALFORMED_ELF, "the dynamic section ends beyond the file"), None
    )
    finding = only_finding(malformed_elf.check_file(subject, SETTINGS))
    assert "lib/x.so is a malformed ELF file: the dynamic section ends beyond the file" in finding.message
    assert finding.evidence["reason"] == "the dynamic section ends beyond the file"


def test_passes_a_file_that_fits_itself() -> None:
    assert outcomes(malformed_elf.check_file(candidate(), SETTINGS)) == [Outcome.PASS]


def test_cannot_see_what_is_no_elf() -> None:
    subject = Candidate(FileIdentity("x", FileKind.TEXT), None)
    assert checks(malformed_elf.check_file(subject, SETTINGS)) == [
        ("x", Outcome.NOT_APPLICABLE, "the file is not ELF (LC101)")
    ]
