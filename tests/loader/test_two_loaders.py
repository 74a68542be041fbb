"""Programs of one architecture that name different loaders: each is judged by its own, in whatever order they come.

The other loader is this machine's with one default directory exchanged for another of the same length.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import Verdict, verify
from tests.loader.workshop import Workshop, needs_compiler, trace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_compiler

USUAL = "/lib64/ld-linux-x86-64.so.2"
#: Debian's; others have shorter ones, in whose place no temporary directory fits.
DIRECTORY = "/usr/lib/x86_64-linux-gnu/"
NEEDED = "liblc-of-the-other-loader.so"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """A directory with the other loader, the library that it alone finds, a program of each loader and a plug-in."""
    code = Path(USUAL).read_bytes()
    if f"\0{DIRECTORY}\0".encode() not in code:
        pytest.skip(f"{DIRECTORY} is no default directory of this machine's loader")
    base = Path(tempfile.mkdtemp(prefix="lc", dir="/tmp"))
    try:
        filling = len(DIRECTORY) - len(f"{base}//lib/")
        other = f"{base}/{'x' * filling}/lib/"
        assert (filling > 0, len(other)) == (True, len(DIRECTORY))
        monkeypatch.chdir(base)
        shop = Workshop(base)
        (base / "ld.so").write_bytes(code.replace(DIRECTORY.encode(), other.encode()))
        (base / "ld.so").chmod(0o755)
        shop.library(f"{other}{NEEDED}", soname=NEEDED)
        shop.executable("finds", needs=(NEEDED,), flags=("-pie", f"-Wl,--dynamic-linker={base}/ld.so"))
        shop.executable("lacks", needs=(NEEDED,))
        shop.library("plug.so", needs=(NEEDED,))
        yield shop
    finally:
        shutil.rmtree(base)


def judge(capfd: pytest.CaptureFixture[str], *roots: str) -> Verdict:
    return verify(capfd, "--profile", "default", "--select", "LC202,LC203", *roots)


def test_the_loaders_differ(shop: Workshop) -> None:
    assert trace(shop.base / "finds", cwd=shop.base).missing == ()
    assert trace(shop.base / "lacks", cwd=shop.base).missing == (NEEDED,)


@pytest.mark.parametrize("roots", [("finds", "lacks"), ("lacks", "finds"), ("finds",), ("lacks",)])
def test_each_program_has_its_own(shop: Workshop, roots: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    verdict = judge(capfd, *roots)
    assert {finding["primary"]["path"] for finding in verdict.errors} == {"lacks"} & set(roots)
    run(["tree", "--format", "json", *roots])
    for tree in json.loads(capfd.readouterr().out)["trees"]:
        assert bool(tree["unresolved"]) is (os.path.basename(tree["root"]) == "lacks")


@pytest.mark.parametrize("command", ["verify", "tree"])
def test_a_library_has_the_one_that_all_programs_name(
    shop: Workshop, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def lacks(*roots: str) -> bool:
        if command == "verify":
            return bool(judge(capfd, *roots).about("plug.so"))
        run(["tree", "--format", "json", *roots])
        trees = json.loads(capfd.readouterr().out)["trees"]
        (tree,) = (one for one in trees if one["root"].endswith("/plug.so"))
        return bool(tree["unresolved"])

    assert lacks("plug.so")
    for roots in permutations(["finds", "plug.so"]):
        assert not lacks(*roots)
    for roots in permutations(["finds", "lacks", "plug.so"]):  # the usual one, for the programs do not agree
        assert lacks(*roots)
