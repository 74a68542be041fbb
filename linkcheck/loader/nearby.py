"""Where a library that the loader would not find happens to be: evidence for a message, no part of the search."""

from __future__ import annotations

import os
from bisect import bisect_left
from typing import TYPE_CHECKING

from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.model import LoadSet, Unresolved

#: Directories that programs and libraries usually keep their libraries in, seen from their own directory.
_USUAL = (".", "lib", "lib64", "../lib", "../lib64", "..")


def locate_unresolved(load_set: LoadSet, directories: Iterable[str]) -> LoadSet:
    """Return `load_set` with each unresolved name's `elsewhere` and `similar` filled in.

    Looks into `directories`, and into the usual library directories beside every file of the load set.
    """
    if not load_set.unresolved:
        return load_set
    places: dict[str, None] = dict.fromkeys(os.path.normpath(d) for d in directories)
    for module in load_set.modules:
        home = os.path.dirname(module.image.path) or "."
        places.update(dict.fromkeys(os.path.normpath(os.path.join(home, usual)) for usual in _USUAL))
    names = {place: _names_in(place) for place in places}
    return replace(load_set, unresolved=tuple(_located(u, names) for u in load_set.unresolved))


def _located(unresolved: Unresolved, names: dict[str, tuple[str, ...]]) -> Unresolved:
    if "/" in unresolved.needed:
        return unresolved
    stem = unresolved.needed.partition(".so")[0] + ".so"
    needed = unresolved.needed
    elsewhere = [os.path.join(place, needed) for place, held in names.items() if needed in _starting_with(needed, held)]
    similar = [
        os.path.join(place, name)
        for place, held in names.items()
        for name in _starting_with(stem, held)
        if name != needed and (name == stem or name.startswith(f"{stem}."))
    ]
    return replace(unresolved, elsewhere=tuple(elsewhere), similar=tuple(similar))


def _starting_with(start: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the sorted `names` that start with `start`; they stand side by side."""
    first = last = bisect_left(names, start)
    while last < len(names) and names[last].startswith(start):
        last += 1
    return names[first:last]


def _names_in(directory: str) -> tuple[str, ...]:
    """The names in `directory`, sorted."""
    try:
        return tuple(sorted(os.listdir(directory)))
    except OSError:
        return ()  # a directory that cannot be listed adds no evidence; the verdict stands without it
