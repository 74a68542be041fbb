"""Shorter names for the same files, for messages: `bin/../lib/x.so` becomes `lib/x.so`. No part of the search."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.value import replace

if TYPE_CHECKING:
    from linkcheck.loader.system import System
    from linkcheck.model import Image, LoadSet, Module


def tidy_paths(load_set: LoadSet, system: System) -> LoadSet:
    """Return `load_set`, made for `system`, with `.` and `..` taken out of paths.

    They stay where what would be left does not name the same file or directory.
    """
    root, *others = load_set.modules
    modules = (root, *(_tidy_module(module, system) for module in others))
    # Requests of one file search the same directories, and are given the same tuple of them.
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    unresolved = []
    for missing in load_set.unresolved:
        tidied = known.get(missing.directories)
        if tidied is None:
            tidied = known[missing.directories] = tuple(dict.fromkeys(map(tidy_path, missing.directories)))
        rejected = tuple(replace(attempt, path=tidy_path(attempt.path)) for attempt in missing.rejected)
        unresolved.append(replace(missing, directories=tidied, rejected=rejected))
    return replace(load_set, modules=modules, unresolved=tuple(unresolved))


def _tidy_module(module: Module, system: System) -> Module:
    image = module.image
    _, tidied = system.tidied.get(id(image), (None, None))
    if tidied is None:
        tidied = _tidy_image(image)
        system.tidied[id(image)] = (image, tidied)
    return module if tidied is image else replace(module, image=tidied)


def _tidy_image(image: Image) -> Image:
    short = os.path.normpath(image.path)
    if short == image.path:
        return image
    try:
        status = os.stat(short)
    except OSError:
        return image
    if (status.st_dev, status.st_ino) != (image.device, image.inode):
        return image  # a link on the way: `..` leads out of where it points, not back
    return replace(image, path=short)


def tidy_path(path: str) -> str:
    """`path` without `.` and `..`, unless that names something else."""
    short = os.path.normpath(path)
    if short == path:
        return path
    try:
        status = os.stat(path)
    except OSError:
        return short  # it is not there under either name
    try:
        return short if os.path.samestat(status, os.stat(short)) else path
    except OSError:
        return path
