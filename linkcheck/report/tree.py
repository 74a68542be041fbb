"""Load sets as JSON (schemas/tree-1.json) or as a text tree: who was loaded, for whom, and why that file. No graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import FoundBy, Libc
from linkcheck.report.printable import defuse_commands, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Attempt, LoadSet, Module, Unresolved

#: The values of `tree --format`, the default first.
TREE_FORMATS = ("text", "json", "mermaid", "dot")
#: A change that an old reader would misread makes this the next number, with a schema file of its own.
SCHEMA = "linkcheck/tree/1"

#: Requesters of one module that a line of text names before it only counts them.
_LONGEST_LIST = 4
_FOUND_BY = {
    FoundBy.ROOT: "the root",
    FoundBy.DLOPEN: "dlopen",
    FoundBy.PRELOAD: "LD_PRELOAD",
    FoundBy.PATH: "the path in the name",
    FoundBy.RPATH: "DT_RPATH",
    FoundBy.LIBRARY_PATH: "LD_LIBRARY_PATH",
    FoundBy.RUNPATH: "DT_RUNPATH",
    FoundBy.CACHE: "ld.so.cache",
    FoundBy.DEFAULT: "a default directory",
    FoundBy.INTERPRETER: "the loader itself",
    FoundBy.MAPPED: "mapped by the process",
}


def render_trees(load_sets: Sequence[LoadSet], format_name: str, *, tried: bool = False) -> str:
    """`load_sets` in one of TREE_FORMATS, ending in a line feed.

    `tried` adds to the text every path that was looked at in vain; without it only those where a file was passed
    over. The other formats do not change: JSON always has all of them, the graphs none.
    """
    if format_name == "json":
        from linkcheck.report.json_document import dump_json

        return dump_json({"schema": SCHEMA, "trees": [describe_tree(load_set) for load_set in load_sets]})
    if format_name in ("mermaid", "dot"):
        from linkcheck.report.graph import render_graph

        return render_graph(load_sets, format_name)
    blocks = ("".join(f"{defuse_commands(line)}\n" for line in _draw(one, tried=tried)) for one in load_sets)
    return "\n".join(blocks)


def list_requesters(load_set: LoadSet) -> list[list[int]]:
    """For each module the indices of all that need it, in load order; the first need not be the one it came for."""
    found: list[list[int]] = [[] for _ in load_set.modules]
    for index, module in enumerate(load_set.modules):
        for dependency in dict.fromkeys(module.dependencies):
            if dependency is not None:
                found[dependency].append(index)
    return found


def list_missing(load_set: LoadSet) -> tuple[Unresolved, ...]:
    """The root's interpreter, when the kernel cannot start it, and all that the loader would not find."""
    return load_set.unresolved if load_set.interpreter is None else (load_set.interpreter, *load_set.unresolved)


def describe_tree(load_set: LoadSet) -> dict[str, object]:
    """The values of the JSON for one process."""
    paths = [module.image.path for module in load_set.modules]
    requesters = list_requesters(load_set)
    return {
        "root": paths[0],
        "libc": load_set.libc.value,
        "modules": [
            {
                "path": module.image.path,
                "soname": module.image.soname,
                "requested_as": module.requested_as,
                "found_by": module.found_by.value,
                "needed_by": None if module.needed_by is None else paths[module.needed_by],
                "requesters": [paths[index] for index in requesters[number]],
                "loaded_for": paths[module.loaded_for],
                "scope": module.scope,
                "tried": [_describe_attempt(attempt) for attempt in module.tried],
                "may_open": [
                    {
                        "sonames": list(note.sonames),
                        "priority": note.priority,
                        "feature": note.feature,
                        "description": note.description,
                        "path": None if opened is None else paths[opened],
                    }
                    for note, opened in zip(module.image.dlopen_notes, module.noted, strict=True)
                ],
                "needed": [
                    {"name": name, "path": None if index is None else paths[index]}
                    for name, index in zip(module.image.needed, module.dependencies, strict=False)
                ],
            }
            for number, module in enumerate(load_set.modules)
        ],
        "unresolved": [
            {
                "module": paths[unresolved.module],
                "needed": unresolved.needed,
                "directories": list(unresolved.directories),
                "rejected": [_describe_attempt(attempt) for attempt in unresolved.rejected],
                "elsewhere": list(unresolved.elsewhere),
                "similar": list(unresolved.similar),
            }
            for unresolved in list_missing(load_set)
        ],
        "opened": [
            {"path": paths[opened.module], "global": opened.global_, "deepbind": opened.deepbind}
            for opened in load_set.opened
        ],
    }


def _describe_attempt(attempt: Attempt) -> dict[str, object]:
    return {"path": attempt.path, "found_by": attempt.found_by.value, "reason": attempt.reason}


def _draw(load_set: LoadSet, *, tried: bool) -> Iterator[str]:
    """The root, below each module what was loaded for it, and then what was preloaded or opened by dlopen."""
    requesters = list_requesters(load_set)
    children: list[list[int]] = [[] for _ in load_set.modules]
    tops = [0]
    for index, module in enumerate(load_set.modules[1:], 1):
        if module.needed_by is None:
            tops.append(index)
        else:
            children[module.needed_by].append(index)
    missing: list[list[Unresolved]] = [[] for _ in load_set.modules]
    for unresolved in list_missing(load_set):
        missing[unresolved.module].append(unresolved)
    told: set[str] = set()
    stack: list[tuple[int | Unresolved, str, str]] = [(top, "", "") for top in reversed(tops)]
    while stack:
        node, lead, stem = stack.pop()
        if not isinstance(node, int):
            yield from _draw_missing(node, lead, stem, told)
            continue
        module = load_set.modules[node]
        below: list[int | Unresolved] = [*children[node], *missing[node]]
        bar = "│  " if below else "   "
        yield lead + _head(load_set, node)
        for line in (*_notes(load_set, module, requesters[node], tried=tried), *_may_open(load_set, module)):
            yield f"{stem}{bar} {line}"
        for position, child in enumerate(reversed(below)):
            stack.append((child, stem + ("└─ " if not position else "├─ "), stem + ("   " if not position else "│  ")))


def _head(load_set: LoadSet, index: int) -> str:
    module = load_set.modules[index]
    path = printable(module.image.path)
    if module.found_by is FoundBy.ROOT:
        return path if load_set.libc is Libc.GLIBC else f"{path} [with the loader of {load_set.libc.value}]"
    how = _FOUND_BY[module.found_by]
    if module.found_by is FoundBy.DLOPEN:
        how += f", {module.scope}"
    if module.requested_as == module.image.path:
        return f"{path} [{how}]"
    return f"{printable(module.requested_as)} => {path} [{how}]"


def _notes(load_set: LoadSet, module: Module, requesters: Sequence[int], *, tried: bool) -> Iterator[str]:
    for attempt in module.tried:
        if tried or attempt.reason != "absent":
            yield f"tried {printable(attempt.path)}: {printable(attempt.reason)}"
    others = [index for index in requesters if index != module.needed_by]
    if others:
        names = [printable(load_set.modules[index].image.name) for index in others[:_LONGEST_LIST]]
        more = f" and {len(others) - len(names)} more" if len(others) > len(names) else ""
        yield f"also for {', '.join(names)}{more}"


def _may_open(load_set: LoadSet, module: Module) -> Iterator[str]:
    for note, opened in zip(module.image.dlopen_notes, module.noted, strict=True):
        names, feature = " or ".join(map(printable, note.sonames)), f", for {note.feature}" if note.feature else ""
        where = "not found" if opened is None else f"loaded as {load_set.modules[opened].image.name}"
        yield f"may open {names} ({note.priority}{printable(feature)}): {printable(where)}"


def _draw_missing(unresolved: Unresolved, lead: str, stem: str, told: set[str]) -> Iterator[str]:
    """The lines of what was not found; why a search says nothing is told once, `told` remembers it."""
    unusable = bool(unresolved.rejected) and unresolved.rejected[-1].found_by is FoundBy.INTERPRETER
    reason = ""
    if unresolved.given_up:
        reason = " (as above)" if unresolved.given_up in told else f": {unresolved.given_up}"
        told.add(unresolved.given_up)
    yield f"{lead}{printable(unresolved.needed)} => {'not usable' if unusable else 'not found'}{reason}"
    for attempt in unresolved.rejected:
        yield f"{stem}    {printable(attempt.path)}: {printable(attempt.reason)}"
    for directory in unresolved.directories:
        yield f"{stem}    not in {printable(directory)}"
    if unresolved.cache_fault:
        yield f"{stem}    nor looked up in {printable(unresolved.cache_fault)}"
    for path in unresolved.elsewhere:
        yield f"{stem}    there is {printable(path)}{'' if unresolved.given_up else ', which no search path reaches'}"
    for path in unresolved.similar:
        yield f"{stem}    there is {printable(path)}, of another name"
