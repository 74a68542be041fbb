"""Which missing libraries could take an import from the file it is bound to; the real ld.so runs what may stand there.

Each graph lacks libgone.so. Stand-ins with a definition of their own are put there one after the other: some look
into themselves first, and some need the user, the owner or a wrong library, and so bring it earlier.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.lookup import bindings
from linkcheck.loader.missing import find_bringers, find_rivals
from linkcheck.loader.system import System
from linkcheck.model import BindingKind
from linkcheck.value import Value
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from linkcheck.model import LoadSet

pytestmark = needs_compiler

OWNER, WRONG, GONE, UNDEFINED = 1, 3, 2, 0
UNIQUE = '__asm__(".type s_value, @gnu_unique_object");'
USER = "extern int s_value; int probe(void) { return s_value; }"
SOURCES = {"libowner.so": f"int s_value = {OWNER};", "libwrong.so": f"int s_value = {WRONG};", "libuser.so": USER}

#: Opens what it is told at its compilation, in that order, and prints what the user gets.
HOST = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((force_align_arg_pointer)) void _start(void) {
  int (*probe)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "probe");
  void *library;
  %s
  printf("%%d\\n", probe());
  exit(0);
}
"""
OPEN = """
  library = dlopen("%s", RTLD_NOW | %s);
  if (!library) { puts(dlerror()); exit(1); }
  if (!probe) probe = (int (*)(void))dlsym(library, "probe");
"""

#: What libgone.so may turn out to be: what it needs, and whether it looks into itself first. What needs it and comes
#: last, such as libring.so, lets ld.so relocate it before others, which counts for unique symbols.
STAND_INS = (
    ((), False),
    ((), True),
    (("libuser.so",), False),
    (("libwrong.so", "libuser.so"), True),
    (("libowner.so", "libuser.so"), False),
    (("libring.so",), True),
)


class Graph(Value):
    """A program, the needs of each library, and what is preloaded and opened; a leading @ stands for RTLD_GLOBAL."""

    main: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    more: tuple[tuple[str, tuple[str, ...]], ...] = ()
    preload: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    unique: bool = False
    #: The owner refers to its own definition.
    refers: bool = False


# Short, so that graphs read as drawings.
O, U, G, W, A, R = "libowner.so", "libuser.so", "libgone.so", "libwrong.so", "liba.so", "libring.so"  # noqa: E741

#: Graphs in which no stand-in can take the import of the user.
SAFE = {
    "behind the owner": Graph((O, G, U)),
    "last": Graph((U, O, G)),
    "below the user, the owner beside it": Graph((U, O), (G,)),
    "two levels down": Graph((U,), (A, O), ((A, (G,)),)),
    "below the owner": Graph((U, O), more=((O, (G,)),)),
    "preloaded behind the preloaded owner": Graph((U,), preload=(O, G)),
    "below a preload": Graph((O, U), more=((A, (G,)),), preload=(A,)),
    "opened: behind the owner": Graph(user=(O, G), opens=(U,)),
    "opened: the owner is global before it": Graph((O, G), opens=(U,)),
    "opened: the owner is global, and it is not": Graph((O,), (G, O), opens=(U,)),
    "opened later": Graph(user=(O,), more=((A, (G,)),), opens=(U, A)),
    "opened before, behind the owner": Graph(user=(O,), more=((A, (O, G)),), opens=(A, U)),
    "opened globally before, behind the owner": Graph(user=(O,), more=((A, (O, G)),), opens=(f"@{A}", U)),
    "itself opened later": Graph(user=(O,), opens=(U, f"@{G}")),
    "itself opened before, the owner global": Graph((O,), opens=(f"@{G}", U)),
    "a unique symbol that the start has decided": Graph((O,), (G,), opens=(U,), unique=True, refers=True),
    "a unique symbol that an earlier one has decided": Graph(user=(O, G), opens=(O, U), unique=True, refers=True),
    "a unique symbol, itself opened in between": Graph((O,), opens=(G, U), unique=True, refers=True),
}
#: Graphs in which some stand-in takes it.
TAKEN = {
    "before the owner": Graph((G, O, U)),
    "before the owner, below another": Graph((A, U), (O,), ((A, (G,)),)),
    "below the user, before the owner": Graph((U,), (G, O)),
    "preloaded": Graph((O, U), preload=(G,)),
    "preloaded before the preloaded owner": Graph((U,), preload=(G, O)),
    "opened: before the owner": Graph(user=(G, O), opens=(U,)),
    "opened: global, and the owner is not": Graph((G,), (O,), opens=(U,)),
    "opened before": Graph(user=(O,), more=((A, (G,)),), opens=(A, U)),
    "opened before, behind the owner, with a wrong one": Graph(user=(O,), more=((A, (W, O, G)),), opens=(A, U)),
    "opened globally before": Graph(user=(O,), more=((A, (G,)),), opens=(f"@{A}", U)),
    "itself opened before": Graph(user=(O,), opens=(G, U)),
    "itself opened globally before": Graph(user=(O,), opens=(f"@{G}", U)),
    "behind an owner of a unique symbol": Graph((O, G, U), unique=True),
    "a unique symbol that nobody has looked up": Graph((O,), (G,), opens=(U,), unique=True),
    "a unique symbol that is decided after it": Graph(user=(O,), opens=(G, U), unique=True, refers=True),
    "a unique symbol that an earlier one decides, before it": Graph(
        user=(G, O), opens=(O, U), unique=True, refers=True
    ),
    "opened: behind an owner of a unique symbol": Graph(user=(O, G), opens=(U,), unique=True),
}
#: Graphs in which a wrong library answers the user, and nothing that a stand-in needs comes before that.
KEPT = {
    "needed by the same": Graph((G, W, U)),
    "below the user": Graph((U,), (G, W)),
    "behind it": Graph((W, G, U)),
    "two levels down, beside it": Graph((U,), (A, W), ((A, (G,)),)),
    "preloaded, and it is preloaded": Graph((U,), preload=(G, W)),
    "opened: needed by the same": Graph(user=(G, W), opens=(U,)),
    "opened: it is global": Graph((W,), opens=(G, U)),
    "opened later": Graph(user=(W, O), opens=(U, G)),
}
#: Graphs in which a stand-in may bring the owner before it.
BROUGHT = {
    "beside who needs it": Graph((G, U), (W, O)),
    "the owner is nowhere else": Graph((G, U), (W,)),
    "two levels up": Graph((A, G), more=((A, (U,)), (U, (W, O)))),
    "preloaded": Graph((U,), (W, O), preload=(G,)),
    "opened: two levels up": Graph(user=(G, A), more=((A, (W, O)),), opens=(U,)),
    "opened before": Graph(user=(W, O), opens=(G, U)),
    "opened globally before": Graph(user=(W, O), opens=(f"@{G}", U)),
    "below what is opened globally before": Graph(user=(W, O), more=((A, (G,)),), opens=(f"@{A}", U)),
    "below what is opened before": Graph(user=(W, O), more=((A, (G,)),), opens=(A, U)),
    "global, and it is not": Graph((G,), (W, O), opens=(U,)),
}
#: What brings others and has no definition of its own: what it needs.
BRINGERS = ((O,), (O, U), (U, O), (R, O))


def build(shop: Workshop, graph: Graph) -> Path:
    """The program of `graph`; libgone.so is nowhere."""
    needs = {U: graph.user, R: (G,), **dict(graph.more)}
    for name in (O, U, W, A, R):
        source = SOURCES.get(name, f"int unused_{name[3]};")
        if graph.unique and name == O:
            source += UNIQUE + ("int *s_owned(void) { return &s_value; }" if graph.refers else "")
        shop.library(name, soname=name, needs=needs.get(name, ()), runpath="$ORIGIN", source=source)
    opens = "".join(
        OPEN % (shop.base / name.lstrip("@"), "RTLD_GLOBAL" if name.startswith("@") else "RTLD_LOCAL")
        for name in graph.opens
    )
    return shop.executable("main", needs=graph.main, runpath="$ORIGIN", flags=("-pie", "-lc"), source=HOST % opens)


def read(shop: Workshop, program: Path, graph: Graph) -> LoadSet:
    """What the loader here makes of it."""
    opens = [Dlopen(str(shop.base / name.lstrip("@")), name.startswith("@")) for name in graph.opens]
    preload = [str(shop.base / name) for name in graph.preload]
    return load(read_image(str(program)), System(read_image), preload=preload, dlopen=opens)


def run(shop: Workshop, program: Path, graph: Graph) -> int:
    """What the user gets in a real process."""
    preload = ":".join(str(shop.base / name) for name in graph.preload)
    environment = {"LC_ALL": "C", **({"LD_PRELOAD": preload} if preload else {})}
    done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 1 and "undefined symbol: s_value" in done.stdout:
        return UNDEFINED
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout)


def stand_in(shop: Workshop, needs: Sequence[str], symbolic: bool, unique: bool) -> None:
    source = f"int s_value = {GONE}; int *s_own(void) {{ return &s_value; }}" + (UNIQUE if unique else "")
    flags = ("-Wl,-Bsymbolic",) if symbolic else ()
    shop.library(G, soname=G, needs=tuple(needs), runpath="$ORIGIN", flags=flags, source=source)


@pytest.mark.parametrize(
    ("graph", "taken"),
    [*((graph, False) for graph in SAFE.values()), *((graph, True) for graph in TAKEN.values())],
    ids=[*SAFE, *TAKEN],
)
def test_a_missing_library_takes_an_import_only_from_before_its_provider(
    tmp_path: Path, graph: Graph, taken: bool
) -> None:
    shop = Workshop(tmp_path)
    program = build(shop, graph)
    load_set = read(shop, program, graph)
    assert {unresolved.needed.rpartition("/")[2] for unresolved in load_set.unresolved} == {G}
    (use,) = [one for one in bindings(load_set, ["s_value"]) if one.kind is BindingKind.IMPORT]
    assert use.provider is not None
    assert load_set.modules[use.provider].image.soname == O
    rivals = find_rivals(load_set, [use])
    assert {one.needed.rpartition("/")[2] for one in rivals.get(use.module, ())} == ({G} if taken else set())
    got = set()
    for needs, symbolic in STAND_INS:
        for unique in {False, graph.unique}:
            stand_in(shop, needs, symbolic, unique)
            got.add(run(shop, program, graph))
    assert (got != {OWNER}) is taken, got


@pytest.mark.parametrize(
    ("graph", "brought"),
    [*((graph, False) for graph in KEPT.values()), *((graph, True) for graph in BROUGHT.values())],
    ids=[*KEPT, *BROUGHT],
)
def test_a_missing_library_brings_the_owner_only_before_what_is_needed_behind_it(
    tmp_path: Path, graph: Graph, brought: bool
) -> None:
    shop = Workshop(tmp_path)
    program = build(shop, graph)
    load_set = read(shop, program, graph)
    (use,) = [one for one in bindings(load_set, ["s_value"]) if one.kind is BindingKind.IMPORT]
    assert use.provider is not None
    assert load_set.modules[use.provider].image.soname == W
    (bringers,) = find_bringers(load_set, [use])
    assert {one.needed.rpartition("/")[2] for one in bringers} == ({G} if brought else set())
    got = set()
    for needs in BRINGERS:
        shop.library(G, soname=G, needs=needs, runpath="$ORIGIN", source="int unused_gone;")
        got.add(run(shop, program, graph))
    assert (OWNER in got) is brought, got


@pytest.mark.parametrize(("opens", "taken"), [((U, A), False), ((A, U), True)])
def test_a_missing_library_serves_only_those_whose_search_it_is_in(
    tmp_path: Path, opens: tuple[str, ...], taken: bool
) -> None:
    shop = Workshop(tmp_path)
    graph = Graph(more=((A, (G,)),), opens=opens)
    program = build(shop, graph)
    load_set = read(shop, program, graph)
    (use,) = bindings(load_set, ["s_value"])
    assert use.provider is None
    assert bool(find_rivals(load_set, [use])) is taken
    got = set()
    for needs, symbolic in STAND_INS:
        if "libowner.so" not in needs and "libwrong.so" not in needs:
            stand_in(shop, needs, symbolic, unique=False)
            got.add(run(shop, program, graph))
    assert got == ({UNDEFINED, GONE} if taken else {UNDEFINED})
