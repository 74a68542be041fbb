"""Whether an executable's copy of an object (R_*_COPY) is what everybody uses; it counts no other copies of a state.

ld.so fills the room in the executable with the object's first value, and leads to it what asks for one of the names
that the executable exports for the room. Who asks for another name of the object gets the library's own, and so do uses
inside that library that its linker has bound. An object is its address: names at one address are one object.

Source: gABI "Symbol Table"; the System V ABI processor supplements ("Relocation Types", R_*_COPY).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import bindings, pick_definition
from linkcheck.model import BindingKind
from linkcheck.model.symbols import is_object
from linkcheck.text import unique
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Collection

    from linkcheck.loader.state import Redirections
    from linkcheck.model import Binding, LoadSet


class _Object(Value):
    """An object of a library of which the executable has a copy."""

    owner: int
    address: int
    size: int
    #: The names among the bindings under which the executable has it.
    copied: tuple[str, ...]
    #: All names under which the library exports it.
    names: tuple[str, ...]


def separate_copies(load_set: LoadSet, corrected: Redirections, symbols: Collection[str]) -> Redirections:
    """`corrected` with the names in `apart` of the objects whose own storage somebody uses beside the copy.

    Uses by further names than `symbols` that lead to that storage are added. Where no relocation of the library refers
    to the object under any name, its own uses reach its own storage, if there are any; whether there are is read from
    its code, and a doubt where that cannot tell. Raises what `bindings` and SymbolTable.referenced raise.
    """
    found = corrected
    known = symbols
    if others := _list_other_names(load_set, corrected, symbols):
        found = replace(found, bindings=(*found.bindings, *bindings(load_set, others, private=False)))
        known = (*symbols, *others)
    for one in _list_objects(load_set, found):
        found = _separate(load_set, found, one, known)
    return found


def _list_other_names(load_set: LoadSet, corrected: Redirections, symbols: Collection[str]) -> tuple[str, ...]:
    """Under which names the executable has copies of objects that uses reach by `symbols`, beside these."""
    program = load_set.root.symbols
    has_copies: bool | None = None
    found: list[str] = []
    for provider, name, version in dict.fromkeys((b.provider, b.symbol, b.version) for b in corrected.bindings):
        if provider:
            definition = pick_definition(load_set, provider, name, version)
            if definition is not None and is_object(definition.type, definition.size):
                if has_copies is None:
                    has_copies = bool(program.copy_demands(weak=True))
                if has_copies:
                    table = load_set.modules[provider].image.symbols
                    found += program.copied(table.objects_at(definition.value))
    return tuple(name for name in unique(found) if name not in symbols)


def _list_objects(load_set: LoadSet, corrected: Redirections) -> list[_Object]:
    copied: dict[tuple[int, int], list[str]] = {}
    sizes: dict[tuple[int, int], int] = {}
    for b in corrected.bindings:
        if b.copy_of is not None and b.module == 0:
            source = pick_definition(load_set, b.copy_of, b.symbol, b.version)
            # A name that the library lacks is one of an object that it has under the name in the relocation.
            if source is not None:
                place = (b.copy_of, source.value)
                copied.setdefault(place, []).append(b.symbol)
                sizes[place] = max(source.size, sizes.get(place, 0))
    found = []
    for (owner, address), names in copied.items():
        every = unique((*names, *load_set.modules[owner].image.symbols.objects_at(address)))
        found.append(_Object(owner, address, sizes[owner, address], unique(names), every))
    return found


def _separate(load_set: LoadSet, corrected: Redirections, one: _Object, symbols: Collection[str]) -> Redirections:
    further = [name for name in one.names if name not in symbols]
    uses = (*corrected.bindings, *bindings(load_set, further, private=False))
    own = [b for b in uses if _is_own(load_set, b, one)]
    # -Bsymbolic and protected visibility keep a copied name inside, whatever the relocations are.
    separate = [b for b in own if b.module != one.owner or b.symbol in one.copied]
    idle = [b for b in own if b not in separate]
    table = load_set.modules[one.owner].image.symbols
    known = corrected
    if not any(b.module == one.owner for b in separate):
        referenced = table.referenced(one.names)
        if referenced is None:
            known = replace(known, unclear=tuple(dict.fromkeys((*known.unclear, one.owner))))
        elif referenced:
            separate += [b for b in idle if b.symbol in referenced]
            idle = [b for b in idle if b.symbol not in referenced]
        elif reaches := table.reaches_object(one.address, one.size):
            known = _keep_inside(known, one)
        elif reaches is None:
            known = replace(known, doubt=known.doubt or _describe(load_set, one))
    kept = [b for b in known.bindings if b not in idle]
    kept += [b for b in separate if b.symbol in further]
    apart = known.apart.union(one.copied) if separate else known.apart
    return replace(known, bindings=tuple(kept), apart=apart)


def _keep_inside(corrected: Redirections, one: _Object) -> Redirections:
    """`corrected` with the library's uses of the object under its copied names bound to its own storage."""
    kept = (
        replace(b, provider=one.owner, copy_of=None) if b.module == one.owner and b.symbol in one.copied else b
        for b in corrected.bindings
    )
    return replace(
        corrected,
        bindings=tuple(kept),
        fixed=tuple(dict.fromkeys((*corrected.fixed, one.owner))),
        apart=corrected.apart.union(one.copied),
    )


def _is_own(load_set: LoadSet, binding: Binding, one: _Object) -> bool:
    """Whether a use ends up at the library's own storage of the object."""
    if binding.provider != one.owner or binding.symbol not in one.names:
        return False
    if binding.kind is BindingKind.HIDDEN:
        return False
    definition = pick_definition(load_set, one.owner, binding.symbol, binding.version)
    return binding.symbol in one.copied or (definition is not None and definition.value == one.address)


def _describe(load_set: LoadSet, one: _Object) -> str:
    owner, program = load_set.modules[one.owner].image.path, load_set.root.path
    return (
        f"{owner}: no relocation refers to {one.copied[0]}, of which {program} has a copy (R_*_COPY): uses inside this "
        "file, if there are any, which cannot be seen, reach another object than the copy"
    )
