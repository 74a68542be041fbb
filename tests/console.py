"""Runs the commands that a Markdown page shows, as a reader would type them. It judges nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([\w.-]+\.toml)\b")
PROMPT = "$ "


@dataclass(frozen=True, slots=True)
class Ran:
    """One command of a page: what the page shows below it, and what it really did."""

    command: str
    #: The lines that the page shows; empty when it shows none, which says nothing about the output.
    shown: str
    output: str
    status: int

    @property
    def by_linkcheck(self) -> bool:
        """Whether it is a call of linkcheck."""
        return self.command.startswith("linkcheck ")


def sections(page: str) -> dict[str, str]:
    """The text below each `## ` heading, in the page's order."""
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def run_blocks(text: str, directory: Path) -> tuple[Ran, ...]:
    """Take the blocks of `text` in order: run the `console` ones, and write a `toml` one that names its file.

    The commands run in `directory` with bash and an environment without LD_LIBRARY_PATH; `linkcheck` is this one.
    """
    environment = {
        "PATH": f"{_command_directory(directory)}:{os.environ['PATH']}",
        "HOME": str(directory),
        "LC_ALL": "C",
    }
    ran: list[Ran] = []
    for language, block in _BLOCK.findall(text):
        if language == "console":
            ran += (_run(command, shown, directory, environment) for command, shown in _commands(block))
        elif language == "toml" and (named := _NAMED.match(block)):
            (directory / named[1]).write_text(block, encoding="utf-8")
    return tuple(ran)


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with what is shown below it."""
    for part in re.split(rf"^{re.escape(PROMPT)}", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def _run(command: str, shown: str, directory: Path, environment: dict[str, str]) -> Ran:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return Ran(command, shown, done.stdout, done.returncode)


def _command_directory(directory: Path) -> Path:
    """A folder with a `linkcheck` command that runs this working tree, whatever is installed."""
    folder = directory / ".bin"
    folder.mkdir()
    command = folder / "linkcheck"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{PROJECT}" exec "{sys.executable}" -m linkcheck "$@"\n', encoding="utf-8"
    )
    command.chmod(0o755)
    return folder
