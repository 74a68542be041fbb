"""Python extension modules as what one interpreter opens, judged by importing them."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from linkcheck.cli.run import run
from tests.inputs.pack import make_zip
from tests.loader.workshop import needs_compiler

pytestmark = [
    *needs_compiler,
    pytest.mark.skipif(
        not Path(sysconfig.get_path("include"), "Python.h").is_file(),
        reason="needs Python's headers (Debian package python3-dev)",
    ),
]

SUFFIX = f".cpython-{sys.version_info[0]}{sys.version_info[1]}-x86_64-linux-gnu.so"
POLICY = '[[state]]\nname = "table"\nowner = ["libtable.so"]\nsymbols = ["table_get", "table_set"]\n'
STATE = "static long v; long table_get(void) { return v; } void table_set(long n) { v = n; }"
USES = "long table_get(void); void table_set(long n);"
MODULE = """
#include <Python.h>
{state}
static PyObject *get(PyObject *self, PyObject *none) {{ return PyLong_FromLong(table_get()); }}
static PyObject *set(PyObject *self, PyObject *n) {{ table_set(PyLong_AsLong(n)); Py_RETURN_NONE; }}
static PyMethodDef methods[] = {{{{"get", get, METH_NOARGS, 0}}, {{"set", set, METH_O, 0}}, {{0}}}};
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{name}", 0, -1, methods}};
PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModule_Create(&definition); }}
"""


class Shop:
    def __init__(self, base: Path) -> None:
        self.base = base

    def build(self, path: str, source: str, *flags: str) -> Path:
        target = self.base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        include = sysconfig.get_path("include")
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            "-w",
            f"-I{include}",
            "-x",
            "c",
            "-",
            "-x",
            "none",
            *flags,
            "-o",
            str(target),
        ]
        subprocess.run(command, input=source, text=True, check=True, capture_output=True)
        return target

    def module(self, directory: str, name: str, state: str, *flags: str, suffix: str = SUFFIX) -> Path:
        return self.build(f"{directory}/{name}{suffix}", MODULE.format(state=state, name=name), *flags)

    def ask_python(self, code: str, *directories: str) -> str:
        start = f"import sys; sys.path[:0] = {[str(self.base / d) for d in directories]!r}\n"
        return subprocess.run(
            [sys.executable, "-c", start + code], capture_output=True, text=True, check=True
        ).stdout.strip()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    return Shop(tmp_path)


@pytest.fixture
def ask(shop: Shop, capfd: pytest.CaptureFixture[str]) -> Any:
    def ask_command(*arguments: str) -> dict[str, Any]:
        status = run([arguments[0], "--policy", "policy.toml", "--format", "json", *arguments[1:]])
        captured = capfd.readouterr()
        assert captured.err == ""
        return {**json.loads(captured.out), "status": status}

    return ask_command


def errors(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in document["findings"] if f["severity"] == "error"]


CROSS = "import one, two; one.set(7); print(two.get())"


@pytest.mark.parametrize("command", ["verify", "scan"])
@pytest.mark.parametrize("suffix", [SUFFIX, ".abi3.so", ".so"])
def test_two_packages_with_a_copy_each_are_split_in_one_interpreter(
    shop: Shop, ask: Any, command: str, suffix: str
) -> None:
    shop.module("a", "one", STATE, suffix=suffix)
    shop.module("b", "two", STATE, suffix=suffix)
    assert shop.ask_python(CROSS, "a", "b") == "0"
    document = ask(command, "a", "b")
    (finding,) = errors(document)
    assert (finding["code"], finding["evidence"]["verdict"], document["status"]) == ("LC401", "split-unless-global", 1)
    assert "imports 2 extension modules here" in finding["message"]


def test_wheels_given_together_are_one_process(shop: Shop, ask: Any) -> None:
    for directory, name in (("a", "one"), ("b", "two")):
        module = shop.module(directory, name, STATE)
        make_zip(shop.base / f"{name}-1-py3-none-any.whl", [(module.name, module.read_bytes())])
    document = ask("scan", "one-1-py3-none-any.whl", "two-1-py3-none-any.whl")
    (finding,) = errors(document)
    assert finding["code"] == "LC401"
    assert "two-1-py3-none-any.whl!/two.cpython-" in finding["message"]
    assert ask("scan", "one-1-py3-none-any.whl")["status"] == 0


def test_the_process_of_two_archives_has_a_name_that_lasts(shop: Shop, ask: Any) -> None:
    """Not that of the random directory that they are unpacked into: a waiver has to name it, and a run to repeat it."""
    modules = [shop.module(directory, name, STATE) for directory, name in (("a", "one"), ("b", "two"))]
    archives = ["dist/x.zip", "dist/y.zip"]
    (shop.base / "dist").mkdir()
    for archive, module in zip(archives, modules, strict=True):
        make_zip(shop.base / archive, [(f"pkg/{module.name}", module.read_bytes())])
    first, again = ask("verify", *archives), ask("verify", *archives)
    assert first == again
    (finding,) = errors(first)
    assert finding["primary"]["path"] == "dist"
    waiver = '[[waiver]]\ncode = "LC401"\npath = "dist"\nreason = "r"\nowner = "o"\nexpires = 2999-01-01\n'
    (shop.base / "policy.toml").write_text(POLICY + waiver)
    assert ask("verify", *archives)["status"] == 0


def test_one_module_in_two_places_is_imported_once(shop: Shop, ask: Any) -> None:
    """A build tree, a staging tree and the wheel; two versions of a wheel. A second package is still met by each."""
    module = shop.module("proj/build/lib.linux-x86_64-cpython-311/pkg", "one", STATE)
    for directory, flag in (("proj/stage/pkg", "-O2"), ("proj/dist/old/pkg", "-O0")):
        shop.module(directory, "one", STATE, flag)
    (shop.base / "proj/stage/pkg/__init__.py").touch()
    make_zip(shop.base / "pkg-2-py3-none-any.whl", [(f"pkg/{module.name}", module.read_bytes())])
    make_zip(shop.base / "pkg-1-py3-none-any.whl", [(f"pkg/{module.name}", module.read_bytes() + b"older")])
    wheels = ["pkg-1-py3-none-any.whl", "pkg-2-py3-none-any.whl"]
    for paths in (["proj"], wheels, ["proj", *wheels]):
        for command in ("verify", "scan"):
            document = ask(command, *paths)
            assert (document["status"], errors(document)) == (0, [])
    other = shop.module("b", "two", STATE)
    assert shop.ask_python("from pkg import one; import two; one.set(7); print(two.get())", "proj/stage", "b") == "0"
    make_zip(shop.base / "other-1-py3-none-any.whl", [(f"other/{other.name}", other.read_bytes())])
    split = [
        finding["evidence"]["copies"] for finding in errors(ask("verify", "proj", *wheels, "other-1-py3-none-any.whl"))
    ]
    assert sorted(len(copies) for copies in split) == [2] * 5
    assert all(sum("two" in Path(copy).name for copy in copies) == 1 for copies in split)


def test_a_split_of_two_packages_is_said_once_whatever_versions_of_a_third_are_there(shop: Shop, ask: Any) -> None:
    """A process for each version of the third, both with the split."""
    for name, state in (("one", STATE), ("two", STATE), ("third", USES)):
        module = shop.module(name, name, state)
        make_zip(shop.base / f"{name}-1-py3-none-any.whl", [(f"{name}/{module.name}", module.read_bytes())])
    older = shop.module("third", "third", USES, "-O0").read_bytes()
    make_zip(shop.base / "third-0-py3-none-any.whl", [(f"third/{module.name}", older)])
    document = ask("verify", *(f"{name}-py3-none-any.whl" for name in ("one-1", "two-1", "third-1", "third-0")))
    assert [finding["code"] for finding in errors(document)] == ["LC401"]


def test_two_modules_of_one_file_name_are_two_modules(shop: Shop, ask: Any) -> None:
    """`torch._C` and `torchvision._C`: the packages around them tell."""
    for package in ("p", "q"):
        shop.module(f"src/{package}", "_C", STATE)
        (shop.base / "src" / package / "__init__.py").touch()
    assert shop.ask_python("import p._C, q._C; p._C.set(7); print(q._C.get())", "src") == "0"
    (finding,) = errors(ask("scan", "src"))
    assert (finding["code"], len(finding["evidence"]["copies"])) == ("LC401", 2)


def test_modules_that_share_the_owner_pass(shop: Shop, ask: Any) -> None:
    owner = shop.build("lib/libtable.so", STATE, "-Wl,-soname,libtable.so")
    for directory, name in (("a", "one"), ("b", "two")):
        shop.module(directory, name, USES, str(owner), "-Wl,-rpath,$ORIGIN/../lib")
    assert shop.ask_python(CROSS, "a", "b") == "7"
    document = ask("verify", "a", "b", "lib")
    assert (document["status"], errors(document)) == (0, [])


def test_one_owner_each_by_soname_is_the_first_one_for_both(shop: Shop, ask: Any) -> None:
    """Two files of one SONAME: the second package's own copy is never loaded, as ld.so has it."""
    for directory, name in (("a", "one"), ("b", "two")):
        owner = shop.build(f"{directory}/libtable.so", STATE, "-Wl,-soname,libtable.so")
        shop.module(directory, name, USES, str(owner), "-Wl,-rpath,$ORIGIN")
    assert shop.ask_python(CROSS, "a", "b") == "7"
    assert errors(ask("scan", "a", "b")) == []


def test_modules_for_two_versions_of_python_never_meet(shop: Shop, ask: Any) -> None:
    shop.module("a", "one", STATE, suffix=".cpython-310-x86_64-linux-gnu.so")
    shop.module("b", "two", STATE, suffix=".cpython-399-x86_64-linux-gnu.so")
    assert errors(ask("scan", "a", "b")) == []
    shop.module("b", "three", STATE, suffix=".abi3.so")
    split = errors(ask("scan", "a", "b"))
    assert len(split) == 2
    assert all("three.abi3.so" in finding["message"] for finding in split)


def test_what_the_interpreter_defines_is_no_undefined_symbol_and_nothing_else_is_hidden(shop: Shop, ask: Any) -> None:
    shop.module("a", "one", STATE)
    assert ask("verify", "a")["status"] == 0
    shop.module("a", "two", "long table_get(void); void table_set(long n);")
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, 'a'); import two"], capture_output=True, text=True
    )
    assert "undefined symbol: table_" in done.stderr
    found = [f for f in ask("verify", "a")["findings"] if f["code"] == "LC304"]
    assert [(f["severity"], f["evidence"]["symbols"]) for f in found] == [("warning", ["table_get", "table_set"])]


def test_modules_of_two_installations_never_meet(shop: Shop, ask: Any) -> None:
    """Of one system, of a virtual environment, of a program that brings its own Python along."""
    shop.module("usr/lib/python3/dist-packages/a", "one", STATE)
    shop.module("usr/lib/sdk/lib/python3.12/site-packages/b", "two", STATE)
    assert errors(ask("scan", "usr")) == []
    shop.module("usr/lib/python3.11/lib-dynload", "three", STATE)
    (finding,) = errors(ask("scan", "usr"))
    assert all("sdk" not in path for path in finding["evidence"]["copies"])


def test_modules_for_two_c_libraries_never_meet(shop: Shop, ask: Any) -> None:
    """As in a directory of wheels for manylinux and musllinux; Pythons of musl before 3.11 have the same tag."""
    musl = str(shop.build("libc.so", "", "-nostdlib", "-Wl,-soname,libc.musl-x86_64.so.1"))
    flags = ("-nostdlib", "-Wl,--no-as-needed", musl)
    shop.module("a", "one", STATE)
    shop.module("b", "two", STATE, *flags)
    assert errors(ask("scan", "a", "b")) == []
    shop.module("c", "three", STATE, *flags)
    (finding,) = errors(ask("scan", "a", "b", "c"))
    assert (finding["code"], sorted(Path(copy).parts[-2] for copy in finding["evidence"]["copies"])) == (
        "LC401",
        ["b", "c"],
    )
