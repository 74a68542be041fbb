"""LC201 missing-needed, on plain values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import Confidence, FileKind, Outcome, Severity
from linkcheck.policy.one_off import make_one_off_roles
from linkcheck.policy.settings import Settings
from linkcheck.rules.missing_needed import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    OWNER,
    PROFILE,
    REGISTER_BACKEND,
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
)

ANY_OWNER = (OWNER, f"{OWNER}.1", "libexecutorch_extension_cuda.so", "libexecutorch_extension_cuda.so.1.5")


def test_finds_a_runner_that_does_not_need_the_owner() -> None:
    finding = only_finding(check(load_set(runner(needed=("libm.so.6", "libc.so.6"))), PROFILE))
    assert (finding.code, finding.severity, finding.confidence) == ("LC201", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", OWNER)
    owners = f"{OWNER} or libexecutorch_extension_cuda.so, the owner of the caller stream"
    assert f"bin/runner has no DT_NEEDED entry for {owners}, " in finding.message
    assert "as a runner must; it needs libm.so.6 and libc.so.6." in finding.message
    assert "target_link_libraries(<target> PRIVATE executorch::extension_cuda)" in finding.remedy
    assert "-lextension_cuda" in finding.remedy
    assert finding.evidence["needed"] == ["libm.so.6", "libc.so.6"]
    assert finding.evidence["role"] == "runner"


def test_names_libraries_and_not_patterns_where_no_state_has_these_owners() -> None:
    patterns = ("libtable.so", "libtable.so.[0-9]*")
    finding = only_finding(check(load_set(runner(needed=())), small_policy(role(need=patterns))))
    assert "has no DT_NEEDED entry for libtable.so, as a part must" in finding.message
    assert finding.remedy == "Link bin/runner against libtable.so."
    only_patterns = only_finding(check(load_set(runner(needed=())), small_policy(role(need=("libtable.so*",)))))
    assert "*" not in only_patterns.message + only_patterns.remedy
    assert only_patterns.evidence["required"] == ["libtable.so*"]


@pytest.mark.parametrize("kind", [FileKind.STATIC_PIE, FileKind.EXECUTABLE])
def test_finds_a_static_program_as_well(kind: FileKind) -> None:
    finding = only_finding(check(load_set(runner(kind=kind, needed=())), PROFILE))
    assert "as a runner must; it needs nothing." in finding.message


def test_finds_a_delegate_that_says_only_that_it_uses_cuda() -> None:
    delegate = image(
        "lib/d.so", soname="libd.so", needed=("libcudart.so.13", "libexecutorch.so"), imports=(REGISTER_BACKEND,)
    )
    finding = only_finding(check(load_set(runner(), owner(), dlopened=(delegate,)), PROFILE))
    assert finding.primary.path == "lib/d.so"
    assert "as a cuda-delegate must" in finding.message


@pytest.mark.parametrize("name", ANY_OWNER)
def test_passes_any_name_of_the_owner(name: str) -> None:
    world = load_set(runner(needed=("libm.so.6", name)), owner(soname=name))
    assert checks(check(world, PROFILE)) == [("bin/runner", Outcome.PASS, "")]


def test_passes_an_owner_without_soname_that_was_linked_by_its_path() -> None:
    assert outcomes(check(load_set(runner(needed=(f"/build/out/{OWNER}",))), PROFILE)) == [Outcome.PASS]


def test_finds_a_library_whose_name_only_begins_alike() -> None:
    assert findings(check(load_set(runner(needed=("libextension_cuda.so.bak", "libmy_extension_cuda.so"))), PROFILE))


@pytest.mark.parametrize(
    ("files", "applies"),
    [
        ("*", True),
        ("bin/*runner*", True),
        ("*runner*", True),
        ("embedded_runner_v2", True),
        ("out/bin/*", True),
        ("*/bin/*", True),
        ("./bin/*", True),
        ("/build/out/bin/*", True),
        ("in/embedded*", False),  # not the end of a directory's name
        ("*builder*", False),  # a name without a slash is no directory
        ("*RUNNER*", False),
        ("lib/*", False),
    ],
)
def test_finds_the_files_that_a_role_means(files: str, applies: bool) -> None:
    policy = small_policy(role(files=(files,), need=("libtable.so",)))
    world = load_set(image("/build/out/bin/embedded_runner_v2", kind=FileKind.PIE))
    away = load_set(image("/home/builder/x", kind=FileKind.PIE))
    assert bool(findings(check(world, policy))) is applies
    assert bool(findings(check(away, policy))) is (files == "*")


def test_finds_a_file_by_its_soname() -> None:
    policy = small_policy(role(files=("libplugin_*",), need=("libtable.so",)))
    world = load_set(image("lib/a.so", soname="libplugin_a.so.1"), image("lib/b.so", soname="libb.so"))
    assert [f.primary.path for f in findings(check(world, policy))] == ["lib/a.so"]


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ({}, True),
        ({"when_need": ("libcudart.so*",)}, True),
        ({"when_need": ("libtorch.so",)}, False),
        ({"kind": "library"}, True),
        ({"kind": "executable"}, False),
        ({"when_need": ("libcudart.so*",), "kind": "executable"}, False),
    ],
)
def test_finds_only_where_every_condition_of_the_role_holds(when: dict[str, object], applies: bool) -> None:
    policy = small_policy(role(need=("libtable.so",), **when))
    world = load_set(image("lib/p.so", needed=("libcudart.so.13",), imports=("cudaMalloc",)))
    assert bool(findings(check(world, policy))) is applies


def test_finds_a_one_off_demand_on_roots_and_on_what_is_opened_only() -> None:
    roles = make_one_off_roles(require_needed=("libtable.so",), mangled_names={})
    both = image("lib/both.so", soname="libboth.so")
    world = load_set(
        image("bin/a", kind=FileKind.PIE, needed=("libx.so", "libboth.so")),
        image("lib/x.so", soname="libx.so"),
        both,
        dlopened=(both, image("lib/p.so", soname="libp.so", needed=("libx.so",))),
    )
    found = findings(check(world, Settings(profile="test", roles=roles)))
    assert [f.primary.path for f in found] == ["bin/a", "lib/both.so", "lib/p.so"]
    assert "as --require-needed libtable.so demands" in found[0].message


def test_cannot_see_a_role_that_nothing_plays() -> None:
    assert list(check(load_set(image("lib/x.so", imports=(ACCESSOR,))), PROFILE)) == []
    assert list(check(load_set(runner(needed=())), replace(PROFILE, roles=()))) == []
