"""LC303 wrong-provider, on plain values."""

from __future__ import annotations

from dataclasses import replace

from linkcheck.model import Outcome, Severity, Unresolved
from linkcheck.rules.wrong_provider import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    OWNER,
    OWNER_SYMBOLS,
    PROFILE,
    TABLE,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    owner,
    runner,
    small_policy,
)

STREAM_ONLY = replace(PROFILE, states=PROFILE.states[:1])
OTHER = image("lib/libother.so", soname="libother.so", exports=OWNER_SYMBOLS)


def test_finds_an_import_that_an_earlier_library_answers() -> None:
    world = load_set(runner(needed=("libother.so", OWNER)), OTHER, owner())
    finding = only_finding(check(world, STREAM_ONLY))
    assert (finding.code, finding.severity) == ("LC303", Severity.ERROR)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", ACCESSOR)
    assert finding.evidence["providers"] == ["lib/libother.so"]
    assert "bin/runner -> lib/libother.so" in finding.message


def test_says_how_the_file_that_imports_is_loaded() -> None:
    user = image("lib/libuser.so", soname="libuser.so", needed=(OWNER,), imports=(ACCESSOR,))
    world = load_set(runner(needed=("libother.so", "libuser.so"), imports=()), OTHER, user, owner())
    assert (
        "lib/libuser.so (loaded as bin/runner -> lib/libuser.so) imports"
        in only_finding(check(world, STREAM_ONLY)).message
    )


def test_finds_a_demanded_import_without_any_owner() -> None:
    finding = only_finding(check(load_set(runner(needed=("libother.so",)), OTHER), STREAM_ONLY))
    assert finding.primary.path == "bin/runner"
    assert "When lib/libother.so is the owner, the policy is wrong: add libother.so to `owner` of the state" in (
        finding.remedy
    )


def test_doubts_the_policy_only_where_no_owner_is_loaded() -> None:
    world = load_set(runner(needed=("libother.so", OWNER)), OTHER, owner())
    assert "the policy is wrong" not in only_finding(check(world, STREAM_ONLY)).remedy


def test_passes_imports_that_are_bound_to_the_owner() -> None:
    world = load_set(runner(needed=(OWNER, "libother.so")), owner(), OTHER)
    reason = "its imports of the caller stream are bound to the owner"
    assert checks(check(world, STREAM_ONLY)) == [("bin/runner", Outcome.PASS, reason)]


def test_passes_over_a_process_without_owner_in_which_nobody_has_to_import() -> None:
    user = image("lib/libuser.so", soname="libuser.so", needed=("libtwo.so",), imports=("table_get",))
    two = image("lib/libtwo.so", soname="libtwo.so", exports=("table_get",))
    assert list(check(load_set(user, two), small_policy(states=(TABLE,)))) == []


def test_passes_over_a_state_that_counts_only_with_its_owner() -> None:
    only = replace(TABLE, only_with_owner=True)
    user = image("lib/libuser.so", soname="libuser.so", needed=("libtwo.so",), imports=("table_get",))
    two = image("lib/libtwo.so", soname="libtwo.so", exports=("table_get",))
    policy = small_policy(states=(only,))
    assert list(check(load_set(user, two), policy)) == []
    real = image("lib/libtable.so", soname="libtable.so", exports=("table_get", "table_set"))
    assert len(findings(check(load_set(replace(user, needed=("libtwo.so", "libtable.so")), two, real), policy))) == 1


def test_cannot_see_behind_a_filter() -> None:
    world = load_set(runner(filters=("libhid.so",)), owner())
    [(subject, outcome, _)] = checks(check(world, STREAM_ONLY))
    assert (subject, outcome) == ("bin/runner", Outcome.UNKNOWN)


def test_does_not_pass_while_a_library_is_missing() -> None:
    world = load_set(runner(needed=("libgone.so", OWNER)), owner(), missing=("libgone.so",))
    reason = "libgone.so not found, and it may define the caller stream before the owner does"
    assert checks(check(world, STREAM_ONLY)) == [("bin/runner", Outcome.UNKNOWN, reason)]
    external = replace(STREAM_ONLY, external=("libgone.so",))
    [(_, outcome, _)] = checks(check(world, external))
    assert outcome is Outcome.PASS


def test_passes_an_import_that_a_missing_library_behind_the_owner_cannot_take() -> None:
    world = load_set(runner(needed=(OWNER, "libgone.so")), owner(), missing=("libgone.so",))
    assert [outcome for _, outcome, _ in checks(check(world, STREAM_ONLY))] == [Outcome.PASS]


def test_does_not_blame_the_one_behind_a_missing_owner() -> None:
    world = load_set(runner(needed=(OWNER, "libother.so")), OTHER, missing=(OWNER,))
    reason = f"{OWNER} not found, and it may be the owner that its imports of the caller stream get"
    assert checks(check(world, STREAM_ONLY)) == [("bin/runner", Outcome.UNKNOWN, reason)]
    before = load_set(runner(needed=("libother.so", OWNER)), OTHER, missing=(OWNER,))
    only_finding(check(before, STREAM_ONLY))


def test_does_not_pass_while_nobody_knows_where_the_unseen_file_stands() -> None:
    mapped = Unresolved(0, "/opt/libgone.so (deleted)", ())
    world = load_set(runner(needed=(OWNER,)), owner(), unresolved=(mapped,))
    assert [outcome for _, outcome, _ in checks(check(world, STREAM_ONLY))] == [Outcome.UNKNOWN]


def test_finds_a_wrong_provider_whatever_is_missing() -> None:
    world = load_set(runner(needed=("libother.so", "libgone.so", OWNER)), OTHER, owner(), missing=("libgone.so",))
    only_finding(check(world, STREAM_ONLY))


def test_does_not_blame_one_that_comes_in_behind_what_a_missing_library_may_bring() -> None:
    """The missing library may need the owner, which is then before all that only files behind the library need."""
    user = image("lib/libuser.so", soname="libuser.so", needed=("libother.so", OWNER), imports=(ACCESSOR,))
    program = runner(needed=("libgone.so", "libuser.so"), imports=())
    world = load_set(program, user, OTHER, owner(), missing=("libgone.so",))
    reason = "libgone.so not found, and it may bring the owner before what its imports of the caller stream get"
    assert checks(check(world, STREAM_ONLY)) == [("lib/libuser.so", Outcome.UNKNOWN, reason)]
    behind = runner(needed=("libuser.so", "libother.so", "libgone.so"), imports=())
    only_finding(check(load_set(behind, user, OTHER, owner(), missing=("libgone.so",)), STREAM_ONLY))
    only_finding(check(world, replace(STREAM_ONLY, external=("libgone.so",))))


def test_does_not_pass_when_a_file_in_the_scope_cannot_be_seen() -> None:
    blind = image("lib/libblind.so", soname="libblind.so", unseen="its symbols cannot be counted")
    world = load_set(runner(needed=("libblind.so", OWNER)), blind, owner())
    reason = "lib/libblind.so: its symbols cannot be counted"
    assert checks(check(world, STREAM_ONLY)) == [("bin/runner", Outcome.UNKNOWN, reason)]
    beyond = load_set(runner(), owner(), dlopened=(blind,))  # opened locally: nothing of the runner is looked up in it
    assert [outcome for _, outcome, _ in checks(check(beyond, STREAM_ONLY))] == [Outcome.PASS]
