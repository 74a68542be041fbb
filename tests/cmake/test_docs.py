"""docs/cmake.md: its examples are projects that are made, configured and built as a reader would."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.cmake.project import ROOT, Run, cmake, run_command, write

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "cmake.md").read_text()
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The first line of a block that is a file of the example.
FILE_NAME = re.compile(r"(?:#|//) (\w+\.\w+)\n")


@dataclass(frozen=True, slots=True)
class Example:
    """One section with something to run: its files, and console blocks with whether they fail."""

    title: str
    files: dict[str, str] = field(default_factory=dict)
    consoles: list[tuple[str, bool]] = field(default_factory=list)


def read_examples() -> list[Example]:
    examples = []
    for section in PAGE.split("\n## ")[1:]:
        example = Example(section.splitlines()[0])
        for info, text in BLOCK.findall(section):
            if (name := FILE_NAME.match(text)) is not None:
                example.files[name[1]] = text
            elif info.startswith("console"):
                example.consoles.append((text, info == "console fails"))
        if example.consoles:
            examples.append(example)
    return examples


EXAMPLES = read_examples()


def test_the_page_has_its_examples() -> None:
    assert [(len(example.files), len(example.consoles)) for example in EXAMPLES] == [(3, 1), (2, 1), (2, 1)]


@pytest.mark.cmake
@pytest.mark.compile
@pytest.mark.parametrize("example", EXAMPLES, ids=[example.title for example in EXAMPLES])
def test_an_example_does_what_the_page_says(example: Example, tmp_path: Path, linkcheck: Path) -> None:
    for name, text in example.files.items():
        write(tmp_path / name, text)
    path = f"{linkcheck.parent}:{cmake().rpartition('/')[0]}:/usr/local/bin:/usr/bin:/bin"
    for console, fails in example.consoles:
        for command, expected in split_console(console):
            run = run_command("sh", "-c", command, cwd=tmp_path, environment={"PATH": path})
            if fails:
                run.must_fail(*expected)
            else:
                assert_prints(run, expected)


def split_console(text: str) -> list[tuple[str, list[str]]]:
    """(command, lines that its output has) for each line that starts with `$ `."""
    parts: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            parts.append((line[2:], []))
        else:
            parts[-1][1].append(line)
    return parts


def assert_prints(run: Run, lines: list[str]) -> None:
    run.must_succeed()
    for line in lines:
        assert line in run.raw


def test_the_ways_to_find_the_modules_are_valid(linkcheck: Path, tmp_path: Path) -> None:
    """Every way of the page's first block configures a project that does what its comment says."""
    block = next(text for info, text in BLOCK.findall(PAGE) if info == "sh")
    ways = [line.split("#") for line in block.splitlines()]
    assert len(ways) == 3
    for number, (command, meaning) in enumerate(ways):
        use = "include(linkcheck_add_gate)" if "include(" in meaning else "find_package(linkcheck REQUIRED)"
        folder = tmp_path / str(number)
        listfile = f"cmake_minimum_required(VERSION 3.28)\nproject(x LANGUAGES NONE)\n{use}\n"
        listfile += "if(NOT COMMAND linkcheck_add_gate)\n  message(FATAL_ERROR none)\nendif()\n"
        write(folder / "CMakeLists.txt", listfile)
        line = command.replace("cmake -S", f"{shlex.quote(cmake())} -S")
        path = f"{linkcheck.parent}:/usr/bin:/bin"
        run_command("sh", "-c", line, cwd=folder, environment={"PATH": path}).must_succeed()
