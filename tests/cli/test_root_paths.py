"""`--root DIR` and the files that a user names beside it: by their path here, or by the one that the target has."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from linkcheck.loader.defaults import default_directories
from linkcheck.loader.files import Files
from linkcheck.model import Target
from tests.cli.verify_command import verify
from tests.loader.workshop import START, Workshop, needs_compiler, trace

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_compiler

#: gABI: EM_X86_64.
TARGET = Target(62, 64, "little")
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


TOKEN_NAMES = ["$ORIGIN/../plugins/libplugin.so", "${ORIGIN}/../plugins/libplugin.so"]


@pytest.mark.parametrize("name", TOKEN_NAMES)
@pytest.mark.parametrize("option", ["--dlopen", "--dlopen-global", "--preload", "[[dlopen]]"])
@pytest.mark.parametrize("place", [".", "root/opt/shop"])
def test_origin_is_the_place_of_the_program_wherever_the_command_runs(
    here: Path, option: str, name: str, place: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What $ORIGIN must not lead to: the working directory, its parent, and the root directory.
    decoy = "int count(void); int away(void) { return count(); }"
    for directory in ("plugins", "root/plugins", "root/opt/plugins"):
        Workshop(here).library(f"{directory}/libplugin.so", source=decoy)
    told = trace(here / PROGRAM, library_path=str(here / "root/opt/shop/lib"), preload=name, cwd=here / place)
    assert str(here / "root" / PLUG_IN) in {os.path.normpath(path) for path in told.loaded}

    monkeypatch.chdir(here / place)
    options = ["--root", str(here / "root"), "--library-path", "/opt/shop/lib"]
    if option == "[[dlopen]]":
        (here / "policy.toml").write_text(f'{POLICY}[[dlopen]]\nfrom = "shop"\npath = "{name}"\n')
    else:
        options += [option, name]
    verdict = verify(capfd, here / PROGRAM, "--policy", here / "policy.toml", *options)
    assert verdict.codes == {"LC401"}
    if option != "[[dlopen]]":
        run(["tree", str(here / PROGRAM), *options, "--format", "json"])
        (tree,) = json.loads(capfd.readouterr().out)["trees"]
        assert [one["path"] for one in tree["modules"] if one["requested_as"] == name] == [f"{here}/root/{PLUG_IN}"]


@pytest.mark.parametrize("place", ["/opt/shop", "root/opt/shop", "{here}/root/opt/shop"])
@pytest.mark.parametrize("option", ["--dlopen", "--preload", "--library-path"])
def test_what_stands_before_a_token_may_be_named_by_either_path(
    here: Path, option: str, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """$LIB may be two directories (lib/x86_64-linux-gnu), and `..` behind it leads out of the last one only."""
    place = place.format(here=here)
    library = here / "root/lib/x86_64-linux-gnu"
    library.mkdir(parents=True)  # by which the default directories, and so $LIB, are Debian's
    shutil.copy("/lib64/ld-linux-x86-64.so.2", here / "root/lib64")
    token = default_directories(Files(str(here / "root")), "/lib64/ld-linux-x86-64.so.2", TARGET)[0].lstrip("/")
    (here / "root/opt/shop" / token).mkdir(parents=True, exist_ok=True)
    plug_in = here / "root/opt/shop" / token / "../libplugin.so"
    (here / "root" / PLUG_IN).rename(plug_in)
    name = f"{place}/$LIB/../libplugin.so"
    options = ["--library-path", "/opt/shop/lib", option, name]
    if option == "--library-path":
        options = ["--library-path", f"{place}/$LIB/..:$ORIGIN/../lib", "--dlopen", "libplugin.so"]
    verdict = verify(capfd, PROGRAM, "--policy", "policy.toml", "--root", "root", *options)
    assert verdict.codes == {"LC401"}


def test_origin_in_a_library_path(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    directory = "$ORIGIN/../lib"
    owner = here / "root/opt/shop/lib/libcounter.so"
    told = trace(here / PROGRAM, library_path=directory, cwd=here)
    assert (told.missing, str(owner)) == ((), os.path.normpath(told.loaded[0]))
    options = ["--root", "root", "--library-path", directory]
    verdict = verify(capfd, PROGRAM, "--policy", "policy.toml", *options)
    assert (verdict.status, verdict.codes) == (0, set())
