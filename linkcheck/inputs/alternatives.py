"""Which extension modules one interpreter cannot import together: those of one dotted name. It reads no ELF.

An import of `pkg.one` finds one file (importlib.machinery.PathFinder): the same module in a build tree and in the wheel
made of it, and two versions of one wheel, are alternatives. The dotted name of a file is known below the directory that
packages are installed into; elsewhere only the packages around it are, as far as they have an `__init__.py`, and a file
whose dotted name ends so may be the same module.
"""

from __future__ import annotations

import os
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkcheck.model import Image


class _Module(Value):
    """A module, and how much of its dotted name is known."""

    image: Image
    #: The directories that lead to it, and last the name that an import gives.
    path: tuple[str, ...]
    #: How many of the last parts of `path` are parts of the dotted name, and whether that is all of it.
    known: int
    complete: bool

    @property
    def dotted(self) -> tuple[str, ...]:
        return self.path[-self.known :]

    def may_be(self, other: _Module) -> bool:
        """Whether both may have one dotted name."""
        if self.complete and other.complete:
            return self.dotted == other.dotted
        if (self.complete and self.known < other.known) or (other.complete and other.known < self.known):
            return False
        common = min(self.known, other.known)
        return self.path[-common:] == other.path[-common:]


#: Modules of one package in one directory: they come together or not at all.
_Unit = list[_Module]
#: Into these, packages and modules are installed.
_INSTALLED_INTO = ("site-packages", "dist-packages", "lib-dynload")
#: Units with alternatives for which every two that may meet are put together; of more, each is in some process.
_FEW = 16


def list_processes(modules: Sequence[Image], show: Callable[[str], str]) -> tuple[tuple[Image, ...], ...]:
    """The sets of `modules` that one interpreter may import, in the order given; one set if all have different names.

    `show` names a path as users know it. Of several files for one dotted name in one directory the first is taken.
    Every two packages without alternatives to each other are in one of the sets, unless there are very many.
    """
    names = [_name(image) for image in modules]
    if len(set(names)) == len(names):
        return (tuple(modules),)
    finder = _RootFinder()
    namesakes: dict[str, list[_Module]] = {}
    for image, name in zip(modules, names, strict=True):
        others = namesakes.setdefault(name, [])
        module = finder.describe(image, show(image.path))
        if all(module.path != other.path for other in others):
            others.append(module)
    units: dict[tuple[str, ...], _Unit] = {}
    unit_of: dict[int, tuple[str, ...]] = {}
    alternatives: list[tuple[_Module, _Module]] = []
    for module in (module for same in namesakes.values() for module in same):
        others = [other for other in namesakes[module.path[-1]] if other is not module and module.may_be(other)]
        alternatives += [(module, other) for other in others]
        depth = module.known if module.complete else max(module.known, *(_common(module, other) for other in others), 1)
        package = module.path[-depth] if depth > 1 or module.complete else ""
        key = unit_of[id(module)] = (*module.path[:-depth], "", package)
        units.setdefault(key, []).append(module)
    apart: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for one, other in alternatives:
        mine, its = unit_of[id(one)], unit_of[id(other)]
        if mine != its:  # what a third file, in another tree, shows to be of two packages is no alternative
            apart.setdefault(mine, set()).add(its)
    always = [key for key in units if key not in apart]
    found = []
    for chosen in list(_choose(list(apart), apart)) or [[]]:
        together = {id(module.image) for key in (*always, *chosen) for module in units[key]}
        found.append(tuple(image for image in modules if id(image) in together))
    return tuple(found)


def _choose(
    keys: Sequence[tuple[str, ...]], apart: dict[tuple[str, ...], set[tuple[str, ...]]]
) -> Iterable[list[tuple[str, ...]]]:
    """Largest sets of `keys` none of which is `apart` from another, until every two that may be together are."""
    pairs = combinations_with_replacement(keys, 2) if len(keys) <= _FEW else zip(keys, keys, strict=True)
    covered: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for one, other in pairs:
        if (one, other) in covered or other in apart[one]:
            continue
        chosen = [one] if one == other else [one, other]
        barred = apart[one] | apart[other]
        for key in sorted(keys, key=lambda key: (key, key) in covered):  # those first that are in no set yet
            if key not in chosen and key not in barred:
                chosen.append(key)
                barred = barred | apart[key]
        covered.update((first, second) for first in chosen for second in chosen)
        yield chosen


def _name(image: Image) -> str:
    return image.path.rpartition("/")[2].partition(".")[0]


def _common(one: _Module, other: _Module) -> int:
    """How many last parts their paths have in common."""
    count = 0
    for mine, its in zip(reversed(one.path), reversed(other.path), strict=False):
        if mine != its:
            break
        count += 1
    return min(count, len(one.path) - 1, len(other.path) - 1) or 1


class _RootFinder:
    """Looks for what is above a module, and remembers it of each directory."""

    def __init__(self) -> None:
        self._packages: dict[str, bool] = {}
        self._installed: dict[str, bool] = {}

    def describe(self, image: Image, shown: str) -> _Module:
        """What is known of the dotted name of `image`, which users know as `shown`."""
        archive, mark, member = shown.rpartition("!/")
        directory = os.path.dirname(member if mark else os.path.abspath(shown))
        parts = tuple(part for part in directory.split("/") if part)
        above = (f"{archive}!", *parts) if mark else parts
        path = ("", *above, _name(image))
        if (inside := _find_installed(parts)) is not None:
            return _Module(image, path, inside + 1, complete=True)
        if mark:
            if not archive.endswith(".whl"):
                return _Module(image, path, 1, complete=False)
            # platlib and purelib are installed like what is outside of them (PEP 427).
            skipped = 2 if parts and parts[0].endswith(".data") else 0
            return _Module(image, path, len(parts) - skipped + 1, complete=True)
        known = 1
        for depth in range(len(parts), 0, -1):
            parent = "/" + "/".join(parts[:depth])
            if self._has_metadata(parent):
                return _Module(image, path, len(parts) - depth + 1, complete=True)
            if known == len(parts) - depth + 1 and self._is_package(parent):
                known += 1
        return _Module(image, path, known, complete=False)

    def _is_package(self, directory: str) -> bool:
        if directory not in self._packages:
            self._packages[directory] = os.path.exists(f"{directory}/__init__.py")
        return self._packages[directory]

    def _has_metadata(self, directory: str) -> bool:
        """Whether a distribution is installed, or a wheel unpacked, into `directory`."""
        if directory not in self._installed:
            try:
                with os.scandir(directory) as entries:
                    found = any(entry.name.endswith(".dist-info") for entry in entries)
            except OSError:
                found = False
            self._installed[directory] = found
        return self._installed[directory]


def _find_installed(parts: tuple[str, ...]) -> int | None:
    """How many of the last `parts` are below a directory that modules are installed or built into by its name."""
    for end in range(len(parts), 0, -1):
        # setuptools builds into `build/lib.<platform>-<tag>`.
        built = parts[end - 1].startswith("lib.") and parts[end - 2 : end - 1] == ("build",)
        if built or parts[end - 1] in _INSTALLED_INTO:
            return len(parts) - end
    return None
