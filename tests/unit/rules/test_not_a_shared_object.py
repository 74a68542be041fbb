"""LC101 not-a-shared-object, on plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from linkcheck.model import FileIdentity, FileKind, Outcome, Severity
from linkcheck.rules import not_a_shared_object
from linkcheck.rules.rule import Candidate
from tests.unit.rules.candidates import SETTINGS, STATE, candidate
from tests.unit.rules.worlds import OWNER, findings, outcomes

if TYPE_CHECKING:
    from linkcheck.policy.settings import State


@pytest.mark.parametrize("kind", [k for k in FileKind if k not in (FileKind.SHARED_OBJECT, FileKind.MALFORMED_ELF)])
@pytest.mark.parametrize("state", [STATE, None])
def test_finds_every_other_kind_and_has_a_remedy(kind: FileKind, state: State | None) -> None:
    subject = Candidate(FileIdentity("lib/x.so", kind, "what was seen", ("real.so",)), None, None, state)
    (finding,) = findings(not_a_shared_object.check_file(subject, SETTINGS))
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith(f"lib/x.so is {kind.value} (what was seen)")
    assert finding.message.endswith(".")
    assert finding.remedy.endswith((".", ")"))
    assert "{" not in finding.remedy
    assert finding.evidence["kind"] == kind.name.lower().replace("_", "-")


@pytest.mark.parametrize("kind", sorted(not_a_shared_object.COPIED_KINDS, key=str))
def test_finds_what_is_copied_and_speaks_of_the_state(kind: FileKind) -> None:
    (finding,) = findings(not_a_shared_object.check_file(candidate(kind=kind), SETTINGS))
    assert "a private copy of the caller stream. The work runs on the wrong stream." in finding.message
    assert OWNER in finding.remedy
    assert "executorch::extension_cuda" in finding.remedy


def test_of_a_script_the_program_that_it_starts_is_wanted() -> None:
    script = FileIdentity("bin/run.sh", FileKind.TEXT, "a script, first line “#!/bin/sh”")
    (finding,) = findings(not_a_shared_object.check_file(Candidate(script, None), SETTINGS))
    assert finding.remedy == "Name the program that it starts, or the library, not the script."
    (to_link,) = findings(not_a_shared_object.check_file(Candidate(script, None, None, STATE), SETTINGS))
    assert to_link.remedy == "Name the shared library itself."


def test_finds_a_file_that_only_has_to_load_and_speaks_of_no_state() -> None:
    subject = Candidate(FileIdentity("x", FileKind.ARCHIVE), None)
    (finding,) = findings(not_a_shared_object.check_file(subject, SETTINGS))
    assert "caller stream" not in finding.message + finding.remedy


def test_passes_a_shared_object() -> None:
    assert outcomes(not_a_shared_object.check_file(candidate(), SETTINGS)) == [Outcome.PASS]


def test_cannot_see_a_malformed_file_and_leaves_it_to_lc103() -> None:
    malformed = candidate(kind=FileKind.MALFORMED_ELF)
    (check,) = not_a_shared_object.check_file(malformed, SETTINGS)
    assert outcomes([check]) == [Outcome.NOT_APPLICABLE]
    assert "LC103" in check.reason  # type: ignore[union-attr]
