"""LC302 private-definition, on plain values: copies of a state, and forbidden exports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import Confidence, FileKind, Outcome, Severity
from linkcheck.policy.settings import ROOT_OWNER, SymbolSpec
from linkcheck.rules.private_definition import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    GET_BACKEND,
    GUARD,
    OWNER,
    OWNER_SYMBOLS,
    PROFILE,
    REGISTER_BACKEND,
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


def test_finds_a_copy_in_a_runner_that_must_import() -> None:
    world = load_set(runner(needed=(), imports=(), exports=(ACCESSOR, GUARD)))
    finding = only_finding(check(world, PROFILE))
    assert (finding.code, finding.severity, finding.confidence) == ("LC302", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", ACCESSOR)
    assert finding.message.startswith(
        "bin/runner exports its own definition of executorch::extension::cuda::getCallerStream() and 1 more symbol; "
        f"the caller stream belongs to {OWNER} or libexecutorch_extension_cuda.so alone."
    )
    assert finding.message.endswith("the work runs on the wrong CUDA stream and nothing fails.")
    assert "target_link_libraries(<target> PRIVATE executorch::extension_cuda)" in finding.remedy
    assert finding.evidence == {
        "symbols": [ACCESSOR, GUARD],
        "exported": True,
        "state": "caller stream",
        "role_demands_import": True,
    }


def test_finds_a_hidden_copy_while_symtab_is_there() -> None:
    finding = only_finding(check(load_set(runner(imports=(), private=(ACCESSOR,))), PROFILE))
    assert finding.severity is Severity.ERROR
    assert "has a private definition (.symtab) of executorch::extension::cuda::getCallerStream();" in finding.message
    assert finding.evidence["exported"] is False


@pytest.mark.parametrize("where", ["needed", "dlopened"])
def test_finds_a_copy_where_no_role_asks_for_an_import_as_information(where: str) -> None:
    plugin = image("lib/p.so", soname="libp.so", exports=OWNER_SYMBOLS)
    needed = runner(needed=(OWNER, "libp.so"))
    world = load_set(needed, owner(), plugin) if where == "needed" else load_set(runner(), owner(), dlopened=(plugin,))
    finding = only_finding(check(world, PROFILE))
    assert (finding.severity, finding.primary.path) == (Severity.INFO, "lib/p.so")
    assert "2 more symbols" in finding.message
    assert finding.evidence["role_demands_import"] is False


def test_finds_a_private_registry_only_beside_the_shared_runtime() -> None:
    delegate = image("lib/d.so", soname="libd.so", exports=(REGISTER_BACKEND, GET_BACKEND))
    alone = load_set(runner(), owner(), dlopened=(delegate,))
    assert findings(check(alone, PROFILE)) == []
    runtime = image("lib/libexecutorch.so", soname="libexecutorch.so", exports=(REGISTER_BACKEND, GET_BACKEND))
    beside = load_set(runner(needed=(OWNER, "libexecutorch.so")), owner(), runtime, dlopened=(delegate,))
    finding = only_finding(check(beside, PROFILE))
    assert (finding.severity, finding.primary.path) == (Severity.ERROR, "lib/d.so")
    assert "the ExecuTorch backend registry belongs to libexecutorch.so alone" in finding.message
    assert "executorch::runtime" in finding.remedy


def test_finds_a_copy_of_what_belongs_to_the_program() -> None:
    state = replace(TABLE, owner=(ROOT_OWNER,))
    program = image("bin/a", kind=FileKind.PIE, exports=("table_get",))
    world = load_set(program, dlopened=(image("lib/p.so", soname="libp.so", exports=("table_get",)),))
    finding = only_finding(check(world, small_policy(states=(state,))))
    assert finding.primary.path == "lib/p.so"
    assert "the table belongs to the program itself alone." in finding.message


def test_finds_a_copy_in_a_library_that_is_judged_on_its_own() -> None:
    # A library is no program, although it is what this load set starts from.
    state = replace(TABLE, owner=(ROOT_OWNER, "libtable.so"))
    finding = only_finding(check(load_set(image("lib/p.so", exports=("table_get",))), small_policy(states=(state,))))
    assert "belongs to libtable.so or the program itself alone" in finding.message


def test_finds_a_forbidden_export() -> None:
    policy = small_policy(role(files=("libp.so",), forbid_export=(SymbolSpec("_ZSt*"), spec("malloc"))))
    plugin = image("lib/p.so", soname="libp.so", exports=("_ZSt4cout", "malloc", "run"))
    finding = only_finding(check(load_set(runner(exports=("malloc",)), plugin), policy))
    assert (finding.severity, finding.primary.path) == (Severity.ERROR, "lib/p.so")
    assert (
        finding.message
        == "lib/p.so exports std::cout and 1 more symbol, which the policy forbids for a part: others may bind to it."
    )
    assert "version script" in finding.remedy
    assert finding.evidence["symbols"] == ["_ZSt4cout", "malloc"]


def test_passes_files_that_import_the_state() -> None:
    assert checks(check(load_set(runner(), owner()), PROFILE)) == [
        ("bin/runner", Outcome.PASS, "imports the caller stream, defines none of it")
    ]


@pytest.mark.parametrize("name", [f"{OWNER}.1", "libexecutorch_extension_cuda.so", "libexecutorch_extension_cuda.so.2"])
def test_passes_the_owner_by_any_of_its_names(name: str) -> None:
    world = load_set(runner(needed=(name,)), owner(f"lib/{name}", soname=name))
    assert findings(check(world, PROFILE)) == []


def test_passes_a_file_without_forbidden_exports() -> None:
    policy = small_policy(role(forbid_export=(spec("malloc"),)))
    world = load_set(image("lib/p.so", imports=("malloc",), private=("malloc",)))
    assert checks(check(world, policy)) == [("lib/p.so", Outcome.PASS, "exports nothing that is forbidden")]


def test_cannot_see_a_definition_in_a_table_without_an_end() -> None:
    world = load_set(runner(), owner(), image("lib/x.so", soname="libx.so", unseen="no hash table"))
    assert ("lib/x.so", Outcome.UNKNOWN, "no hash table") in checks(check(world, PROFILE))
    policy = small_policy(role(files=("libx.so",), forbid_export=(spec("malloc"),)))
    assert checks(check(world, policy)) == [("lib/x.so", Outcome.UNKNOWN, "no hash table")]


def test_cannot_see_a_hidden_copy_in_a_stripped_file() -> None:
    world = load_set(runner(imports=("printf",), tls=16))
    assert list(check(world, PROFILE)) == []


def test_cannot_see_into_symtab_of_the_systems_own_libraries() -> None:
    libc = image("/lib/libc.so.6", soname="libc.so.6", private=(ACCESSOR,))
    assert findings(check(load_set(runner(), owner(), system=(libc,)), PROFILE)) == []


def test_cannot_see_what_a_filter_stands_for() -> None:
    odd = image("lib/a.so", soname="liba.so", filters=("libg.so",))
    unknown = checks(check(load_set(runner(), owner(), odd), PROFILE), Outcome.UNKNOWN)
    assert [path for path, _, _ in unknown] == ["lib/a.so"]
