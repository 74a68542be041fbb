"""LC204 forbidden-needed, on plain values: forbidden libraries and forbidden imports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import Confidence, FileKind, LoadSet, Outcome, Severity, Unresolved
from linkcheck.policy.one_off import make_one_off_roles
from linkcheck.policy.settings import Settings, SymbolSpec
from linkcheck.rules.forbidden_needed import check
from tests.unit.rules.worlds import (
    OWNER,
    PROFILE,
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

NO_TORCH = small_policy(role(kind="executable", forbid_need=("libtorch*.so*", "libc10*.so*")))


def two_levels(last: str = "libtorch_cpu.so") -> LoadSet:
    return load_set(
        runner(needed=(OWNER, "liba.so")),
        owner(),
        image("lib/a.so", soname="liba.so", needed=("libb.so",)),
        image("lib/b.so", soname="libb.so", needed=(last,)),
        image(f"lib/{last}", soname=last),
    )


def test_finds_a_forbidden_library_two_levels_down_and_its_chain() -> None:
    finding = only_finding(check(two_levels(), PROFILE))
    assert (finding.code, finding.severity, finding.confidence) == ("LC204", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", "libtorch_cpu.so")
    assert finding.message == (
        "bin/runner brings in libtorch_cpu.so, which the policy forbids for a runner: "
        "bin/runner -> lib/a.so -> lib/b.so -> libtorch_cpu.so. "
        "It then runs only where libtorch_cpu.so is there, too."
    )
    assert finding.remedy.startswith("Take libtorch_cpu.so off the link line of lib/b.so;")
    assert finding.evidence["chain"] == ["bin/runner", "lib/a.so", "lib/b.so", "libtorch_cpu.so"]
    assert [place.path for place in finding.related] == ["lib/b.so"]


@pytest.mark.parametrize("how", ["dlopened", "opened_global"])
def test_finds_what_an_opened_library_brings_in(how: str) -> None:
    plugin = image("lib/p.so", soname="libp.so", needed=("libq.so",))
    middle = image("lib/q.so", soname="libq.so", needed=("libc10_cuda.so",))
    deep = image("lib/c10.so", soname="libc10_cuda.so")
    world = load_set(runner(needed=()), middle, deep, **{how: (plugin,)})  # type: ignore[arg-type]
    finding = only_finding(check(world, NO_TORCH))
    assert finding.evidence["chain"] == ["bin/runner", "lib/p.so", "lib/q.so", "libc10_cuda.so"]


def test_finds_an_opened_library_itself_and_does_not_speak_of_a_link_line() -> None:
    world = load_set(runner(needed=()), dlopened=(image("lib/t.so", soname="libtorch.so"),))
    finding = only_finding(check(world, NO_TORCH))
    assert finding.evidence["chain"] == ["bin/runner", "libtorch.so"]
    assert "dlopen" in finding.remedy
    assert "link line" not in finding.remedy


def test_finds_a_forbidden_library_that_is_not_there() -> None:
    world = load_set(runner(needed=("libtorch.so.2",)), missing=("libtorch.so.2",))
    assert only_finding(check(world, NO_TORCH)).primary.symbol == "libtorch.so.2"


def test_finds_a_library_by_the_name_it_was_asked_for() -> None:
    world = load_set(runner(needed=("libtorch.so",)), image("lib/libreal.so", soname="libreal.so"))
    modules = (replace(world.modules[0], dependencies=(1,)), replace(world.modules[1], requested_as="libtorch.so"))
    assert only_finding(check(replace(world, modules=modules), NO_TORCH)).primary.symbol == "libtorch.so"


def test_finds_below_the_file_that_plays_the_role_and_not_beside_it() -> None:
    policy = small_policy(role(files=("libb.so",), forbid_need=("libtorch*",)))
    finding = only_finding(check(two_levels(), policy))
    assert finding.primary.path == "lib/b.so"
    beside = small_policy(role(files=("libtorch*",), forbid_need=("liba.so",)))
    assert checks(check(two_levels(), beside)) == [("lib/libtorch_cpu.so", Outcome.PASS, "")]


def test_finds_each_forbidden_library_once_however_many_need_it() -> None:
    world = load_set(
        runner(needed=("liba.so", "libb.so")),
        image("lib/a.so", soname="liba.so", needed=("libtorch.so", "libb.so")),
        image("lib/b.so", soname="libb.so", needed=("libtorch.so", "liba.so")),  # a circle as well
        image("lib/t.so", soname="libtorch.so"),
    )
    assert len(findings(check(world, NO_TORCH))) == 1


def test_finds_a_one_off_demand_below_the_roots_only() -> None:
    roles = make_one_off_roles(forbid_needed=("libtorch*",), mangled_names={})
    found = findings(check(two_levels(), Settings(profile="test", roles=roles)))
    assert [f.primary.path for f in found] == ["bin/runner"]
    assert ", which --forbid-needed libtorch* forbids: " in found[0].message


def test_finds_a_forbidden_import() -> None:
    policy = small_policy(role(files=("lib/*",), forbid_import=(SymbolSpec("_ZN3c10*"), spec("dlopen"))))
    torch = image("lib/p.so", imports=("_ZN3c105ErrorC1Ev", "_ZN3c104warnEv", "malloc"))
    finding = only_finding(check(load_set(runner(), torch), policy))
    assert (finding.severity, finding.primary.path) == (Severity.ERROR, "lib/p.so")
    assert finding.message == (
        "lib/p.so imports _ZN3c10*, which the policy forbids for a part (2 imports, the first is c10::Error::Error())."
    )
    assert "--trace-symbol=_ZN3c105ErrorC1Ev" in finding.remedy
    assert finding.evidence["imports"] == ["_ZN3c105ErrorC1Ev", "_ZN3c104warnEv"]


def test_passes_a_runner_without_a_forbidden_library() -> None:
    assert checks(check(two_levels("libtorchaudio.a"), NO_TORCH)) == [("bin/runner", Outcome.PASS, "")]


def test_passes_a_library_that_needs_what_only_programs_must_not() -> None:
    world = load_set(image("lib/python.so", kind=FileKind.SHARED_OBJECT, needed=("libtorch.so",)))
    assert findings(check(world, PROFILE)) == []


def test_passes_a_file_that_imports_nothing_forbidden() -> None:
    policy = small_policy(role(forbid_import=(spec("dlopen"),)))
    world = load_set(image("lib/p.so", imports=("malloc",), exports=("dlopen",)))
    assert checks(check(world, policy)) == [("lib/p.so", Outcome.PASS, "imports nothing that is forbidden")]


def test_cannot_see_below_a_missing_library() -> None:
    world = load_set(runner(needed=("libx.so",)), missing=("libx.so", "libx.so"))
    assert checks(check(world, NO_TORCH)) == [
        ("bin/runner", Outcome.UNKNOWN, "what libx.so would bring in cannot be seen")
    ]
    external = replace(NO_TORCH, external=("libx.so",))
    assert checks(check(world, external)) == [("bin/runner", Outcome.PASS, "")]


def test_cannot_see_is_not_said_of_what_is_missing_elsewhere() -> None:
    policy = small_policy(role(files=("liba.so",), forbid_need=("libtorch*",)))
    world = load_set(
        runner(needed=("liba.so", "libb.so")),
        image("lib/a.so", soname="liba.so"),
        image("lib/b.so", soname="libb.so", needed=("libz.so.9",)),
        unresolved=(Unresolved(2, "libz.so.9", ("lib",)),),
    )
    assert checks(check(world, policy)) == [("lib/a.so", Outcome.PASS, "")]


def test_cannot_see_imports_in_a_table_without_an_end() -> None:
    policy = small_policy(role(forbid_import=(spec("dlopen"),)))
    world = load_set(image("lib/p.so", imports=("malloc",), unseen="no hash table"))
    assert checks(check(world, policy)) == [("lib/p.so", Outcome.UNKNOWN, "no hash table")]
    seen = load_set(image("lib/p.so", imports=("dlopen",), unseen="no hash table"))
    assert findings(check(seen, policy))


def test_cannot_see_what_a_filter_brings_in() -> None:
    odd = image("lib/a.so", soname="liba.so", filters=("libg.so",))
    ((path, outcome, reason),) = checks(check(load_set(runner(needed=("liba.so",)), odd), NO_TORCH))
    assert (path, outcome) == ("bin/runner", Outcome.UNKNOWN)
    assert reason.startswith("lib/a.so is a filter for libg.so")
