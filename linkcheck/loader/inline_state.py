"""Where the variables of C++ functions really are that several files define, each for itself; it counts no copies.

An inline function is compiled into every file that uses it, and each file may call its own. The static variables
inside it are STB_GNU_UNIQUE all the same, as long as nothing hides them: ld.so lets one of them serve the whole
process (glibc elf/dl-lookup.c do_lookup_unique). What reaches the function reaches that one, unless the function hands
out another variable, which each file has for itself: a static one of a hidden type, which `.symtab` names like the
others, or one beside the function, which only its code shows.
Source of the names: Itanium C++ ABI, "Scope Encoding" (`_ZZ <function> E <variable>`).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from linkcheck.loader.lookup import bindings
from linkcheck.loader.state import correct_bindings
from linkcheck.model import SymbolBinding
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.loader.state import Redirections
    from linkcheck.model import LoadSet


def lead_to_variables(load_set: LoadSet, corrected: Redirections) -> Redirections:
    """`corrected` with the uses of each such function bound to the file that holds its variables, where one does.

    Only functions of which uses are bound to several files are asked for variables; each of these files has to export
    the same ones as STB_GNU_UNIQUE, and have no further one in the function. Whether the function's code reaches other
    variables is asked of each of these files; where it does, or that cannot be told, this is a doubt about the result.
    Raises what `bindings` raises.
    """
    variables = _find_variables(load_set, corrected)
    holders = _find_holders(load_set, variables)
    if not holders:
        return corrected
    doubts = (_find_doubt(load_set, function, sorted(variables[function])) for function in holders)
    led = (
        replace(b, provider=holders[b.symbol]) if b.provider is not None and b.symbol in holders else b
        for b in corrected.bindings
    )
    doubt = next((doubt for doubt in doubts if doubt), "")
    return replace(corrected, bindings=tuple(led), doubt=doubt, led=frozenset(holders))


def _find_doubt(load_set: LoadSet, function: str, variables: Sequence[tuple[int, str]]) -> str:
    """Why the state behind `function` may be another variable than those that ld.so merges, or an empty text."""
    for index in dict.fromkeys(index for index, _ in variables):
        image = load_set.modules[index].image
        reached = image.symbols.reaches_own_data(function)
        if reached is not False:
            names = ", ".join(dict.fromkeys(name for _, name in variables))
            why = (
                "also reaches data of its own file"
                if reached
                else "may reach data of its own file, for it cannot be seen"
            )
            return (
                f"{image.path}: {function} {why}, while ld.so merges {names}: if these are the state, name them "
                "instead of the function"
            )
    return ""


def _has_further_variable(load_set: LoadSet, index: int, start: str) -> bool:
    """Whether `.symtab` of the module names a variable of the function that no other file can share.

    Names of variables begin with the length of the name; those of lambdas and of members of local classes do not.
    """
    names = load_set.modules[index].image.symbols.private_with((start,))
    return any(name.startswith(start) and name[len(start) : len(start) + 1].isdigit() for name in names)


def _find_variables(load_set: LoadSet, corrected: Redirections) -> dict[str, set[tuple[int, str]]]:
    """Function -> each file that its uses are bound to, with each of the variables that all of these files export."""
    providers: dict[str, set[int]] = {}
    for binding in corrected.bindings:
        if binding.provider is not None and binding.symbol.startswith("_Z"):
            providers.setdefault(binding.symbol, set()).add(binding.provider)
    several = {function: files for function, files in providers.items() if len(files) > 1}
    unique = {index: _unique_variables(load_set, index) for index in set().union(*several.values())}
    found = {}
    for function, files in several.items():
        start = f"_ZZ{function.removeprefix('_Z')}E"
        names = {tuple(_with_prefix(unique[index], start)) for index in files}
        if len(names) == 1 and (variables := names.pop()):
            if any(_has_further_variable(load_set, index, start) for index in files):
                continue
            found[function] = {(index, name) for index in files for name in variables}
    return found


def _find_holders(load_set: LoadSet, variables: dict[str, set[tuple[int, str]]]) -> dict[str, int]:
    """Function -> the one file whose variables all of its files use; without those that have several."""
    names = {name for used in variables.values() for _, name in used}
    if not names:
        return {}
    uses = correct_bindings(load_set, bindings(load_set, names)).bindings
    holder = {(use.module, use.symbol): use.provider for use in uses}
    found = {}
    for function, used in variables.items():
        holders = {holder.get(one) for one in used}
        if len(holders) == 1 and (only := holders.pop()) is not None:
            found[function] = only
    return found


def _unique_variables(load_set: LoadSet, index: int) -> list[str]:
    symbols = load_set.modules[index].image.symbols.exports()
    return sorted(s.name for s in symbols if s.binding == SymbolBinding.GNU_UNIQUE and s.name.startswith("_ZZ"))


def _with_prefix(names: list[str], start: str) -> Iterator[str]:
    for position in range(bisect_left(names, start), len(names)):
        if not names[position].startswith(start):
            return
        yield names[position]
