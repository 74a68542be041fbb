"""Which missing libraries may make one copy of several, by what they define or bring; it counts no copies itself.

Uses that end up in several files as it is may all end up in one if a missing library defines the symbols and comes
before these files in a search, or needs one of them and so brings it there. No missing library changes what its linker
has bound, or what comes before it in a search; so two such uses that differ stay apart, and so does one, if none of
the others can be led to where it is. A missing library counts as a file of its own, unless it is called like one that
is loaded, and as none that brings another file under the name of one that was found.
Source: as of lookup.py and missing.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.missing import find_changes
from linkcheck.loader.state import lead_to_sources
from linkcheck.model import BindingKind, Libc, SymbolBinding, Visibility
from linkcheck.value import replace

if TYPE_CHECKING:
    from linkcheck.loader.missing import Changes
    from linkcheck.loader.state import Redirections
    from linkcheck.model import Binding, LoadSet, Unresolved

#: Stands for the missing libraries, whichever it is, among the modules where a use may end up.
_MISSING = -1


def find_mergers(load_set: LoadSet, corrected: Redirections) -> tuple[Unresolved, ...]:
    """The missing libraries with which the uses may all end up in one file; none if they cannot.

    `corrected` are bindings that end up in several. Raises what SymbolTable.exported and .referenced raise.
    """
    settled = _find_settled(load_set, corrected)
    changes = find_changes(load_set, [b for b in corrected.bindings if b.provider is not None])
    uses = [b for b in lead_to_sources(corrected) if b.provider is not None]
    common: set[int] | None = None
    mergers: dict[int, Unresolved] = {}
    for use, change in zip(uses, changes, strict=True):
        if use.symbol in corrected.led:
            change = replace(change, takers=load_set.unresolved, bringers=load_set.unresolved)
        elif (use.module, use.symbol) in settled or use.copy_of not in (None, use.provider):
            # So is who uses the executable's copy of an object while somebody else uses the object itself.
            change = replace(change, takers=(), bringers=())
        ends = _list_ends(load_set, use, change)
        common = ends if common is None else common & ends
        mergers.update((id(one), one) for one in change.takers)
    return tuple(one for one in load_set.unresolved if id(one) in mergers) if common else ()


def _list_ends(load_set: LoadSet, use: Binding, change: Changes) -> set[int]:
    """Where `use` may end up: modules, or what is missing."""
    ends = set() if use.provider is None else {use.provider}
    if not change.takers:
        return ends
    ends.add(_MISSING)
    names = {_stem(one.needed) for one in change.takers}
    for index, module in enumerate(load_set.modules):
        if not index or not (change.bringers or names & {_stem(module.image.name), _stem(module.image.path)}):
            continue
        if module.image.symbols.exported(use.symbol):
            ends.add(index)
    return ends


def _stem(name: str) -> str:
    """`libx` of `/lib/libx.so.2`: of files that are called so one may be a link to the other."""
    return name.rpartition("/")[2].partition(".so")[0]


def _find_settled(load_set: LoadSet, corrected: Redirections) -> set[tuple[int, str]]:
    """Module and name of the uses that look nothing up: a file's own uses of what it defines itself.

    Where only the lack of a relocation says so there may be no uses at all, and then a missing library that takes the
    others leaves one copy in use. Not so for `corrected.fixed`, which make several copies without a missing library.
    """
    settled = set()
    for use in corrected.bindings:
        if use.kind is BindingKind.IMPORT or use.provider != use.module:
            continue
        image = load_set.modules[use.module].image
        symbols = () if use.kind is BindingKind.HIDDEN else image.symbols.exported(use.symbol)
        unique = load_set.libc is Libc.GLIBC and any(one.binding == SymbolBinding.GNU_UNIQUE for one in symbols)
        if (
            use.kind is BindingKind.HIDDEN
            or (load_set.libc is Libc.GLIBC and any(one.visibility is Visibility.PROTECTED for one in symbols))
            or use.module in corrected.fixed
            or ((image.is_executable or image.symbolic) and not unique)
        ):
            settled.add((use.module, use.symbol))
    return settled
