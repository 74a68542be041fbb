"""`linkcheck scan` over packages made here, with the facts of two published ones; a real process is the judge."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from linkcheck.cli.run import run
from tests.inputs.pack import make_zip
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_compiler

COUNTER = "static int n; int bump(void) { return ++n; } int peek(void) { return n; } int a(void), b(void);"
STREAM = "_ZN10executorch9extension4cuda15getCallerStreamEv"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")  # so that no policy file of the checkout is found
    return Workshop(tmp_path)


@pytest.fixture
def scan(capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def scan(*arguments: str | Path) -> Any:
        status = run(["scan", *map(str, arguments), "--format", "json"])
        document = json.loads(capfd.readouterr().out)
        document["status"] = status
        return document

    return scan


def make_packages(shop: Workshop) -> tuple[Path, Path]:
    """Two packages with different builds of one owner: one for programs, one below an extension module.

    As in torch-tensorrt 2.14.0 and torch-tensorrt-executorch-runtime 0.1.0: the shim library between the module and
    the owner has no search path.
    """
    source = f"static int n; int {STREAM}(void) {{ return ++n; }} int one(void) {{return 1;}}"
    source += " int two(void) {return 2;} int three(void) {return 3;} int four(void) {return 4;}"
    for name, more in (("one", ""), ("two", " int _pad[512] = {1};")):
        shop.library(
            f"{name}/pkg_{name}/libextension_cuda.so",
            soname="libextension_cuda.so",
            source=source + more,
            flags=("-Wl,--build-id=sha1",),
        )
    shop.executable("one/pkg_one/runner", needs=("libextension_cuda.so",), runpath="$ORIGIN")
    shop.library("two/pkg_two/libshims.so", soname="libshims.so", needs=("libextension_cuda.so",))
    shop.library(
        "two/pkg_two/_portable.cpython-311-x86_64-linux-gnu.so",
        soname="_portable.so",
        needs=("libshims.so", "libextension_cuda.so"),
        runpath="$ORIGIN",
        source="void PyInit__portable(void) {}",
    )
    return shop.base / "one", shop.base / "two"


def test_one_soname_in_two_files_is_named_with_both(shop: Workshop, scan: Callable[..., Any]) -> None:
    one, two = make_packages(shop)
    document = scan(one, two)
    assert document["status"] == 0
    assert document["outcome"] == "pass"
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"]) == ("LC403", "info")
    files = [path / f"pkg_{path.name}" / "libextension_cuda.so" for path in (one, two)]
    assert finding["evidence"]["files"] == [str(path) for path in files]
    assert finding["evidence"]["likeness"] == "one SONAME in two files"
    first, second = finding["evidence"]["build_ids"]
    assert first != second
    for path in files:
        assert f"{path} ({path.stat().st_size:,} bytes, loaded by " in finding["message"]
    assert "loads the first only" in finding["message"]
    assert "opens each by its path holds two copies" in finding["message"]


def test_a_library_that_works_by_reuse_only_is_a_finding_as_a_root_only(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    _, two = make_packages(shop)
    assert run(["verify", str(two), "--select", "LC2"]) == 0
    assert "not found" not in capfd.readouterr().out
    assert run(["verify", str(two / "pkg_two/libshims.so"), "--select", "LC2"]) == 1
    assert "error LC203 unreachable-needed" in capfd.readouterr().out


def test_wheels_are_compared_like_directories(shop: Workshop, scan: Callable[..., Any]) -> None:
    wheels = []
    for tree in make_packages(shop):
        members = [(str(file.relative_to(tree)), file.read_bytes()) for file in tree.rglob("*") if file.is_file()]
        wheels.append(make_zip(Path(f"{tree.name}-1-py3-none-any.whl"), members))
    (finding,) = scan(*wheels)["findings"]
    assert finding["evidence"]["files"] == [
        "one-1-py3-none-any.whl!/pkg_one/libextension_cuda.so",
        "two-1-py3-none-any.whl!/pkg_two/libextension_cuda.so",
    ]


def count_in_a_process(program: str) -> list[int]:
    """What the copies of a counter say in a real process that runs `program`."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize(("soname", "by_name", "by_path"), [("libc1.so", [1, 2], [1, 1]), (None, [1, 1], [1, 1])])
def test_what_it_says_of_copies_is_what_a_process_does(
    shop: Workshop, scan: Callable[..., Any], soname: str | None, by_name: list[int], by_path: list[int]
) -> None:
    """One SONAME in two files (None: two SONAMEs of one build), reached through DT_NEEDED, and each by its path."""
    for name in ("a", "b"):
        own = soname or f"libc1-{name * 8}.so"
        flags = ("-Wl,--build-id=0xc0ffee",)
        shop.library(f"{name}/{own}", soname=own, source=COUNTER, flags=flags)
        source = f"int bump(void); int use_{name}(void) {{ return bump(); }}"
        shop.library(f"{name}/user_{name}.so", needs=(own,), runpath="$ORIGIN", source=source)
    users = [shop.base / name / f"user_{name}.so" for name in ("a", "b")]
    copies = [next((shop.base / name).glob("libc1*")) for name in ("a", "b")]
    program = "import ctypes\n"
    reached = "".join(f"print(ctypes.CDLL({str(u)!r}).{u.stem.replace('user', 'use')}())\n" for u in users)
    opened = "".join(f"print(ctypes.CDLL({str(c)!r}).bump())\n" for c in copies)
    assert count_in_a_process(program + reached) == by_name
    assert count_in_a_process(program + opened) == by_path

    (finding,) = scan(shop.base / "a", shop.base / "b")["findings"]
    assert finding["severity"] == "info"
    assert ("loads the first only" in finding["message"]) is (by_name == [1, 2])
    assert "two copies" in finding["message"]
    # Once a root loads both, it is a fault of that process.
    shop.executable("main")
    both = scan(shop.base / "main", *copies, "--dlopen", copies[0], "--dlopen", copies[1])
    (finding,) = (f for f in both["findings"] if f["severity"] != "info")
    assert (finding["code"], finding["severity"], both["status"]) == ("LC403", "warning", 0)


def test_a_split_of_one_process_is_an_error(shop: Workshop, scan: Callable[..., Any]) -> None:
    source = f"static int n; int {STREAM}(void) {{ return ++n; }}"
    user = f"int {STREAM}(void); int use(void) {{ return {STREAM}(); }}"
    owner = shop.library("libextension_cuda.so", soname="libextension_cuda.so", source=source)
    shop.library("one.so", needs=(), flags=(str(owner),), runpath="$ORIGIN", source=user)
    shop.library("two.so", soname="two.so", flags=("-Wl,-Bsymbolic",), source=source + user)
    main = shop.executable("main", needs=("one.so",), runpath="$ORIGIN")
    document = scan(main, "--dlopen", shop.base / "two.so")
    assert document["status"] == 1
    assert "LC401" in {f["code"] for f in document["findings"] if f["severity"] == "error"}


def test_one_file_under_two_names(shop: Workshop, scan: Callable[..., Any]) -> None:
    first = shop.library("a/libx.so", soname="libx.so", source=COUNTER)
    (shop.base / "b").mkdir()
    (shop.base / "b/libx.so").hardlink_to(first)
    (finding,) = scan(shop.base / "a", shop.base / "b")["findings"]
    assert finding["evidence"]["likeness"] == "one file found twice"


def test_packages_without_copies_pass_and_broken_ones_do_not(shop: Workshop, scan: Callable[..., Any]) -> None:
    library = shop.library("a/libx.so", soname="libx.so", source=COUNTER, needs=("libgone.so",))
    document = scan(shop.base / "a")
    assert (document["status"], document["findings"]) == (0, [])
    assert document["checks"][0]["outcome"] == "pass"
    (shop.base / "b").mkdir()
    shutil.copy(library, shop.base / "b/liby.so")
    (shop.base / "b/libz.so").write_bytes(library.read_bytes()[:300])
    broken = scan(shop.base / "a", shop.base / "b")
    assert (broken["status"], broken["outcome"]) == (1, "fail")
    assert ("LC103", str(shop.base / "b/libz.so")) in {(f["code"], f["primary"]["path"]) for f in broken["findings"]}
    assert scan(shop.base / "nowhere")["status"] == 2


TABLE = "static int v; int table_get(void) { return v; }"
READS = "int table_get(void); int reads(void) { return table_get(); }"


@pytest.fixture
def scan_table(shop: Workshop, scan: Callable[..., Any]) -> Callable[..., Any]:
    """Scans by a policy with one state; gives the exit status, and code and outcome of what is neither passed nor
    information.
    """
    policy = shop.base / "linkcheck.toml"
    policy.write_text('[[state]]\nname = "table"\nowner = ["libtable.so"]\nsymbols = ["table_get"]\n')

    def scan_by_policy(*arguments: str | Path) -> tuple[int, list[tuple[str, str]]]:
        document = scan(*arguments, "--policy", policy)
        found = [(f["code"], f["severity"]) for f in document["findings"] if f["severity"] != "info"]
        unseen = [(c["code"], c["outcome"]) for c in document["checks"] if c["outcome"] != "pass"]
        return document["status"], [*found, *unseen]

    return scan_by_policy


def make_module(shop: Workshop, name: str, source: str, *needs: str, runpath: str = "$ORIGIN") -> Path:
    entry = f" void PyInit_{name}(void) {{}}"
    path = f"pkg_{name}/{name}.cpython-311-x86_64-linux-gnu.so"
    return shop.library(path, source=source + entry, needs=needs, runpath=runpath)


def test_a_missing_library_may_hide_a_split(shop: Workshop, scan_table: Callable[..., Any]) -> None:
    one, two = (make_module(shop, name, TABLE + READS, "libfoo.so") for name in ("one", "two"))
    packages = one.parent, two.parent
    assert scan_table(*packages) == (2, [("LC401", "unknown")])
    assert scan_table(*packages, "--external", "libfoo*") == (1, [("LC401", "error")])
    shop.library("lib/libfoo.so", soname="libfoo.so")
    assert scan_table(*packages, "--library-path", shop.base / "lib") == (1, [("LC401", "error")])


def test_a_missing_library_may_be_what_a_use_beside_a_copy_is_bound_to(
    shop: Workshop, scan_table: Callable[..., Any]
) -> None:
    one, two = make_module(shop, "one", TABLE), make_module(shop, "two", READS, "libfoo.so")
    packages = one.parent, two.parent
    assert scan_table(*packages) == (2, [("LC401", "unknown")])
    shop.library("lib/libfoo.so", soname="libfoo.so", source=TABLE)
    assert scan_table(*packages, "--library-path", shop.base / "lib") == (1, [("LC401", "error")])


def test_the_owner_is_missing_beside_a_copy(shop: Workshop, scan_table: Callable[..., Any]) -> None:
    one = make_module(shop, "one", TABLE + READS, "libtable.so")
    assert scan_table(one.parent) == (2, [("LC401", "unknown")])


@pytest.mark.parametrize("source", ["int unused;", READS, TABLE + READS])
def test_a_missing_library_that_meets_no_two_copies_is_not_asked_for(
    shop: Workshop, scan_table: Callable[..., Any], source: str
) -> None:
    """Nothing touches the state, nothing here defines it, and one file does that everybody uses."""
    one, two = make_module(shop, "one", source, "libfoo.so"), make_module(shop, "two", "int other;", "libbar.so")
    assert scan_table(one.parent, two.parent) == (0, [])


def test_a_missing_library_may_be_a_second_copy_of_one_that_is_loaded(
    shop: Workshop, scan_table: Callable[..., Any]
) -> None:
    counter = "libcounter-0123abcd.so.1"
    one = make_module(shop, "one", "int x;", counter, "libcounter.so.1", "libfoo.so")
    shop.library(f"pkg_one/{counter}", soname=counter, source=COUNTER)
    assert scan_table(one.parent) == (2, [("LC403", "unknown")])
    assert scan_table(one.parent, "--external", "libcounter.so*") == (0, [])
    bumps = COUNTER + "int c(void) { return 3; } int d(void) { return 4; }"
    for name in (f"pkg_one/{counter}", "lib/libcounter.so.1"):
        shop.library(name, soname=Path(name).name, source=bumps)
    assert scan_table(one.parent, "--library-path", shop.base / "lib") == (0, [("LC403", "warning")])


def test_an_expired_waiver_is_an_error_and_rules_can_be_chosen(shop: Workshop, scan: Callable[..., Any]) -> None:
    shop.library("pkg/libs.so", soname="libs.so", source="int s_get(void) { return 0; }")
    policy = shop.base / "linkcheck.toml"
    policy.write_text(
        '[[state]]\nname = "s"\nowner = ["libs.so"]\nsymbols = ["s_get"]\n'
        '[[waiver]]\ncode = "LC401"\npath = "x"\nreason = "r"\nowner = "o"\nexpires = 2020-01-31\n'
    )
    expired = scan(shop.base / "pkg", "--policy", policy)
    assert ([finding["code"] for finding in expired["findings"]], expired["status"]) == (["LC902"], 1)
    assert scan(shop.base / "pkg", "--policy", policy, "--ignore", "LC902")["findings"] == []
    chosen = scan(shop.base / "pkg", "--policy", policy, "--select", "LC403")
    assert {check["code"] for check in chosen["checks"]} == {"LC403"}
