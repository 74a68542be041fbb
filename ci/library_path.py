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

from linkcheck.api import load_trees
from linkcheck.elf.reader import read_image
from linkcheck.errors import LinkcheckError, NotAnImageError
from linkcheck.rules.wording import library_path_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Image, LoadSet

#: Where CMake keeps object files and the programs with which it tried the compiler.
_NO_PRODUCTS = "CMakeFiles"
#: NAME:TYPE=VALUE. The types of values that a user or a find module sets.
_CACHE_ENTRY = re.compile(r"^[^#/:][^:]*:(?:FILEPATH|PATH|STRING|UNINITIALIZED)=(/.*)$", re.MULTILINE)
#: Folders in a given prefix that hold libraries.
_BELOW_PREFIX = ("", "lib", "lib64", "targets/*/lib")
#: What names a directory or a library on a link line.
_ON_LINK_LINE = re.compile(r"(?:-L|-rpath(?:-link)?[,=]|(?<=\s))(/[^\s,\"']+)")


class NotFoundError(Exception):
    """The line cannot be given; the text says for which library, and who needs it."""


class NoBuildTreeError(Exception):
    """What was named is no build tree; the text is one line."""


def main(arguments: list[str]) -> int:
    """Print the line, or nothing when none is needed: 0. 1: a library is nowhere to be found. 2: no build tree."""
    if not arguments:
        print("usage: ci/library-path BUILD_TREE...", file=sys.stderr)
        return 2
    try:
        directories = missing_directories([Path(argument) for argument in arguments])
    except NotFoundError as problem:
        print(f"library-path: {problem}", file=sys.stderr)
        return 1
    except (NoBuildTreeError, LinkcheckError) as problem:
        print(f"library-path: {problem}", file=sys.stderr)
        return 2
    if directories:
        print(library_path_line(*directories))
    return 0


def missing_directories(trees: Sequence[Path]) -> list[str]:
    """The directories to append to LD_LIBRARY_PATH, absolute, so that everything in `trees` finds what it needs.

    Raises NotFoundError when there is no such list, NoBuildTreeError for a tree without a CMakeCache.txt, and
    LinkcheckError for a program that cannot be read.
    """
    trees = [tree.absolute() for tree in trees]
    places = list(dict.fromkeys(place for tree in trees for place in linked_directories(tree)))
    roots = [image for tree in trees for image in find_images(tree)]
    before = load_products(roots, [])
    found: list[str] = []
    after = before
    while missing := dict(name_missing(after)):
        # What is found may need more that only its own neighbours have.
        more = [place for name, needer in missing.items() if (place := find_place(name, needer, places)) is not None]
        new = [place for place in dict.fromkeys(more) if place not in found]
        if not new:
            name, needer = next(iter(missing.items()))
            known = f"the {len(places)} directories that the build tree knows"
            raise NotFoundError(f"{needer.path} needs {name}, which is in none of {known}")
        found += new
        after = load_products(roots, found)
    refuse_replacement(before, after)
    return found


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


def find_images(tree: Path) -> list[Image]:
    """Every program and shared library in `tree`, programs first."""
    images = []
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != _NO_PRODUCTS)
        for name in sorted(files):
            path = Path(folder, name)
            if not path.is_symlink() and begins_as_elf(path):
                try:
                    images.append(read_image(str(path)))
                except NotAnImageError:  # an object file
                    continue
    return sorted(images, key=lambda image: not image.is_executable)


def begins_as_elf(path: Path) -> bool:
    """Whether `path` is a file that begins with the ELF magic."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def load_products(images: Sequence[Image], library_path: Sequence[str]) -> list[LoadSet]:
    """A load set for each of `images`; a library that a program loads is a part of that program and has none."""
    loaded: set[tuple[int, int]] = set()
    load_sets = []
    for image in images:
        if (image.device, image.inode) not in loaded:
            (load_set,) = load_trees([image.path], library_path=library_path)
            loaded.update((module.image.device, module.image.inode) for module in load_set.modules)
            load_sets.append(load_set)
    return load_sets


def name_missing(load_sets: Sequence[LoadSet]) -> Iterator[tuple[str, Image]]:
    """Each library that is not found, and the file that needs it."""
    for load_set in load_sets:
        for unresolved in load_set.unresolved:
            yield unresolved.needed, load_set.modules[unresolved.module].image


def find_place(name: str, needer: Image, places: Sequence[str]) -> str | None:
    """The first of `places` with a library `name` that is made for the machine of `needer`."""
    for place in places:
        try:
            if "/" not in name and read_image(os.path.join(place, name)).target == needer.target:
                return place
        except LinkcheckError:
            continue
    return None


def refuse_replacement(before: Sequence[LoadSet], after: Sequence[LoadSet]) -> None:
    """LD_LIBRARY_PATH comes before DT_RUNPATH: raise NotFoundError when the line would change what was found before."""
    wanted = {load_set.root.path: {m.image.name: m.image.path for m in load_set.modules} for load_set in before}
    for load_set in after:
        files = wanted.get(load_set.root.path, {})
        for module in load_set.modules:
            was = files.get(module.image.name, module.image.path)
            if os.path.realpath(was) != os.path.realpath(module.image.path):
                raise NotFoundError(
                    f"{load_set.root.path} loads {was}, and with the directories that it lacks in LD_LIBRARY_PATH it "
                    f"would load {module.image.path} instead"
                )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
