"""LC202 unresolved-needed, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Attempt, Confidence, FoundBy, Outcome, Severity, Unresolved
from linkcheck.rules.unresolved_needed import check
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


def test_finds_a_missing_library_and_names_the_directories_tried() -> None:
    world = load_set(runner(needed=("libnvinfer.so.11",)), missing=("libnvinfer.so.11",))
    finding = only_finding(check(world, PROFILE))
    assert (finding.code, finding.severity, finding.confidence) == ("LC202", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", "libnvinfer.so.11")
    assert finding.message == (
        "bin/runner needs libnvinfer.so.11, and no such file is in any of the 2 directories that the loader searches:"
        "\n    lib\n    /usr/lib"
    )
    assert (
        'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}<directory of libnvinfer.so.11>"'
        in finding.remedy
    )
    assert 'external = ["libnvinfer.so.11"]' in finding.remedy
    assert finding.evidence["searched"] == ["lib", "/usr/lib"]


def test_finds_the_chain_that_leads_to_who_needs_it() -> None:
    world = load_set(
        runner(needed=("liba.so",)),
        image("lib/a.so", soname="liba.so", needed=("libb.so",)),
        image("lib/b.so", soname="libb.so", needed=("libz.so.9",)),
        unresolved=(Unresolved(2, "libz.so.9", ("lib",)),),
    )
    finding = only_finding(check(world, PROFILE))
    assert finding.primary.path == "lib/b.so"
    assert "It is wanted through bin/runner -> lib/a.so -> lib/b.so." in finding.message
    assert finding.evidence["chain"] == ["bin/runner", "lib/a.so", "lib/b.so"]


def test_finds_the_name_that_is_there_instead() -> None:
    missing = Unresolved(0, "libf.so.10", ("lib",), similar=("lib/libf.so", "lib/libf.so.9"))
    finding = only_finding(check(load_set(runner(needed=("libf.so.10",)), unresolved=(missing,)), PROFILE))
    assert "There are lib/libf.so and lib/libf.so.9, but the name that is recorded is libf.so.10." in finding.message


def test_finds_a_path_that_is_not_there() -> None:
    missing = Unresolved(0, "/opt/x/libf.so", ())
    finding = only_finding(check(load_set(runner(needed=("/opt/x/libf.so",)), unresolved=(missing,)), PROFILE))
    assert finding.message == "bin/runner needs /opt/x/libf.so, and there is no such file."


@pytest.mark.parametrize(
    ("needed", "option"), [("/opt/x/libf.so", "-lf"), ("./libf.so.1", "-l:libf.so.1"), ("../x/part.so", "-l:part.so")]
)
def test_no_search_path_is_the_remedy_for_a_name_with_a_slash(needed: str, option: str) -> None:
    world = load_set(runner(needed=(needed,)), unresolved=(Unresolved(0, needed, ()),))
    remedy = only_finding(check(world, PROFILE)).remedy
    assert "LD_LIBRARY_PATH" not in remedy
    assert f"-Wl,-soname,{needed.rpartition('/')[2]} " in remedy
    assert f"-L<directory> {option}\n" in remedy
    assert ("from the directory that the process runs in" in remedy) is needed.startswith(".")
    assert f'external = ["{needed}"]' in remedy


def test_says_that_the_cache_could_not_be_used() -> None:
    fault = "/etc/ld.so.cache: truncated header"
    missing = Unresolved(0, "libz.so.9", ("lib",), cache_fault=fault)
    finding = only_finding(check(load_set(runner(needed=("libz.so.9",)), unresolved=(missing,)), PROFILE))
    assert f"ld.so.cache was of no use, and ld.so passes over it as well: {fault}." in finding.message
    assert finding.evidence["cache"] == fault
    usual = only_finding(check(load_set(runner(), missing=("libz.so.9",)), PROFILE))
    assert "cache" not in usual.message
    assert usual.evidence["cache"] is None


def test_finds_what_is_opened_and_not_there() -> None:
    world = load_set(runner(), owner(), missing=("libplugin.so",))
    assert "bin/runner opens libplugin.so, and " in only_finding(check(world, PROFILE)).message


def test_passes_a_process_with_nothing_missing_and_counts_its_files() -> None:
    assert checks(check(load_set(runner(), owner()), PROFILE)) == [
        ("bin/runner", Outcome.PASS, "2 files, every DT_NEEDED found")
    ]


def test_cannot_see_what_the_target_machine_provides() -> None:
    world = load_set(runner(needed=("libcuda.so.1", "libz.so.9")), missing=("libcuda.so.1", "libz.so.9"))
    results = list(check(world, small_policy(external=("libcuda.so*",))))
    assert checks(results) == [("bin/runner", Outcome.NOT_APPLICABLE, "libcuda.so.1 is declared external")]
    assert [f.primary.symbol for f in findings(results)] == ["libz.so.9"]


def test_cannot_see_what_other_rules_speak_of() -> None:
    attempt = Attempt("lib/liba.so", FoundBy.RUNPATH, "wrong machine: aarch64, 64-bit, little-endian")
    rejected = Unresolved(0, "liba.so", ("lib",), rejected=(attempt,))
    elsewhere = Unresolved(0, "libb.so", ("lib",), elsewhere=("other/libb.so",))
    world = load_set(runner(needed=("liba.so", "libb.so")), unresolved=(rejected, elsewhere))
    assert checks(check(world, PROFILE)) == [
        (
            "bin/runner",
            Outcome.NOT_APPLICABLE,
            "lib/liba.so is there but cannot be loaded: wrong machine: aarch64, 64-bit, little-endian",
        ),
        ("bin/runner", Outcome.NOT_APPLICABLE, "libb.so exists where no search path reaches it (LC203)"),
    ]


def test_says_of_each_file_why_its_own_libraries_were_not_searched_for() -> None:
    def missing(module: int, needed: str, given_up: str, *elsewhere: str) -> Unresolved:
        return Unresolved(module, needed, (), given_up=given_up, elsewhere=elsewhere)

    world = load_set(
        runner(needed=("libleft.so", "liba.so", "libb.so", "libc_.so")),
        image("lib/libc_.so", soname="libc_.so", needed=("libd.so",)),
        unresolved=(
            missing(0, "libleft.so", "of what is external"),
            missing(0, "liba.so", "one", "lib/liba.so"),
            missing(0, "libb.so", "two"),
            missing(1, "libd.so", "two"),
        ),
    )
    assert checks(check(world, replace(PROFILE, external=("libleft.so",)))) == [
        ("bin/runner", Outcome.UNKNOWN, "liba.so (there is one at lib/liba.so) not found: one"),
        ("bin/runner", Outcome.UNKNOWN, "libb.so not found: two"),
        ("lib/libc_.so", Outcome.UNKNOWN, "libd.so not found: two"),
    ]


def test_offers_external_neither_for_an_owner_nor_for_what_only_the_user_names() -> None:
    owning = load_set(runner(needed=("libextension_cuda.so",)), missing=("libextension_cuda.so",))
    assert "external" not in only_finding(check(owning, PROFILE)).remedy
    opened = load_set(runner(), missing=("nosuch.so",))
    remedy = only_finding(check(opened, PROFILE)).remedy
    assert "external" not in remedy
    assert "Correct the name" in remedy
