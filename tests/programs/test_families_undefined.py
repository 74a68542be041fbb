"""Libraries that do not name what they use: what ld.so says, what linkcheck says, and the link line that is right.

Reported by users of openpmix (#1186), irods (#3205), auditwheel (#431), arrow (#40018) and cog (#409), each on GitHub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from tests.cli.verify_command import Verdict
    from tests.programs.yard import Yard

pytestmark = needs_compiler

CORE = "int core_rank(void) { return 3; }"
PLUG_IN = "int core_rank(void); int probe(void) { return core_rank(); }"
#: Search paths of files that lie side by side, as they do everywhere here.
BESIDE = "-Wl,-rpath,$ORIGIN"


def undefined(verdict: Verdict, severity: str = "error") -> list[tuple[str, list[str]]]:
    """File and symbols of each LC304 of that severity."""
    found = [f for f in verdict.findings if f["code"] == "LC304" and f["severity"] == severity]
    return [(f["primary"]["path"], f["evidence"]["symbols"]) for f in found]


def test_a_plug_in_takes_its_core_for_granted(yard: Yard) -> None:
    """It works in programs that open the core for all, and in no other; with the core on its link line in every one."""
    core = yard.library("libcore.so", CORE)
    plug_in = yard.library("plug.so", PLUG_IN, soname="")
    ran = yard.open(core, plug_in)
    assert (ran.status, "undefined symbol: core_rank" in ran.output) == (1, True)
    verdict = yard.judge(core, plug_in, profile="default")
    assert (verdict.status, undefined(verdict)) == (1, [(str(plug_in), ["core_rank"])])
    assert str(core) in verdict.errors[0]["message"] + verdict.errors[0]["remedy"]

    opened = [Opening(core, shared=True), Opening(plug_in)]
    assert yard.open(*opened).output == "3"
    verdict = yard.judge(*opened, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])

    plug_in = yard.library("plug.so", PLUG_IN, core, BESIDE, soname="")
    assert yard.open(core, plug_in).output == "3"
    verdict = yard.judge(core, plug_in, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


ICU = "int u_init_72(void) { return 72; }"
TEXT = "int u_init_72(void); int text_init(void) { return u_init_72(); }"
MODULE = "int text_init(void); int probe(void) { return text_init(); }"


def test_a_repaired_package_whose_library_never_named_its_own(yard: Yard) -> None:
    """Nothing is missing by name, so that a repair tool finds nothing to add."""
    text = yard.library("pkg/libtext.so.1", TEXT)
    module = yard.library("pkg/module.so", MODULE, text, BESIDE, soname="")
    ran = yard.open(module)
    assert (ran.status, "undefined symbol: u_init_72" in ran.output) == (1, True)
    verdict = yard.judge(module, profile="default")
    assert (verdict.status, undefined(verdict)) == (1, [(str(text), ["u_init_72"])])
    # As long as nobody names the program it is only a warning, for that program could be the one that has it.
    verdict = yard.verify(yard.base / "pkg", "--profile", "default")
    assert (verdict.status, undefined(verdict, "warning")) == (0, [(str(text), ["u_init_72"])])

    icu = yard.library("pkg/libicuuc.so.72", ICU)
    yard.library("pkg/libtext.so.1", TEXT, icu, BESIDE)
    assert yard.open(module).output == "72"
    for verdict in (yard.judge(module, profile="default"), yard.verify(yard.base / "pkg", "--profile", "default")):
        assert (verdict.status, verdict.findings) == (0, [])


FLIGHT = "int arrow_table(void); int arrow_gcs(void); int flight(void) { return arrow_table() + arrow_gcs(); }"
READER = """
#include <stdio.h>
int flight(void);
int main(void) { printf("%d", flight()); return 0; }
"""


def test_a_release_whose_library_was_built_without_a_part(yard: Yard) -> None:
    """Every name in DT_NEEDED is there: who looks at no symbol finds nothing."""
    whole = "int arrow_table(void) { return 1; } int arrow_gcs(void) { return 2; }"
    arrow = yard.library("libarrow.so.15", whole)
    flight = yard.library("libarrow_flight.so.15", FLIGHT, arrow, BESIDE)
    program = yard.program("reader", READER, flight, BESIDE)
    assert yard.run(program).output == "3"
    verdict = yard.verify(program, "--profile", "default")
    assert (verdict.status, verdict.findings) == (0, [])

    yard.library("libarrow.so.15", "int arrow_table(void) { return 1; }")
    ran = yard.run(program, LD_BIND_NOW="1")
    assert (ran.status, f"{flight}: undefined symbol: arrow_gcs" in ran.errors) == (127, True)
    verdict = yard.verify(program, "--profile", "default")
    assert (verdict.status, undefined(verdict)) == (1, [(str(flight), ["arrow_gcs"])])
    assert undefined(yard.verify(flight, "--profile", "default"), "warning") == [(str(flight), ["arrow_gcs"])]


@pytest.mark.parametrize("before", [True, False])
def test_a_library_in_front_of_what_uses_it_is_dropped(yard: Yard, before: bool) -> None:
    core = yard.library("libcore.so", CORE)
    unit = yard.archive("build/libunit.a", PLUG_IN)
    users = ("-Wl,--whole-archive", unit, "-Wl,--no-whole-archive")
    order = (core, *users) if before else (*users, core)
    plug_in = yard.library("plug.so", "", "-Wl,--as-needed", *order, BESIDE, soname="")
    verdict = yard.judge(plug_in, profile="default")
    if before:
        assert "undefined symbol: core_rank" in yard.open(plug_in).output
        assert (verdict.status, undefined(verdict)) == (1, [(str(plug_in), ["core_rank"])])
    else:
        assert yard.open(plug_in).output == "3"
        assert (verdict.status, verdict.findings) == (0, [])


def test_what_comes_only_through_another_library_is_lost_with_it(yard: Yard) -> None:
    """The program was linked when libfirst.so had both functions; then one moved, and was dropped as unused."""
    first = "int first(void) { return 1; }"
    yard.library("libfirst.so", first + CORE)
    source = READER.replace("flight(void);", "first(void), core_rank(void);").replace(
        "flight()", "first() + core_rank()"
    )
    program = yard.program("app", source, yard.base / "libfirst.so", BESIDE)
    second = yard.library("libsecond.so", CORE)
    yard.library("libfirst.so", first, "-Wl,--no-as-needed", second, BESIDE)
    assert yard.run(program).output == "4"
    verdict = yard.verify(program, "--profile", "default")
    assert (verdict.status, verdict.findings) == (0, [])

    yard.library("libfirst.so", first, "-Wl,--as-needed", second, BESIDE)
    ran = yard.run(program)
    assert (ran.status, "undefined symbol: core_rank" in ran.errors) == (127, True)
    verdict = yard.verify(program, second, "--profile", "default")
    assert (verdict.status, undefined(verdict)) == (1, [(str(program), ["core_rank"])])
