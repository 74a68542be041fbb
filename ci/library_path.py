"""Which directories LD_LIBRARY_PATH lacks for the programs of a CMake build tree; `ci/library-path` calls it.

A library that a program needs may lie where the linker found it and ld.so does not look: an SDK's folder with names
such as libnvinfer.so.11, reached through a link without the version. The programs are read as ld.so would load them;
the places to look come from the tree's CMakeCache.txt and from its link lines. Nothing is built or run.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from linkcheck.api import complete_library_path
from linkcheck.elf.kind import identify
from linkcheck.errors import LinkcheckError, ReplacedLibraryError, UnplacedLibraryError
from linkcheck.model import FileKind
from linkcheck.rules.wording import library_path_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Where CMake keeps object files and the programs with which it tried the compiler.
_NO_PRODUCTS = "CMakeFiles"
#: What begins as an ELF file, and no program starts with: what separate debugging and a crash leave in a tree.
_NEVER_LOADED = frozenset({FileKind.DEBUG_ONLY, FileKind.CORE})
#: NAME:TYPE=VALUE. The types of values that a user or a find module sets.
_CACHE_ENTRY = re.compile(r"^[^#/:][^:]*:(?:FILEPATH|PATH|STRING|UNINITIALIZED)=(/.*)$", re.MULTILINE)
#: Folders in a given prefix that hold libraries.
_BELOW_PREFIX = ("", "lib", "lib64", "targets/*/lib")
#: What names a directory or a library on a link line.
_ON_LINK_LINE = re.compile(r"(?:-L|-rpath(?:-link)?[,=]|(?<=\s))(/[^\s,\"']+)")


class NoBuildTreeError(Exception):
    """What was named is no build tree; the text is one line."""


def main(arguments: list[str]) -> int:
    """Print the line, or nothing when none is needed: 0. 1: a library is nowhere to be found, or the
    line would put another in its place. 2: no build tree, or a file that cannot be read.
    """
    if not arguments:
        print("usage: ci/library-path BUILD_TREE...", file=sys.stderr)
        return 2
    try:
        directories = missing_directories([Path(argument) for argument in arguments])
    except NoBuildTreeError as problem:
        return refuse(str(problem), 2)
    except UnplacedLibraryError as problem:
        return refuse(f"{problem} that the build tree knows", 1)
    except ReplacedLibraryError as problem:
        return refuse(str(problem), 1)
    except LinkcheckError as problem:
        return refuse(str(problem), problem.exit_status)
    if directories:
        print(library_path_line(*directories))
    return 0


def refuse(problem: str, status: int) -> int:
    """Say what the `problem` is; `status`."""
    print(f"library-path: {problem}", file=sys.stderr)
    return status


def missing_directories(trees: Sequence[Path]) -> tuple[str, ...]:
    """The directories to append to LD_LIBRARY_PATH, absolute, so that everything in `trees` finds what it needs.

    Raises NoBuildTreeError for a tree without a CMakeCache.txt, and what complete_library_path raises.
    """
    trees = [tree.absolute() for tree in trees]
    places = list(dict.fromkeys(place for tree in trees for place in linked_directories(tree)))
    return complete_library_path([path for tree in trees for path in list_products(tree)], places=places)


def linked_directories(tree: Path) -> Iterator[str]:
    """Every directory that the link lines and the cache of `tree` name, and those of the libraries that they name."""
    cache = tree / "CMakeCache.txt"
    if not cache.is_file():
        raise NoBuildTreeError(f"{tree} is no CMake build tree: there is no CMakeCache.txt in it")
    for file in (tree / "build.ninja", *sorted(tree.rglob("link.txt"))):
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="surrogateescape").replace("$:", ":").replace("$ ", "\0")
            for named in _ON_LINK_LINE.findall(text):
                for path in named.replace("\0", " ").split(":"):
                    yield from directories_of(Path(path))
    for value in _CACHE_ENTRY.findall(cache.read_text(encoding="utf-8", errors="surrogateescape")):
        for path in value.split(";"):
            yield from directories_of(Path(path), below=_BELOW_PREFIX)


def directories_of(path: Path, below: Sequence[str] = ("",)) -> Iterator[str]:
    """`path` and what is `below` it if it is a directory; for a library the one it lies in and the one it links to."""
    if not path.is_absolute():
        return
    if path.is_dir():
        for part in below:
            yield from (str(found) for found in (sorted(path.glob(part)) if part else [path]) if found.is_dir())
    elif ".so" in path.suffixes and path.is_file():
        yield str(path.parent)
        yield str(path.resolve().parent)


def list_products(tree: Path) -> Iterator[str]:
    """Every file in `tree` that begins as an ELF file, but those that no process loads."""
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != _NO_PRODUCTS)
        for name in sorted(files):
            path = Path(folder, name)
            if not path.is_symlink() and begins_as_elf(path) and identify(str(path)).kind not in _NEVER_LOADED:
                yield str(path)


def begins_as_elf(path: Path) -> bool:
    """Whether `path` is a file that begins with the ELF magic."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
