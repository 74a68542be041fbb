"""LC104 soname-mismatch, on plain values: a file that is to stand in for an owner, and what a process loads as one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import LoadSet, Outcome, Severity
from linkcheck.policy.settings import ROOT_OWNER
from linkcheck.rules import soname_mismatch
from linkcheck.rules.rule import Candidate
from linkcheck.rules.wording import owner_libraries, owner_names
from tests.unit.rules.candidates import SETTINGS, SHARED, STATE, candidate
from tests.unit.rules.worlds import OWNER, PROFILE, checks, image, load_set, only_finding, outcomes, owner, runner

check_file = soname_mismatch.check_file
check_load_set = soname_mismatch.check_load_set


@pytest.mark.parametrize("soname", [None, "", "libother.so", f"{OWNER}.bak"])
def test_finds_a_candidate_with_another_soname_or_none(soname: str | None) -> None:
    finding = only_finding(check_file(candidate(owner(soname=soname)), SETTINGS))
    assert (finding.severity, finding.primary.path) == (Severity.ERROR, "lib/x.so")
    assert f"-Wl,-soname,{OWNER}" in finding.remedy
    assert finding.evidence["soname"] == soname


def test_names_every_list_of_the_policy_that_another_name_of_the_owner_has_to_be_added_to() -> None:
    remedy = only_finding(check_file(candidate(owner(soname="libmine.so")), PROFILE)).remedy
    assert remedy.endswith(
        "add its name in linkcheck.toml to `owner` of the state “caller stream”, to `need` of the roles “runner” and "
        "“cuda-delegate” and to `when-need` of the role “caller-stream-consumer”."
    )


@pytest.mark.parametrize("soname", [OWNER, f"{OWNER}.2", "libexecutorch_extension_cuda.so"])
def test_passes_a_candidate_with_the_owners_soname(soname: str) -> None:
    assert outcomes(check_file(candidate(owner(soname=soname)), SETTINGS)) == [Outcome.PASS]


def test_cannot_see_a_soname_where_no_library_owns_the_state() -> None:
    roots = Candidate(SHARED, owner(), None, replace(STATE, owner=(ROOT_OWNER,)))
    nothing = Candidate(SHARED, owner(), None, None)
    for subject in (roots, nothing, candidate(None)):
        assert outcomes(check_file(subject, SETTINGS)) == [Outcome.NOT_APPLICABLE]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("liba.so", "liba.so.[0-9]*"), ("liba.so",)),
        (("liba.so*",), ("liba.so",)),
        (("liba.so.[0-9]*", ROOT_OWNER), ("liba.so",)),
        (("*",), ("*",)),
        ((ROOT_OWNER,), ()),
    ],
)
def test_messages_name_sonames_and_not_patterns(patterns: tuple[str, ...], names: tuple[str, ...]) -> None:
    state = replace(STATE, owner=patterns)
    assert owner_names(state) == names
    assert ROOT_OWNER not in owner_libraries(state)


# ---------------------------------------------------------------- in a process


def loaded_as(name: str, soname: str | None) -> LoadSet:
    """The runner needs `name`, and the file found under it has another SONAME."""
    whole = load_set(runner(), owner(f"lib/{name}", soname=soname))
    modules = (whole.modules[0], replace(whole.modules[1], requested_as=name))
    return replace(whole, modules=modules)


def test_finds_a_library_that_was_loaded_as_the_owner_and_is_called_otherwise() -> None:
    finding = only_finding(check_load_set(loaded_as(OWNER, "libmine.so"), PROFILE))
    assert finding.primary.path == f"lib/{OWNER}"
    assert "has the SONAME libmine.so" in finding.message
    assert "caller stream" in finding.message
    assert "there are two copies" in finding.message


@pytest.mark.parametrize("name", [OWNER, f"{OWNER}.1", "libexecutorch_extension_cuda.so", "libexecutorch.so"])
def test_passes_owners_by_any_of_their_names(name: str) -> None:
    assert checks(check_load_set(loaded_as(name, name), PROFILE))[0] == (f"lib/{name}", Outcome.PASS, f"SONAME {name}")


def test_passes_an_owner_without_soname_that_was_found_by_its_name() -> None:
    assert checks(check_load_set(loaded_as(OWNER, None), PROFILE)) == [
        (f"lib/{OWNER}", Outcome.PASS, "no SONAME, the name fits")
    ]


def test_cannot_see_an_owner_where_none_is_loaded() -> None:
    assert list(check_load_set(load_set(runner(), image("lib/libz.so", soname="libz.so.1")), PROFILE)) == []
