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
    from linkcheck.policy.settings import State
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


def write_owner(state: State, attribute: str = "") -> str:
    """C code of a library that defines the symbols of `state`, and uses each of them itself."""
    names = [name for spec in state.symbols for name in spec.mangled]
    functions = " ".join(f"{attribute} void {name}(void) {{ data++; }}" for name in names)
    return (
        f"static int data; {functions} int inside(void) {{ {' '.join(f'{name}();' for name in names)} return data; }}"
    )


@pytest.mark.compile
@pytest.mark.parametrize("attribute", ["", "__attribute__((weak))"], ids=["strong", "weak"])
@pytest.mark.parametrize("state", PROFILE.states, ids=lambda state: state.name)
def test_two_owners_are_a_fault_and_one_is_not(tmp_path: Path, state: State, attribute: str) -> None:
    """NCCL's functions are weak as it is shipped."""
    shop = Workshop(tmp_path)
    # Each pattern stands for a name that is really given: as distributions have it, and with a hash as wheels do.
    names = [pattern.replace("-*", "-0a1b2c3d").replace(".so*", ".so.9").rstrip("*") for pattern in state.owner]
    for name in names:
        shop.library(name, soname=name, source=write_owner(state, attribute))
        assert split(shop.executable(f"alone-{name}", needs=(name,), runpath="$ORIGIN")) == []
    for other in names[1:]:
        both = shop.executable(f"with-{other}", needs=(names[0], other), runpath="$ORIGIN")
        assert split(both) == [state.name]


@pytest.mark.compile
@pytest.mark.parametrize("state", PROFILE.states, ids=lambda state: state.name)
def test_a_hidden_copy_counts_only_where_the_profile_says_so(tmp_path: Path, state: State) -> None:
    shop = Workshop(tmp_path)
    name = state.owner[0].rstrip("*")
    shop.library(name, soname=name, source=write_owner(state))
    shop.library("libown.so", soname="libown.so", source=write_owner(state), flags=("-fvisibility=hidden",))
    program = shop.executable("program", needs=(name, "libown.so"), runpath="$ORIGIN")
    assert split(program) == ([] if state.exported_only else [state.name])


@pytest.mark.compile
def test_a_program_that_links_everything_into_itself_is_left_alone(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.library("libuser.so", soname="libuser.so", source=OMP)
    program = shop.executable("app", needs=("libuser.so",), runpath="$ORIGIN")
    assert judge(program).findings == ()
