"""Which imports of a load set find no definition where ld.so would look; whose fault that is, is a rule's word.

An import is looked up in the scope of its module (scope.py), by name and version (lookup.py's match_version), and only
when a relocation refers to it. Source: glibc elf/dl-lookup.c (_dl_lookup_symbol_x) and elf/do-rel.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import match_version
from linkcheck.loader.scope import list_scopes
from linkcheck.model import FoundBy
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from linkcheck.model import Demand, Image, LoadSet, SymbolTable


#: The C library and the compiler's runtime, where the system has them: what they import they define for each other, in
#: versions that LC305 looks at. They are in every process and take longer to go through than most programs.
_RUNTIME = frozenset(
    {
        "ld-linux-aarch64.so.1",
        "ld-linux-x86-64.so.2",
        "libc.so.6",
        "libdl.so.2",
        "libgcc_s.so.1",
        "libm.so.6",
        "libpthread.so.0",
        "librt.so.1",
        "libstdc++.so.6",
    }
)
_SYSTEM = frozenset({FoundBy.CACHE, FoundBy.DEFAULT, FoundBy.INTERPRETER})


class Undefined(Value):
    """Imports of `module` (an index of LoadSet.modules) that nobody in its scope defines."""

    module: int
    demands: tuple[Demand, ...]
    #: Why the imports of the module could not be told, or empty.
    unseen: str = ""


class DefinitionFinder:
    """Finds what is undefined in load sets; remembers what one load set told about files that others load, too."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        #: Importing table -> the tables that define what it imports, and the imports that nobody defined. Without the
        #: names that were found: a thousand files import a million.
        self._settled: dict[SymbolTable, tuple[frozenset[SymbolTable], frozenset[Demand]]] = {}
        #: Table -> name -> the versions that it defines it in; () for none.
        self._offers: dict[SymbolTable, dict[str, tuple[str | None, ...]]] = {}
        self._offers_left = _MOST_OFFERS
        self._unrequested: dict[tuple[SymbolTable, str], bool] = {}

    def find(self, load_set: LoadSet) -> tuple[Undefined, ...]:
        """What no file in reach defines in `load_set`, in load order.

        Weak imports may stay undefined. Raises MalformedElfError or UnreadableFileError when a table cannot be read.
        """
        found = []
        for scope in list_scopes(load_set):
            module = load_set.modules[scope.module]
            image = module.image
            if module.found_by in _SYSTEM and image.name in _RUNTIME:
                continue
            left = self._look_up(image, [load_set.modules[index].image for index in scope.modules])
            if left is None:
                found.append(Undefined(scope.module, (), image.symbols.unseen or "it has too many imports to look up"))
            elif left:
                found.append(Undefined(scope.module, tuple(sorted(left, key=lambda demand: demand[0]))))
        return tuple(sorted(found, key=lambda undefined: undefined.module))

    def requested(self, image: Image, demands: Collection[Demand]) -> tuple[Demand, ...]:
        """`demands` without what no relocation of `image` refers to: ld.so never looks that up."""
        table = image.symbols
        unknown = [name for name, _, _ in demands if (table, name) not in self._unrequested]
        if unknown:
            requested = table.requested(unknown)
            for name in unknown:
                self._unrequested[table, name] = requested is not None and name not in requested
        return tuple(demand for demand in demands if not self._unrequested[table, demand[0]])

    def _look_up(self, image: Image, scope: Sequence[Image]) -> Collection[Demand] | None:
        """The imports of `image` that no image of `scope` satisfies; None when they cannot be told."""
        table = image.symbols
        settled = self._settled.get(table)
        if settled is not None and settled[0].issubset([other.symbols for other in scope]):
            left, providers = settled[1], set(settled[0])
        else:
            demands = None if table.unseen is not None else table.demands()
            if demands is None:
                return None
            left, providers = frozenset(demands), set()
            # Most imports name the library that they expect the definition in: it is asked first, and for these alone.
            named = {other.name: other for other in scope}
            for library in {demand[2] for demand in left if demand[2] is not None}:
                provider = named.get(library)
                if provider is not None:
                    left -= self._ask(provider, [demand for demand in left if demand[2] == library], providers)
        for other in scope:
            if not left:
                break
            left -= self._ask(other, left, providers)
        self._settled[table] = (frozenset(providers), left)
        return left

    def _ask(self, image: Image, demands: Collection[Demand], providers: set[SymbolTable]) -> frozenset[Demand]:
        """Those of `demands` that `image` satisfies; when there are any, it is added to `providers`."""
        table = image.symbols
        offers = self._offers.setdefault(table, {})
        unknown = [demand[0] for demand in demands if demand[0] not in offers]
        if unknown:
            new = table.offers(unknown)
            if self._offers_left > 0:
                self._offers_left -= len(unknown)
                offers.update(dict.fromkeys(unknown, ()))
                offers.update(new)
            else:
                offers = {**offers, **new}
        satisfied = frozenset(d for d in demands if (found := offers.get(d[0])) and _satisfies(image, d, found))
        if satisfied:
            providers.add(table)
        return satisfied


#: Answers that are remembered, of all files together: the same names of the C library are asked for by every file.
_MOST_OFFERS = 1 << 16


def _satisfies(image: Image, demand: Demand, offered: Sequence[str | None]) -> bool:
    """Whether `demand` gets one of the definitions in the versions `offered`."""
    name, version, _ = demand
    return version in offered or match_version(image, image.symbols.exported(name), version) is not None
