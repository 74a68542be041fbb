"""How many copies of a piece of shared state one process holds, from its bindings; the right owner is policy's word.

The state is known by the functions that reach it. All of them together count: a library that has copies of only some
of the functions splits the state as surely as one that has all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import bindings, pick_definition, version_name
from linkcheck.loader.scope import describe_filters
from linkcheck.model import BindingKind, Libc, SymbolBinding, Verdict, Visibility
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from linkcheck.model import Binding, LoadSet, Module


class Judgement(Value):
    """The verdict, and the bindings it was read from. `reason` says what could not be seen (UNKNOWN), or is empty.

    A use of an object that the executable holds as a copy (Binding.copy_of) counts as one of the module it is copied
    from where everybody uses the copy. Other names of that object count, whether they were asked for or not.
    """

    verdict: Verdict
    bindings: tuple[Binding, ...]
    reason: str = ""
    #: Modules whose definitions others would replace, if a relocation of theirs referred to one: whatever uses of them
    #: there are inside stay there, but perhaps there are none.
    fixed: tuple[int, ...] = ()
    #: Why uses that all end up in one file may reach two variables all the same; the verdict is then UNKNOWN.
    doubt: str = ""
    #: UNKNOWN only because a file is missing: everything else was seen.
    incomplete: bool = False
    #: The names of missing libraries with which uses that end up in several files may all end up in one.
    mergers: tuple[str, ...] = ()

    @property
    def providers(self) -> tuple[int, ...]:
        """The modules whose copy somebody uses, in load order."""
        return tuple(sorted({b.provider for b in self.bindings if b.provider is not None}))

    @property
    def touching(self) -> tuple[int, ...]:
        """The modules that import or define any of the symbols, in load order."""
        return tuple(sorted({b.module for b in self.bindings}))


def judge_state(load_set: LoadSet, symbols: Collection[str], *, hidden: bool = True) -> Judgement:
    """The verdict on the state behind `symbols` in this load set.

    ABSENT: nobody defines one that somebody imports, or nobody touches the state at all (then `touching` is empty).
    UNKNOWN: the same, while a file is missing or a symbol table cannot be seen; what would be ONE, but is used in
    several versions, or hangs on relocations that cannot be read; and what is SPLIT, but perhaps not with what is
    missing. In a load set with a filter everything is UNKNOWN.
    A weak import that stays unbound takes no part, unless it is a program's with a slot of its own; nor, without
    `hidden`, does a definition that only its own file can use. Raises what `bindings` raises.
    """
    corrected = _bind(load_set, symbols, hidden)
    judgement = Judgement(_count(corrected), tuple(lead_to_sources(corrected)), "", corrected.fixed)
    if reason := describe_filters(load_set):
        return replace(judgement, verdict=Verdict.UNKNOWN, reason=reason)
    if judgement.verdict is Verdict.SPLIT and load_set.unresolved:
        from linkcheck.loader.mergers import find_mergers

        if mergers := find_mergers(load_set, corrected):
            names = tuple(dict.fromkeys(unresolved.needed for unresolved in mergers))
            reason = f"not found, and the uses may all end up in one file with it: {', '.join(names)}"
            return replace(judgement, verdict=Verdict.UNKNOWN, reason=reason, incomplete=True, mergers=names)
    if judgement.verdict is Verdict.SPLIT and any(not opened.global_ for opened in load_set.opened):
        everything_global = replace(load_set, opened=tuple(replace(opened, global_=True) for opened in load_set.opened))
        if _count(_bind(everything_global, symbols, hidden)) is Verdict.ONE:
            return replace(judgement, verdict=Verdict.SPLIT_UNLESS_GLOBAL)
    if judgement.verdict in (Verdict.ABSENT, Verdict.ONE) and (reason := _unseen(load_set)):
        return replace(judgement, verdict=Verdict.UNKNOWN, reason=reason)
    if judgement.verdict in (Verdict.ABSENT, Verdict.ONE) and (doubt := _find_doubt(load_set, corrected)):
        return replace(judgement, verdict=Verdict.UNKNOWN, reason=doubt, doubt=doubt)
    if judgement.verdict is Verdict.ABSENT and load_set.unresolved:
        missing = ", ".join(dict.fromkeys(unresolved.needed for unresolved in load_set.unresolved))
        reason = f"not found, and it may define them: {missing}"
        return replace(judgement, verdict=Verdict.UNKNOWN, reason=reason, incomplete=True)
    return judgement


def _bind(load_set: LoadSet, symbols: Collection[str], hidden: bool) -> Redirections:
    known = bindings(load_set, symbols)
    found = correct_bindings(load_set, [b for b in known if hidden or b.kind is not BindingKind.HIDDEN])
    if load_set.root.is_executable and found.bindings:
        from linkcheck.loader.copied_state import separate_copies

        found = separate_copies(load_set, found, symbols)
    if _count(found) is not Verdict.SPLIT:
        return found
    from linkcheck.loader.inline_state import lead_to_variables

    return lead_to_variables(load_set, found)


def lead_to_sources(corrected: Redirections) -> Sequence[Binding]:
    """The bindings with the uses of an executable's copy of an object bound to the module that it is copied from.

    The two are one object unless somebody still uses the module's own (Redirections.apart).
    """
    return [
        b if b.copy_of is None or b.symbol in corrected.apart else replace(b, provider=b.copy_of)
        for b in corrected.bindings
    ]


def _count(corrected: Redirections) -> Verdict:
    found = lead_to_sources(corrected)
    providers = {binding.provider for binding in found if binding.provider is not None}
    if len(providers) > 1:
        return Verdict.SPLIT
    if any(binding.provider is None and (binding.slot or not binding.weak) for binding in found) or not providers:
        return Verdict.ABSENT
    return Verdict.ONE


def _find_doubt(load_set: LoadSet, corrected: Redirections) -> str:
    unclear = (load_set.modules[index].image.path for index in corrected.unclear)
    lines = [f"{path}: its relocations cannot be read as a whole, so its uses may stay inside it" for path in unclear]
    return "; ".join(lines) or corrected.doubt or _several_versions(load_set, corrected.bindings)


def _several_versions(load_set: LoadSet, found: Collection[Binding]) -> str:
    """How uses are spread over several versions of one file's symbols, or an empty text.

    Versions with one address are one definition. What a file does with its own versions cannot be told from its tables.
    """
    used: dict[int, set[str | None]] = {}
    for use in found:
        if use.provider is None or (use.provider == use.module and use.kind is not BindingKind.IMPORT):
            continue
        definitions = load_set.modules[use.provider].image.symbols.exported(use.symbol)
        if len({symbol.value for symbol in definitions}) > 1:
            symbol = pick_definition(load_set, use.provider, use.symbol, use.version)
            if symbol is not None:
                used.setdefault(use.provider, set()).add(version_name(symbol))
    for provider, versions in used.items():
        if len(versions) > 1:
            listed = " and ".join(sorted(version or "no version" for version in versions))
            return (
                f"{load_set.modules[provider].image.path} defines the symbols in several versions, and uses are bound "
                f"to {listed}: whether these share one variable cannot be seen"
            )
    return ""


def _unseen(load_set: LoadSet) -> str:
    for module in load_set.modules:
        if reason := module.image.symbols.unseen:
            return f"{module.image.path}: {reason}"
    return ""


class Redirections(Value):
    """Bindings corrected by the relocations, and the modules that this was about."""

    bindings: tuple[Binding, ...]
    #: Modules whose definitions stay their own, because no relocation refers to any of them.
    fixed: tuple[int, ...] = ()
    #: Modules whose relocations cannot be told; their bindings are as the symbol tables say.
    unclear: tuple[int, ...] = ()
    #: Why uses that are all bound to one file may reach several variables, or empty.
    doubt: str = ""
    #: Names of objects of which the executable has a copy, while somebody uses the one it is copied from.
    apart: frozenset[str] = frozenset()
    #: Inline functions whose uses are bound to the file that holds the variables in them, and not to their own.
    led: frozenset[str] = frozenset()


def correct_bindings(load_set: LoadSet, found: Sequence[Binding]) -> Redirections:
    """`found` with the definitions of a module bound to itself where no relocation refers to any of them.

    One reference is enough to take all of a module's definitions as replaceable: what it does not use it does not
    refer to either. Only modules with a definition that another module's would replace are asked for relocations.
    `bindings` has asked for those of STB_GNU_UNIQUE names already, for each name by itself; of these, a definition that
    its file does not refer to, while it refers to others of them, is left out.

    The symbol tables alone say that a file's own uses of a definition go where ld.so's look-up ends. Uses that the
    compiler or the linker has bound (-fno-semantic-interposition, inlining, -Bsymbolic-functions) never ask ld.so.
    Raises what SymbolTable.referenced raises.
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
    idle: set[tuple[int, str]] = set()
    for index, unique in _list_shared_unique(load_set, found).items():
        referenced = load_set.modules[index].image.symbols.referenced(unique)
        if referenced is None:
            unclear.append(index)
        elif not referenced:
            fixed.append(index)
        else:
            idle.update((index, name) for name in unique if name not in referenced)
    corrected = tuple(
        replace(b, provider=b.module)
        if b.module in fixed and _is_replaced(b) and not _is_unique(load_set.modules[b.module], b.symbol)
        else b
        for b in found
        if b.kind is not BindingKind.DEFINITION or (b.module, b.symbol) not in idle
    )
    return Redirections(corrected, tuple(dict.fromkeys(fixed)), tuple(dict.fromkeys(unclear)))


def merges_everywhere(load_set: LoadSet, modules: Collection[int], symbols: Collection[str]) -> bool:
    """Whether ld.so makes one of the definitions of `symbols` in `modules`, in whatever order and scope they come.

    It does where all are STB_GNU_UNIQUE and each file leaves its own uses to ld.so. An executable does not, nor does a
    file with a protected definition. Raises what SymbolTable.referenced raises.
    """
    for index in {0, *modules}:
        image = load_set.modules[index].image
        defined = [symbol for name in symbols for symbol in image.symbols.exported(name)]
        if any(
            image.is_executable
            or symbol.binding != SymbolBinding.GNU_UNIQUE
            or symbol.visibility is not Visibility.DEFAULT
            for symbol in defined
        ):
            return False
        names = {symbol.name for symbol in defined}
        if set(image.symbols.referenced(names) or ()) != names:
            return False
    return load_set.libc is Libc.GLIBC


def _list_shared_unique(load_set: LoadSet, found: Sequence[Binding]) -> dict[int, list[str]]:
    """Libraries -> their STB_GNU_UNIQUE definitions that others have, too, and that their linker could have bound."""
    definers: dict[str, set[int]] = {}
    for b in found:
        if b.kind is BindingKind.DEFINITION:
            definers.setdefault(b.symbol, set()).add(b.module)
    listed: dict[int, list[str]] = {}
    for b in found:
        if b.kind is BindingKind.DEFINITION and len(definers[b.symbol]) > 1:
            image = load_set.modules[b.module].image
            symbols = () if image.is_executable else image.symbols.exported(b.symbol)
            if any(s.binding == SymbolBinding.GNU_UNIQUE and s.visibility is Visibility.DEFAULT for s in symbols):
                listed.setdefault(b.module, []).append(b.symbol)
    return listed


def _is_replaced(binding: Binding) -> bool:
    # What the executable holds as a copy of the module's own object is no replacement.
    return (
        binding.kind is BindingKind.DEFINITION
        and binding.provider is not None
        and binding.module not in (binding.provider, binding.copy_of)
    )


def _is_unique(module: Module, name: str) -> bool:
    return any(symbol.binding == SymbolBinding.GNU_UNIQUE for symbol in module.image.symbols.exported(name))
