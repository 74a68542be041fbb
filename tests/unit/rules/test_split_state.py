"""LC401 split-state, on plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from linkcheck.model import Confidence, FileKind, Outcome, Severity, SymbolBinding
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.rules.split_state import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    CONSUMER_SYMBOLS,
    GET_BACKEND,
    OWNER,
    OWNER_SYMBOLS,
    PROFILE,
    REGISTER_BACKEND,
    STREAM,
    TABLE,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    outcomes,
    owner,
    role,
    runner,
    small_policy,
    spec,
    symbol,
)

if TYPE_CHECKING:
    from linkcheck.model import Image
    from linkcheck.policy.settings import Settings

STREAM_ONLY = replace(PROFILE, states=PROFILE.states[:1])
NO_RUNTIME = [
    f"no owner of the ExecuTorch {registry} is loaded"
    for registry in ("backend registry", "kernel registry", "device allocator registry")
]


def test_finds_a_copy_in_the_program_and_one_in_what_it_opens() -> None:
    program = runner(needed=(), imports=(), private=OWNER_SYMBOLS)  # linked an archive, exports nothing of it
    delegate = image("lib/d.so", soname="libd.so", exports=OWNER_SYMBOLS)
    finding = only_finding(check(load_set(program, dlopened=(delegate,)), STREAM_ONLY))
    assert (finding.code, finding.severity, finding.confidence) == ("LC401", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", STREAM)
    assert finding.message.splitlines() == [
        "One process would hold 2 separate copies of the caller stream:",
        "    bin/runner",
        "    lib/d.so",
        (
            "The runner sets the stream in one copy and the delegate reads another, so the work runs on the wrong CUDA "
            "stream and nothing fails."
        ),
    ]
    assert "Link the shared library libextension_cuda.so" in finding.remedy
    assert [place.path for place in finding.related] == ["bin/runner", "lib/d.so"]
    assert finding.evidence["verdict"] == "split"
    assert finding.evidence["copies"] == ["bin/runner", "lib/d.so"]


def test_finds_two_libraries_that_are_opened_locally_and_would_merge_globally() -> None:
    first = image("lib/a.so", soname="liba.so", exports=(ACCESSOR,))
    second = image("lib/b.so", soname="libb.so", exports=(ACCESSOR,))
    program = image("bin/host", kind=FileKind.PIE)
    local = only_finding(check(load_set(program, dlopened=(first, second)), STREAM_ONLY))
    assert local.evidence["verdict"] == "split-unless-global"
    assert "copies of the caller stream (one only if everything were opened with RTLD_GLOBAL):" in local.message
    merged = only_finding(check(load_set(program, opened_global=(first, second)), STREAM_ONLY))
    assert (merged.severity, merged.evidence["verdict"]) == (Severity.INFO, "one")


def test_finds_who_uses_which_copy_and_the_chain_that_leads_to_it() -> None:
    world = load_set(
        runner(),
        owner(),
        image("lib/copy.so", soname="libcopy.so", exports=CONSUMER_SYMBOLS, private=(ACCESSOR,)),
        image("lib/user.so", soname="libuser.so", needed=("libcopy.so",), imports=CONSUMER_SYMBOLS),
        dlopened=(image("lib/p.so", soname="libp.so", needed=("libuser.so",)),),
    )
    finding = only_finding(check(world, STREAM_ONLY))
    assert "    lib/libextension_cuda.so (used by bin/runner" in finding.message.replace("bin/runner -> ", "")
    assert "lib/p.so -> lib/user.so -> lib/copy.so" in finding.message


def test_finds_two_builds_of_the_owner_under_two_names() -> None:
    renamed = owner(
        "lib/libexecutorch_extension_cuda.so", soname="libexecutorch_extension_cuda.so", private=(ACCESSOR,)
    )
    delegate = image("lib/d.so", soname="libd.so", needed=("libexecutorch_extension_cuda.so",), imports=(ACCESSOR,))
    # The delegate's use finds the first one, but the second one has code of its own that does not.
    finding = only_finding(check(load_set(runner(), owner(), renamed, dlopened=(delegate,)), STREAM_ONLY))
    assert finding.evidence["verdict"] == "split"


def test_finds_an_interposed_copy_as_information() -> None:
    delegate = image("lib/d.so", soname="libd.so", exports=OWNER_SYMBOLS)
    finding = only_finding(check(load_set(runner(needed=(OWNER, "libd.so")), owner(), delegate), STREAM_ONLY))
    assert (finding.severity, finding.evidence["verdict"]) == (Severity.INFO, "one")
    assert finding.message == (
        "lib/d.so also defines the caller stream, but every use in this process is bound to the copy in "
        f"lib/{OWNER}. That holds only for this load order and scope."
    )


def test_finds_a_copy_whose_uses_nothing_can_lead_elsewhere() -> None:
    delegate = image("lib/d.so", soname="libd.so", exports=OWNER_SYMBOLS, unreferenced=OWNER_SYMBOLS)
    finding = only_finding(check(load_set(runner(needed=(OWNER, "libd.so")), owner(), delegate), STREAM_ONLY))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)
    assert "lib/d.so (no relocation refers to it" in finding.message
    # What the delegate uses of its five definitions it refers to; it need not use all.
    some = image("lib/d.so", soname="libd.so", exports=OWNER_SYMBOLS, unreferenced=OWNER_SYMBOLS[1:])
    finding = only_finding(check(load_set(runner(needed=(OWNER, "libd.so")), owner(), some), STREAM_ONLY))
    assert finding.severity is Severity.INFO


def test_finds_a_copy_that_is_used_and_bound_to_itself_with_high_confidence() -> None:
    delegate = image("lib/d.so", soname="libd.so", exports=OWNER_SYMBOLS, private=(ACCESSOR,))
    finding = only_finding(check(load_set(runner(needed=(OWNER, "libd.so")), owner(), delegate), STREAM_ONLY))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)


@pytest.mark.parametrize("unreferenced", [(), OWNER_SYMBOLS])
def test_finds_two_owners_whatever_the_uses_are_bound_to(unreferenced: tuple[str, ...]) -> None:
    renamed = owner(
        "lib/libexecutorch_extension_cuda.so", soname="libexecutorch_extension_cuda.so", unreferenced=unreferenced
    )
    finding = only_finding(check(load_set(runner(), owner(), renamed), STREAM_ONLY))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert (
        f"lib/{OWNER} and lib/libexecutorch_extension_cuda.so are 2 owner libraries in one process" in finding.message
    )


@pytest.mark.parametrize("unreferenced", [(), OWNER_SYMBOLS])
def test_finds_uses_that_are_bound_beside_the_owner(unreferenced: tuple[str, ...]) -> None:
    helper = image("lib/h.so", soname="libh.so", exports=OWNER_SYMBOLS)
    world = load_set(runner(needed=("libh.so", OWNER)), helper, owner(unreferenced=unreferenced))
    finding = only_finding(check(world, STREAM_ONLY))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert f"The uses are bound to the copy in lib/h.so, beside the owner's in lib/{OWNER}." in finding.message


def test_cannot_see_behind_a_filter() -> None:
    odd = image("lib/f.so", soname="libf.so", filters=("libg.so",))
    for world in (load_set(runner(), owner(), odd), load_set(image("bin/a", kind=FileKind.PIE), odd)):
        assert {outcome for _, outcome, _ in checks(check(world, PROFILE))} == {Outcome.UNKNOWN}
        assert findings(check(world, PROFILE)) == []
    ((_, _, reason),) = checks(check(load_set(runner(), owner(), odd), STREAM_ONLY))
    assert reason.startswith("lib/f.so is a filter for libg.so (DT_FILTER or DT_AUXILIARY), ")


def test_passes_a_program_that_makes_room_for_a_copy_of_the_owners_object() -> None:
    program = image("bin/a", kind=FileKind.PIE, needed=("libtable.so",), exports=("table_get",))
    symbols = ListedSymbols(tuple(program.symbols), copies=frozenset({"table_get"}))
    library = image("lib/libtable.so", soname="libtable.so", exports=("table_get",))
    world = load_set(replace(program, symbols=symbols), library)
    assert checks(check(world, small_policy(states=(TABLE,)))) == [
        ("bin/a", Outcome.PASS, "one copy of the table: lib/libtable.so")
    ]


def test_finds_a_second_registry_beside_the_shared_runtime() -> None:
    names = (REGISTER_BACKEND, GET_BACKEND)
    runtime = image("lib/libexecutorch.so", soname="libexecutorch.so", exports=names)
    delegate = image("lib/d.so", soname="libd.so", private=names)
    program = runner(needed=(OWNER, "libexecutorch.so"), imports=(*CONSUMER_SYMBOLS, *names))
    finding = only_finding(check(load_set(program, owner(), runtime, dlopened=(delegate,)), PROFILE))
    assert finding.evidence["state"] == "ExecuTorch backend registry"
    assert finding.evidence["copies"] == ["lib/libexecutorch.so", "lib/d.so"]


def test_passes_one_copy_in_the_owner() -> None:
    delegate = image("lib/d.so", soname="libd.so", needed=(OWNER,), imports=(ACCESSOR,))
    world = load_set(runner(), owner(), dlopened=(delegate,))
    assert checks(check(world, STREAM_ONLY)) == [
        ("bin/runner", Outcome.PASS, f"one copy of the caller stream: lib/{OWNER}")
    ]


def test_cannot_see_whether_a_running_process_has_bound_what_a_role_demands() -> None:
    weak = replace(symbol(ACCESSOR, defined=False), binding=SymbolBinding.WEAK)
    program = image("bin/host", kind=FileKind.PIE)
    delegate = replace(image("lib/d.so", soname="libd.so"), symbols=ListedSymbols((weak,)))
    world = load_set(program, dlopened=(owner(), delegate))
    settings = replace(STREAM_ONLY, roles=(role(files=("libd.so",), import_=(spec(ACCESSOR),)),))
    copy = f"one copy of the caller stream: lib/{OWNER}"
    ((_, outcome, reason),) = checks(check(world, settings))
    assert (outcome, reason) == (
        Outcome.NOT_APPLICABLE,
        "not every file that uses the caller stream finds a definition of it (LC402)",
    )
    # Nobody has seen whether the owner was opened with RTLD_GLOBAL.
    ((_, outcome, reason),) = checks(check(replace(world, observed=True), settings))
    assert outcome is Outcome.UNKNOWN
    assert reason.startswith("whether every file that must use the caller stream finds a definition of it hangs on ")
    ((_, outcome, reason),) = checks(check(replace(world, observed=True), replace(settings, roles=())))
    assert (outcome, reason) == (Outcome.PASS, copy)


def test_passes_the_only_copy_in_sight_beside_files_that_may_hide_others() -> None:
    hiding = [image(f"lib/{name}.so", soname=f"lib{name}.so", needed=(OWNER,)) for name in "de"]
    copy = f"the only copy in sight of the caller stream: lib/{OWNER}; "
    assert [reason for _, _, reason in checks(check(load_set(runner(), owner(), hiding[0]), STREAM_ONLY))] == [
        f"{copy}lib/d.so must import it and does not (LC301)"
    ]
    assert [reason for _, _, reason in checks(check(load_set(runner(), owner(), *hiding), STREAM_ONLY))] == [
        f"{copy}lib/d.so and lib/e.so must import it and do not (LC301)"
    ]


def test_cannot_see_a_state_that_nothing_touches_or_whose_owner_is_not_loaded() -> None:
    world = load_set(image("bin/a", kind=FileKind.PIE, imports=("printf",)))
    assert checks(check(world, PROFILE)) == [
        ("bin/a", Outcome.NOT_APPLICABLE, reason)
        for reason in ["nothing loaded touches the caller stream", *NO_RUNTIME]
    ]


def test_cannot_see_a_definition_where_only_imports_are_loaded() -> None:
    policy = small_policy(states=(TABLE,))
    assert checks(check(load_set(image("lib/x.so", imports=("table_get",))), policy)) == [
        ("lib/x.so", Outcome.NOT_APPLICABLE, "no loaded file defines the table")
    ]


def test_cannot_see_a_copy_in_a_missing_library() -> None:
    world = load_set(runner(needed=(OWNER, "libx.so")), owner(), missing=("libx.so",))
    assert checks(check(world, STREAM_ONLY)) == [
        ("bin/runner", Outcome.UNKNOWN, "libx.so not found, and it may hold another copy of the caller stream")
    ]
    external = replace(STREAM_ONLY, external=("libx.so",))
    assert [outcome for _, outcome, _ in checks(check(world, external))] == [Outcome.PASS]


def test_cannot_see_whether_a_missing_library_comes_before_two_copies() -> None:
    first = image("lib/a.so", soname="liba.so", exports=(ACCESSOR,))
    second = image("lib/b.so", soname="libb.so", exports=(ACCESSOR,))
    program = image("bin/host", kind=FileKind.PIE, needed=("libx.so",))
    world = load_set(program, dlopened=(first, second), missing=("libx.so",))
    assert checks(check(world, STREAM_ONLY)) == [
        (
            "bin/host",
            Outcome.UNKNOWN,
            (
                "libx.so not found, and what it defines or brings may lead all uses of the caller stream to one copy: "
                "without it they end up in lib/a.so and lib/b.so"
            ),
        )
    ]
    # What is declared external holds no state.
    assert findings(check(world, replace(STREAM_ONLY, external=("libx.so",))))


def test_finds_copies_that_look_nothing_up_whatever_is_missing() -> None:
    first = image("lib/a.so", soname="liba.so", exports=(ACCESSOR,))
    second = replace(image("lib/b.so", soname="libb.so", exports=(ACCESSOR,)), symbolic=True)
    program = image("bin/host", kind=FileKind.PIE, needed=("libx.so",))

    def judge(*opened: Image) -> list[Outcome]:
        return outcomes(check(load_set(program, dlopened=opened, missing=("libx.so",)), STREAM_ONLY))

    # The missing library may need the second one, and so bring it before the first.
    assert judge(first, second) == [Outcome.UNKNOWN]
    assert judge(replace(first, symbolic=True), second) == [Outcome.FINDING]
    hidden = image("lib/c.so", soname="libc.so", private=OWNER_SYMBOLS)
    finding = only_finding(check(load_set(program, dlopened=(first, hidden), missing=("libx.so",)), STREAM_ONLY))
    assert "Whatever libx.so may bring (not found), they do not become one." in finding.message


def test_finds_two_owners_whatever_is_missing() -> None:
    renamed = owner("lib/libexecutorch_extension_cuda.so", soname="libexecutorch_extension_cuda.so")
    world = load_set(runner(needed=("libx.so", OWNER)), owner(), renamed, missing=("libx.so",))
    assert "are 2 owner libraries in one process" in only_finding(check(world, STREAM_ONLY)).message


def test_cannot_see_a_copy_in_a_table_without_an_end() -> None:
    odd = image("lib/x.so", soname="libx.so", unseen="no hash table")

    def judge(settings: Settings, *missing: str) -> list[tuple[str, Outcome, str]]:
        return checks(check(load_set(runner(), owner(), odd, missing=missing), settings))

    unknown = [("bin/runner", Outcome.UNKNOWN, "lib/x.so: no hash table")]
    assert judge(STREAM_ONLY) == unknown
    # Also where something is missing that holds no state.
    assert judge(replace(STREAM_ONLY, external=("libcuda.so.1",)), "libcuda.so.1") == unknown
    split = load_set(runner(needed=(), private=OWNER_SYMBOLS), odd, dlopened=(owner(),))
    assert findings(check(split, STREAM_ONLY))
