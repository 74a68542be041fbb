"""LC301 missing-import, on plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from linkcheck.model import Confidence, FileKind, Outcome, Severity
from linkcheck.policy.one_off import make_one_off_roles
from linkcheck.policy.settings import ROOT_OWNER, Settings, State, SymbolSpec
from linkcheck.rules.missing_import import check
from tests.unit.rules.worlds import (
    ACCESSOR,
    GUARD,
    GUARD_BASE,
    GUARD_END,
    GUARD_END_BASE,
    OWNER,
    PROFILE,
    REGISTER_BACKEND,
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
)

if TYPE_CHECKING:
    from linkcheck.model import Image

RENAMED = "libexecutorch_extension_cuda.so"
TEXT = "executorch::extension::cuda::getCallerStream()"


def test_finds_a_stripped_runner_with_a_hidden_copy() -> None:
    world = load_set(runner(needed=("libc.so.6",), imports=("printf", "malloc"), tls=16))
    finding = only_finding(check(world, PROFILE))
    assert (finding.code, finding.severity, finding.confidence) == ("LC301", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/runner", ACCESSOR)
    assert finding.message.startswith(f"bin/runner does not import {TEXT} and 2 more symbols ")
    assert f"from {OWNER} or {RENAMED}, as a runner must (it has 2 other imports)." in finding.message
    assert "So it has a hidden copy of the caller stream, or does not use the caller stream at all." in finding.message
    assert finding.message.endswith("so the work runs on the wrong CUDA stream and nothing fails.")
    assert "target_link_libraries(<target> PRIVATE executorch::extension_cuda)" in finding.remedy
    assert "linkcheck prebuilt FILE" in finding.remedy
    assert finding.evidence == {
        "missing": [ACCESSOR, GUARD, GUARD_END],
        "needed": ["libc.so.6"],
        "role": "runner",
        "state": "caller stream",
        "thread_local_bytes": 16,
    }


def test_finds_where_the_copy_is_while_symbols_are_left_to_say_so() -> None:
    exported = only_finding(check(load_set(runner(imports=(), exports=(ACCESSOR, GUARD))), PROFILE))
    assert f"It defines {TEXT} itself, so it has its own copy of the caller stream." in exported.message
    private = only_finding(check(load_set(runner(imports=(), private=(GUARD,))), PROFILE))
    assert "Its .symtab defines executorch::extension::cuda::CallerStreamGuard::CallerStreamGuard" in private.message
    assert "so it has a hidden copy of the caller stream." in private.message


@pytest.mark.parametrize("gone", [ACCESSOR, GUARD, GUARD_END])
def test_finds_a_runner_that_imports_only_a_part(gone: str) -> None:
    left = [name for name in (ACCESSOR, GUARD, GUARD_END) if name != gone]
    assert only_finding(check(load_set(runner(imports=left), owner()), PROFILE)).evidence["missing"] == [gone]


def test_finds_a_library_that_needs_the_owner_and_does_not_import_the_accessor() -> None:
    world = load_set(runner(), owner(), dlopened=(image("lib/d.so", soname="libd.so", needed=(OWNER,)),))
    finding = only_finding(check(world, PROFILE))
    assert finding.primary.path == "lib/d.so"
    assert "as a caller-stream-consumer must (it has 0 other imports)" in finding.message


@pytest.mark.parametrize("gpu", ["libcudart.so.13", "libcuda.so.1", "libnvinfer.so.11", "libtensorrt_rtx.so.1"])
def test_finds_a_cuda_delegate_with_a_hidden_copy(gpu: str) -> None:
    delegate = image("lib/d.so", soname="libd.so", needed=(gpu, "libexecutorch.so"), imports=(REGISTER_BACKEND,), tls=8)
    finding = only_finding(check(load_set(runner(), owner(), dlopened=(delegate,)), PROFILE))
    assert finding.primary.path == "lib/d.so"
    assert "as a cuda-delegate must" in finding.message


def test_finds_a_one_off_demand_on_the_roots_only() -> None:
    roles = make_one_off_roles(require_import=("table_get",), mangled_names={})
    world = load_set(runner(needed=("liba.so",)), image("lib/a.so", soname="liba.so"))
    finding = only_finding(check(world, Settings(profile="test", roles=roles)))
    assert finding.primary.path == "bin/runner"
    assert finding.message.startswith("bin/runner does not import table_get, as --require-import table_get demands")
    assert finding.evidence["state"] is None


def test_finds_what_belongs_to_the_program_and_names_no_library() -> None:
    state = replace(TABLE, owner=(ROOT_OWNER,), consequence="")
    policy = small_policy(role(kind="library", import_=(spec("table_get"),)), states=(state,))
    world = load_set(runner(exports=("table_get",)), dlopened=(image("lib/p.so", exports=("table_get",)),))
    finding = only_finding(check(world, policy))
    assert "lib/p.so does not import table_get from the program itself, as a part must" in finding.message
    assert "-rdynamic" in finding.remedy
    assert "  " not in finding.message
    assert "library ," not in finding.remedy


@pytest.mark.parametrize("name", [OWNER, f"{OWNER}.1", RENAMED, f"{RENAMED}.1"])
@pytest.mark.parametrize(
    "imports",
    [
        (ACCESSOR, GUARD, GUARD_END),
        (ACCESSOR, GUARD_BASE, GUARD_END_BASE),
        (ACCESSOR, GUARD, GUARD_END_BASE),
        (ACCESSOR, GUARD, GUARD_BASE, GUARD_END, GUARD_END_BASE, "printf"),
    ],
    ids=["C1-D1", "C2-D2", "C1-D2", "all"],
)
def test_passes_a_runner_with_any_form_of_guard_and_any_name_of_owner(name: str, imports: tuple[str, ...]) -> None:
    world = load_set(runner(needed=(name,), imports=imports), owner(f"lib/{name}", soname=name))
    assert checks(check(world, PROFILE)) == [("bin/runner", Outcome.PASS, "imports 3 symbols it must")]


def test_passes_a_consumer_that_imports_the_accessor_alone() -> None:
    delegate = image(
        "lib/d.so", soname="libd.so", needed=(OWNER, "libcudart.so.13"), imports=(REGISTER_BACKEND, ACCESSOR)
    )
    results = checks(check(load_set(runner(), owner(), dlopened=(delegate,)), PROFILE))
    assert set(results) == {
        ("bin/runner", Outcome.PASS, "imports 3 symbols it must"),
        ("lib/d.so", Outcome.PASS, "imports 1 symbol it must"),
    }


def test_passes_a_delegate_for_the_processor() -> None:
    delegate = image("lib/x.so", soname="libx.so", needed=("libexecutorch.so",), imports=(REGISTER_BACKEND,))
    assert findings(check(load_set(runner(), owner(), dlopened=(delegate,)), PROFILE)) == []


def test_passes_a_pattern_that_one_import_fits() -> None:
    policy = small_policy(role(import_=(SymbolSpec("table_*"),)))
    assert outcomes(check(load_set(image("lib/p.so", imports=("x", "table_set"))), policy)) == [Outcome.PASS]


@pytest.mark.parametrize(
    ("beside", "storage", "reason"),
    [
        ((), 0, "nothing it loads touches the state, and no other file here does"),
        ((), 16, "nothing it loads touches the state, and no other file here does"),
        (
            (image("lib/x.so", exports=("f",), tls=8),),
            16,
            "nothing it loads touches the state, and no other file here does",
        ),
        ((owner(),), 0, "it has no thread-local storage, and nothing it loads touches the state"),
    ],
)
def test_cannot_see_a_runner_in_a_program_of_a_directory_that_has_nothing_to_do_with_the_state(
    beside: tuple[Image, ...], storage: int, reason: str
) -> None:
    tool = image("out/bin/protoc", kind=FileKind.PIE, needed=("libc.so.6",), tls=storage)
    assert findings(check(load_set(tool), PROFILE))
    found = replace(load_set(tool), named=False, beside=(tool, *beside))
    assert checks(check(found, PROFILE)) == [("out/bin/protoc", Outcome.NOT_APPLICABLE, f"no runner: {reason}")]


@pytest.mark.parametrize(
    "beside",
    [
        owner(exports=()),
        image("lib/d.so", needed=(OWNER,)),
        image("lib/d.so", imports=(ACCESSOR,)),
        image("lib/d.so", exports=(GUARD,)),
        image("lib/d.so", private=(ACCESSOR,)),
    ],
    ids=["owner", "needs-the-owner", "import", "definition", "hidden-definition"],
)
def test_finds_a_program_with_storage_of_its_own_beside_a_file_that_touches_the_state(beside: Image) -> None:
    program = runner(imports=(), needed=(), tls=16)
    assert findings(check(replace(load_set(program), named=False, beside=(program, beside)), PROFILE))


@pytest.mark.parametrize(
    ("program", "others"),
    [
        (runner(imports=(), needed=(), private=(ACCESSOR,)), ()),
        (runner(imports=(), needed=(), exports=(ACCESSOR,)), ()),
        (runner(imports=(), needed=(OWNER,)), ()),
        (runner(imports=(), needed=("libd.so",)), (image("lib/d.so", soname="libd.so", imports=(ACCESSOR,)),)),
    ],
    ids=["hidden-definition", "definition", "owner", "consumer"],
)
def test_finds_a_program_of_a_directory_that_has_to_do_with_the_state(
    program: Image, others: tuple[Image, ...]
) -> None:
    assert findings(check(replace(load_set(program, *others), named=False), PROFILE))


def test_cannot_see_whether_a_program_of_a_directory_is_no_runner_when_its_table_has_no_end() -> None:
    world = replace(load_set(runner(imports=(), needed=(), unseen="no hash table")), named=False)
    assert checks(check(world, PROFILE)) == [("bin/runner", Outcome.UNKNOWN, "no hash table")]


def test_cannot_see_an_import_of_the_owner_itself() -> None:
    # A role of every library asks nothing of the library that owns the state.
    policy = small_policy(role(kind="library", import_=(spec("table_get"),)), states=(TABLE,))
    world = load_set(image("lib/t.so", soname="libtable.so.1", exports=("table_get", "table_set")))
    assert list(check(world, policy)) == []


def test_cannot_see_an_import_in_a_table_without_an_end() -> None:
    world = load_set(runner(imports=(ACCESSOR,), unseen="no hash table tells how many symbols there are"))
    assert checks(check(world, PROFILE)) == [
        ("bin/runner", Outcome.UNKNOWN, "no hash table tells how many symbols there are")
    ]
    seen = load_set(runner(unseen="no hash table"))
    assert outcomes(check(seen, PROFILE)) == [Outcome.PASS]


@pytest.mark.parametrize("kind", [FileKind.PIE, FileKind.EXECUTABLE, FileKind.STATIC_PIE])
def test_finds_every_kind_of_program(kind: FileKind) -> None:
    assert findings(check(load_set(runner(kind=kind, imports=())), PROFILE))


def test_finds_a_part_of_the_imports_and_takes_it_for_no_hidden_copy() -> None:
    finding = only_finding(check(load_set(runner(imports=(GUARD, GUARD_END)), owner()), PROFILE))
    assert "(it imports 2 of 3: " in finding.message
    assert "CallerStreamGuard(CUstream_st*) and " in finding.message
    assert "So it uses only a part of the caller stream, or has a hidden copy of the rest." in finding.message


def test_a_guess_is_no_fact_and_names_what_to_do_when_the_rest_is_unused() -> None:
    finding = only_finding(check(load_set(runner(imports=(GUARD, GUARD_END)), owner()), PROFILE))
    assert "If it has a copy, the runner sets the stream in one copy" in finding.message
    assert "If it has no copy and does not use that symbol: call what is missing" in finding.remedy
    assert "`import` of a [[role]]" in finding.remedy
    seen = only_finding(check(load_set(runner(imports=(GUARD, GUARD_END), private=(ACCESSOR,)), owner()), PROFILE))
    assert "hidden copy of the caller stream. The runner sets the stream in one copy" in seen.message
    assert "does not use" not in seen.remedy


def test_whoever_imports_another_symbol_of_the_state_uses_the_state() -> None:
    policy = small_policy(role(import_=(spec("table_get"),)), states=(TABLE,))
    finding = only_finding(check(load_set(runner(needed=("libtable.so",), imports=("table_set", "x"))), policy))
    assert "(it imports 1 of 2 of the table: table_set)" in finding.message
    assert "So it uses only a part of the table, or has a hidden copy of the rest." in finding.message
    assert "at all" not in finding.message
    nothing = only_finding(check(load_set(runner(needed=("libtable.so",), imports=("x",))), policy))
    assert "or does not use the table at all. If it has a copy, entries are lost." in nothing.message


def test_the_place_has_the_name_of_the_symbol_table_where_some_file_tells_it() -> None:
    """As LC302 has it, about the same symbol."""
    state = replace(TABLE, symbols=(SymbolSpec("acme::table()"), SymbolSpec("table_*")))
    policy = small_policy(role(kind="executable", import_=state.symbols[:1]), states=(state,))
    table = image("lib/libtable.so", soname="libtable.so", exports=("_ZN4acme5tableEv", "table_set"))
    world = load_set(runner(needed=("libtable.so",), imports=("table_set",)), table)
    finding = only_finding(check(world, policy))
    assert (finding.primary.symbol, finding.evidence["missing"]) == ("_ZN4acme5tableEv", ["_ZN4acme5tableEv"])
    assert "does not import acme::table() from" in finding.message
    nowhere = only_finding(check(load_set(runner(needed=(), imports=("x",))), policy))
    assert nowhere.primary.symbol == "acme::table()"


def test_says_of_a_required_import_that_the_file_defines_it_itself() -> None:
    roles = make_one_off_roles(require_import=("table_get",), mangled_names={})
    settings = Settings(profile="test", roles=roles)
    finding = only_finding(check(load_set(runner(needed=(), exports=("table_get",))), settings))
    assert "It defines table_get itself" in finding.message
    assert "Without the import" not in finding.message


def test_a_symbol_that_the_loaded_owner_does_not_export_is_no_sign_of_a_copy() -> None:
    state = State("table", ("libtable.so",), (spec("tabel_get"),))
    policy = small_policy(role(import_=(spec("tabel_get"),)), states=(state,))
    table = image("lib/libtable.so", soname="libtable.so", exports=("table_get", "other"))
    world = load_set(runner(needed=("libtable.so",), imports=("table_get",)), table)
    finding = only_finding(check(world, policy))
    assert finding.message.endswith(
        "The owner that is loaded, lib/libtable.so, does not export it either. Did you mean table_get?"
    )
    assert "copy" not in finding.message + finding.remedy
    exporting = image("lib/libtable.so", soname="libtable.so", exports=("tabel_get",))
    (finding,) = findings(check(load_set(runner(needed=("libtable.so",)), exporting), policy))
    assert "hidden copy" in finding.message


@pytest.mark.parametrize(("flag", "end"), [("", "off the link line."), ("-ltable", "off the link line:")])
def test_a_remedy_without_a_line_to_copy_ends_in_a_full_stop(flag: str, end: str) -> None:
    state = State("table", ("libtable.so",), (spec("table_get"),), link_flag=flag)
    policy = small_policy(role(import_=(spec("table_get"),)), states=(state,))
    assert only_finding(check(load_set(runner()), policy)).remedy.splitlines()[0].endswith(end)
