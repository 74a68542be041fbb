"""LC403 duplicate-library, on plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from linkcheck.model import Check, Confidence, FileKind, Outcome, Severity
from linkcheck.policy.settings import Settings
from linkcheck.rules.duplicate_library import check, check_scanned
from linkcheck.rules.library_copies import Likeness, ScannedFiles, find_copies
from linkcheck.rules.state_copies import check_scanned as check_states
from tests.unit.rules.worlds import (
    OWNER,
    OWNER_SYMBOLS,
    PROFILE,
    X86_64,
    checks,
    findings,
    image,
    load_set,
    only,
    only_finding,
    owner,
    runner,
    small_policy,
)

if TYPE_CHECKING:
    from linkcheck.model import Image, LoadSet

NAMES = tuple(f"omp_{verb}" for verb in ("get", "set", "start", "stop", "init"))
NOTHING = Settings("test")


def gomp(soname: str = "libgomp.so.1", *, path: str = "", build_id: str | None = None, **facts: object) -> Image:
    made = image(path or f"lib/{soname}", soname=soname, **{"exports": NAMES, **facts})  # type: ignore[arg-type]
    return replace(made, build_id=build_id)


def program(*needed: Image) -> Image:
    return image("bin/main", kind=FileKind.PIE, needed=[one.name for one in needed])


def likeness(*images: Image) -> list[Likeness]:
    def cannot_tell(reason: str) -> None:
        raise AssertionError(reason)

    return [copies.likeness for copies in find_copies(images, cannot_tell)]


# ---------------------------------------------------------------- one process


def test_finds_one_build_under_two_names() -> None:
    first = gomp("libgomp-aaaaaaaa.so.1.0.0", build_id="c0ffee")
    second = gomp("libother.so", build_id="c0ffee", exports=())
    user = image("lib/user.so", soname="user.so", needed=(second.name,))
    finding = only_finding(check(load_set(program(first, user), first, user, second), NOTHING))
    assert (finding.code, finding.severity, finding.confidence) == ("LC403", Severity.WARNING, Confidence.HIGH)
    assert finding.message.splitlines() == [
        "One process would load 2 copies of one library, each with its own state:",
        f"    bin/main -> {first.path}",
        f"    bin/main -> lib/user.so -> {second.path}",
        "They are one build: all have the build ID c0ffee.",
    ]
    assert "auditwheel repair --exclude" in finding.remedy
    assert finding.primary.path == "bin/main"
    assert [place.path for place in finding.related] == [first.path, second.path]
    assert finding.evidence["likeness"] == "two SONAMEs of one build"


def test_finds_two_builds_with_like_names_and_the_same_exports() -> None:
    first, second = gomp(build_id="one"), gomp("libgomp-a34b3233.so.1.0.0", build_id="two", exports=(*NAMES, "new"))
    finding = only_finding(check(load_set(program(first, second), first, second), NOTHING))
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message.endswith(
        "They are different builds (their build IDs differ); of the 6 names that any of them exports, both export 5."
    )


def test_finds_one_soname_loaded_by_two_paths() -> None:
    first, second = gomp(path="a/libgomp.so.1"), gomp(path="b/libgomp.so.1")
    finding = only_finding(check(load_set(program(), dlopened=(first, second)), NOTHING))
    assert finding.evidence["likeness"] == "one SONAME in two files"
    assert "Not all of them have a build ID" in finding.message


def test_passes_libraries_that_differ() -> None:
    images = (gomp(), gomp("libgomp.so.2", exports=tuple(f"other_{n}" for n in NAMES)), gomp("libtbb.so"))
    result = only(check(load_set(program(*images), *images), NOTHING))
    assert isinstance(result, Check)
    assert (result.outcome, result.reason) == (Outcome.PASS, "4 files, no library twice")


def test_cannot_see_what_a_missing_library_brings() -> None:
    world = load_set(program(), missing=("libgone.so",))
    result = only(check(world, NOTHING))
    assert isinstance(result, Check)
    assert (result.outcome, result.reason) == (
        Outcome.UNKNOWN,
        "libgone.so not found, and it may bring another copy of a library",
    )
    assert [c[1] for c in checks(check(world, small_policy(external=("libgone*",))))] == [Outcome.PASS]


def test_cannot_see_the_exports_of_a_table_that_is_not_there() -> None:
    first, second = gomp(), gomp("libgomp-a34b3233.so.1", unseen="it has no hash table", exports=())
    result = only(check(load_set(program(first, second), first, second), NOTHING))
    assert isinstance(result, Check)
    assert (result.outcome, result.reason) == (Outcome.UNKNOWN, f"{second.path}: it has no hash table")


# ---------------------------------------------------------------- what is a copy


def test_a_file_is_no_copy_of_itself() -> None:
    one = replace(gomp(path="a/libgomp.so.1", build_id="x"), device=1, inode=7)
    assert likeness(one, replace(one, path="b/link.so")) == [Likeness.SAME_FILE]
    assert likeness(one, one) == []
    other = replace(one, path="c/libgomp.so.1", inode=8)
    assert likeness(one, replace(one, path="b/link.so"), other) == [Likeness.SAME_FILE, Likeness.SAME_SONAME]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (gomp(), gomp("libgomp.so.2", exports=NAMES[:3])),  # three names in common say nothing
        (gomp(), gomp("libiomp.so.5")),  # one interface, two libraries
        (gomp(), gomp("libgomp-bad.so")),  # "bad" is no hash
        (gomp("a.so", build_id=None), gomp("b.so", build_id=None)),
        (gomp(build_id="x"), replace(gomp("b.so", build_id="x"), target=replace(X86_64, machine=183))),
        (gomp(build_id="x"), gomp("b.so", build_id="x", kind=FileKind.PIE)),
        (gomp(exports=()), gomp("libgomp-a34b3233.so.1", exports=())),
    ],
)
def test_what_only_looks_alike_is_no_copy(first: Image, second: Image) -> None:
    assert likeness(first, second) == []


def test_extension_modules_of_one_name_are_no_copies() -> None:
    exports = ("PyInit__C", "a", "b", "c", "d")
    first, second = (gomp("_C.so", path=f"{place}/_C.so", exports=exports) for place in ("one", "two"))
    assert likeness(first, second) == [Likeness.NAMESAKES]
    assert not findings(check(load_set(program(), dlopened=(first, second)), NOTHING))
    scanned = ScannedFiles((first, second), (), {})
    assert [c[1] for c in checks(check_scanned(scanned, NOTHING))] == [Outcome.PASS]


def test_three_copies_are_one_group() -> None:
    images = (gomp(build_id="x"), gomp("libb.so", build_id="x"), gomp(path="c/libgomp.so.1", build_id="y"))
    (copies,) = find_copies(images, lambda reason: None)
    assert copies.images == images


# ---------------------------------------------------------------- scan


def scanned(*images: Image, load_sets: tuple[LoadSet, ...] = ()) -> ScannedFiles:
    return ScannedFiles(images, load_sets, {one.path: 1000 + index for index, one in enumerate(images)})


def test_two_files_of_one_soname_are_information() -> None:
    first, second = owner("a/lib.so"), replace(owner("b/lib.so"), build_id="y")
    main = runner("a/runner")
    files = scanned(main, first, second, load_sets=(load_set(main, first),))
    finding = only_finding(check_scanned(files, PROFILE))
    assert finding.severity is Severity.INFO
    assert finding.message.splitlines() == [
        f"2 files have the SONAME {OWNER}:",
        "    a/lib.so (1,001 bytes, loaded by a/runner)",
        "    b/lib.so (1,002 bytes, opened by nobody here)",
        "Not all of them have a build ID; both export the same 5 names. Each defines the caller stream.",
        (
            "A process that reaches them by DT_NEEDED loads the first only: for the others the loader takes what is "
            "loaded under that SONAME. A process that opens each by its path holds two copies. "
            "No root here loads two of them."
        ),
    ]


def test_two_sonames_of_one_build_are_two_copies_however_they_are_reached() -> None:
    files = scanned(gomp(build_id="x"), gomp("libgomp-a34b3233.so.1", build_id="x"))
    message = only_finding(check_scanned(files, NOTHING)).message
    assert "One library is there under 2 names, libgomp.so.1 and libgomp-a34b3233.so.1:" in message
    assert "holds two copies, whichever way it reaches them" in message


def test_one_file_found_twice_is_one_copy() -> None:
    one = replace(gomp(), device=1, inode=7)
    message = only_finding(check_scanned(scanned(one, replace(one, path="link.so")), NOTHING)).message
    assert message.startswith("One file is found under 2 paths; the loader maps it once:")


def test_what_a_root_loads_together_is_said_of_that_process_only() -> None:
    first, second = gomp(build_id="x"), gomp("libb.so", build_id="x")
    together = load_set(program(first, second), first, second)
    (result,) = check_scanned(scanned(first, second, load_sets=(together,)), NOTHING)
    reason = "2 files, no library twice but for what one process here loads together"
    assert result == Check("LC403", first.path, Outcome.PASS, reason)
    assert findings(check(together, NOTHING))


def test_what_is_there_once_is_said_so() -> None:
    (result,) = check_scanned(scanned(gomp(build_id="x"), runner()), NOTHING)
    assert result == Check("LC403", gomp().path, Outcome.PASS, "2 files, no library twice")


def test_of_three_the_names_that_all_export_are_counted() -> None:
    builds = [gomp(path=f"{place}/libgomp.so.1", build_id=place) for place in ("a", "b", "c")]
    same = only_finding(check_scanned(scanned(*builds), NOTHING)).message
    assert f"; all 3 export the same {len(tuple(builds[0].symbols.exports()))} names." in same


def test_namesakes_count_where_somebody_needs_the_name() -> None:
    first = gomp("libutil.so", path="a/libutil.so")
    second = gomp("libutil.so", path="b/libutil.so", exports=("x", "y", "z", "u"))
    assert not findings(check_scanned(scanned(first, second), NOTHING))
    user = image("a/user.so", needed=("libutil.so",))
    finding = only_finding(check_scanned(scanned(first, second, user), NOTHING))
    assert (finding.severity, finding.evidence["likeness"]) == (Severity.INFO, "two libraries of one SONAME")


def test_states_with_several_definers_are_information() -> None:
    first = owner("a/lib.so")
    second = image("b/libstatic.so", soname="libstatic.so", exports=(*OWNER_SYMBOLS, *(f"f{n}" for n in range(9))))
    finding = only_finding(check_states(scanned(first, second), PROFILE))
    assert (finding.code, finding.severity) == ("LC401", Severity.INFO)
    assert finding.message.startswith("2 files define the caller stream:\n    a/lib.so (SONAME libextension_cuda.so)\n")
    # Loaded together they are LC401's own business, and two copies of one library are LC403's.
    together = load_set(runner(), first, dlopened=(second,))
    assert not list(check_states(scanned(first, second, load_sets=(together,)), PROFILE))
    assert not list(check_states(scanned(first, owner("c/lib.so")), PROFILE))
