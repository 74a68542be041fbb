"""Shorter names for the same files, for messages: `bin/../lib/x.so` becomes `lib/x.so`. No part of the search."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.value import replace

if TYPE_CHECKING:
    from linkcheck.model import LoadSet, Module


def tidy_paths(load_set: LoadSet) -> LoadSet:
    """Return `load_set` with `.` and `..` taken out of paths wherever what is left names the same file or directory."""
    modules = tuple(_tidy_module(module) if index else module for index, module in enumerate(load_set.modules))
    # Requests of one file search the same directories, and are given the same tuple of them.
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    unresolved = []
    for missing in load_set.unresolved:
        tidied = known.get(missing.directories)
        if tidied is None:
            tidied = known[missing.directories] = tuple(dict.fromkeys(map(_tidy_directory, missing.directories)))
        unresolved.append(replace(missing, directories=tidied))
    return replace(load_set, modules=modules, unresolved=tuple(unresolved))


def _tidy_module(module: Module) -> Module:
    image = module.image
    short = os.path.normpath(image.path)
    if short == image.path:
        return module
    try:
        status = os.stat(short)
    except OSError:
        return module
    if (status.st_dev, status.st_ino) != (image.device, image.inode):
        return module  # a link on the way: `..` leads out of where it points, not back
    return replace(module, image=replace(image, path=short))


def _tidy_directory(directory: str) -> str:
    short = os.path.normpath(directory)
    if short == directory:
        return directory
    try:
        status = os.stat(directory)
    except OSError:
        return short  # it is not there under either name
    try:
        return short if os.path.samestat(status, os.stat(short)) else directory
    except OSError:
        return directory
