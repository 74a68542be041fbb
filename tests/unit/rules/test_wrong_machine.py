"""LC102 wrong-machine, on plain values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import FileKind, Outcome, Target
from linkcheck.rules import wrong_machine
from linkcheck.rules.rule import Candidate
from tests.unit.rules.candidates import SETTINGS, SHARED
from tests.unit.rules.worlds import X86_64, checks, only_finding, outcomes


@pytest.mark.parametrize("found", [Target(183, 64, "little"), Target(62, 32, "little"), Target(62, 64, "big")], ids=str)
def test_finds_another_machine_class_or_byte_order(found: Target) -> None:
    subject = Candidate(replace(SHARED, target=found), None, X86_64)
    finding = only_finding(wrong_machine.check_file(subject, SETTINGS))
    assert f"lib/x.so was built for {found}, and {X86_64} is wanted" in finding.message
    assert "x86-64" in finding.remedy
    assert finding.evidence == {"found": str(found), "wanted": str(X86_64)}


def test_passes_the_same_machine_class_and_byte_order() -> None:
    assert outcomes(wrong_machine.check_file(Candidate(SHARED, None, X86_64), SETTINGS)) == [Outcome.PASS]


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Candidate(SHARED, None, None), "no machine is asked for"),
        (Candidate(replace(SHARED, target=None), None, X86_64), "the file is not ELF (LC101)"),
        (
            Candidate(replace(SHARED, kind=FileKind.MALFORMED_ELF, target=Target(183, 64, "little")), None, X86_64),
            "the file is malformed (LC103)",
        ),
    ],
)
def test_cannot_see_the_machine_of_what_is_no_elf_or_malformed(subject: Candidate, reason: str) -> None:
    assert checks(wrong_machine.check_file(subject, SETTINGS)) == [("lib/x.so", Outcome.NOT_APPLICABLE, reason)]
