"""LC402 absent-state, on plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linkcheck.executorch.facts import Delegate, Place, ProgramFile, ProgramKind
from linkcheck.model import Confidence, FileKind, Outcome, Severity, SymbolBinding, Unresolved
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.rules.absent_state import check, check_bundle
from linkcheck.rules.rule import Bundle, Names
from tests.unit.rules.worlds import (
    ACCESSOR,
    GET_BACKEND,
    OWNER,
    PROFILE,
    REGISTER_BACKEND,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    owner,
    runner,
    symbol,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linkcheck.model import Image, LoadSet

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
        found = findings(check(load_set(program), replace(STREAM_ONLY, roles=())))
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


def test_finds_what_a_library_that_is_missing_elsewhere_cannot_define() -> None:
    """What comes with a plug-in that is opened later, locally, is in no search of an earlier one."""
    other = image("lib/e.so", soname="libe.so", needed=("libgone.so",))
    world = load_set(runner(needed=(), imports=()), dlopened=(DELEGATE, other))
    gone = Unresolved(2, "libgone.so", ("lib",), loaded=3)
    finding = only_finding(check(replace(world, unresolved=(gone,)), STREAM_ONLY))
    assert finding.primary.path == "lib/d.so"
    before = load_set(runner(needed=(), imports=()), dlopened=(other, DELEGATE))
    gone = replace(gone, module=1, loaded=2)
    [(_, outcome, _)] = checks(check(replace(before, unresolved=(gone,)), STREAM_ONLY))
    assert outcome is Outcome.UNKNOWN


# ---------------------------------------------------------------- backends of programs

_RUNTIME = image("lib/libexecutorch.so", soname="libexecutorch.so", exports=(REGISTER_BACKEND, GET_BACKEND))
_BACKEND = image("lib/libacme.so", soname="libacme.so", imports=(REGISTER_BACKEND,))
_RUNNER = runner(needed=("libexecutorch.so", "libacme.so"), imports=(GET_BACKEND,))


def bundle(*processes: LoadSet, ids: Mapping[Image, Names | str], named: bool = True) -> Bundle:
    """A program that calls Acme; `ids` says in which files that is. A file is told by its inode."""
    call = Delegate("model.pte", "forward", 0, "Acme", Place("model.pte", 0, 8))
    program = ProgramFile("model.pte", ProgramKind.PROGRAM, 99, ("forward",), (call,))
    inodes = {image.path: number for number, image in enumerate(ids, 1)}
    numbered = tuple(
        replace(
            one,
            modules=tuple(
                replace(module, image=replace(module.image, inode=inodes.get(module.image.path, 0)))
                for module in one.modules
            ),
        )
        for one in processes
    )
    names = {(0, inodes[image.path]): found for image, found in ids.items()}
    return Bundle((program,), numbered, frozenset({"model.pte"} if named else ()), names)


_WHOLE = Names(frozenset({"Acme"}))
_END = Names(ends=frozenset({"Acme"}))


def test_passes_a_backend_that_a_loaded_file_registers() -> None:
    given = bundle(load_set(_RUNNER, _RUNTIME, _BACKEND), ids={_BACKEND: _WHOLE})
    [(subject, outcome, reason)] = checks(check_bundle(given, PROFILE))
    assert (subject, outcome) == ("model.pte", Outcome.PASS)
    assert reason == "registered in a process of bin/runner: Acme by lib/libacme.so"


def test_finds_a_backend_that_no_loaded_file_registers() -> None:
    for ids, confidence in (
        ({_RUNTIME: Names()}, Confidence.HIGH),
        ({_RUNNER: _WHOLE}, Confidence.MEDIUM),  # the runner speaks of it, and the runtime is another file
    ):
        given = bundle(load_set(_RUNNER, _RUNTIME, _BACKEND), ids=ids)
        finding = only_finding(check_bundle(given, PROFILE))
        assert (finding.code, finding.severity, finding.confidence) == ("LC402", Severity.ERROR, confidence)
        assert (finding.primary.path, finding.primary.symbol) == ("model.pte", "Acme")


def test_cannot_see_what_a_file_registers_that_holds_the_runtime_or_a_longer_name() -> None:
    alone = runner(needed=(), imports=())
    opaque = replace(_RUNNER, symbols=replace(_RUNNER.symbols, unseen="it has no bounds"))  # type: ignore[type-var]
    for given in (
        bundle(load_set(alone), ids={alone: _WHOLE}),
        bundle(load_set(_RUNNER, _RUNTIME, _BACKEND), ids={_BACKEND: _END}),
        bundle(load_set(_RUNNER, _RUNTIME, _BACKEND), ids={_BACKEND: "lib/libacme.so: cannot be read: no"}),
        bundle(load_set(_RUNNER, _RUNTIME, missing=("libacme.so",)), ids={_RUNTIME: Names()}),
        bundle(load_set(opaque, _RUNTIME), ids={opaque: _WHOLE}),
    ):
        [(_, outcome, reason)] = checks(check_bundle(given, PROFILE))
        assert outcome is Outcome.UNKNOWN
        assert "Acme" in reason or "acme" in reason or "bin/runner" in reason


def test_passes_over_a_found_program_when_no_program_here_has_to_do_with_executorch() -> None:
    plain = runner(needed=(), imports=())
    for named, expected in ((True, Outcome.UNKNOWN), (False, Outcome.NOT_APPLICABLE)):
        given = bundle(replace(load_set(plain), named=False), ids={}, named=named)
        [(_, outcome, _)] = checks(check_bundle(given, PROFILE))
        assert outcome is expected
