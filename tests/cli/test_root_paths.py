"""`--root DIR` and the files that a user names beside it: by their path here, or by the one that the target has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import verify
from tests.loader.workshop import START, Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_compiler

PROGRAM = "root/opt/shop/bin/shop"
PLUG_IN = "opt/shop/plugins/libplugin.so"
POLICY = '[[state]]\nname = "counter"\nowner = ["libcounter.so"]\nsymbols = ["count"]\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with `root/`: a program that needs an owner in lib/, and a plug-in with a copy of the state."""
    shop = Workshop(tmp_path)
    shop.library("root/opt/shop/lib/libcounter.so", soname="libcounter.so", source="int count(void) { return 1; }")
    shop.executable(PROGRAM, needs=("libcounter.so",), source=START)
    shop.library(f"root/{PLUG_IN}", source="int count(void) { return 2; }")
    (tmp_path / "root/lib64").mkdir()
    shutil.copy("/lib64/ld-linux-x86-64.so.2", tmp_path / "root/lib64")
    (tmp_path / "policy.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


NAMES: dict[str, Callable[[Path], str]] = {
    "relative": lambda here: f"root/{PLUG_IN}",
    "dotted": lambda here: f"./root/{PLUG_IN}",
    "absolute": lambda here: f"{here}/root/{PLUG_IN}",
    "of-the-target": lambda here: f"/{PLUG_IN}",
}
LIBRARY_PATHS = ["root/opt/shop/lib", "{here}/root/opt/shop/lib", "/opt/shop/lib"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("option", ["--dlopen", "--dlopen-global", "--preload"])
def test_what_is_opened_may_be_named_by_either_path(
    here: Path, option: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = NAMES[name](here)
    options = ["--root", "root", "--library-path", "/opt/shop/lib", option, path]
    verdict = verify(capfd, PROGRAM, "--policy", "policy.toml", *options)
    assert verdict.codes == {"LC401"}  # the plug-in was loaded, and has a copy
    run(["tree", PROGRAM, *options, "--format", "json"])
    (tree,) = json.loads(capfd.readouterr().out)["trees"]
    assert f"{here}/root/{PLUG_IN}" in {module["path"] for module in tree["modules"]}


@pytest.mark.parametrize("name", ["relative", "absolute", "of-the-target"])
@pytest.mark.parametrize("absolute_policy", [True, False])
def test_a_dlopen_of_the_policy(
    here: Path, name: str, absolute_policy: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "policy.toml").write_text(f'{POLICY}[[dlopen]]\nfrom = "shop"\npath = "{NAMES[name](here)}"\n')
    policy = here / "policy.toml" if absolute_policy else Path("policy.toml")
    verdict = verify(capfd, PROGRAM, "--policy", policy, "--root", "root", "--library-path", "/opt/shop/lib")
    assert verdict.codes == {"LC401"}


@pytest.mark.parametrize("directory", LIBRARY_PATHS)
def test_a_library_path(here: Path, directory: str, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--root", "root", "--library-path", directory.format(here=here)]
    verdict = verify(capfd, PROGRAM, "--policy", "policy.toml", *options)
    assert (verdict.status, verdict.codes) == (0, set())


def test_without_one_the_owner_is_not_found(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert verify(capfd, PROGRAM, "--policy", "policy.toml", "--root", "root").codes == {"LC203"}


def test_a_file_outside_the_root_is_not_there_for_the_target(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "libplugin.so").write_bytes((here / "root" / PLUG_IN).read_bytes())
    options = ["--root", "root", "--library-path", "/opt/shop/lib", "--dlopen", "libplugin.so"]
    verdict = verify(capfd, PROGRAM, "--policy", "policy.toml", *options)
    assert verdict.codes == {"LC202"}
    assert "LC401" in dict(verdict.reasons("unknown"))
