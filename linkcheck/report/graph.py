"""Load sets as graphs of who needs whom: Mermaid and Graphviz DOT. Text only; nothing is laid out here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkcheck.report.printable import printable
from linkcheck.report.tree import list_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import LoadSet

#: What Mermaid or HTML inside a label could take for markup; all else is shown as it is.
_MERMAID_MARKUP = re.compile(r"[^\w ./+@:=,()-]")


def render_graph(load_sets: Sequence[LoadSet], format_name: str) -> str:
    """One graph of all `load_sets` in "mermaid" or "dot".

    An arrow leads from a file to each file it needs; dashed ones are dlopens. What was not found is a node of its own.
    """
    nodes, edges = _collect(load_sets)
    lines = _mermaid(nodes, edges) if format_name == "mermaid" else _dot(nodes, edges)
    return "".join(f"{line}\n" for line in lines)


#: Node key -> (what is written on it, whether it stands for a file that is missing).
_Nodes = dict[tuple[str, str], tuple[str, bool]]
#: From, to -> whether a dlopen made it.
_Edges = dict[tuple[tuple[str, str], tuple[str, str]], bool]


def _collect(load_sets: Sequence[LoadSet]) -> tuple[_Nodes, _Edges]:
    nodes: _Nodes = {}
    edges: _Edges = {}
    for load_set in load_sets:
        keys = [("file", module.image.path) for module in load_set.modules]
        for key in keys:
            nodes.setdefault(key, (key[1], False))
        for key, module in zip(keys, load_set.modules, strict=True):
            for dependency in module.dependencies:
                if dependency is not None:
                    edges.setdefault((key, keys[dependency]), False)
        for opened in load_set.opened:
            if opened.module != opened.by:
                edges.setdefault((keys[opened.by], keys[opened.module]), True)
        for unresolved in list_missing(load_set):
            missing = ("name", unresolved.needed)
            nodes.setdefault(missing, (f"{unresolved.needed}: not found", True))
            edges.setdefault((keys[unresolved.module], missing), False)
    return nodes, edges


def _mermaid(nodes: _Nodes, edges: _Edges) -> Iterator[str]:
    names = {key: f"n{number}" for number, key in enumerate(nodes)}
    yield "flowchart TD"
    for key, (label, missing) in nodes.items():
        text = _MERMAID_MARKUP.sub(lambda match: f"#{ord(match[0])};", printable(label))
        yield f'  {names[key]}["{text}"]{":::missing" if missing else ""}'
    for (start, end), opened in edges.items():
        yield f"  {names[start]} {'-.->' if opened else '-->'} {names[end]}"
    yield "  classDef missing stroke:#c00,stroke-dasharray: 4"


def _dot(nodes: _Nodes, edges: _Edges) -> Iterator[str]:
    names = {key: f"n{number}" for number, key in enumerate(nodes)}
    yield "digraph linkcheck {"
    yield "  node [shape=box];"
    for key, (label, missing) in nodes.items():
        text = printable(label).replace("\\", "\\\\").replace('"', '\\"')
        yield f'  {names[key]} [label="{text}"{", color=red, style=dashed" if missing else ""}];'
    for (start, end), opened in edges.items():
        yield f"  {names[start]} -> {names[end]}{' [style=dashed]' if opened else ''};"
    yield "}"
