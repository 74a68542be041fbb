"""Where and in which order ld.so looks for one module's symbols, and in which order it relocates the modules.

It looks at no symbol. Source: glibc elf/dl-object.c (_dl_new_object), elf/dl-load.c (DT_SYMBOLIC), elf/dl-open.c
(update_scopes, add_to_global_update) and elf/dl-sort-maps.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import FoundBy, Libc
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from linkcheck.model import LoadSet


class Scope(Value):
    """What ld.so searches for the symbols of `module`, at the moment it relocates it; indices of LoadSet.modules.

    Functions bound lazily may be looked up later, when a dlopen with RTLD_GLOBAL has made the global scope longer;
    everything here is as with RTLD_NOW, which is also how addresses and data are bound always.
    """

    module: int
    modules: tuple[int, ...]


def list_scopes(load_set: LoadSet) -> tuple[Scope, ...]:
    """The scope of every module, in the order in which ld.so relocates them."""
    starting = search_list(load_set, [0, *_preloads(load_set)])
    global_scope = list(starting)
    scopes = [_scope(load_set, index, starting) for index in relocation_order(load_set, starting)]
    relocated = set(starting)
    for opened in load_set.opened:
        local = search_list(load_set, [opened.module])
        new = [index for index in relocation_order(load_set, local) if index not in relocated]
        relocated.update(new)
        first, second = (local, global_scope) if opened.deepbind else (global_scope, local)
        modules = tuple(dict.fromkeys((*first, *second)))
        scopes += [_scope(load_set, index, modules, deepbind=opened.deepbind) for index in new]
        if opened.global_:
            global_scope += [index for index in local if index not in global_scope]
    return tuple(scopes)


def _preloads(load_set: LoadSet) -> list[int]:
    return [index for index, module in enumerate(load_set.modules) if module.found_by is FoundBy.PRELOAD]


def _scope(load_set: LoadSet, index: int, modules: Sequence[int], *, deepbind: bool = False) -> Scope:
    if load_set.modules[index].image.symbolic and not deepbind:
        modules = tuple(dict.fromkeys((index, *modules)))
    return Scope(index, tuple(modules))


def search_list(load_set: LoadSet, roots: Sequence[int]) -> list[int]:
    """`roots` and all they need, breadth first, each once."""
    found = list(roots)
    listed = set(found)
    for index in found:
        for dependency in load_set.modules[index].dependencies:
            if dependency is not None and dependency not in listed:
                listed.add(dependency)
                found.append(dependency)
    return found


def relocation_order(load_set: LoadSet, modules: Sequence[int]) -> list[int]:
    """`modules` in the order ld.so relocates them: what is needed before what needs it, modules[0] last.

    It matters for STB_GNU_UNIQUE only: the first module relocated decides for the whole process.
    """
    members = set(modules)
    visited: set[int] = set()
    finished: list[int] = []
    for start in reversed(modules):
        # Depth first without recursion: a chain of needs may be longer than Python's stack.
        stack = [(start, iter(load_set.modules[start].dependencies))] if start not in visited else []
        visited.add(start)
        while stack:
            index, rest = stack[-1]
            following = next((d for d in rest if d is not None and d in members and d not in visited), None)
            if following is None:
                finished.append(index)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(load_set.modules[following].dependencies)))
    finished.remove(modules[0])
    return [*finished, modules[0]]


def describe_filters(load_set: LoadSet, indices: Collection[int] | None = None) -> str:
    """Which of the modules (all, or those at `indices`) are filters, and what follows; empty when none is.

    A filter names a library that ld.so loads too, which no load set holds, and looks through before the filter and in
    its place. musl knows no filters. Source: gABI "Dynamic Section", <elf.h> and glibc elf/dl-deps.c.
    """
    if load_set.libc is Libc.MUSL:
        return ""
    return "; ".join(
        f"{module.image.path} is a filter for {', '.join(module.image.filters)} (DT_FILTER or DT_AUXILIARY), "
        "which ld.so would search first and which was not looked at"
        for index, module in enumerate(load_set.modules)
        if module.image.filters and (indices is None or index in indices)
    )
