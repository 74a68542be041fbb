"""LC203 unreachable-needed, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Attempt, FoundBy, LoadSet, Outcome, Severity, Unresolved
from linkcheck.rules.unreachable_needed import check, origin_entry
from tests.unit.rules.worlds import PROFILE, checks, image, load_set, only_finding, owner, runner, small_policy

REJECTED = Attempt("lib/libd.so", FoundBy.RUNPATH, "not ELF: a static archive")


def world(**more: object) -> LoadSet:
    """libc_.so needs libd.so, which lies beside it."""
    missing = Unresolved(1, "libd.so", ("/lib", "/usr/lib"), elsewhere=("lib/libd.so",), **more)  # type: ignore[arg-type]
    return load_set(
        runner(needed=("libc_.so",)),
        image("lib/libc_.so", soname="libc_.so", needed=("libd.so",)),
        unresolved=(missing,),
    )


def test_finds_a_library_beside_the_file_that_needs_it() -> None:
    finding = only_finding(check(world(), PROFILE))
    assert (finding.code, finding.severity) == ("LC203", Severity.ERROR)
    assert (finding.primary.path, finding.primary.symbol) == ("lib/libc_.so", "libd.so")
    assert "lib/libc_.so needs libd.so, which exists at lib/libd.so, but no search path" in finding.message
    assert "\n    /lib\n    /usr/lib" in finding.message
    assert "    -Wl,-rpath,'$ORIGIN'\n" in finding.remedy
    assert 'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}lib"' in finding.remedy
    assert finding.evidence["add"] == "$ORIGIN"
    assert [place.path for place in finding.related] == ["lib/libd.so"]


def test_says_that_the_cache_could_not_be_used() -> None:
    fault = "/etc/ld.so.cache: truncated header"
    finding = only_finding(check(world(cache_fault=fault), PROFILE))
    assert f"ld.so passes over it as well: {fault}." in finding.message
    assert finding.evidence["cache"] == fault


@pytest.mark.parametrize(
    ("path", "directory", "entry"),
    [
        ("bin/runner", "lib", "$ORIGIN/../lib"),
        ("lib/libx.so", "lib", "$ORIGIN"),
        ("runner", "lib", "$ORIGIN/lib"),
        ("runner", ".", "$ORIGIN"),
        ("/opt/a/bin/runner", "/opt/a/lib/deep", "$ORIGIN/../lib/deep"),
    ],
)
def test_finds_the_entry_to_add(path: str, directory: str, entry: str) -> None:
    assert origin_entry(path, directory) == entry


def test_passes_a_process_with_nothing_missing() -> None:
    assert checks(check(load_set(runner(), owner()), PROFILE)) == [("bin/runner", Outcome.PASS, "")]


def test_cannot_see_a_library_that_is_nowhere_near() -> None:
    nowhere = load_set(runner(needed=("libz.so.9",)), missing=("libz.so.9",))
    assert checks(check(nowhere, PROFILE)) == [("bin/runner", Outcome.PASS, "")]


def test_cannot_see_what_is_external_or_cannot_be_loaded() -> None:
    assert checks(check(world(), small_policy(external=("libd.so",)))) == [("bin/runner", Outcome.PASS, "")]
    assert checks(check(world(rejected=(REJECTED,)), PROFILE)) == [("bin/runner", Outcome.PASS, "")]
