"""The built-in profile `default`: its names are what it says they are, and it speaks only where an owner is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import verify
from linkcheck.elf.reader import read_image
from linkcheck.model import Severity
from linkcheck.policy.demangle import make_demangler
from linkcheck.policy.load import load_settings
from linkcheck.policy.symbols import normalise
from linkcheck.rules import ALL_CODES
from tests.loader.workshop import Workshop

if TYPE_CHECKING:
    from linkcheck.report.report import Report

PROFILE = load_settings(rule_codes=ALL_CODES, profile="default", discover=False)
#: Real owners that a machine may have, and the state that each owns.
INSTALLED = {
    "/usr/lib/x86_64-linux-gnu/libgomp.so.1": "OpenMP runtime",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6": "state of the C++ standard library",
    "/usr/lib/x86_64-linux-gnu/libtbb.so.12": "oneTBB scheduler",
    "/usr/lib/x86_64-linux-gnu/libprotobuf.so.32": "protobuf descriptor pool",
    "/usr/lib/x86_64-linux-gnu/libhdf5_serial.so.103": "HDF5 state",
}


def test_every_state_waits_for_its_owner_and_says_what_goes_wrong() -> None:
    assert PROFILE.roles == ()
    for state in PROFILE.states:
        assert state.only_with_owner
        assert state.consequence
        assert all(spec.mangled for spec in state.symbols), "a name that is looked up in the hash table, not demangled"


def test_the_mangled_names_are_those_of_the_cxx_names() -> None:
    demangle = make_demangler()
    for name, mangled in PROFILE.mangled_names.items():
        assert {normalise(demangle(one) or "") for one in mangled} == {normalise(name)}


@pytest.mark.parametrize("path", INSTALLED)
def test_an_installed_owner_defines_its_state(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"needs {path}")
    (state,) = (state for state in PROFILE.states if state.name == INSTALLED[path])
    table = read_image(path).symbols
    for spec in state.symbols:
        assert any(table.exported(name) for name in spec.mangled), spec.text


OMP = "void omp_set_num_threads(int n) {} int omp_get_max_threads(void) { return 1; }"


def judge(program: Path) -> Report:
    return verify([str(program)], settings=PROFILE)


def split(program: Path) -> list[str]:
    return [
        str(f.finding.evidence["state"])
        for f in judge(program).findings
        if f.finding.code == "LC401" and f.finding.severity is Severity.ERROR
    ]


@pytest.mark.compile
def test_two_openmp_runtimes_are_a_fault_and_one_is_not(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.library("libgomp.so.1", soname="libgomp.so.1", source=OMP)
    shop.library("libomp.so.5", soname="libomp.so.5", source=OMP)
    one = shop.executable("one", needs=("libgomp.so.1",), runpath="$ORIGIN")
    both = shop.executable("both", needs=("libgomp.so.1", "libomp.so.5"), runpath="$ORIGIN")
    assert split(one) == []
    assert split(both) == ["OpenMP runtime"]


@pytest.mark.compile
def test_a_program_that_links_everything_into_itself_is_left_alone(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.library("libuser.so", soname="libuser.so", source=OMP)
    program = shop.executable("app", needs=("libuser.so",), runpath="$ORIGIN")
    assert judge(program).findings == ()
