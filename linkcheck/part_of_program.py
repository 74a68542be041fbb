"""Which program a library is a part of that no process could start from. It judges neither of the two.

Imported only for a library that alone does not find all it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.inputs.extension_module import is_extension_module
from linkcheck.rules.ownership import is_loader_external, missing_libraries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.inputs.origins import Origins
    from linkcheck.model import Image, LoadSet
    from linkcheck.policy.settings import Settings


def find_program_of(library: Image, load_sets: Iterable[LoadSet], origins: Origins, settings: Settings) -> str:
    """The path of the first program among `load_sets` that loads `library` and finds all that it needs, or "".

    It has to load it from where it lies, or through a link: a file in another directory has another $ORIGIN. What the
    target machine provides (`external`) counts as found, for the program's interpreter, too. A Python extension module
    is opened by an interpreter all the same, whoever loads it besides.
    """
    if is_extension_module(library):
        return ""
    place = origins.place(library)
    for load_set in load_sets:
        if (
            load_set.root.is_executable
            and (load_set.interpreter is None or is_loader_external(load_set, settings))
            and any(place in origins.list_places(image) for image in _list_whole_images(load_set, settings))
        ):
            return load_set.root.path
    return ""


def _list_whole_images(load_set: LoadSet, settings: Settings) -> list[Image]:
    """The images of `load_set` that find all they need there, and so do those that they need."""
    broken = {missing.module for missing in missing_libraries(load_set, settings)}
    needed_by: dict[int, list[int]] = {}
    for index, module in enumerate(load_set.modules):
        for dependency in module.dependencies:
            if dependency is not None:
                needed_by.setdefault(dependency, []).append(index)
    pending = list(broken)
    while pending:
        for index in needed_by.get(pending.pop(), ()):
            if index not in broken:
                broken.add(index)
                pending.append(index)
    return [module.image for index, module in enumerate(load_set.modules) if index not in broken]
