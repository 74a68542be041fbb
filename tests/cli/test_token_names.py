"""A file that is to be opened or preloaded, by its path and by a name with $ORIGIN: the same file, the same verdict."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cli.verify_command import Verdict, verify
from tests.loader.workshop import Workshop, needs_compiler, trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_compiler


def _cut(path: Path) -> None:
    whole = Workshop(path.parent).library("whole.so")
    path.write_bytes(whole.read_bytes()[:100])


KINDS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.touch(),
    "text": lambda path: path.write_text("INPUT(libx.so)"),
    "directory": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nothing"),
    "cut": _cut,
    "program": lambda path: Workshop(path.parent).executable(path.name),
    "32-bit": lambda path: Workshop(path.parent).library(path.name, flags=("-m32",)),
}


def summary(verdict: Verdict) -> tuple[int, set[str], dict[str, str]]:
    return verdict.status, verdict.codes, dict(verdict.reasons("unknown"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", ["--dlopen", "--preload"])
@pytest.mark.parametrize("below_root", [False, True])
def test_one_file_has_one_verdict(
    tmp_path: Path,
    kind: str,
    option: str,
    below_root: bool,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Workshop(tmp_path)
    base = shop.library("bin/libbase.so", soname="libbase.so")
    program = shop.executable("bin/program", needs=("libbase.so",), runpath="$ORIGIN")
    (tmp_path / "plug").mkdir()
    KINDS[kind](tmp_path / "plug/it.so")
    token = "$ORIGIN/../plug/it.so"
    told = [trace(program, preload=name, cwd=tmp_path) for name in ("plug/it.so", token)]
    assert told[0].loaded == told[1].loaded == (str(base),)  # ld.so takes neither

    options = ["--profile", "default", "--select", "LC1,LC2", "--external", "ld-linux*"]
    options += ["--root", "."] if below_root else []
    plain, expanded = (verify(capfd, "bin/program", *options, option, name) for name in ("plug/it.so", token))
    assert summary(plain) == summary(expanded)
    assert plain.status != 0
    if kind == "missing":
        assert summary(plain)[0] == 2
        assert set(summary(plain)[2]) == {"LC101"}
    for verdict in (plain, expanded):
        for finding in verdict.errors:
            assert os.path.abspath(finding["primary"]["path"]) == str(tmp_path / "plug/it.so")


def test_a_token_without_a_file_says_which_file_is_meant(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = Workshop(tmp_path).executable("bin/program")
    verdict = verify(
        capfd, program, "--profile", "default", "--select", "LC1,LC2", "--dlopen", "$ORIGIN/../plug/none.so"
    )
    (check,) = (one for one in verdict.document["checks"] if one["outcome"] == "unknown")
    assert (check["code"], check["subject"]) == ("LC101", f"{tmp_path}/plug/none.so")
