"""Where a library that the loader would not find happens to be: evidence for a message, no part of the search."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.model import LoadSet, Unresolved

#: Directories that programs and libraries usually keep their libraries in, seen from their own directory.
_USUAL = (".", "lib", "lib64", "../lib", "../lib64", "..")


def locate_unresolved(load_set: LoadSet, directories: Iterable[str]) -> LoadSet:
    """Return `load_set` with each unresolved name's `elsewhere` and `similar` filled in.

    Looks into `directories`, and into the usual library directories beside every file of the load set, once into each.
    """
    places: dict[str, None] = dict.fromkeys(os.path.normpath(d) for d in directories)
    for module in load_set.modules:
        home = os.path.dirname(module.image.path) or "."
        places.update(dict.fromkeys(os.path.normpath(os.path.join(home, usual)) for usual in _USUAL))
    names: dict[str, str] = {}
    seen: set[tuple[int, int]] = set()
    for place in places:
        with suppress(OSError):  # a directory that cannot be listed adds no evidence; the verdict stands without it
            status = os.stat(place)
            if (status.st_dev, status.st_ino) not in seen:  # else it was called otherwise, by the user perhaps
                seen.add((status.st_dev, status.st_ino))
                names[place] = _names_in(place)
    return replace(load_set, unresolved=tuple(_located(u, names) for u in load_set.unresolved))


def _located(unresolved: Unresolved, names: dict[str, str]) -> Unresolved:
    if "/" in unresolved.needed:
        return unresolved
    needed = unresolved.needed
    stem = needed.partition(".so")[0] + ".so"
    met = {os.path.realpath(attempt.path) for attempt in unresolved.rejected}
    nearby = (os.path.join(place, needed) for place, held in names.items() if f"/{needed}/" in held)
    elsewhere = [path for path in nearby if os.path.realpath(path) not in met]
    similar = [
        os.path.join(place, name)
        for place, held in names.items()
        for name in _starting_with(stem, held)
        if name != needed and (name == stem or name.startswith(f"{stem}."))
    ]
    return replace(unresolved, elsewhere=tuple(elsewhere), similar=tuple(similar))


def _starting_with(start: str, names: str) -> list[str]:
    """Those of `names` that start with `start`, sorted."""
    found = []
    at = names.find(f"/{start}")
    while at >= 0:
        end = names.index("/", at + 1)
        found.append(names[at + 1 : end])
        at = names.find(f"/{start}", end)
    return sorted(found)


def _names_in(directory: str) -> str:
    """The names in `directory`, each between slashes: a file can need a thousand libraries that are not there, and one
    text is searched faster than many names.
    """
    return f"/{'/'.join(os.listdir(directory))}/"
