"""How many copies of a state a process holds: `linkcheck live` beside what the process itself says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from linkcheck.inputs.live import load_live
from linkcheck.inputs.proc import read_process
from linkcheck.running import CODES
from tests.elf.test_dlopen_notes import write_note
from tests.live.workshop import STATE, USER
from tests.loader.workshop import needs_compiler
from tests.programs.build import BUILDS, Build, make_programs

if TYPE_CHECKING:
    from tests.live.conftest import Ask
    from tests.live.workshop import LiveShop

#: Broken builds that `verify` passes, too: a hidden, stripped copy in a delegate that no role speaks of.
UNSEEN = {"hidden-delegate-linked", "hidden-delegate-dlopened"}

pytestmark = needs_compiler


def loaded(pid: int) -> set[str]:
    """The paths of the load set that `live` judges."""
    return {module.image.path for module in load_live(read_process(pid)).load_set.modules}


def verdict_on_copies(findings: list[dict[str, object]]) -> object:
    (evidence,) = [finding["evidence"] for finding in findings if finding["code"] == "LC401"]
    assert isinstance(evidence, dict)
    return evidence["verdict"]


def test_one_copy_that_all_share(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", USER, owner)
    host = shop.host("host", "-DUSES_STATE", owner)
    with shop.running(host, f"l:{plugin}") as told:
        assert len(told.states) == 1
        assert told.files | {str(host)} == loaded(told.pid)
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 0
    assert ("LC401", f"one copy of the counter: {owner}") in answer.reasons("pass")
    assert ("LC402", "every import of the counter finds a definition") in answer.reasons("pass")
    assert answer.document["inputs"] == [str(told.pid)]


def test_copies_that_nothing_can_merge(shop: LiveShop, ask: Ask) -> None:
    one = shop.library("one.so", STATE + USER, "-Wl,-Bsymbolic")
    two = shop.library("two.so", STATE + USER, "-Wl,-Bsymbolic")
    with shop.running(shop.host("host"), f"g:{one}", f"g:{two}") as told:
        assert len(told.states) == 2
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 1
    assert verdict_on_copies(answer.findings) == "split"
    assert str(one) in answer.errors[0]["message"]
    assert str(two) in answer.errors[0]["message"]


@pytest.mark.parametrize(("how", "copies"), [("l", 2), ("g", 1)])
def test_copies_that_only_a_global_scope_merges(shop: LiveShop, ask: Ask, how: str, copies: int) -> None:
    """The two processes have the same maps; only the process itself knows its scopes."""
    one = shop.library("one.so", STATE + USER)
    two = shop.library("two.so", STATE + USER)
    with shop.running(shop.host("host"), f"{how}:{one}", f"{how}:{two}") as told:
        assert len(told.states) == copies
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 1
    assert verdict_on_copies(answer.findings) == "split-unless-global"


def test_a_definition_that_only_a_global_scope_provides_is_unknown(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", USER)  # does not say that it needs the owner
    with shop.running(shop.host("host"), f"g:{owner}", f"l:{plugin}") as told:
        assert len(told.states) == 1
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 2
    assert answer.findings == []
    ((code, reason),) = answer.reasons("unknown")
    assert code == "LC402"
    assert "RTLD_GLOBAL, which cannot be seen" in reason


@pytest.mark.parametrize("how", ["l", "g"])
@pytest.mark.parametrize("first", ["libstate.so", "libbad.so"])
def test_whether_an_import_gets_the_owner_is_unknown_where_the_scope_decides(
    shop: LiveShop, ask: Ask, how: str, first: str
) -> None:
    """One file is opened, and then a plug-in that needs the other one: the same maps, whatever it is bound to."""
    libraries = {name: shop.library(name, STATE) for name in ("libstate.so", "libbad.so")}
    opened = libraries.pop(first)
    (other,) = libraries.values()
    plugin = shop.library("plugin.so", USER, other)
    with shop.running(shop.host("host"), f"{how}:{opened}", f"l:{plugin}") as told:
        assert len(told.states) == 1
        answer = ask(told.pid, "--policy", shop.policy)
    assert "LC303" not in answer.codes
    ((subject, reason),) = [
        (check["subject"], check["reason"])
        for check in answer.document["checks"]
        if (check["code"], check["outcome"]) == ("LC303", "unknown")
    ]
    assert subject == str(plugin)
    assert "RTLD_GLOBAL, which cannot be seen" in reason


def test_a_wrong_provider_in_every_scope_is_a_finding(shop: LiveShop, ask: Ask) -> None:
    bad = shop.library("libbad.so", STATE)
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", USER, "-Wl,--no-as-needed", bad, owner)
    with shop.running(shop.host("host"), f"l:{plugin}") as told:
        answer = ask(told.pid, "--policy", shop.policy)
    assert "LC303" in answer.codes


def test_a_definition_that_nobody_has_is_a_finding(shop: LiveShop, ask: Ask) -> None:
    lazy = "void *state_get(void); void *never(void) { return state_get(); }"
    plugin = shop.library("plugin.so", lazy, "-Wl,-z,lazy")
    with shop.running(shop.host("host"), f"l:{plugin}") as told:
        assert told.errors == ()
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 1
    assert answer.codes == {"LC402"}


def test_one_library_twice_under_two_names_is_seen(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE)
    (shop.base / "copy").mkdir()
    other = shop.base / "copy" / "libstate.so"
    other.write_bytes(owner.read_bytes())
    with shop.running(shop.host("host"), f"l:{owner}", f"l:{other}") as told:
        assert {str(owner), str(other)} <= told.files
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 1
    assert {finding["code"] for finding in answer.findings} == {"LC401", "LC403"}


def test_two_namespaces_of_the_loader_are_unknown(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", USER, owner)
    with shop.running(shop.host("host", "-DUSES_STATE", owner), f"m:{plugin}") as told:
        assert len(told.states) == 2
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 2
    ((code, reason),) = answer.reasons("unknown")
    assert code == "LC401"
    assert reason.startswith("it is loaded 2 times, each with its own counter: by dlmopen")


def test_a_library_that_is_only_read_as_data_is_not_loaded(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", USER, owner)
    data = shop.library("data.so", STATE)
    with shop.running(shop.host("host"), f"l:{plugin}", f"d:{data}") as told:
        assert str(data) in {mapping.path for mapping in read_process(told.pid).mappings}
        assert str(data) not in loaded(told.pid)
        assert ask(told.pid, "--policy", shop.policy).status == 0


#: Ways to lay a library out: with code in a segment of its own or not, with and without data that is made read-only.
LAYOUTS = {
    "usual": (),
    "one-page": ("-Wl,-z,noseparate-code",),
    "no-relro": ("-Wl,-z,norelro",),
    "read-only": ("-Wl,-z,now", "-Wl,-z,relro"),
    "addresses-are-offsets": ("-nostdlib", "-Wl,-z,norelro", "-Wl,-z,max-page-size=4096", "-Wl,-z,noseparate-code"),
}


@pytest.mark.parametrize(("layout", "how"), [*((layout, "e") for layout in LAYOUTS), ("usual", "w")])
def test_a_whole_file_that_is_mapped_as_code_is_not_loaded_by_that(
    shop: LiveShop, ask: Ask, layout: str, how: str
) -> None:
    owner = shop.library("libstate.so", STATE, *LAYOUTS[layout])
    plugin = shop.library("plugin.so", USER, owner)
    host = shop.host("host")
    with shop.running(host, f"{how}:{owner}", f"{how}:{owner}", f"l:{plugin}", f"{how}:{owner}") as told:
        assert (len(told.states), told.errors) == (1, ())
        answer = ask(told.pid, "--policy", shop.policy)
    assert (answer.status, answer.reasons("unknown")) == (0, [])
    with shop.running(host, f"{how}:{owner}") as told:
        assert str(owner) in {mapping.path for mapping in read_process(told.pid).mappings if mapping.is_code}
        assert str(owner) not in told.files
        assert str(owner) not in loaded(told.pid)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_where_all_that_can_be_read_can_be_run_files_are_loaded_all_the_same(shop: LiveShop, layout: str) -> None:
    owner = shop.library("libstate.so", STATE, *LAYOUTS[layout])
    with shop.running(shop.host("host"), "p:", f"l:{owner}") as told:
        assert str(owner) in told.files & loaded(told.pid)
        mapped = [one for one in read_process(told.pid).mappings if one.path == str(owner)]
    # Nothing is asked of `live` where the kernel does not obey, or a filter of system calls (containers) forbids it.
    if told.errors or not all(one.is_code for one in mapped if one.permissions[0] == "r"):
        pytest.skip(f"this machine does not let readable files be executed (personality(2)): {told.errors}")


@pytest.mark.parametrize("with_owner", [False, True])
def test_thread_local_storage_is_suspicious_only_where_something_touches_the_state(
    shop: LiveShop, ask: Ask, with_owner: bool
) -> None:
    shop.policy.write_text(shop.policy.read_text() + "thread-local = true\n")
    owner = shop.library("libstate.so", STATE)
    other = shop.library("other.so", "__thread int own; int *get(void) { return &own; }")
    opened = [f"l:{other}", *([f"l:{owner}"] if with_owner else [])]
    with shop.running(shop.host("host"), *opened) as told:
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 0
    assert [finding["code"] for finding in answer.findings] == (["LC404"] if with_owner else [])


def test_what_a_file_may_open_counts_only_when_it_is_open(shop: LiveShop, ask: Ask) -> None:
    """libstate.so is there and found by the note of libuser.so, and a second one is required: neither is mapped."""
    shop.library("libstate.so", STATE)
    notes = [{"soname": ["libstate.so"], "priority": "required"}, {"soname": ["libgone.so"], "priority": "required"}]
    user = shop.library("libuser.so", write_note(1, json.dumps(notes)))
    with shop.running(shop.host("host"), f"l:{user}") as told:
        assert load_live(read_process(told.pid)).load_set.unresolved == ()
        assert loaded(told.pid) == {*told.files, str(shop.base / "host")}
        assert ask(told.pid, "--policy", shop.policy).status == 0


def test_a_preload_comes_first(shop: LiveShop) -> None:
    owner = shop.library("libstate.so", STATE)
    early = shop.library("early.so", STATE)
    host = shop.host("host", "-DUSES_STATE", owner)
    with shop.running(host, env={"LD_PRELOAD": f"{early} no-such.so"}) as told:
        live = load_live(read_process(told.pid))
    assert [module.image.path for module in live.load_set.modules][:2] == [str(host), str(early)]
    assert live.load_set.unresolved == ()


def test_the_library_path_of_the_process_counts(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE)
    (shop.base / "first").mkdir()
    first = shop.library("first/libstate.so", STATE + "int more;")
    host = shop.host("host", "-DUSES_STATE", owner)
    with shop.running(host, env={"LD_LIBRARY_PATH": "first"}) as told:
        assert str(owner) not in loaded(told.pid)
        answer = ask(told.pid, "--policy", shop.policy)
    assert ("LC401", f"one copy of the counter: {first}") in answer.reasons("pass")


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_the_caller_stream_in_every_way_a_program_may_be_linked(
    shop: LiveShop, ask: Ask, tmp_path: Path, build: Build
) -> None:
    """A preload whose destructor waits keeps each of them at its end, with all that it has loaded."""
    programs = make_programs(build, tmp_path / "programs")
    source = "#include <stdio.h>\n#include <unistd.h>\n__attribute__((destructor)) static void wait_for_it(void)"
    source += '{ char one; fflush(stdout); write(1, "ready\\n", 6); read(0, &one, 1); }'
    waiting = shop.library("waiting.so", source)
    opened = [str(path) for path in programs.dlopen]
    with shop.running(programs.runner, *opened, env={"LD_PRELOAD": str(waiting)}, says=("runner", "delegate")) as told:
        answer = ask(told.pid, "--profile", "executorch-caller-stream")
    assert answer.status == (1 if build.broken and build.name not in UNSEEN else 0), answer.document
    assert answer.reasons("unknown") == []


# ---------------------------------------------------------------- programs, policies, and files that are broken

ROLE = """
[[role]]
name = "runner"
kind = "executable"
import = ["state_get"]
"""
WAIVER = """
[[waiver]]
code = "LC401"
path = "host"
reason = "not now"
owner = "team"
expires = {}
"""


def break_name(path: Path, name: str) -> None:
    """Let the entry of `name` in the dynamic symbol table name a string that the file does not hold."""
    with path.open("r+b") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        (index,) = [index for index, symbol in enumerate(table.iter_symbols()) if symbol.name == name]
        stream.seek(table["sh_offset"] + index * table["sh_entsize"])
        stream.write((0x7FFFFFFF).to_bytes(4, "little"))


@pytest.mark.parametrize(("name", "status"), [("runner", 1), ("python3.11", 0)])
def test_a_program_that_embeds_python_is_no_interpreter(shop: LiveShop, ask: Ask, name: str, status: int) -> None:
    """A runner with a static libpython and -rdynamic exports what an interpreter exports, and keeps its roles."""
    shop.policy.write_text(shop.policy.read_text() + ROLE)
    embedded = shop.base / "embedded.c"
    embedded.write_text("int Py_BytesMain(int count, char **words) { return 0; }")
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", USER, owner)
    with shop.running(shop.host(name, "-rdynamic", "-x", "c", embedded, "-x", "none"), f"l:{plugin}") as told:
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == status
    assert answer.codes == ({"LC301"} if status else set())


def test_an_interpreter_whose_symbols_are_broken_is_unknown(shop: LiveShop, ask: Ask) -> None:
    embedded = shop.base / "embedded.c"
    embedded.write_text("int Py_BytesMain(int count, char **words) { return 0; }")
    host = shop.host("python3", "-rdynamic", "-x", "c", embedded, "-x", "none")
    break_name(host, "Py_BytesMain")
    with shop.running(host) as told:
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 2
    checks = [(c["code"], c["subject"]) for c in answer.document["checks"] if c["outcome"] == "unknown"]
    assert ("LC101", str(host)) in checks


@pytest.mark.parametrize("how", ["l", "m"])
def test_a_library_whose_symbols_are_broken_is_unknown(shop: LiveShop, ask: Ask, how: str) -> None:
    shop.policy.write_text(shop.policy.read_text() + "thread-local = true\n")
    broken = shop.library("broken.so", STATE + "__thread int own; int *get(void) { return &own; }")
    break_name(broken, "state_get")
    with shop.running(shop.host("host"), f"l:{broken}", f"{how}:{broken}") as told:
        assert str(broken) in told.files
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 2
    unknown = answer.reasons("unknown")
    assert {"LC401", "LC404"} <= {code for code, _ in unknown}
    assert any(str(broken) in reason for _, reason in unknown)
    subjects = {c["subject"] for c in answer.document["checks"] if (c["code"], c["outcome"]) == ("LC401", "unknown")}
    assert (str(broken) in subjects) is (how == "m")
    assert "LC403" in {code for code, _ in answer.reasons("pass")}, "the rules that need no symbols answer"


@pytest.mark.parametrize(("expires", "codes", "status"), [("2020-01-31", {"LC902"}, 1), ("2099-12-31", {"LC901"}, 0)])
def test_waivers_that_are_expired_or_unused(
    shop: LiveShop, ask: Ask, expires: str, codes: set[str], status: int
) -> None:
    shop.policy.write_text(shop.policy.read_text() + WAIVER.format(expires))
    owner = shop.library("libstate.so", STATE)
    with shop.running(shop.host("host", "-DUSES_STATE", owner)) as told:
        answer = ask(told.pid, "--policy", shop.policy)
        ignored = ask(told.pid, "--policy", shop.policy, "--ignore", "LC9")
    assert ({finding["code"] for finding in answer.findings}, answer.status) == (codes, status)
    assert (ignored.findings, ignored.status) == ([], 0)


def test_the_command_line_chooses_among_the_rules(shop: LiveShop, ask: Ask) -> None:
    one = shop.library("one.so", STATE + USER, "-Wl,-Bsymbolic")
    two = shop.library("two.so", STATE + USER, "-Wl,-Bsymbolic")
    with shop.running(shop.host("host"), f"l:{one}", f"l:{two}") as told:
        selected = ask(told.pid, "--policy", shop.policy, "--select", "LC402,LC403")
        ignored = ask(told.pid, "--policy", shop.policy, "--ignore", "LC401", "--ignore", "LC302")
        both = ask(told.pid, "--policy", shop.policy)
    assert (both.status, both.codes) == (1, {"LC401"})
    assert (selected.status, {c["code"] for c in selected.document["checks"]}) == (0, {"LC403"})
    assert (ignored.status, ignored.findings) == (0, [])


def test_the_page_lists_the_rules_that_are_asked() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "live.md").read_text(encoding="utf-8")
    sentence = page[page.index("those about states, roles and waivers:") :].partition(". ")[0]
    assert tuple(re.findall(r"LC\d+", sentence)) == CODES
