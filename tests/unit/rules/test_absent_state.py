"""LC402 absent-state, on plain values."""

from __future__ import annotations

from dataclasses import replace

from linkcheck.model import FileKind, ListedSymbols, Outcome, Severity, SymbolBinding
from linkcheck.rules.absent_state import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    OWNER,
    PROFILE,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    owner,
    runner,
    symbol,
)

STREAM_ONLY = replace(PROFILE, states=PROFILE.states[:1])
DELEGATE = image("lib/d.so", soname="libd.so", imports=(ACCESSOR,))


def test_finds_a_dlopened_library_whose_import_nobody_defines() -> None:
    program = runner(needed=(), imports=())
    finding = only_finding(check(load_set(program, dlopened=(DELEGATE,)), STREAM_ONLY))
    assert (finding.code, finding.severity) == ("LC402", Severity.ERROR)
    assert (finding.primary.path, finding.primary.symbol) == ("lib/d.so", ACCESSOR)
    assert "imports executorch::extension::cuda::getCallerStream() of the caller stream" in finding.message
    assert "undefined symbol" in finding.message


def test_finds_a_definition_that_another_library_keeps_to_itself() -> None:
    # The owner comes in below the first library, opened with RTLD_LOCAL; the second one does not need it.
    first = image("lib/a.so", soname="liba.so", needed=(OWNER,), imports=(ACCESSOR,))
    world = load_set(runner(needed=(), imports=()), dlopened=(first, owner(), DELEGATE))
    assert [f.primary.path for f in findings(check(world, STREAM_ONLY))] == ["lib/d.so"]


def test_finds_a_weak_function_whose_absence_a_program_cannot_see() -> None:
    """A program at a fixed address has a slot of its own for it, so that the entry has an address."""
    weak = replace(symbol(ACCESSOR, defined=False), binding=SymbolBinding.WEAK)
    for entry in (weak, replace(weak, value=0x401000)):
        program = replace(runner(needed=()), kind=FileKind.EXECUTABLE, symbols=ListedSymbols((entry,)))
        found = findings(check(load_set(program), STREAM_ONLY))
        assert [("address 0" in f.message, f.primary.path) for f in found] == [(True, "bin/runner")] * bool(entry.value)


def test_passes_a_program_whose_owner_is_loaded() -> None:
    assert checks(check(load_set(runner(), owner()), STREAM_ONLY)) == [
        ("bin/runner", Outcome.PASS, "every import of the caller stream finds a definition")
    ]


def test_passes_over_a_library_that_is_judged_on_its_own() -> None:
    assert list(check(load_set(DELEGATE), STREAM_ONLY)) == []


def test_cannot_see_behind_a_filter_or_into_a_table_that_is_not_seen() -> None:
    """Either may hold the definition: the filtee is looked up first, and the table may export it."""
    helper = image("lib/h.so", soname="libh.so")
    program = runner(needed=("libh.so",), imports=())
    filtered = replace(helper, filters=("libhid.so",))
    hidden = image("lib/h.so", soname="libh.so", unseen="it has no bounds")
    for other in (filtered, hidden):
        [(_, outcome, reason)] = checks(check(load_set(program, other, dlopened=(DELEGATE,)), STREAM_ONLY))
        assert outcome is Outcome.UNKNOWN
        assert reason.startswith("lib/h.so")


def test_finds_what_an_external_library_is_taken_not_to_define() -> None:
    program = runner(needed=("libother.so",), imports=())
    world = load_set(program, missing=("libother.so",), dlopened=(DELEGATE,))
    external = replace(STREAM_ONLY, external=("libother.so",))
    assert only_finding(check(world, external)).primary.path == "lib/d.so"


def test_cannot_see_what_a_missing_library_defines() -> None:
    program = runner(needed=("libother.so",), imports=())
    world = load_set(program, missing=("libother.so",), dlopened=(DELEGATE,))
    assert checks(check(world, STREAM_ONLY)) == [
        ("bin/runner", Outcome.UNKNOWN, "libother.so not found, and it may define the caller stream")
    ]
