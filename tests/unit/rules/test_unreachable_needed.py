"""LC203 unreachable-needed, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Attempt, FoundBy, Libc, LoadSet, Outcome, Severity, Unresolved
from linkcheck.rules.unreachable_needed import check, origin_entry
from linkcheck.value import replace
from tests.unit.rules.worlds import (
    PROFILE,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    owner,
    runner,
    small_policy,
)

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
    line = 'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$PWD/lib"'
    assert finding.remedy.endswith(f"or append the directory at run time:\n    {line}")
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


def test_finds_several_and_each_has_the_line_for_all_of_them() -> None:
    names = ("libnvinfer.so.11", "libcudart.so.13", "libnvinfer_plugin.so.11", "libcuda.so.1")
    places = ("/sdk/trt/lib", "/sdk/cuda/lib", "/sdk/trt/lib", "/sdk/driver")
    missing = tuple(
        Unresolved(0, name, ("/lib",), elsewhere=(f"{place}/{name}",))
        for name, place in zip(names, places, strict=True)
    )
    results = list(check(load_set(runner(needed=names), unresolved=missing), small_policy(external=("libcuda.so*",))))
    found = findings(results)
    assert [finding.primary.symbol for finding in found] == list(names[:3])
    line = 'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/sdk/trt/lib:/sdk/cuda/lib"'
    assert [finding.remedy.splitlines()[-1] for finding in found] == [f"    {line}"] * 3
    assert "or append the directories at run time:" in found[0].remedy


def test_finds_a_library_in_an_archive_and_proposes_no_environment() -> None:
    missing = Unresolved(0, "libd.so", ("/lib",), elsewhere=("x.whl!/x/lib/libd.so",))
    archived = load_set(image("x.whl!/x/m.so", needed=("libd.so",)), unresolved=(missing,))
    finding = only_finding(check(archived, PROFILE))
    assert "$ORIGIN/lib" in finding.remedy
    assert "LD_LIBRARY_PATH" not in finding.remedy


def test_passes_a_process_with_nothing_missing() -> None:
    assert checks(check(load_set(runner(), owner()), PROFILE)) == [("bin/runner", Outcome.PASS, "")]


def test_cannot_see_a_library_that_is_nowhere_near() -> None:
    nowhere = load_set(runner(needed=("libz.so.9",)), missing=("libz.so.9",))
    assert checks(check(nowhere, PROFILE)) == [("bin/runner", Outcome.PASS, "")]


def test_cannot_see_what_is_external_or_cannot_be_loaded() -> None:
    assert checks(check(world(), small_policy(external=("libd.so",)))) == [("bin/runner", Outcome.PASS, "")]
    assert checks(check(world(rejected=(REJECTED,)), PROFILE)) == [("bin/runner", Outcome.PASS, "")]


def test_a_file_for_glibc_is_given_no_search_path_when_musl_loads_it() -> None:
    missing = Unresolved(0, "ld-linux-x86-64.so.2", ("/lib",), elsewhere=("/lib64/ld-linux-x86-64.so.2",))
    of_musl = replace(load_set(runner(needed=("ld-linux-x86-64.so.2",)), unresolved=(missing,)), libc=Libc.MUSL)
    finding = only_finding(check(of_musl, PROFILE))
    assert "is linked for glibc, and this process starts with musl's loader" in finding.message
    assert "rpath" not in finding.remedy
