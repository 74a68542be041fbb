"""Which imports of a load set find no definition where its loader would look; whose fault that is, is a rule's word.

An import is looked up in the scope of its module, by name and version, as lookup.py's Finder for the load set's C
library has it, and only when a relocation refers to it (glibc elf/do-rel.h). In which order a scope is searched decides
who defines a symbol, not whether somebody does: so all modules with one scope are asked for together, and each file is
asked once for what all of them want.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from linkcheck.loader.lookup import finder_of
from linkcheck.model import FoundBy
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from linkcheck.loader.lookup import Finder
    from linkcheck.loader.scope import Scope
    from linkcheck.model import Demand, Image, LoadSet, Module, SymbolTable


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


def count_asked(load_set: LoadSet) -> int:
    """How many files of `load_set` a DefinitionFinder looks up the imports of: all but the system's runtime."""
    return sum(1 for module in load_set.modules if _is_asked(module))


def _is_asked(module: Module) -> bool:
    return module.found_by not in _SYSTEM or module.image.name not in _RUNTIME


class Undefined(Value):
    """Imports of `module` (an index of LoadSet.modules) that nobody in its scope defines.

    What a program holds as a copy of a library's object (R_*_COPY) is an import, though its table shows a definition.
    """

    module: int
    demands: tuple[Demand, ...]
    #: Why the imports of the module could not be told, or empty.
    unseen: str = ""


#: Answers that are remembered, of all files together: the same names of the C library are asked for by every file.
_MOST_ANSWERS = 1 << 17


class DefinitionFinder:
    """Finds what is undefined in load sets; remembers what one load set told about files that others load, too."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        #: What was found out by the rules of one C library.
        self._known: dict[type[Finder], _Known] = {}
        self._unrequested: dict[tuple[SymbolTable, str], bool] = {}

    def find(self, load_set: LoadSet) -> tuple[Undefined, ...]:
        """What no file in reach defines in `load_set`, in load order.

        Weak imports may stay undefined. Raises MalformedElfError or UnreadableFileError when a table cannot be read.
        """
        rules = finder_of(load_set)
        known = self._known.setdefault(rules, _Known(rules))
        alike: dict[frozenset[int], list[int]] = {}
        scopes = rules.list_scopes(load_set)
        for scope in scopes:
            alike.setdefault(frozenset(scope.modules), []).append(scope.module)
        found = [one for scope, modules in alike.items() for one in known.find(load_set, modules, scope)]
        if lost := known.find_lost_copies(load_set, scopes):
            own = next((one for one in found if one.module == 0), Undefined(0, ()))
            if not own.unseen:
                found = [one for one in found if one is not own]
                found.append(Undefined(0, tuple(sorted((*own.demands, *lost), key=lambda demand: demand[0]))))
        return tuple(sorted(found, key=lambda undefined: undefined.module))

    def requested(self, image: Image, demands: Collection[Demand]) -> tuple[Demand, ...]:
        """`demands` without what no relocation of `image` refers to: ld.so never looks that up."""
        table = image.symbols
        unknown = [name for name, _, _ in demands if (table, name) not in self._unrequested]
        if unknown:
            requested = table.requested(unknown)
            copied = table.copied(unknown) if image.is_executable else ()
            for name in unknown:
                refers = requested is None or name in requested or name in copied
                self._unrequested[table, name] = not refers
        return tuple(demand for demand in demands if not self._unrequested[table, demand[0]])


class _Known:
    """What one run has found out about files by the rules of one C library."""

    def __init__(self, rules: type[Finder]) -> None:
        self._rules = rules
        #: Importing table -> the tables that define what it imports, and the imports that nobody defined. Without the
        #: imports that were found: a thousand files import a million.
        self._settled: dict[SymbolTable, tuple[tuple[SymbolTable, ...], frozenset[Demand]]] = {}
        #: Table -> what it was asked for, and what of that it satisfies.
        self._answers: dict[SymbolTable, tuple[set[Demand], set[Demand]]] = {}
        self._answers_left = _MOST_ANSWERS
        #: Demand -> the table that was last seen to satisfy it: most programs of a directory get theirs from the same.
        self._providers: dict[Demand, SymbolTable] = {}

    def find(self, load_set: LoadSet, modules: Sequence[int], scope: Collection[int]) -> Iterable[Undefined]:
        """What nobody in `scope` defines of the imports of `modules`, whose scope it is."""
        reached = [load_set.modules[index].image for index in sorted(scope)]
        tables = {image.symbols for image in reached}
        #: Imports of each module; those that it leaves undefined elsewhere when all others are satisfied here, too.
        demands: dict[int, frozenset[Demand]] = {}
        fresh: set[int] = set()
        for index in modules:
            module = load_set.modules[index]
            table = module.image.symbols
            if not _is_asked(module):
                continue
            settled = self._settled.get(table)
            if settled is not None and tables.issuperset(settled[0]):
                demands[index] = settled[1]
                continue
            listed = None if table.unseen is not None else table.demands()
            if listed is None:
                yield Undefined(index, (), table.unseen or "it has too many imports to look up")
            else:
                demands[index] = frozenset(listed)
                fresh.add(index)
        wanted: frozenset[Demand] = frozenset().union(*demands.values())
        if not (fresh or wanted):
            return
        satisfied, missing = self._ask_all(load_set, reached, wanted)
        for index, own in demands.items():
            table = load_set.modules[index].image.symbols
            left = own & missing
            if index in fresh:
                providers = tuple(other for other, offered in satisfied.items() if not offered.isdisjoint(own))
                self._settled[table] = (providers, left)
            if left:
                yield Undefined(index, tuple(sorted(left, key=lambda demand: demand[0])))

    def find_lost_copies(self, load_set: LoadSet, scopes: Iterable[Scope]) -> frozenset[Demand]:
        """What the program makes room for a copy of, and no other file in its scope defines."""
        root = load_set.root
        copies = frozenset(root.symbols.copy_demands(weak=self._rules.copies_weak)) if root.is_executable else None
        if not copies:
            return frozenset()
        own = next(scope for scope in scopes if scope.module == 0)
        others = [load_set.modules[index].image for index in sorted(own.modules) if index != 0]
        return self._ask_all(load_set, others, copies)[1]

    def _ask_all(
        self, load_set: LoadSet, reached: Sequence[Image], wanted: frozenset[Demand]
    ) -> tuple[dict[SymbolTable, set[Demand]], frozenset[Demand]]:
        """What each of the images `reached`, which are in load order, satisfies of `wanted`, and what none does.

        One provider is enough.
        """
        tables = {image.symbols for image in reached}
        satisfied: defaultdict[SymbolTable, set[Demand]] = defaultdict(set)
        unsettled = []
        provider_of = self._providers.get
        for demand in wanted:
            provider = provider_of(demand)
            if provider in tables:
                satisfied[provider].add(demand)
            else:
                unsettled.append(demand)
        left = frozenset(unsettled)
        # Most imports name the library that they expect the definition in: it is asked first, and not for the rest.
        named = {image.name: image for image in reached}
        expected: dict[str, list[Demand]] = {}
        for demand in left:
            if demand[2] is not None:
                expected.setdefault(demand[2], []).append(demand)
        # The one that most are expected in comes last, and is asked for what the others lack, too: the functions of
        # libpthread have moved to libc.
        strayed: frozenset[Demand] = frozenset()
        for library, demands in sorted(expected.items(), key=lambda item: len(item[1])):
            strayed |= frozenset(demands)
            if (image := named.get(library)) is not None:
                found = self._ask(image, strayed, satisfied)
                left -= found
                strayed -= found
        # The program last: it uses what its libraries define.
        for image in (*reached[1:], *reached[:1]):
            if not left:
                break
            left -= self._ask(image, left, satisfied)
        renamed = {demand: other for demand in left if (other := self._rules.other_name(demand[0])) is not None}
        for module in load_set.modules if renamed else ():
            image = module.image
            if module.found_by is FoundBy.INTERPRETER and image in reached:
                served = {d for d, other in renamed.items() if self._rules.is_served(image, other, d[1])}
                satisfied[image.symbols] |= served
                left -= served
        return satisfied, left

    def _ask(
        self, image: Image, demands: frozenset[Demand], satisfied: defaultdict[SymbolTable, set[Demand]]
    ) -> frozenset[Demand]:
        """Those of `demands` that `image` satisfies; they are added to `satisfied`."""
        table = image.symbols
        asked, served = self._answers.setdefault(table, (set(), set()))
        unknown = demands - asked
        found = demands & served
        if unknown:
            offers = table.offers({demand[0] for demand in unknown})
            new = self._rules.serve(image, unknown, offers) if offers else set()
            found |= new
            if self._answers_left > 0:
                self._answers_left -= len(unknown)
                asked |= unknown
                served |= new
                self._providers.update(dict.fromkeys(new, table))
        if found:
            satisfied[table] |= found
        return found
