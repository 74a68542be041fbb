"""Real programs: whatever ld.so loads, tries and binds is what linkcheck says, line by line."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from linkcheck.api import load_trees
from tests.benchmarks.workplace import NotAvailableError, fetch_wheel
from tests.programs.agreement import TORCH_WHEEL, compare, compare_account, list_programs, torch_command
from tests.programs.judge import Account, read_account, watch

if TYPE_CHECKING:
    from pathlib import Path

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

#: Fewer lines than these would mean that ld.so was not listened to.
LEAST_LINES = {"python3": 3000, "git": 200, "cmake": 5000}


@pytest.mark.slow
@pytest.mark.parametrize("label", LEAST_LINES)
def test_a_program_of_this_machine(label: str) -> None:
    command = list_programs().get(label)
    if command is None:
        pytest.skip(f"{label} is not installed in /usr/bin")
    try:
        found = compare(label, command)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{label} does not run here: {error}")
    assert found.disagreements == ()
    assert found.counts.lines == found.counts.compared + found.counts.by_dlsym
    assert found.counts.compared > LEAST_LINES[label]


@pytest.mark.slow
@pytest.mark.network
def test_the_closure_of_libtorch_python(tmp_path: Path) -> None:
    if "python3" not in list_programs():
        pytest.skip("/usr/bin/python3 is not installed: libtorch_python.so needs what it defines")
    try:
        wheel = fetch_wheel(TORCH_WHEEL, tmp_path)
    except NotAvailableError as error:
        pytest.skip(f"cannot get the wheel: {error}")
    try:
        found = compare("libtorch_python.so", torch_command(wheel))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"/usr/bin/python3 cannot open libtorch_python.so: {error}")
    assert found.disagreements == ()
    assert found.counts.compared > 50_000


def make_program(directory: Path) -> list[str]:
    """A program at a fixed address that takes the address of a function of a library, as a second library does."""
    for name, source, arguments in (
        ("libf.so", "int f(void) { return 1; }", ["-shared", "-fPIC"]),
        ("libg.so", "int f(void); int (*g(void))(void) { return f; }", ["-shared", "-fPIC", "libf.so"]),
        (
            "main",
            "int f(void); int (*g(void))(void); int main(void) { return g() != f; }",
            ["-no-pie", "-fno-pie", "libg.so", "libf.so"],
        ),
    ):
        command = ["gcc", "-O0", "-x", "c", "-", "-x", "none", *arguments, "-Wl,-rpath,$ORIGIN", "-o", name]
        subprocess.run(command, input=source, text=True, cwd=directory, check=True)
    return [str(directory / "main")]


@pytest.mark.compile
@needs_gcc
def test_an_address_that_the_program_lends_leads_to_the_definition_we_name(tmp_path: Path) -> None:
    command = make_program(tmp_path)
    found = compare("main", command)
    assert found.disagreements == ()
    assert found.counts.by_stub == 1
    account = watch(command)
    assert (f"{tmp_path}/libg.so", "f", command[0]) in {(b.user, b.symbol, b.provider) for b in account.bindings}


@pytest.mark.compile
@needs_gcc
@pytest.mark.parametrize("fault", ["another provider", "another path", "one more file"])
def test_what_does_not_agree_is_told(tmp_path: Path, fault: str) -> None:
    command = make_program(tmp_path)
    account = watch(command)
    (load_set,) = load_trees(command)
    if fault == "another provider":
        account.bindings = {
            replace(one, provider=f"{tmp_path}/libg.so") if one.symbol == "f" else one: count
            for one, count in account.bindings.items()
        }
    elif fault == "another path":
        name, paths = account.loaded[0]
        account.loaded[0] = (name, (*paths, "/lib/other.so"))
    else:
        account.loaded.append(("libother.so", ("/lib/libother.so",)))
    assert compare_account(fault, account, load_set).disagreements != ()


def test_what_ld_so_writes_is_read_for_one_process_only() -> None:
    lines = [
        "      7:\tfile=libx.so [0];  needed by /a [0]\n",
        "      7:\tfind library=libx.so [0]; searching\n",
        "      7:\t search path=/p:/q\t\t(RUNPATH from file /a)\n",
        "      7:\t  trying file=/p/libx.so\n",
        "      7:\t  trying file=/q/libx.so\n",
        "      7:\tfile=libx.so [0];  generating link map\n",
        "      8:\tbinding file /a [0] to /b [0]: normal symbol `f'\n",
        "      7:\tbinding file /a [0] to /b [0]: normal symbol `g' [V 1]\n",
        "      7:\tbinding file linux-vdso.so.1 [0] to linux-vdso.so.1 [0]: normal symbol `h'\n",
        "      7:\tfile=/c.so [0];  dynamically loaded by /a [0]\n",
        "      7:\tfile=/c.so [0];  generating link map\n",
    ]
    account: Account = read_account(lines, 7)
    assert [(b.symbol, b.version) for b in account.bindings] == [("g", "V 1")]
    assert account.loaded == [("libx.so", ("/p/libx.so", "/q/libx.so")), ("/c.so", ("/c.so",))]
    assert account.dlopened == ["/c.so"]
