"""Which definitions ld.so cannot replace by another file's, as no relocation leads their uses; it counts no copies.

The symbol tables alone say that a file's own uses of a definition go where ld.so's look-up ends. Uses that the compiler
or the linker has bound (-fno-semantic-interposition, inlining, -Bsymbolic-functions) never ask ld.so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import BindingKind, SymbolBinding
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.model import Binding, LoadSet, Module


class Redirections(Value):
    """Bindings corrected by the relocations, and the modules that this was about."""

    bindings: tuple[Binding, ...]
    #: Modules whose definitions stay their own, because no relocation refers to any of them.
    fixed: tuple[int, ...] = ()
    #: Modules whose relocations cannot be told; their bindings are as the symbol tables say.
    unclear: tuple[int, ...] = ()


def correct_bindings(load_set: LoadSet, found: Sequence[Binding]) -> Redirections:
    """`found` with the definitions of a module bound to itself where no relocation refers to any of them.

    One reference is enough to take all of a module's definitions as replaceable: what it does not use it does not
    refer to either. Only modules with a definition that another module's would replace are asked for relocations. A
    STB_GNU_UNIQUE definition is always left to ld.so. Raises what SymbolTable.referenced raises.
    """
    fixed, unclear = [], []
    for index in dict.fromkeys(b.module for b in found if _is_replaced(b)):
        module = load_set.modules[index]
        names = [b.symbol for b in found if b.module == index and b.kind is BindingKind.DEFINITION]
        names = [name for name in dict.fromkeys(names) if not _is_unique(module, name)]
        if not names:
            continue
        referenced = module.image.symbols.referenced(names)
        if referenced is None:
            unclear.append(index)
        elif not referenced:
            fixed.append(index)
    corrected = tuple(
        replace(b, provider=b.module)
        if b.module in fixed and _is_replaced(b) and not _is_unique(load_set.modules[b.module], b.symbol)
        else b
        for b in found
    )
    return Redirections(corrected, tuple(fixed), tuple(unclear))


def _is_replaced(binding: Binding) -> bool:
    # What the executable holds as a copy of the module's own object is no replacement.
    return (
        binding.kind is BindingKind.DEFINITION
        and binding.provider is not None
        and binding.module not in (binding.provider, binding.copy_of)
    )


def _is_unique(module: Module, name: str) -> bool:
    return any(symbol.binding == SymbolBinding.GNU_UNIQUE for symbol in module.image.symbols.exported(name))
