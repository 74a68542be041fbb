"""Dlopen metadata in `tree` and `verify`: what a file says that it may open, found or not."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from linkcheck.cli.run import run
from tests.elf.test_dlopen_notes import write_note
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

POLICY = '[[state]]\nname = "table"\nowner = ["libtable.so"]\nsymbols = ["table_get"]\n'


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    return Workshop(tmp_path)


def make_user(shop: Workshop, *sonames: str, priority: str | None = None, runpath: str | None = "$ORIGIN") -> Path:
    """A program whose library libuser.so says that it may open `sonames`."""
    entry: dict[str, Any] = {"feature": "speed", "soname": list(sonames)}
    if priority is not None:
        entry["priority"] = priority
    shop.library("lib/libuser.so", soname="libuser.so", runpath=runpath, source=write_note(1, json.dumps([entry])))
    return shop.executable("app", needs=("libuser.so",), runpath="$ORIGIN/lib")


def ask(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any]:
    status = run([*map(str, arguments), "--format", "json"])
    return status, json.loads(capfd.readouterr().out)


def test_the_first_that_is_found_is_opened_from_where_its_user_looks(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    program = make_user(shop, "libfast.so.2", "libfast.so.1")
    fast = shop.library("lib/libfast.so.1", soname="libfast.so.1", needs=("libdeep.so",), runpath="$ORIGIN")
    shop.library("lib/libdeep.so", soname="libdeep.so")
    status, document = ask(capfd, "tree", program)
    (tree,) = document["trees"]
    user = str(shop.base / "lib/libuser.so")
    assert status == 0
    assert tree["opened"] == [{"path": str(fast), "global": False, "deepbind": False}]
    assert [m["path"].rpartition("/")[2] for m in tree["modules"]][-2:] == ["libfast.so.1", "libdeep.so"]
    (entry,) = next(m for m in tree["modules"] if m["path"] == user)["may_open"]
    assert (entry["path"], entry["priority"], entry["feature"]) == (str(fast), "recommended", "speed")
    assert run(["tree", str(program)]) == 0
    assert (
        "may open libfast.so.2 or libfast.so.1 (recommended, for speed): loaded as libfast.so.1"
        in capfd.readouterr().out
    )
    assert run(["tree", str(program), "--format", "dot"]) == 0
    assert "[style=dashed]" in capfd.readouterr().out


@pytest.mark.parametrize("priority", [None, "suggested", "recommended", "required"])
def test_only_what_is_required_is_missed(
    shop: Workshop, capfd: pytest.CaptureFixture[str], priority: str | None
) -> None:
    program = make_user(shop, "libgone.so.2", "libgone.so.1", priority=priority)
    required = priority == "required"
    status, document = ask(capfd, "tree", program)
    assert status == int(required)
    assert [u["needed"] for u in document["trees"][0]["unresolved"]] == (["libgone.so.2"] if required else [])
    status, report = ask(capfd, "verify", program, "--policy", "policy.toml", "--select", "LC202")
    assert status == int(required)
    assert ["opens libgone.so.2" in finding["message"] for finding in report["findings"]] == [True] * required
    reasons = [check["reason"] for check in report["checks"] if check["outcome"] == "not-applicable"]
    assert any("only " in reason for reason in reasons) is not required
    external = ["--external", "libgone.so*"]
    # Nothing else was asked, so of what is declared external alone nothing is left to pass.
    assert run(["verify", str(program), "--policy", "policy.toml", "--select", "LC202", *external]) == 2 * required


def test_a_library_that_is_loaded_anyway_is_not_opened_again(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    make_user(shop, "libfast.so.1")
    shop.library("lib/libfast.so.1", soname="libfast.so.1")
    program = shop.executable("app", needs=("libuser.so", "libfast.so.1"), runpath="$ORIGIN/lib")
    _, document = ask(capfd, "tree", program)
    assert document["trees"][0]["opened"] == []


def test_a_copy_of_a_state_in_what_is_opened_is_seen(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """The noted library is opened with RTLD_LOCAL, after the program's own; -Bsymbolic keeps it to its copy."""
    state = "static int v; int table_get(void) { return ++v; }"
    make_user(shop, "libfast.so.1")
    shop.library("lib/libtable.so", soname="libtable.so", source=state)
    shop.library("lib/libfast.so.1", soname="libfast.so.1", source=state, flags=("-Wl,-Bsymbolic",))
    use = 'int table_get(void); void _start(void) { table_get(); __asm__ volatile("mov $60, %eax; syscall"); }'
    flags = ("-pie", "-Wl,--unresolved-symbols=ignore-all")
    program = shop.executable(
        "app", needs=("libuser.so", "libtable.so"), runpath="$ORIGIN/lib", source=use, flags=flags
    )
    status, report = ask(capfd, "verify", program, "--policy", "policy.toml", "--select", "LC401")
    assert status == 1
    assert "libfast.so.1" in report["findings"][0]["message"]


def test_storage_of_a_noted_library_is_no_plug_ins(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """LC404 warns of plug-ins that the user names; half of the system's libraries have thread-local storage."""
    program = make_user(shop, "libfast.so.1")
    shop.library("lib/libfast.so.1", soname="libfast.so.1", source="__thread int v; int f(void) { return v; }")
    policy = shop.base / "policy.toml"
    policy.write_text(POLICY + "thread-local = true\n")
    arguments = ("verify", program, "--policy", policy, "--select", "LC404")
    assert ask(capfd, *arguments)[1]["findings"] == []
    named = ask(capfd, *arguments, "--dlopen", shop.base / "lib/libfast.so.1")[1]
    assert [finding["code"] for finding in named["findings"]] == ["LC404"]


def test_names_from_a_note_forge_no_line(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    program = make_user(shop, "lib\nFAIL: 7 errors.so", priority="required")
    for command in ("tree", "verify"):
        run([command, str(program)])
        assert "\nFAIL: 7" not in capfd.readouterr().out
    assert subprocess.run([str(program)], check=False).returncode == 0  # ld.so does not look at notes
