"""Versions that files want of each other and do not get: where ld.so refuses to start; it binds no symbol.

Source: glibc elf/dl-version.c (_dl_check_map_versions, match_symbol, find_needed; since 2.36 with DT_RELR).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Libc
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.model import Image, LoadSet


#: What a file with DT_RELR has to name among its versions, so that a glibc that does not know DT_RELR refuses it.
MARK_OF_RELR = "GLIBC_ABI_DT_RELR"


class VersionFault(Value):
    """`module` wants `versions` of the file called `library`, and does not get them."""

    module: int
    library: str
    #: Those that are missing; of a file without versions, all that are wanted. Not those that only weak uses want.
    versions: tuple[str, ...]
    #: The module that is known as `library`; None when none is, which ld.so holds for impossible.
    provider: int | None


class VersionReport(Value):
    """What ld.so's comparison of versions comes to in one load set, each in load order."""

    #: ld.so ends its start, or the dlopen, for these.
    refused: tuple[VersionFault, ...] = ()
    #: The provider defines no versions at all: ld.so says "no version information available", and goes on.
    uninformed: tuple[VersionFault, ...] = ()
    #: Nothing that was found is known by the name, but a library that was not found may bring what is.
    unplaced: tuple[VersionFault, ...] = ()
    #: Modules with DT_RELR and version needs, of which none is MARK_OF_RELR, though they need the C library: ld.so ends
    #: its start, or the dlopen, for these, too.
    unmarked: tuple[int, ...] = ()
    #: Modules with DT_RELR in a process whose glibc is too old for it: it leaves the addresses in them as they are.
    unrelocated: tuple[int, ...] = ()
    #: How many times a file's wants were compared with a library that is there.
    compared: int = 0


def compare_versions(load_set: LoadSet) -> VersionReport:
    """What ld.so's comparison of versions finds in `load_set`, which musl's loader does not make."""
    if load_set.libc is Libc.MUSL:
        return VersionReport()
    known: dict[str, int] = {}
    for index, names in reversed(tuple(enumerate(list_names(load_set)))):
        known.update(dict.fromkeys(names, index))
    missing = {unresolved.needed for unresolved in load_set.unresolved}
    defined_by: dict[int | None, set[str]] = {}
    refused: list[VersionFault] = []
    uninformed: list[VersionFault] = []
    unplaced: list[VersionFault] = []
    compared = 0
    for index, module in enumerate(load_set.modules):
        for need in module.image.version_needs:
            provider = known.get(need.library)
            if provider is None and need.library in missing:
                continue  # the missing file is the fault; which versions it has nobody knows
            compared += provider is not None
            definitions = None if provider is None else load_set.modules[provider].image.version_definitions
            if provider not in defined_by:
                defined_by[provider] = {definition.name for definition in definitions or ()}
            defined = defined_by[provider]
            versions = tuple(v.name for v in need.versions if v.name not in defined and not v.weak)
            if versions:
                fault = VersionFault(index, need.library, versions, provider)
                if provider is None and missing:
                    unplaced.append(fault)
                else:
                    (uninformed if definitions == () else refused).append(fault)
    unmarked, unrelocated = _list_unmarked(load_set)
    return VersionReport(
        tuple(refused), tuple(uninformed), tuple(unplaced), tuple(unmarked), tuple(unrelocated), compared
    )


def _list_unmarked(load_set: LoadSet) -> tuple[list[int], list[int]]:
    """VersionReport.unmarked and VersionReport.unrelocated."""
    packed = [index for index, module in enumerate(load_set.modules) if module.image.packed_relocations]
    if not packed:
        return [], []
    libc = next((module.image for module in load_set.modules if module.image.name.startswith("libc.so.")), None)
    if libc is None or not any(one.name.startswith("GLIBC_") for one in libc.version_definitions):
        return [], []
    marked = [index for index in packed if _wants_mark(load_set.modules[index].image)]
    if not any(one.name == MARK_OF_RELR for one in libc.version_definitions):
        return [], [index for index in packed if index not in marked]
    unmarked = [
        index
        for index in packed
        if index not in marked
        and (image := load_set.modules[index].image).version_needs
        and any(needed.startswith("libc.so.") for needed in image.needed)
    ]
    return unmarked, []


def _wants_mark(image: Image) -> bool:
    return any(version.name == MARK_OF_RELR for need in image.version_needs for version in need.versions)


def list_names(load_set: LoadSet) -> list[set[str]]:
    """For each module the names that ld.so knows it by: its path and the names it was asked for."""
    names = [{module.image.path, module.requested_as} for module in load_set.modules]
    for module in load_set.modules:
        for name, dependency in zip(module.image.needed, module.dependencies, strict=False):
            if dependency is not None:
                names[dependency].add(name)
    return names
