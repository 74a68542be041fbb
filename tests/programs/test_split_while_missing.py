"""Several copies of a state while a library is missing: certain where nothing that it may be makes them one.

Each graph is run by the real ld.so with all kinds of files in the place of the missing one. The numbers that it prints
say whose copy each user reaches.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import HOST, Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.verify_command import Verdict
    from tests.programs.yard import Yard

pytestmark = needs_compiler

OWNER, COPY, GONE = 1, 3, 5
STATE = "static int state = %d; int s_get(void) { return state; }"
USER = "int s_get(void); int probe(void) { return s_get(); }"
SELF = STATE % COPY + " int probe(void) { return s_get(); }"
HIDDEN = SELF.replace("int s_get(void) {", '__attribute__((visibility("hidden"))) int s_get(void) {')
PROTECTED = SELF.replace("int s_get(void) {", '__attribute__((visibility("protected"))) int s_get(void) {')
POLICY = '[[state]]\nname = "state"\nowner = ["libowner.so"]\nsymbols = ["s_get"]\n'
FLAGS = ("-O0", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN")
SYMBOLIC = "-Wl,-Bsymbolic"

# Short, so that graphs read as drawings.
O, C, G, A, B, M = "libowner.so", "libcopy.so", "libgone.so", "liba.so", "libb.so", "libm.so"  # noqa: E741


@dataclass(frozen=True)
class Graph:
    """The program and the libraries beside the owner and the copy: the source and what it is linked with, in order.

    `opens` are opened in turn; a leading @ stands for RTLD_GLOBAL.
    """

    opens: tuple[str, ...]
    libraries: tuple[tuple[str, str, tuple[str, ...]], ...]
    main: tuple[str, ...] = ()
    program: str = ""
    preload: str = ""
    gone: str = G
    #: The missing one may also be a link to this.
    link: str = ""


#: The user in liba.so has a copy that nothing can replace; the one in libb.so is bound to the owner, as things are.
CERTAIN = {
    "hidden": Graph((A, B), ((A, HIDDEN, ()), (B, USER, (G, O)))),
    "hidden, below an opened one": Graph((A, B), ((M, "", (G,)), (A, HIDDEN, (M,)), (B, USER, (M, O)))),
    "hidden, and the missing one brings the owner": Graph((A, B), ((A, HIDDEN, ()), (M, "", (O,)), (B, USER, (M, G)))),
    "symbolic, and nothing comes before the owner": Graph((A, B), ((A, SELF, (SYMBOLIC,)), (B, USER, (O, G)))),
    "symbolic, and what is brought comes behind": Graph((A, B), ((A, SELF, (SYMBOLIC,)), (B, USER, (G, O)))),
    "protected": Graph((A, B), ((A, PROTECTED, ()), (B, USER, (G, O)))),
    "without a relocation": Graph((A, B), ((A, SELF, ("-Wl,-Bsymbolic-functions",)), (B, USER, (G, O)))),
    "without a relocation, beside the owner": Graph(
        (A, B), ((A, SELF, ("-Wl,-Bsymbolic-functions",)), (B, USER, (O,))), main=(G, O, A)
    ),
    "two groups, opened before": Graph((A, B, M), ((A, USER, (C,)), (B, USER, (O,)), (M, "", (G,)))),
    "in the program, which exports nothing": Graph((B,), ((B, USER, (G, O)),), program=HIDDEN),
    "needed by the program": Graph((A, B), ((A, SELF, (SYMBOLIC,)), (B, USER, (O,))), main=(O, G)),
    "preloaded, behind the global owner": Graph(
        (A, B), ((A, SELF, (SYMBOLIC,)), (B, USER, (O,))), main=(O,), preload=G
    ),
    "called like neither": Graph((A, B), ((A, SELF, (SYMBOLIC,)), (B, USER, ("libx.so", O))), gone="libx.so"),
}
#: What the missing library is makes one copy of two, or leaves them two.
OPEN = {
    "global, before both": Graph((A, B), ((A, SELF, ()), (B, USER, (O,))), main=(G,)),
    "preloaded": Graph((A, B), ((A, USER, (C,)), (B, USER, (O,))), preload=G),
    "opened globally before": Graph((f"@{G}", A, B), ((A, USER, (C,)), (B, USER, (O,)))),
    "before both, below each": Graph((A, B), ((A, USER, (G, C)), (B, USER, (G, O)))),
    "two groups, below each": Graph((A, B), ((A, USER, (C, G)), (B, USER, (O, G)))),
    "opened before, and may need both": Graph((M, A, B), ((M, "", (G,)), (A, USER, (C,)), (B, USER, (O,)))),
    "symbolic, and may be brought": Graph((A, B), ((A, SELF, (SYMBOLIC,)), (M, "", (O,)), (B, USER, (G, M)))),
    "protected, and may be brought": Graph((A, B), ((A, PROTECTED, ()), (M, "", (O,)), (B, USER, (G, M)))),
    "called like the owner": Graph(
        (A, B), ((A, USER, ("libcopy.so.2", O)), (B, USER, (C,))), gone="libcopy.so.2", link=C
    ),
}


#: What the missing library may be: source, and what it is linked with.
NEUTRAL, DEFINES = "int unused_gone;", STATE % GONE
STANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (NEUTRAL, ()),
    (NEUTRAL, (O, C)),
    (NEUTRAL, (C, O)),
    (NEUTRAL, (A,)),
    (NEUTRAL, (A, B)),
    (DEFINES, ()),
    (DEFINES, (SYMBOLIC,)),
    (DEFINES, (A, B)),
)


def link(yard: Yard, names: tuple[str, ...]) -> list[str | Path]:
    return [*FLAGS, *(name if name.startswith("-") else yard.base / name for name in names)]


def build(yard: Yard, graph: Graph) -> Path:
    """The program of `graph`; the place of the missing library is empty."""
    yard.library(O, STATE % OWNER, *FLAGS)
    yard.library(C, STATE % COPY, *FLAGS)
    gone = yard.library(graph.gone, NEUTRAL, *FLAGS)
    for name, source, needs in graph.libraries:
        yard.library(name, source, *link(yard, needs))
    host = HOST.replace("  return 0;", '  printf("%d", probe());\n  return 0;') if graph.program else HOST
    program = yard.program("host", graph.program + host, *link(yard, graph.main), "-ldl")
    gone.unlink()
    return program


def openings(yard: Yard, graph: Graph) -> list[Opening]:
    return [Opening(yard.base / name.lstrip("@"), shared=name.startswith("@")) for name in graph.opens]


def reach(yard: Yard, program: Path, graph: Graph) -> set[str]:
    """Whose copies the users reach in a real process."""
    arguments = [opening.argument for opening in openings(yard, graph)]
    ran = yard.run(program, *arguments, **({"LD_PRELOAD": str(yard.base / graph.preload)} if graph.preload else {}))
    assert ran.status == 0, ran
    return set(ran.output.split())


def run_all(yard: Yard, program: Path, graph: Graph) -> list[set[str]]:
    """Whose copies the users reach with each of what may stand in the place of the missing library."""
    gone, results = yard.base / graph.gone, []
    for source, needs in STANDS:
        if all(name.startswith("-") or (yard.base / name).exists() for name in needs):
            yard.library(graph.gone, source, *link(yard, needs))
            results.append(reach(yard, program, graph))
            gone.unlink()
    if graph.link:
        gone.symlink_to(graph.link)
        results.append(reach(yard, program, graph))
        gone.unlink()
    return results


def judge(yard: Yard, program: Path, graph: Graph) -> Verdict:
    edges = "".join(opening.policy for opening in openings(yard, graph))
    preload = ("--preload", yard.base / graph.preload) if graph.preload else ()
    return yard.verify(program, "--policy", yard.policy(POLICY + edges), *preload)


@pytest.mark.parametrize("graph", CERTAIN.values(), ids=CERTAIN)
def test_copies_that_nothing_can_make_one_are_an_error(yard: Yard, graph: Graph) -> None:
    program = build(yard, graph)
    assert {len(reached) for reached in run_all(yard, program, graph)} == {2}
    verdict = judge(yard, program, graph)
    (finding,) = (finding for finding in verdict.errors if finding["code"] == "LC401")
    assert finding["evidence"]["verdict"] in ("split", "split-unless-global")
    assert f"{graph.gone} may bring (not found), they do not become one." in finding["message"]


@pytest.mark.parametrize("graph", OPEN.values(), ids=OPEN)
def test_copies_that_the_missing_library_may_make_one_are_unknown(yard: Yard, graph: Graph) -> None:
    program = build(yard, graph)
    assert {len(reached) for reached in run_all(yard, program, graph)} == {1, 2}
    verdict = judge(yard, program, graph)
    assert "LC401" not in verdict.codes
    ((_, reason),) = (check for check in verdict.reasons("unknown") if check[0] == "LC401")
    assert f"{graph.gone} not found, and what it defines or brings may lead all uses of the state to one copy" in reason


def test_what_the_policy_declares_external_leads_nothing_elsewhere(yard: Yard) -> None:
    graph = OPEN["global, before both"]
    program = build(yard, graph)
    edges = "".join(opening.policy for opening in openings(yard, graph))
    verdict = yard.verify(program, "--policy", yard.policy(POLICY + edges), "--external", G)
    (finding,) = verdict.errors
    assert (finding["code"], "not found" in finding["message"]) == ("LC401", False)


def test_two_owners_are_an_error_whatever_is_missing(yard: Yard) -> None:
    graph = Graph((A,), ((A, USER, (G, O)), (B, STATE % OWNER, ())), main=(B,))
    program = build(yard, graph)
    policy = POLICY.replace('"libowner.so"', '"libowner.so", "libb.so"')
    opened = Opening(yard.base / A)
    verdict = yard.verify(program, "--policy", yard.policy(policy + opened.policy))
    (finding,) = (finding for finding in verdict.errors if finding["code"] == "LC401")
    assert "are 2 owner libraries in one process: only one may be there." in finding["message"]


#: Sets the object, of which it holds a copy, and prints what it sees and what the owner's function sees.
COPYING = """
#define _GNU_SOURCE
#include <stdio.h>
extern int s_value;
int s_get(void);
%s
int main(void) { s_value = 9; printf("%%d %%d", s_value, %s); return 0; }
"""
VALUE = f"int s_value = {COPY};"
GET = "extern int s_value; int s_get(void) { return s_value; } int more(void) { return s_get() + 1; }"
COPIED = POLICY.replace('"s_get"', '"s_value", "s_get"')


def build_copying(yard: Yard, source: str, *more: str) -> Path:
    """A program with a copy (R_*_COPY) of what liba.so defines, and a function of libb.so; libgone.so comes first."""
    yard.library(A, VALUE, *FLAGS)
    yard.library(B, GET, *link(yard, more))
    gone = yard.library(G, NEUTRAL, *FLAGS)
    program = yard.program("program", source, "-fno-pic", "-no-pie", *link(yard, (G, A, B)), "-ldl")
    gone.unlink()
    shown = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True, check=True).stdout
    assert "_COPY" in shown
    return program


def test_what_a_program_copies_may_come_from_the_missing_library(yard: Yard) -> None:
    """The copy is where it is, but what is copied, and so whose state it is, is the first definition in the order."""
    program = build_copying(yard, COPYING % ("", "s_get()"))
    verdict = yard.verify(program, "--policy", yard.policy(COPIED))
    assert "LC401" not in verdict.codes
    ((_, reason),) = (check for check in verdict.reasons("unknown") if check[0] == "LC401")
    assert f"{G} not found, and what it defines or brings may lead all uses of the state to one copy" in reason
    split = []
    for source in (NEUTRAL, f"int s_value = {GONE}; int s_get(void) {{ return s_value; }}"):
        yard.library(G, source, *FLAGS)
        assert yard.run(program).output == "9 9"
        stood = yard.verify(program, "--policy", yard.policy(COPIED.replace(O, G)))
        split.append("LC401" in stood.codes)
    assert split == [True, False]


def test_what_reaches_the_object_past_the_copy_stays_apart(yard: Yard) -> None:
    """RTLD_DEEPBIND: whichever library the object is copied from, the opened one reaches that library's own."""
    opened = 'dlopen("./libm.so", RTLD_NOW | RTLD_DEEPBIND)'
    opens = f'#include <dlfcn.h>\nint probe(void) {{ return ((int (*)(void))dlsym({opened}, "probe"))(); }}'
    program = build_copying(yard, COPYING % (opens, "probe()"))
    yard.library(G, NEUTRAL, *FLAGS)
    yard.library(M, "extern int s_value; int probe(void) { return s_value; }", *link(yard, (G, A)))
    for source in (NEUTRAL, VALUE.replace(str(COPY), str(GONE))):
        yard.library(G, source, *FLAGS)
        assert yard.run(program).output in (f"9 {COPY}", f"9 {GONE}")
    (yard.base / G).unlink()
    edge = f'[[dlopen]]\nfrom = "program"\npath = "{yard.base / M}"\ndeepbind = true\n'
    verdict = yard.verify(program, "--policy", yard.policy(COPIED + edge))
    (finding,) = (finding for finding in verdict.errors if finding["code"] == "LC401")
    assert f"{G} may bring (not found), they do not become one." in finding["message"]
