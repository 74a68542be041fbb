"""LC304 undefined-symbol, on plain values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.model import (
    Confidence,
    FileKind,
    FoundBy,
    Image,
    Outcome,
    Severity,
    Symbol,
    SymbolBinding,
    SymbolVersion,
    VersionNeed,
)
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.rules.undefined_symbol import check
from tests.unit.rules.worlds import checks, findings, image, load_set, only_finding, small_policy, symbol

POLICY = small_policy()
TABLE = image("lib/libtable.so", soname="libtable.so", exports=("table_get",))
USER = image("lib/libuser.so", soname="libuser.so", needed=("libtable.so",), imports=("table_get",), exports=("use",))


def program(**facts: object) -> Image:
    return image("bin/app", **{"kind": FileKind.PIE, "needed": ("libuser.so",), "imports": ("use",), **facts})  # type: ignore[arg-type]


def versioned(name: str, version: str | None, *, defined: bool, weak: bool = False, hidden: bool = False) -> Symbol:
    plain = symbol(name, defined=defined)
    binding = SymbolBinding.WEAK if weak else SymbolBinding.GLOBAL
    named = None if version is None else SymbolVersion(version, hidden, None if defined else "libtable.so")
    return replace(plain, binding=binding, version=named)


def test_finds_an_import_that_nobody_defines() -> None:
    lonely = replace(USER, needed=())
    finding = only_finding(check(load_set(program(), lonely), POLICY))
    assert (finding.code, finding.severity, finding.confidence) == ("LC304", Severity.ERROR, Confidence.HIGH)
    assert (finding.primary.path, finding.primary.symbol) == ("lib/libuser.so", "table_get")
    assert "bin/app -> lib/libuser.so" in finding.message
    assert "undefined symbol" in finding.message


def test_finds_what_another_dlopen_keeps_to_itself() -> None:
    plug_in = image("lib/p.so", imports=("table_get",))
    host = image("bin/app", kind=FileKind.PIE)
    local = load_set(host, dlopened=(TABLE, plug_in))
    assert [f.primary.path for f in findings(check(local, POLICY))] == ["lib/p.so"]
    shared = replace(local, opened=tuple(replace(opened, global_=True) for opened in local.opened))
    assert findings(check(shared, POLICY)) == []


def test_finds_a_version_that_the_symbol_does_not_have() -> None:
    user = replace(USER, symbols=ListedSymbols((versioned("table_get", "T_2", defined=False),)))
    table = replace(
        TABLE,
        symbols=ListedSymbols((versioned("table_get", "T_1", defined=True),)),
        version_definitions=(SymbolVersion("T_1"), SymbolVersion("T_2")),
    )
    host = image("bin/app", kind=FileKind.PIE, needed=("libuser.so",))
    finding = only_finding(check(load_set(host, user, table), POLICY))
    assert "table_get@T_2" in finding.message


def test_leaves_a_version_that_the_library_lacks_to_lc305() -> None:
    need = VersionNeed("libtable.so", (SymbolVersion("T_2"),))
    user = replace(USER, symbols=ListedSymbols((versioned("table_get", "T_2", defined=False),)), version_needs=(need,))
    table = replace(
        TABLE,
        symbols=ListedSymbols((versioned("table_get", "T_1", defined=True),)),
        version_definitions=(SymbolVersion("T_1"),),
    )
    host = image("bin/app", kind=FileKind.PIE, needed=("libuser.so",))
    assert findings(check(load_set(host, user, table), POLICY)) == []


def test_names_the_library_here_that_defines_what_is_missing() -> None:
    world = replace(load_set(program(), replace(USER, needed=())), beside=(TABLE,))
    assert "lib/libtable.so defines it: link lib/libuser.so to it" in only_finding(check(world, POLICY)).remedy


def test_names_the_program_that_defines_what_is_missing_and_does_not_export_it() -> None:
    plug_in = image("lib/p.so", imports=("table_get",))
    host = image("bin/app", kind=FileKind.PIE, private=("main", "table_get"))
    finding = only_finding(check(load_set(host, dlopened=(plug_in,)), POLICY))
    assert finding.message.endswith(" bin/app defines table_get (.symtab), but does not export it.")
    assert "-rdynamic" in finding.remedy
    assert "-Wl,--export-dynamic-symbol=table_get" in finding.remedy
    assert "ENABLE_EXPORTS" in finding.remedy
    assert "-z,defs" not in finding.remedy
    among_the_inputs = replace(load_set(plug_in), beside=(plug_in, host))
    assert "bin/app defines table_get (.symtab)" in only_finding(check(among_the_inputs, POLICY)).message


def test_tells_apart_what_the_program_hides_and_what_is_nowhere() -> None:
    plug_in = image("lib/p.so", imports=("table_get", "gone"))
    host = image("bin/app", kind=FileKind.PIE, private=("main", "table_get"))
    finding = only_finding(check(load_set(host, dlopened=(plug_in,)), POLICY))
    assert "bin/app defines table_get (.symtab), but does not export it." in finding.message
    assert "For the others: Link lib/p.so to the library" in finding.remedy


def test_a_library_that_hides_what_is_missing_has_to_show_it() -> None:
    hiding = image("lib/libtable.so", soname="libtable.so", private=("table_get",))
    finding = only_finding(check(load_set(program(private=("main",)), USER, hiding), POLICY))
    assert "lib/libtable.so defines table_get (.symtab), but does not export it." in finding.message
    assert "-fvisibility=hidden" in finding.remedy
    assert "-rdynamic" not in finding.remedy


def test_a_stripped_program_may_define_what_its_plug_in_lacks() -> None:
    plug_in = image("lib/p.so", imports=("table_get",))
    stripped = load_set(image("bin/app", kind=FileKind.PIE), dlopened=(plug_in,))
    assert "or, when bin/app defines it and does not export it:" in only_finding(check(stripped, POLICY)).remedy
    for seen in ({"private": ("main",)}, {"exports": ("_start",)}):
        shows_all = load_set(image("bin/app", kind=FileKind.PIE, **seen), dlopened=(plug_in,))  # type: ignore[arg-type]
        assert "-rdynamic" not in only_finding(check(shows_all, POLICY)).remedy
    needed = load_set(program(), replace(USER, needed=()))
    assert "-rdynamic" not in only_finding(check(needed, POLICY)).remedy


def test_a_library_on_its_own_is_told_of_the_symbols_of_its_host() -> None:
    remedy = only_finding(check(load_set(replace(USER, needed=())), POLICY)).remedy
    assert 'host-symbols = ["table_get"]' in remedy
    assert "linkcheck verify <program> --dlopen lib/libuser.so" in remedy


def test_passes_when_everything_is_defined() -> None:
    assert checks(check(load_set(program(), USER, TABLE), POLICY)) == [
        ("bin/app", Outcome.PASS, "3 files, every import defined")
    ]


def test_counts_only_the_files_whose_imports_it_looked_up() -> None:
    world = load_set(program(), USER, TABLE, image("/lib/libc.so.6", soname="libc.so.6", imports=("_rtld_global",)))
    system = replace(world.modules[-1], found_by=FoundBy.DEFAULT)
    world = replace(world, modules=(*world.modules[:-1], system))
    assert checks(check(world, POLICY)) == [("bin/app", Outcome.PASS, "3 files, every import defined")]


def test_passes_over_weak_imports_and_what_no_relocation_refers_to() -> None:
    weak = replace(USER, needed=(), symbols=ListedSymbols((versioned("table_get", None, defined=False, weak=True),)))
    unused = image("lib/libuser.so", soname="libuser.so", imports=("table_get",), unreferenced=("table_get",))
    host = image("bin/app", kind=FileKind.PIE, needed=("libuser.so",))
    for library in (weak, unused):
        assert [outcome for _, outcome, _ in checks(check(load_set(host, library), POLICY))] == [Outcome.PASS]


def test_passes_what_one_load_set_leaves_undefined_and_the_next_does_not() -> None:
    """What is remembered of a file must not outlive the process it was learnt in."""
    policy = small_policy()
    lonely, complete = load_set(USER, missing=()), load_set(program(), USER, TABLE)
    for _ in range(2):
        assert [f.severity for f in findings(check(lonely, policy))] == [Severity.WARNING]
        assert findings(check(complete, policy)) == []


def test_a_library_on_its_own_is_only_warned_of_and_a_plug_in_of_a_directory_only_mentioned() -> None:
    alone = replace(USER, needed=())
    finding = only_finding(check(load_set(alone), POLICY))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    plug_in = load_set(replace(alone, soname=None))
    assert only_finding(check(plug_in, POLICY)).severity is Severity.WARNING
    assert only_finding(check(replace(plug_in, named=False), POLICY)).severity is Severity.INFO


def test_passes_over_a_plug_in_whose_host_is_among_the_inputs() -> None:
    host = image("bin/app", kind=FileKind.PIE, exports=("table_get",))
    world = replace(load_set(replace(USER, needed=())), beside=(host,))
    [(subject, outcome, reason), *_] = checks(check(world, POLICY))
    assert (subject, outcome) == ("lib/libuser.so", Outcome.NOT_APPLICABLE)
    assert "linkcheck verify bin/app --dlopen lib/libuser.so" in reason


#: A host, what it defines, and what its plug-ins define for it.
HOSTS = [
    ("Node.js", "napi_create_object", "napi_register_module_v1"),
    ("Node.js", "uv_loop_init", "node_register_module_v115"),
    ("Node.js", "_ZN2v87Isolate10GetCurrentEv", "_register_addon"),
    ("PHP", "zend_parse_arg", "get_module"),
    ("PHP", "_emalloc_8", "zend_extension_entry"),
    ("JVM", "JNI_GetCreatedJavaVMs", "JNI_OnLoad"),
    ("JVM", "JVM_MonitorNotify", "Java_org_acme_Table_get"),
    ("Lua", "luaL_checkstack", "luaopen_table"),
    ("Ruby", "rb_define_method", "Init_table"),
    ("Perl", "Perl_sv_2iv_flags", "boot_Acme__Table"),
    ("Tcl", "Tcl_CreateObjCommand", "Table_Init"),
    ("R", "Rf_protect", "R_init_table"),
    ("Julia", "jl_apply_generic", "jl_image_pointers"),
    ("Apache", "ap_hook_handler", "table_module"),
]


@pytest.mark.parametrize(
    ("name", "exports"),
    [
        *((name, ()) for name in ("PyList_New", "_Py_Dealloc", "__tls_get_addr", "___tls_get_addr")),
        *((name, (entry,)) for _, name, entry in HOSTS),
    ],
)
def test_passes_over_what_the_well_known_hosts_define_and_hides_nothing_else(
    name: str, exports: tuple[str, ...]
) -> None:
    results = list(check(load_set(image("m.so", imports=(name, "table_get"), exports=exports)), POLICY))
    assert [f.evidence["symbols"] for f in findings(results)] == [["table_get"]]
    assert [outcome for _, outcome, _ in checks(results)] == [Outcome.NOT_APPLICABLE]
    assert findings(check(load_set(image("m.so", imports=(name,), exports=exports)), POLICY)) == []


@pytest.mark.parametrize(("host", "name"), [(host, name) for host, name, _ in HOSTS])
def test_finds_what_a_well_known_host_defines_in_what_is_no_plug_in_of_it(host: str, name: str) -> None:
    """libuv, liblua, libR and others are libraries: a library that forgot to link them is no plug-in."""
    of_others = tuple(entry for other, _, entry in HOSTS if other != host)
    if host == "Apache":  # whose plug-ins choose the name
        of_others = tuple(entry for entry in of_others if entry != "get_module")
    for exports in ((), ("use",), of_others):
        library = load_set(image("libuse.so", soname="libuse.so", imports=(name,), exports=exports))
        finding = only_finding(check(library, POLICY))
        assert (finding.evidence["symbols"], finding.severity) == ([name], Severity.WARNING)


def test_passes_over_host_symbols_of_what_a_plug_in_needs() -> None:
    helper = image("libhelp.so", soname="libhelp.so", imports=("rb_define_method",))
    plug_in = image("table.so", needed=("libhelp.so",), exports=("Init_table",))
    assert findings(check(load_set(plug_in, helper), POLICY)) == []
    assert only_finding(check(load_set(replace(plug_in, symbols=ListedSymbols()), helper), POLICY))


@pytest.mark.parametrize("call", ["napi_module_register", "node_module_register"])
def test_knows_an_add_on_by_the_call_that_registers_it(call: str) -> None:
    assert findings(check(load_set(image("m.node", imports=(call, "uv_loop_init"))), POLICY)) == []


def test_host_symbols_of_the_policy_take_the_place_of_the_well_known_ones() -> None:
    module = load_set(image("m.so", imports=("PyList_New", "acme_register")))
    policy = replace(POLICY, host_symbols=("acme_*",))
    assert only_finding(check(module, policy)).primary.symbol == "PyList_New"
    assert [f.evidence["count"] for f in findings(check(module, replace(POLICY, host_symbols=())))] == [2]


def test_finds_a_host_symbol_that_the_known_host_does_not_define() -> None:
    module = image("m.so", imports=("PyList_New",))
    world = load_set(image("bin/app", kind=FileKind.PIE), dlopened=(module,))
    assert only_finding(check(world, POLICY)).severity is Severity.ERROR


def test_cannot_see_what_a_missing_library_a_filter_or_an_unseen_table_defines() -> None:
    lonely = replace(USER, needed=())
    missing = load_set(program(), lonely, missing=("libgone.so",))
    reason = "libgone.so not found, and it may define table_get"
    assert checks(check(missing, POLICY)) == [("lib/libuser.so", Outcome.UNKNOWN, reason)]
    several = load_set(program(), lonely, missing=("libgone.so", "libm.so.9"))
    reason = "libgone.so and libm.so.9 not found, and one of them may define table_get"
    assert checks(check(several, POLICY)) == [("lib/libuser.so", Outcome.UNKNOWN, reason)]
    filtered = load_set(program(filters=("libhid.so",)), lonely)
    unseen = load_set(
        program(needed=("libuser.so", "libodd.so")),
        lonely,
        image("lib/libodd.so", soname="libodd.so", unseen="no bounds"),
    )
    for world in (filtered, unseen):
        assert Outcome.UNKNOWN in [outcome for _, outcome, _ in checks(check(world, POLICY))]
        assert findings(check(world, POLICY)) == []


def test_takes_what_is_external_to_define_what_is_missing() -> None:
    world = load_set(program(), replace(USER, needed=()), missing=("libgone.so",))
    results = list(check(world, small_policy(external=("libgone.so",))))
    assert [outcome for _, outcome, _ in checks(results)] == [Outcome.NOT_APPLICABLE]
    assert findings(results) == []
