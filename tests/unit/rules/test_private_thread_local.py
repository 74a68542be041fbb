"""LC404 private-thread-local, on plain values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import Confidence, FileKind, Outcome, Severity
from linkcheck.policy.settings import ROOT_OWNER
from linkcheck.rules.private_thread_local import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    OWNER,
    PROFILE,
    TABLE,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    owner,
    role,
    runner,
    small_policy,
    spec,
)

HIDDEN_DELEGATE = image("lib/d.so", soname="libd.so", imports=("printf",), tls=16)


def test_finds_the_segment_that_a_hidden_copy_leaves_in_a_runner() -> None:
    finding = only_finding(check(load_set(runner(needed=(), imports=("printf",), tls=16)), PROFILE))
    assert (finding.code, finding.severity, finding.confidence) == ("LC404", Severity.ERROR, Confidence.MEDIUM)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", ACCESSOR)
    assert finding.message == (
        "bin/runner has 16 bytes of thread-local storage of its own (PT_TLS) and imports nothing of the caller stream, "
        f"which is a thread_local of {OWNER} or libexecutorch_extension_cuda.so. A private copy whose symbols are "
        "hidden or stripped looks just like this."
    )
    assert "-lextension_cuda" in finding.remedy
    assert finding.evidence == {"thread_local_bytes": 16, "state": "caller stream", "demanded": True}


def test_says_how_the_file_is_loaded() -> None:
    demands = role(kind="library", import_=(PROFILE.states[0].symbols[0],))
    world = load_set(runner(needed=(OWNER, "libd.so")), owner(), HIDDEN_DELEGATE)
    finding = only_finding(check(world, small_policy(demands, states=PROFILE.states[:1])))
    assert finding.message.startswith(
        "lib/d.so (loaded as bin/runner -> lib/d.so) has 16 bytes of thread-local storage"
    )


def test_finds_a_copy_that_its_own_symbols_prove() -> None:
    finding = only_finding(check(load_set(runner(imports=(), exports=(ACCESSOR,), tls=16)), PROFILE))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert finding.message.endswith("It defines the symbols itself, so the storage is a second copy.")


@pytest.mark.parametrize("loaded_before", [False, True])
def test_finds_an_opened_file_that_plays_no_role_as_a_warning(loaded_before: bool) -> None:
    needed = (OWNER, "libd.so") if loaded_before else (OWNER,)
    others = (HIDDEN_DELEGATE,) if loaded_before else ()
    world = load_set(runner(needed=needed), owner(), *others, dlopened=(HIDDEN_DELEGATE,))
    finding = only_finding(check(world, PROFILE))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.LOW)
    assert finding.primary.path == "lib/d.so"
    assert (
        "no role says that the file must import the symbols, so the storage may be for something else."
        in finding.message
    )
    assert finding.evidence["demanded"] is False


def test_finds_what_belongs_to_the_program() -> None:
    state = replace(TABLE, owner=(ROOT_OWNER,))
    policy = small_policy(role(kind="library", import_=(spec("table_get"),)), states=(state,))
    finding = only_finding(check(load_set(image("bin/a", kind=FileKind.PIE), image("lib/p.so", tls=8)), policy))
    assert "which is a thread_local of the program itself. A private copy" in finding.message


def test_passes_a_file_with_storage_of_its_own_that_imports_the_state() -> None:
    world = load_set(runner(tls=64), owner())
    assert checks(check(world, PROFILE)) == [("bin/runner", Outcome.PASS, "imports the caller stream")]


def test_cannot_see_a_copy_where_no_storage_is() -> None:
    assert checks(check(load_set(runner(imports=())), PROFILE)) == [
        ("bin/runner", Outcome.NOT_APPLICABLE, "no PT_TLS segment")
    ]


def test_cannot_see_imports_in_a_table_without_an_end() -> None:
    world = load_set(runner(imports=(), tls=16, unseen="no hash table"))
    assert checks(check(world, PROFILE)) == [("bin/runner", Outcome.UNKNOWN, "no hash table")]


def test_cannot_see_a_copy_in_a_needed_file_that_plays_no_role() -> None:
    # libstdc++ and many others have thread-local storage: nothing tells such a delegate from them.
    world = load_set(runner(needed=(OWNER, "libd.so")), owner(), HIDDEN_DELEGATE)
    assert findings(check(world, PROFILE)) == []


def test_cannot_see_a_state_that_is_judged_only_with_its_owner() -> None:
    state = replace(TABLE, only_with_owner=True)
    policy = small_policy(states=(state,))
    alone = load_set(image("bin/a", kind=FileKind.PIE), dlopened=(HIDDEN_DELEGATE,))
    assert list(check(alone, policy)) == []
    table = image("lib/t.so", soname="libtable.so.1", exports=("table_get", "table_set"))
    beside = load_set(image("bin/a", kind=FileKind.PIE, needed=("libtable.so.1",)), table, dlopened=(HIDDEN_DELEGATE,))
    assert len(findings(check(beside, policy))) == 1


def test_cannot_see_a_state_that_is_not_thread_local() -> None:
    policy = small_policy(role(import_=(spec("table_get"),)), states=(replace(TABLE, thread_local=False),))
    assert list(check(load_set(image("lib/p.so", tls=16)), policy)) == []


def test_suspects_nothing_that_a_running_process_has_opened_while_nothing_touches_the_state() -> None:
    plugin = image("lib/plugin.so", tls=8)
    policy = small_policy(states=(TABLE,))
    world = load_set(image("bin/app", kind=FileKind.PIE), dlopened=(plugin,))
    assert len(findings(check(world, policy))) == 1
    seen = replace(world, observed=True)
    reason = "nothing that the process loads touches the table"
    assert checks(check(seen, policy)) == [("lib/plugin.so", Outcome.NOT_APPLICABLE, reason)]
    user = image("lib/libuser.so", imports=("table_get",))
    both = replace(load_set(image("bin/app", kind=FileKind.PIE), user, dlopened=(plugin,)), observed=True)
    assert len(findings(check(both, policy))) == 1
