"""A C++ symbol of the policy has one name in all messages, however the policy spells it; c++filt says which."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import verify

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CXXFILT = shutil.which("c++filt")
pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.skipif(CXXFILT is None, reason="needs c++filt (Debian package binutils)"),
]

TABLE, GUARD = "_ZN4acme5tableEv", "_ZN4acme5GuardC1Ei"
DECLARES = "namespace acme { int &table(); struct Guard { Guard(int); int x; }; }\n"
OWNS = "int &acme::table() { static int t; return t; } acme::Guard::Guard(int a) : x(a) {}"
USES = 'extern "C" int use() { acme::Guard g(1); return acme::table() + g.x; }'
MAIN = "int main() { return 0; }"

SPELLINGS = {
    "mangled": (f'"{TABLE}", "{GUARD}"', ""),
    "plain": ('"acme::table()", "acme::Guard::Guard(int)"', ""),
    "known": (
        f'"{TABLE}", "acme::Guard::Guard(int)"',
        f'[mangled]\n"acme::table()" = ["{TABLE}"]\n"acme::Guard::Guard(int)" = ["{GUARD}", "_ZN4acme5GuardC2Ei"]\n',
    ),
}
POLICY = """
[[state]]
name = "table"
owner = ["libown.so"]
symbols = [{symbols}]
[[role]]
name = "user"
files = ["needy"]
import = [{symbols}]
export = [{symbols}]
[[role]]
name = "quiet"
files = ["libcopy.so"]
forbid-export = [{symbols}]
[[role]]
name = "stranger"
files = ["libdangling.so"]
forbid-import = [{symbols}]
{more}
"""
#: What is judged, and rules whose messages then name the symbols.
RUNS = {
    ("needy",): {"LC301", "LC306"},
    ("libdangling.so",): {"LC204", "LC304"},
    ("needy", "--dlopen", "libdangling.so"): {"LC304", "LC402"},
    ("libcopy.so",): {"LC302"},
    ("needy", "--dlopen", "libhidden.so"): {"LC302"},
    ("wrong",): {"LC302", "LC303"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("files")

    def make(name: str, source: str, *flags: str) -> None:
        library = ("-shared", f"-Wl,-soname,{name}") if name.endswith(".so") else ()
        command = ["g++", "-fPIC", "-w", "-Wl,--no-as-needed,-rpath,$ORIGIN", *library, "-xc++", "-", "-xnone", *flags]
        subprocess.run([*command, "-o", name], input=DECLARES + source, text=True, check=True, cwd=here)

    make("libown.so", OWNS)
    make("libuse.so", USES, "libown.so")
    make("libdangling.so", USES)
    make("libcopy.so", OWNS)
    make("libhidden.so", f"{OWNS}\n{USES}", "-fvisibility=hidden")
    make("needy", MAIN)
    make("wrong", MAIN, "libcopy.so", "libuse.so")
    return here


def called_by_cxxfilt(names: Iterable[str]) -> set[str]:
    done = subprocess.run([str(CXXFILT), *names], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def messages(
    files: Path, capfd: pytest.CaptureFixture[str], spelling: str, arguments: tuple[str, ...]
) -> dict[str, list[str]]:
    """The messages that name a symbol of the policy, by their rule's code."""
    symbols, more = SPELLINGS[spelling]
    (files / "linkcheck.toml").write_text(POLICY.format(symbols=symbols, more=more))
    found: dict[str, list[str]] = {}
    for finding in verify(capfd, *arguments).findings:
        if "acme" in finding["message"]:
            found.setdefault(finding["code"], []).append(finding["message"])
    return found


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
def test_every_message_has_the_name_that_cxxfilt_gives(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    spelling: str,
) -> None:
    monkeypatch.chdir(files)
    said = messages(files, capfd, spelling, arguments)
    assert set(said) >= RUNS[arguments]
    names = called_by_cxxfilt((TABLE, GUARD))
    for message in (message for group in said.values() for message in group):
        # LC304 speaks of all symbols that are missing, also of those that are none of the policy's.
        assert not {TABLE, GUARD} & set(re.findall(r"_Z\w+", message)), message
        assert any(name in message for name in names), message


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_prebuilt_says_it_in_the_same_words(
    files: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], spelling: str
) -> None:
    monkeypatch.chdir(files)
    symbols, more = SPELLINGS[spelling]
    (files / "linkcheck.toml").write_text(POLICY.format(symbols=symbols, more=more))
    assert run(["prebuilt", "libhidden.so"]) == 1
    shown = capfd.readouterr().out
    assert all(name in shown for name in called_by_cxxfilt((TABLE, GUARD)))
    assert "_ZN4acme" not in shown
