"""What every import of a process binds to, as JSON (schemas/bindings-1.json) or text. Looks nothing up itself."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from linkcheck.model import BindingKind, Libc
from linkcheck.report.printable import defuse_commands, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Binding, LoadSet, Module

#: The values of `bindings --format`, the default first.
BINDINGS_FORMATS = ("text", "json")
#: A change that an old reader would misread makes this the next number, with a schema file of its own.
SCHEMA = "linkcheck/bindings/1"


def render_bindings(load_set: LoadSet, bindings: Sequence[Binding], format_name: str) -> str:
    """`bindings` of `load_set` in one of BINDINGS_FORMATS, ending in a line feed."""
    if format_name == "json":
        from linkcheck.report.json_document import dump_json

        return dump_json(describe_bindings(load_set, bindings))
    return "".join(f"{defuse_commands(line)}\n" for line in _list_lines(load_set, bindings))


def describe_bindings(load_set: LoadSet, bindings: Sequence[Binding]) -> dict[str, object]:
    """The values of the JSON document."""
    paths = [module.image.path for module in load_set.modules]
    return {
        "schema": SCHEMA,
        "root": paths[0],
        **({} if load_set.libc is Libc.GLIBC else {"libc": load_set.libc.value}),
        "modules": [_describe_module(module, paths) for module in load_set.modules],
        "unresolved": [{"module": paths[u.module], "needed": u.needed} for u in load_set.unresolved],
        "bindings": [
            {
                "module": paths[binding.module],
                "symbol": binding.symbol,
                "version": binding.version,
                "kind": binding.kind.value,
                "provider": None if binding.provider is None else paths[binding.provider],
                **({"unversioned": True} if binding.unversioned else {}),
            }
            for binding in bindings
        ],
    }


def _describe_module(module: Module, paths: Sequence[str]) -> dict[str, object]:
    return {
        "path": module.image.path,
        "soname": module.image.soname,
        "needed_by": None if module.needed_by is None else paths[module.needed_by],
        "found_by": module.found_by.value,
        "scope": module.scope,
    }


def _list_lines(load_set: LoadSet, bindings: Sequence[Binding]) -> Iterator[str]:
    """One paragraph a module, one line a binding."""
    for index, group in groupby(bindings, key=lambda binding: binding.module):
        yield printable(load_set.modules[index].image.path)
        for binding in group:
            yield f"  {_describe(load_set, binding)}"
    for unresolved in load_set.unresolved:
        requester = load_set.modules[unresolved.module].image.path
        yield f"not found: {printable(unresolved.needed)} (needed by {printable(requester)})"
    if not bindings:
        yield "no symbol table of this process imports or defines it (.dynsym, and .symtab where there is one)"


def _describe(load_set: LoadSet, binding: Binding) -> str:
    name = binding.symbol if binding.version is None else f"{binding.symbol}@{binding.version}"
    verb = {BindingKind.IMPORT: "imports", BindingKind.DEFINITION: "defines", BindingKind.HIDDEN: "keeps for itself"}
    text = f"{verb[binding.kind]} {printable(name)}"
    if binding.slot:
        return f"{text} -> nothing (weak, but its address is a slot of this program, and a call of it crashes)"
    if binding.provider is None:
        return f"{text} -> nothing (weak, so its address is 0)" if binding.weak else f"{text} -> not found"
    if binding.kind is BindingKind.HIDDEN or (
        binding.kind is BindingKind.DEFINITION and binding.provider == binding.module
    ):
        return text
    text += f" -> {printable(load_set.modules[binding.provider].image.path)}"
    return f"{text} (which has no versions: glibc before 2.41 ends here)" if binding.unversioned else text
