"""Says which directories LD_LIBRARY_PATH lacks for some programs. It runs nothing, and knows no build system."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.elf.reader import read_image
from linkcheck.errors import NotAnImageError, ReplacedLibraryError, UnplacedLibraryError
from linkcheck.inputs.process import load_process, read_root
from linkcheck.loader.system import System
from linkcheck.model import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Image, LoadSet


def complete_library_path(paths: Sequence[str], places: Sequence[str]) -> tuple[str, ...]:
    """Those of the directories `places` that LD_LIBRARY_PATH lacks so that the files at `paths` find all they need.

    An object file needs nothing. Of several places with a library the first counts whose file is made for the machine
    of who needs it. The environment counts as empty.

    Raises UnplacedLibraryError when a library is in none of `places`, ReplacedLibraryError when a program that found a
    library without them would get another file, NotAnImageError for one of `paths` that is neither an image nor an
    object file, and UnreadableFileError or MalformedElfError for a file that cannot be read, one of the places' too.
    """
    roots = _read_images(paths)
    before = _load_each(roots, ())
    found: list[str] = []
    after = before
    while missing := dict(_list_missing(after)):
        # What is found may need more that only its own neighbours have.
        more = [place for name, needer in missing.items() if (place := _find_place(name, needer, places)) is not None]
        new = [place for place in dict.fromkeys(more) if place not in found]
        if not new:
            name, needer = next(iter(missing.items()))
            raise UnplacedLibraryError(needer.path, name, len(places))
        found += new
        after = _load_each(roots, found)
    _refuse_replacement(before, after)
    return tuple(found)


def _read_images(paths: Sequence[str]) -> list[Image]:
    """The images among the files at `paths`, programs first. Object files are passed over, nothing else is."""
    images = []
    for path in paths:
        try:
            images.append(read_image(path))
        except NotAnImageError as error:
            if error.kind is FileKind.RELOCATABLE:
                continue
            from linkcheck.elf.kind import identify

            raise NotAnImageError(path, identify(path).kind.value, error.kind) from None
    return sorted(images, key=lambda image: not image.is_executable)


def _load_each(images: Sequence[Image], library_path: Sequence[str]) -> list[LoadSet]:
    """A load set for each of `images`; a library that a program loads is a part of that program and has none."""
    system = System(read_image, library_path=library_path)
    system.know_programs(images)
    loaded: set[tuple[int, int]] = set()
    load_sets = []
    for image in images:
        if (image.device, image.inode) not in loaded:
            load_set = load_process(read_root(image.path), system)
            loaded.update((module.image.device, module.image.inode) for module in load_set.modules)
            load_sets.append(load_set)
    return load_sets


def _list_missing(load_sets: Sequence[LoadSet]) -> Iterator[tuple[str, Image]]:
    """Each library that is not found, and the file that needs it."""
    for load_set in load_sets:
        for unresolved in load_set.unresolved:
            yield unresolved.needed, load_set.modules[unresolved.module].image


def _find_place(name: str, needer: Image, places: Sequence[str]) -> str | None:
    """The first of `places` with a library `name` that is made for the machine of `needer`.

    A file that is no image is passed over, a linker script for example. Raises UnreadableFileError or MalformedElfError
    for one that is there and cannot be read.
    """
    if "/" in name:
        return None
    for place in places:
        path = os.path.join(place, name)
        try:
            if not _is_missing(path) and read_image(path).target == needer.target:
                return place
        except NotAnImageError:
            continue
    return None


def _is_missing(path: str) -> bool:
    """Whether nothing is at `path`, or a link to nothing; what cannot be looked at may be there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # whoever opens it says why
    return False


def _refuse_replacement(before: Sequence[LoadSet], after: Sequence[LoadSet]) -> None:
    """LD_LIBRARY_PATH comes before DT_RUNPATH, so what it was completed with may hide what was found before."""
    wanted = {load_set.root.path: {m.image.name: m.image.path for m in load_set.modules} for load_set in before}
    for load_set in after:
        files = wanted.get(load_set.root.path, {})
        for module in load_set.modules:
            was = files.get(module.image.name, module.image.path)
            if os.path.realpath(was) != os.path.realpath(module.image.path):
                raise ReplacedLibraryError(load_set.root.path, was, module.image.path)
