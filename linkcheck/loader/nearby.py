"""Where a library that the loader would not find happens to be: evidence for a message, no part of the search."""

from __future__ import annotations

import os
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


def _located(unresolved: Unresolved, names: dict[str, frozenset[str]]) -> Unresolved:
    if "/" in unresolved.needed:
        return unresolved
    stem = unresolved.needed.partition(".so")[0] + ".so"
    elsewhere = [os.path.join(p, unresolved.needed) for p, held in names.items() if unresolved.needed in held]
    similar = [
        os.path.join(place, name)
        for place, held in names.items()
        for name in sorted(held)
        if name != unresolved.needed and (name == stem or name.startswith(stem + "."))
    ]
    return replace(unresolved, elsewhere=tuple(elsewhere), similar=tuple(similar))


def _names_in(directory: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(directory))
    except OSError:
        return frozenset()  # a directory that cannot be listed adds no evidence; the verdict stands without it
