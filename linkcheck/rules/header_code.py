"""Whether a state's definitions are what a header puts into every file, by their symbols. It counts no copies.

A header's inline variables and functions, static members of templates and the static variables inside of its functions
have weak or STB_GNU_UNIQUE definitions in every file that uses them (Itanium C++ ABI, "Vague Linkage"). A weak function
need not come from a header: `__attribute__((weak))` gives one to a library's own sources (as NCCL and MPI do, so that a
profiler can take its place), and data that only its own file knows stays with it, whatever ld.so binds the function to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.state import merges_everywhere
from linkcheck.model import SymbolBinding, SymbolType
from linkcheck.rules.wording import owner_text
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from linkcheck.model import Image, LoadSet, Symbol
    from linkcheck.policy.settings import State

_SHARED_BINDINGS = frozenset({SymbolBinding.WEAK, SymbolBinding.GNU_UNIQUE})
_VARIABLES = frozenset({SymbolType.OBJECT, SymbolType.COMMON, SymbolType.TLS})


class Definitions(Value):
    """What the definitions of one state in several files are."""

    #: They are those of a header: where all uses reach one of them there is one copy, whichever file it is in.
    #: None: the symbols do not tell, because these are C++ functions without a variable in sight.
    from_header: bool | None
    #: ld.so makes one of them in every scope and order (glibc elf/dl-lookup.c do_lookup_unique).
    merged: bool


def describe_definitions(load_set: LoadSet, files: Collection[int], names: Sequence[str]) -> Definitions:
    """What the definitions of `names` that the modules `files` export are.

    A variable that the state names is the state itself. A C++ function counts with the variable that is behind it: one
    that the state names, too, or static ones inside of it. No header has a weak C function. A file that exports none of
    `names` has a hidden copy, of which no header is known.
    """
    defined = {index: _list_definitions(load_set.modules[index].image, names) for index in files}
    bindings = {symbol.binding for symbols in defined.values() for symbol in symbols}
    merged = bool(bindings) and merges_everywhere(load_set, files, names)
    if not bindings or not all(defined.values()) or not bindings <= _SHARED_BINDINGS:
        return Definitions(False, merged)
    if any(not _may_be_inline(symbol) for symbols in defined.values() for symbol in symbols):
        return Definitions(False, merged)
    in_sight = all(_shows_variables(load_set.modules[index].image, symbols) for index, symbols in defined.items())
    return Definitions(True if in_sight else None, merged)


def header_remedy(state: State, definitions: Definitions) -> str:
    """How to have what a header defines in the owner of `state` alone; no link line changes where it is."""
    owner = owner_text(state)
    text = (
        "Every file that includes the header has a definition of its own, whatever it is linked with. For one in "
        f"{owner} alone, only declare it in the header, and define it in one source file of {owner}."
    )
    if definitions.merged:
        return text
    return f"{text} Of C++ variables that g++ exports, and builds without -fno-gnu-unique, glibc makes one copy."


def _list_definitions(image: Image, names: Sequence[str]) -> list[Symbol]:
    return [symbol for name in names for symbol in image.symbols.exported(name)]


def _may_be_inline(symbol: Symbol) -> bool:
    return symbol.type in _VARIABLES or symbol.name.startswith("_Z")


def _shows_variables(image: Image, symbols: Sequence[Symbol]) -> bool:
    """Whether one of `symbols` is a variable, or each of them has static ones that others can be led to."""
    if any(symbol.type in _VARIABLES for symbol in symbols):
        return True
    inside = [s.name for s in image.symbols.exports() if s.binding in _SHARED_BINDINGS and s.name.startswith("_ZZ")]
    starts = (f"_ZZ{symbol.name.removeprefix('_Z')}E" for symbol in symbols)
    return all(any(name.startswith(start) for name in inside) for start in starts)
