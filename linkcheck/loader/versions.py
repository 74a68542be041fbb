"""Versions that files want of each other and do not get: where ld.so refuses to start; it binds no symbol.

Source: glibc elf/dl-version.c (_dl_check_map_versions, match_symbol, find_needed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import LoadSet


class MissingVersion(Value):
    """`module` wants `version` of the file called `library`, and ld.so ends its start (or the dlopen) for that."""

    module: int
    library: str
    version: str
    #: The module that is known as `library`; None when none is, which ld.so holds for impossible.
    provider: int | None


def find_missing_versions(load_set: LoadSet) -> tuple[MissingVersion, ...]:
    """What ld.so's check of versions refuses in `load_set`, in load order.

    A file that defines no versions at all is not refused: ld.so says "no version information available" and goes on.
    """
    names = list_names(load_set)
    return tuple(fault for index in range(len(load_set.modules)) for fault in _check(load_set, index, names))


def _check(load_set: LoadSet, index: int, names: list[set[str]]) -> Iterator[MissingVersion]:
    for need in load_set.modules[index].image.version_needs:
        provider = next((at for at, known in enumerate(names) if need.library in known), None)
        defined = set()
        if provider is not None:
            definitions = load_set.modules[provider].image.version_definitions
            if not definitions:
                continue
            defined = {definition.name for definition in definitions}
        elif any(missing.module == index and missing.needed == need.library for missing in load_set.unresolved):
            continue  # the missing file is the fault; which versions it has nobody knows
        for version in need.versions:
            if version.name not in defined and not version.weak:
                yield MissingVersion(index, need.library, version.name, provider)


def list_names(load_set: LoadSet) -> list[set[str]]:
    """For each module the names that ld.so knows it by: its path and the names it was asked for."""
    names = [{module.image.path, module.requested_as} for module in load_set.modules]
    for module in load_set.modules:
        for name, dependency in zip(module.image.needed, module.dependencies, strict=False):
            if dependency is not None:
                names[dependency].add(name)
    return names
