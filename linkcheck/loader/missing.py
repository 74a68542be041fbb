"""Where the libraries that were not found would stand in the order of a search, and whose definitions they come before.

It knows of no definition in them. A missing library can take an import only from where it stands on: what it needs is
loaded after it, so nothing of that comes before a file that is before it. It may need a file that is opened later, too,
which is then relocated earlier and looks into the scope of who brought it. What it needs first comes at the end of what
is listed when its turn comes, and so before all that only files behind it need: that may be any file, also one that is
loaded later without it.
Source: as of scope.py, and glibc elf/dl-lookup.c (do_lookup_unique).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader import lookup
from linkcheck.model import BindingKind, FoundBy, Libc, SymbolBinding
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from linkcheck.model import Binding, LoadSet, Unresolved


def find_rivals(load_set: LoadSet, bindings: Iterable[Binding]) -> dict[int, tuple[Unresolved, ...]]:
    """Module -> the missing libraries of which a definition could take one of its uses among `bindings`, if any.

    They come before the provider in a search; of what has no provider, anywhere in it. `bindings` are imports. Raises
    what SymbolTable.exported raises.
    """
    if not load_set.unresolved:
        return {}
    searches = _Searches(load_set)
    found: dict[int, set[int]] = {}
    for binding in bindings:
        found.setdefault(binding.module, set()).update(searches.find(binding))
    return {module: searches.list_missing(items) for module, items in found.items() if items}


def find_bringers(load_set: LoadSet, bindings: Iterable[Binding]) -> tuple[tuple[Unresolved, ...], ...]:
    """For each of `bindings` the missing libraries that could bring some other file before its provider, if any.

    `bindings` are imports that have a provider. Raises what SymbolTable.exported raises.
    """
    if not load_set.unresolved:
        return tuple(() for _ in bindings)
    searches = _Searches(load_set)
    return tuple(searches.list_missing(searches.find_bringers(binding)) for binding in bindings)


class Changes(Value):
    """What the missing libraries may change of one binding."""

    #: Those of which a definition could take the use.
    takers: tuple[Unresolved, ...]
    #: Those of them that could also bring some other file before the provider.
    bringers: tuple[Unresolved, ...]


def find_changes(load_set: LoadSet, bindings: Iterable[Binding]) -> tuple[Changes, ...]:
    """What the missing libraries may change of each of `bindings`, which have a provider and are looked up by ld.so.

    Raises what SymbolTable.exported raises.
    """
    searches = _Searches(load_set)
    return tuple(
        Changes(
            takers=searches.list_missing(searches.find(binding)),
            bringers=searches.list_missing(searches.find_bringers(binding)),
        )
        for binding in bindings
    )


class _Searches:
    """What would be searched for each module if nothing were missing.

    An item of a search is the index of a module, or the complement (~) of an index into LoadSet.unresolved, or of that
    index and their number together: the first file that the missing one needs.
    """

    def __init__(self, load_set: LoadSet) -> None:
        self._load_set = load_set
        self._missing = len(load_set.unresolved)
        #: Module and DT_NEEDED -> the item that stands for it.
        self._slots: dict[tuple[int, str], int] = {}
        #: Items whose place nobody knows, such as a file that is mapped and cannot be read.
        self._unplaced: list[int] = []
        preloads: list[tuple[int, bool, int]] = [
            (index, True, index) for index, module in enumerate(load_set.modules) if module.found_by is FoundBy.PRELOAD
        ]
        opened: list[tuple[int, int]] = []
        for index, unresolved in enumerate(load_set.unresolved):
            if unresolved.special is FoundBy.PRELOAD:
                preloads.append((unresolved.loaded, False, ~index))
            elif unresolved.special is FoundBy.DLOPEN:
                opened.append((unresolved.loaded, ~index))
            elif self._lacks(unresolved):
                self._slots[unresolved.module, unresolved.needed] = ~index
            else:
                self._unplaced.append(~index)
        self._starting = self._list([0, *(item for _, _, item in sorted(preloads))])
        #: Module -> what is searched for it.
        self._own: dict[int, Sequence[int]] = {item: self._starting for item in self._starting if item >= 0}
        #: Module -> what would be searched for it if something missing needed it, and so brought it earlier.
        self._earlier: dict[int, tuple[Sequence[int], ...]] = {}
        #: Name of a unique symbol -> whether nothing missing can decide which definition of it serves the process.
        self._decided: dict[str, bool] = {}
        self._add_opened(sorted(opened, reverse=True))

    def _lacks(self, unresolved: Unresolved) -> bool:
        module = self._load_set.modules[unresolved.module]
        pairs = zip(module.image.needed, module.dependencies)  # noqa: B905 - what nobody loaded has no dependencies
        return any(found is None and needed == unresolved.needed for needed, found in pairs)

    def _list(self, roots: Sequence[int]) -> list[int]:
        """As scope.search_list, with what is missing."""
        found = list(roots)
        listed = set(found)
        for index in found:
            if index < 0:
                if not self._is_brought(index):
                    found.append(self._bring(index))
                continue
            module = self._load_set.modules[index]
            for needed, dependency in zip(module.image.needed, module.dependencies):  # noqa: B905 - as above
                item = self._slots.get((index, needed)) if dependency is None else dependency
                if item is not None and item not in listed:  # None: what is declared external
                    listed.add(item)
                    found.append(item)
        return found

    def _add_opened(self, missing: list[tuple[int, int]]) -> None:
        """Follow the dlopens in turn; `missing` are those that failed, the first one last."""
        deepbind_counts = self._load_set.libc is not Libc.MUSL
        global_scope = list(self._starting)
        lists = [self._starting] if _has_missing(self._starting) else []
        for opened in self._load_set.opened:
            local = self._list([opened.module])
            new = [item for item in local if item >= 0 and item not in self._own]
            while new and missing and missing[-1][0] <= min(new):
                # Nobody says whether with RTLD_GLOBAL; either way it comes after what was global then.
                item = missing.pop()[1]
                lists.append([*global_scope, item, self._bring(item)])
            first, second = (local, global_scope) if opened.deepbind and deepbind_counts else (global_scope, local)
            search = list(dict.fromkeys((*first, *second)))
            self._own.update(dict.fromkeys(new, search))
            self._earlier.update(dict.fromkeys(new, tuple(lists)))
            if _has_missing(local):
                lists.append(search)
            if opened.global_:
                global_scope += [item for item in local if item not in global_scope]

    def _bring(self, item: int) -> int:
        """The item for the first file that the missing library at `item` needs."""
        return item - self._missing

    def _is_brought(self, item: int) -> bool:
        return item < -self._missing

    def list_missing(self, items: Iterable[int]) -> tuple[Unresolved, ...]:
        """What `items`, which stand for missing libraries, are, in the order of LoadSet.unresolved."""
        return tuple(self._load_set.unresolved[~item] for item in sorted(items, reverse=True))

    def find(self, binding: Binding) -> set[int]:
        """The items for missing libraries that could take the use."""
        # What a missing library brings stands behind it, and so takes nothing that the library itself could not take.
        return {item for item in self._find_before(binding) if not self._is_brought(item)}

    def find_bringers(self, binding: Binding) -> set[int]:
        """The items for missing libraries that could bring a file that takes the use."""
        before = self._find_before(binding)
        return {item + self._missing for item in before if self._is_brought(item)} | before.intersection(self._unplaced)

    def _find_before(self, binding: Binding) -> set[int]:
        """The items for what is missing, and for what it would bring, that come before the provider in a search."""
        if binding.module not in self._own or (
            self._load_set.observed and self._own[binding.module] is not self._starting
        ):
            return {~index for index in range(2 * self._missing)}  # in which order, nobody has seen
        # Who uses the copy that a program holds of an object uses what the program found.
        module, provider = binding.module, binding.provider
        if binding.copy_of is not None:
            module, provider = 0, binding.copy_of
        found = set(self._unplaced)
        if self._is_unique(provider, binding.symbol) and not self._is_decided(binding.symbol):
            # The first one relocated decides for all, and with DT_SYMBOLIC that looks into itself first.
            for search in (self._own[module], *self._earlier.get(module, ())):
                found.update(item for item in search if item < 0)
            return found
        found.update(_take_missing(self._own[module], provider))
        for search in self._earlier.get(module, ()):
            before = search[: search.index(provider)] if provider in search else search
            if provider is not None and any(self._defines(item, binding.symbol) for item in before if item >= 0):
                before = search
            found.update(item for item in before if item < 0)
        return found

    def _is_decided(self, name: str) -> bool:
        """Whether a look-up of `name` ends at a unique definition before anything missing could be there."""
        if name not in self._decided:
            self._decided[name] = not self._unplaced and any(
                self._is_unique(use.provider, name) and self._refers(use)
                for use in lookup.bindings(self._load_set, [name], private=False)
                if use.module in self._own
                and not _has_missing(self._own[use.module])
                and not self._earlier.get(use.module)
            )
        return self._decided[name]

    def _refers(self, use: Binding) -> bool:
        table = self._load_set.modules[use.module].image.symbols
        ask = table.requested if use.kind is BindingKind.IMPORT else table.referenced
        return bool(ask((use.symbol,)))

    def _defines(self, item: int, name: str) -> bool:
        return bool(self._load_set.modules[item].image.symbols.exported(name))

    def _is_unique(self, provider: int | None, name: str) -> bool:
        if provider is None or self._load_set.libc is Libc.MUSL:
            return False
        symbols = self._load_set.modules[provider].image.symbols.exported(name)
        return any(symbol.binding == SymbolBinding.GNU_UNIQUE for symbol in symbols)


def _has_missing(search: Sequence[int]) -> bool:
    return any(item < 0 for item in search)


def _take_missing(search: Sequence[int], provider: int | None) -> set[int]:
    """What is missing, or comes with it, in `search` before `provider`."""
    found = set()
    for item in search:
        if item == provider:
            break
        if item < 0:
            found.add(item)
    return found
