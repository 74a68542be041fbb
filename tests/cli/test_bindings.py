"""`linkcheck bindings` on graphs made here; the real ld.so (LD_DEBUG=bindings) and the JSON schema are the judges."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from linkcheck.api import bindings
from linkcheck.cli.run import run
from tests.loader.workshop import START, Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_compiler

SCHEMA = json.loads(resources.files("linkcheck").joinpath("report/schemas/bindings-1.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def ask(*arguments: str | Path) -> Any:
        assert run(["bindings", *map(str, arguments), "--format", "json"]) == 0
        document = json.loads(capfd.readouterr().out)
        VALIDATOR.validate(document)
        return document

    return ask


def make_graph(shop: Workshop) -> Path:
    """main needs liba and libb; both call accessor, liba and libx define it, libb has a hidden copy of its own."""
    shop.library("libx.so", soname="libx.so", source="int accessor(void) { return 1; }")
    one = shop.library(
        "liba.so",
        soname="liba.so",
        needs=("libx.so",),
        runpath="$ORIGIN",
        source="int accessor(void) { return 2; } int other(void); int a(void) { return accessor() + other(); }",
    )
    shop.library(
        "libb.so",
        soname="libb.so",
        needs=("libx.so",),
        runpath="$ORIGIN",
        source="static __attribute__((noinline, used)) int hidden_one(void) { return 3; }"
        "int accessor(void); int other(void) { return accessor() + hidden_one(); }",
    )
    source = "int a(void); " + START.replace("void) {", "void) { a();")
    return shop.executable("main", needs=("libb.so",), runpath="$ORIGIN", flags=("-pie", str(one)), source=source)


def bindings_of_ld_so(program: Path) -> set[tuple[str, str, str]]:
    environment = {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1"}
    done = subprocess.run([str(program)], capture_output=True, text=True, env=environment, check=False)
    found = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\S+?)'", done.stderr)
    assert found
    base = str(program.parent)
    return {(user, symbol, provider) for user, provider, symbol in found if user.startswith(base)}


def test_the_contract_word_for_word(shop: Workshop, ask: Callable[..., Any]) -> None:
    main = make_graph(shop)
    base = shop.base
    document = ask(main, "--symbol", "accessor", "--symbol", "hidden_one")
    assert document == {
        "schema": "linkcheck/bindings/1",
        "root": str(main),
        "modules": [
            {"path": str(main), "soname": None, "needed_by": None, "found_by": "root", "scope": "global"},
            *(
                {"path": f"{base}/{name}", "soname": name, "needed_by": by, "found_by": "runpath", "scope": "global"}
                for name, by in (("liba.so", str(main)), ("libb.so", str(main)), ("libx.so", f"{base}/liba.so"))
            ),
        ],
        "unresolved": [],
        "bindings": [
            {
                "module": f"{base}/{module}",
                "symbol": symbol,
                "version": None,
                "kind": kind,
                "provider": f"{base}/{provider}",
            }
            for module, symbol, kind, provider in (
                ("liba.so", "accessor", "definition", "liba.so"),
                ("libb.so", "accessor", "import", "liba.so"),
                ("libb.so", "hidden_one", "hidden", "libb.so"),
                ("libx.so", "accessor", "definition", "liba.so"),
            )
        ],
    }


def test_every_import_is_bound_as_ld_so_binds_it(shop: Workshop, ask: Callable[..., Any]) -> None:
    main = make_graph(shop)
    document = ask(main)
    ours = {(b["module"], b["symbol"], b["provider"]) for b in document["bindings"]}
    real = bindings_of_ld_so(main)
    # ld.so also looks up what liba.so calls of its own (a definition that can be interposed).
    assert real - ours <= {(f"{shop.base}/liba.so", "accessor", f"{shop.base}/liba.so")}
    assert ours <= real
    assert len(ours) == 3


def test_paths_are_absolute_whatever_the_user_writes(
    shop: Workshop, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    main = make_graph(shop)
    expected = ask(main, "--dlopen", shop.base / "libb.so")
    (shop.base / "below").mkdir()
    monkeypatch.chdir(shop.base / "below")
    assert ask("./../main", "--dlopen", "../libb.so") == expected


def test_what_is_missing_is_said_and_is_no_error(
    shop: Workshop, ask: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    source = "int gone(void); " + START.replace("void) {", "void) { gone();")
    gone = shop.library("libgone.so", soname="libgone.so", source="void gone(void) {}")
    main = shop.executable("main", source=source, flags=("-pie", str(gone)))
    gone.unlink()
    document = ask(main)
    assert document["unresolved"] == [{"module": str(main), "needed": "libgone.so"}]
    (binding,) = document["bindings"]
    assert (binding["symbol"], binding["provider"]) == ("gone", None)
    assert run(["bindings", str(main)]) == 0
    assert "imports gone -> not found\nnot found: libgone.so (needed by " in capfd.readouterr().out


def test_local_and_global_dlopens_and_preloads(shop: Workshop, ask: Callable[..., Any]) -> None:
    main = shop.executable("main", needs=())
    one = shop.library("one.so", source="int f(void) { return 1; } int g(void) { return f(); }")
    two = shop.library("two.so", source="int f(void) { return 2; } int h(void) { return f(); }")
    zero = shop.library("zero.so", source="int f(void) { return 0; }")

    def providers(*arguments: str | Path) -> dict[str, str]:
        found = ask(main, "--symbol", "f", *arguments)["bindings"]
        return {Path(b["module"]).name: Path(b["provider"]).name for b in found}

    assert providers("--dlopen", one, "--dlopen", two) == {"one.so": "one.so", "two.so": "two.so"}
    assert providers("--dlopen-global", one, "--dlopen", two) == {"one.so": "one.so", "two.so": "two.so"}
    # On the command line the global ones come last; a preload comes before all.
    preloaded = providers("--preload", zero, "--dlopen", one, "--dlopen", two)
    assert preloaded == {"zero.so": "zero.so", "one.so": "zero.so", "two.so": "zero.so"}
    assert bindings(str(main), dlopen=[str(one)]).load_set.modules[1].scope == "local"


def test_symbols_by_their_cxx_name_and_by_pattern(shop: Workshop, ask: Callable[..., Any]) -> None:
    library = shop.library("lib.so", source="int _ZN2ns3getEv(void) { return 1; } int plain_get(void) { return 2; }")
    assert [b["symbol"] for b in ask(library, "--symbol", "ns::get()")["bindings"]] == ["_ZN2ns3getEv"]
    assert [b["symbol"] for b in ask(library, "--symbol", "plain_*")["bindings"]] == ["plain_get"]
    assert ask(library, "--symbol", "nobody")["bindings"] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read"), (b"!<arch>\n", "not an ELF image"), (b"\x7fELF" + bytes(60), "malformed ELF")],
)
def test_a_root_that_cannot_be_read_is_one_line_and_status_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes | None, says: str
) -> None:
    path = tmp_path / "root"
    if content is not None:
        path.write_bytes(content)
    assert run(["bindings", str(path)]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert str(path) in line
    assert says in line


def test_a_name_that_can_match_nothing_is_refused(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bindings", str(shop.library("lib.so")), "--symbol", "read@GLIBC_2.2.5"]) == 2
    assert "without its version: read" in capfd.readouterr().err


def test_the_schema_is_valid_and_strict() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for part in [SCHEMA, *SCHEMA["$defs"].values()]:
        if "properties" in part:
            assert part["additionalProperties"] is False
            # What is seldom so stands there only where it is so.
            seldom = {"libc", "unversioned"} & set(part["properties"])
            assert set(part["required"]) == set(part["properties"]) - seldom
            assert all("const" in part["properties"][name] for name in seldom)


@pytest.mark.skipif(not os.path.exists("/usr/bin/git"), reason="needs /usr/bin/git")
def test_a_real_program_is_bound_as_ld_so_binds_it(ask: Callable[..., Any]) -> None:
    environment = {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "PATH": "/usr/bin"}
    done = subprocess.run(["/usr/bin/git", "version"], capture_output=True, text=True, env=environment, check=True)
    found = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\S+?)'", done.stderr)
    document = ask("/usr/bin/git")
    ours = {(b["module"], b["symbol"]): b["provider"] for b in document["bindings"]}
    root = {"git": "/usr/bin/git", "/usr/bin/git": "/usr/bin/git"}
    compared = 0
    for user, provider, symbol in found:
        key = (root.get(user, user), symbol)
        if key in ours:
            assert ours[key] == root.get(provider, provider), key
            compared += 1
    assert compared > 200


def test_a_version_of_a_library_that_has_none_is_marked(
    shop: Workshop, ask: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    script = shop.base / "script"
    script.write_text("V1 { global: accessor; };")
    source = "int accessor(void) { return 1; }"
    shop.library("libx.so", soname="libx.so", source=source, flags=(f"-Wl,--version-script={script}",))
    calls = "int accessor(void); void go(void) { accessor(); } " + START
    main = shop.executable("main", source=calls, flags=("-pie", f"{shop.base}/libx.so"), runpath="$ORIGIN")
    assert "unversioned" not in ask(main)["bindings"][0]
    shop.library("libx.so", soname="libx.so", source=source)
    assert ask(main)["bindings"][0]["unversioned"] is True
    assert run(["bindings", str(main)]) == 0
    line = f"imports accessor@V1 -> {shop.base}/libx.so (which has no versions: glibc before 2.41 ends here)"
    assert line in capfd.readouterr().out


SESSION = 'namespace acme { __attribute__((visibility("hidden"), noinline, used)) int session() { return 1; } }'


@pytest.mark.parametrize("symbol", ["acme::session()", "acme::session", "acme::ses*", "_ZN4acme7sessionEv"])
def test_a_hidden_copy_is_found_by_its_cxx_name(tmp_path: Path, ask: Callable[..., Any], symbol: str) -> None:
    library = tmp_path / "liba.so"
    command = ["gcc", "-xc++", "-", "-shared", "-fPIC", "-nostdlib", "-o", str(library)]
    subprocess.run(
        command, input=f"{SESSION} namespace other {{ int session() {{ return 2; }} }}", text=True, check=True
    )
    shown = subprocess.run(["nm", "-C", str(library)], capture_output=True, text=True, check=True).stdout
    assert " t acme::session()" in shown
    (found,) = ask(library, "--symbol", symbol)["bindings"]
    assert (found["symbol"], found["kind"]) == ("_ZN4acme7sessionEv", "hidden")


def test_a_symbol_that_no_table_has_is_said_to_be_in_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library = tmp_path / "liba.so"
    command = ["gcc", "-xc++", "-", "-shared", "-fPIC", "-nostdlib", "-s", "-o", str(library)]
    subprocess.run(command, input=SESSION, text=True, check=True)
    assert run(["bindings", str(library), "--symbol", "acme::session()"]) == 0
    assert "no symbol table of this process imports or defines it" in capfd.readouterr().out
