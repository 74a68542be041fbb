"""`linkcheck tree` on graphs made here: text, JSON and graphs; the real ld.so and the JSON schema are the judges."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from linkcheck.cli.run import run
from linkcheck.model import FoundBy, LoadSet, Module, Unresolved
from linkcheck.report.tree import render_trees
from tests.loader.workshop import Workshop, needs_compiler, trace
from tests.unit.rules.worlds import image

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = json.loads(resources.files("linkcheck").joinpath("report/schemas/tree-1.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def show(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def show(*arguments: str | Path) -> tuple[int, str]:
        status = run(["tree", *map(str, arguments)])
        return status, capfd.readouterr().out

    return show


@pytest.fixture
def ask(show: Callable[..., tuple[int, str]]) -> Callable[..., Any]:
    def ask(*arguments: str | Path) -> Any:
        _, out = show(*arguments, "--format", "json")
        document = json.loads(out)
        VALIDATOR.validate(document)
        return document

    return ask


@pytest.mark.parametrize(("given_up", "where"), [("", ", which no search path reaches"), ("nobody knows", "")])
def test_no_search_path_is_said_to_lead_nowhere_that_was_not_followed(given_up: str, where: str) -> None:
    missing = Unresolved(0, "libz.so", (), given_up=given_up, elsewhere=("lib/libz.so",))
    load_set = LoadSet((Module(image("main"), None, "main", FoundBy.ROOT),), (missing,))
    assert f"there is lib/libz.so{where}\n" in render_trees([load_set], "text")


def test_the_text_says_that_the_cache_could_not_be_used() -> None:
    missing = Unresolved(0, "libz.so", ("/lib",), cache_fault="/etc/ld.so.cache: truncated header")
    load_set = LoadSet((Module(image("main"), None, "main", FoundBy.ROOT),), (missing,))
    lines = render_trees([load_set], "text").splitlines()
    assert [line.strip() for line in lines[2:4]] == [
        "not in /lib",
        "nor looked up in /etc/ld.so.cache: truncated header",
    ]


def make_graph(shop: Workshop) -> Path:
    """main finds liba by DT_RUNPATH, which finds libc1 in its second directory; libb asks for libc1 again."""
    (shop.base / "empty").mkdir()
    shop.library("liba.so", soname="liba.so", needs=("libc1.so",), runpath="$ORIGIN/empty:$ORIGIN/deep")
    shop.library("libb.so", soname="libb.so", needs=("libc1.so",))
    shop.library("deep/libc1.so", soname="libc1.so")
    return shop.executable("main", needs=("liba.so", "libb.so"), runpath="$ORIGIN")


@needs_compiler[0]
@needs_compiler[1]
@needs_compiler[2]
class TestTree:
    def test_the_text_says_who_asked_where_it_was_and_why(
        self, shop: Workshop, show: Callable[..., tuple[int, str]]
    ) -> None:
        main = make_graph(shop)
        base = shop.base
        drawn = (
            f"{main}\n"
            f"├─ liba.so => {base}/liba.so [DT_RUNPATH]\n"
            f"│  └─ libc1.so => {base}/deep/libc1.so [DT_RUNPATH]\n"
            "│         also for libb.so\n"
            f"└─ libb.so => {base}/libb.so [DT_RUNPATH]\n"
        )
        assert show(main) == (0, drawn)
        _, text = show(main, "--tried")
        assert f"tried {base}/empty/libc1.so: absent" in text

    def test_it_loads_and_tries_what_ld_so_loads_and_tries(self, shop: Workshop, ask: Callable[..., Any]) -> None:
        main = make_graph(shop)
        real = trace(main, cwd=shop.base)
        (tree,) = ask(main)["trees"]
        assert [module["path"] for module in tree["modules"][1:]] == list(real.loaded)
        tried = [a["path"] for module in tree["modules"] for a in module["tried"]]
        assert tried == [path for path in real.tried if path not in real.loaded and Path(path).parent.is_dir()]
        assert tree["modules"][3]["requesters"] == [f"{shop.base}/liba.so", f"{shop.base}/libb.so"]

    def test_what_is_missing_makes_status_1(
        self, shop: Workshop, show: Callable[..., tuple[int, str]], ask: Callable[..., Any]
    ) -> None:
        shop.library("plugins/libgone.so", soname="libgone.so")
        main = shop.executable("main", needs=("libgone.so",), runpath="$ORIGIN/lib")
        (shop.base / "lib").mkdir()
        shutil.copy(shop.base / "plugins" / "libgone.so", shop.base / "libgone.so")
        status, text = show(main)
        assert status == 1
        assert "└─ libgone.so => not found\n" in text
        assert f"       not in {shop.base}/lib\n" in text
        assert f"there is {shop.base}/libgone.so, which no search path reaches\n" in text
        (missing,) = ask(main)["trees"][0]["unresolved"]
        assert (missing["module"], missing["needed"]) == (str(main), "libgone.so")
        assert missing["elsewhere"] == [f"{shop.base}/libgone.so"]

    def test_what_the_search_has_met_is_nowhere_else(self, shop: Workshop, ask: Callable[..., Any]) -> None:
        library = shop.library("app/liba.so", needs=("libz.so.1",), runpath="$ORIGIN/../lib")
        (shop.base / "lib").mkdir()
        (shop.base / "lib" / "libz.so.1").write_text("no library")
        (shop.base / "app" / "lib").mkdir()
        (shop.base / "app" / "lib" / "libz.so.1").write_text("no library either")
        ((unresolved,),) = [tree["unresolved"] for tree in ask(library)["trees"]]
        assert [os.path.realpath(a["path"]) for a in unresolved["rejected"]] == [f"{shop.base}/lib/libz.so.1"]
        assert unresolved["elsewhere"] == [f"{shop.base}/app/lib/libz.so.1"]

    def test_a_file_passed_over_is_shown_with_its_reason(
        self, shop: Workshop, show: Callable[..., tuple[int, str]]
    ) -> None:
        foreign = shop.library("one/liba.so", soname="liba.so")
        raw = bytearray(foreign.read_bytes())
        raw[18:20] = (183).to_bytes(2, "little")  # e_machine: aarch64
        foreign.write_bytes(raw)
        shop.library("two/liba.so", soname="liba.so")
        main = shop.executable("main", needs=("liba.so",), runpath="$ORIGIN/one:$ORIGIN/two")
        status, text = show(main)
        assert status == 0
        assert f"tried {foreign}: wrong machine: aarch64" in text

    def test_several_roots_dlopens_and_a_preload(self, shop: Workshop, ask: Callable[..., Any]) -> None:
        main = make_graph(shop)
        plug = shop.library("plug.so", needs=("libdeep.so",), runpath="$ORIGIN")
        shop.library("libdeep.so", soname="libdeep.so")
        early = shop.library("early.so")
        document = ask(main, plug, "--preload", early, "--dlopen", plug)
        first, second = document["trees"]
        assert [(m["path"], m["found_by"], m["scope"]) for m in first["modules"]][1:3] == [
            (str(early), "preload", "global"),
            (f"{shop.base}/liba.so", "runpath", "global"),
        ]
        assert [(m["path"], m["loaded_for"], m["scope"]) for m in first["modules"]][-2:] == [
            (str(plug), str(plug), "local"),
            (f"{shop.base}/libdeep.so", str(plug), "local"),
        ]
        assert first["opened"] == [{"path": str(plug), "global": False, "deepbind": False}]
        assert second["root"] == str(plug)

    def test_a_sysroot_has_its_own_libraries(self, shop: Workshop, ask: Callable[..., Any]) -> None:
        shop.library("sys/usr/lib/liba.so", soname="liba.so")
        main = shop.executable("sys/bin/main", needs=("liba.so",))
        (tree,) = ask(main, "--root", shop.base / "sys")["trees"]
        assert tree["modules"][1]["path"] == f"{shop.base}/sys/usr/lib/liba.so"
        assert tree["modules"][1]["found_by"] == "default"

    def test_a_root_that_is_none_is_status_2(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert run(["tree", str(tmp_path / "gone")]) == 2
        assert capfd.readouterr().err.count("\n") == 1

    @pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
    def test_graphviz_reads_the_graph(self, shop: Workshop, show: Callable[..., tuple[int, str]]) -> None:
        _, text = show(make_graph(shop), "--format", "dot")
        subprocess.run(["dot", "-Tsvg"], input=text, text=True, capture_output=True, check=True)


HOSTILE = 'lib"];x-->y\n#\\N\x1b[31m<b>.so'


def make_hostile() -> LoadSet:
    root = image("/bin/main", needed=(HOSTILE, "gone"))
    other = image(f"/lib/{HOSTILE}")
    modules = (
        Module(root, None, "/bin/main", FoundBy.ROOT, dependencies=(1, None)),
        Module(other, 0, HOSTILE, FoundBy.RUNPATH),
    )
    return LoadSet(modules, (Unresolved(0, HOSTILE + "2", ()), Unresolved(0, "gone", ("/a",))))


def test_names_cannot_break_out_of_a_graph() -> None:
    mermaid = render_trees([make_hostile()], "mermaid")
    for line in mermaid.splitlines()[1:-1]:
        assert re.fullmatch(r'  n\d+(\["[\w #;./+@:=,()-]*"\](:::missing)?| --> n\d+)', line), line
    dot = render_trees([make_hostile()], "dot")
    for line in dot.splitlines()[2:-1]:
        # No label ends before its last quote: every quote inside and every backslash is escaped.
        assert re.fullmatch(r'  n\d+( -> n\d+| \[label="([^"\\]|\\["\\])*"(, color=red, style=dashed)?\]);', line), line


@pytest.mark.parametrize("format_name", ["text", "json", "mermaid", "dot"])
def test_every_format_is_printable(format_name: str) -> None:
    text = render_trees([make_hostile()], format_name)
    assert text.replace("\n", "").isprintable()


def test_a_cycle_is_drawn_once() -> None:
    first = image("/lib/a", needed=("b",))
    second = image("/lib/b", needed=("a",))
    modules = (
        Module(first, None, "/lib/a", FoundBy.ROOT, dependencies=(1,)),
        Module(second, 0, "b", FoundBy.RUNPATH, dependencies=(0,)),
    )
    text = render_trees([LoadSet(modules)], "text")
    assert text == "/lib/a\n│   also for b\n└─ b => /lib/b [DT_RUNPATH]\n"


def test_the_schema_is_valid_and_strict() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for part in [SCHEMA, *SCHEMA["$defs"].values()]:
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert sorted(part["required"]) == sorted(part["properties"])


@pytest.mark.compile
def test_a_root_that_cannot_be_read_does_not_cost_the_others(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    library = shop.library("libx.so", source="int x;")
    assert run(["tree", str(shop.base / "gone"), str(library), str(shop.base / "lost")]) == 2
    shown = capfd.readouterr()
    assert shown.out.startswith(str(library))
    assert [line.partition(": error: ")[2].partition(":")[0] for line in shown.err.splitlines()] == [
        str(shop.base / "gone"),
        str(shop.base / "lost"),
    ]


@pytest.mark.parametrize("command", ["verify", "scan", "prebuilt", "tree", "bindings"])
def test_an_archive_or_a_file_in_one_is_refused_with_a_true_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a/liba.so", b"x")
    assert run([command, f"{wheel}!/a/liba.so"]) == 2
    assert "a file inside an archive cannot be named alone" in "".join(capfd.readouterr())
    if command in ("tree", "bindings"):
        assert run([command, str(wheel)]) == 2
        assert "it is a wheel; `verify` and `scan` look into it" in capfd.readouterr().err
