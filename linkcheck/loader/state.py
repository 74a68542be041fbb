"""How many copies of a piece of shared state one process holds, from its bindings; the right owner is policy's word.

The state is known by the functions that reach it. All of them together count: a library that has copies of only some
of the functions splits the state as surely as one that has all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import bindings
from linkcheck.model import Verdict
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Collection

    from linkcheck.model import Binding, LoadSet


class Judgement(Value):
    """The verdict, and the bindings it was read from. `reason` says what could not be seen (UNKNOWN), or is empty."""

    verdict: Verdict
    bindings: tuple[Binding, ...]
    reason: str = ""

    @property
    def providers(self) -> tuple[int, ...]:
        """The modules whose copy somebody uses, in load order."""
        return tuple(sorted({b.provider for b in self.bindings if b.provider is not None}))

    @property
    def touching(self) -> tuple[int, ...]:
        """The modules that import or define any of the symbols, in load order."""
        return tuple(sorted({b.module for b in self.bindings}))


def judge_state(load_set: LoadSet, symbols: Collection[str]) -> Judgement:
    """The verdict on the state behind `symbols` in this load set.

    ABSENT: nobody defines one that somebody imports, or nobody touches the state at all (then `touching` is empty).
    UNKNOWN: the same, while a file is missing or a symbol table cannot be seen. A weak import that stays unbound
    takes no part. Raises what `bindings` raises.
    """
    found = bindings(load_set, symbols)
    judgement = Judgement(_count(found), found)
    if judgement.verdict is Verdict.SPLIT and any(not opened.global_ for opened in load_set.opened):
        everything_global = replace(load_set, opened=tuple(replace(opened, global_=True) for opened in load_set.opened))
        if _count(bindings(everything_global, symbols)) is Verdict.ONE:
            return replace(judgement, verdict=Verdict.SPLIT_UNLESS_GLOBAL)
    if judgement.verdict in (Verdict.ABSENT, Verdict.ONE) and (reason := _unseen(load_set)):
        return Judgement(Verdict.UNKNOWN, found, reason)
    if judgement.verdict is Verdict.ABSENT and load_set.unresolved:
        missing = ", ".join(dict.fromkeys(unresolved.needed for unresolved in load_set.unresolved))
        return Judgement(Verdict.UNKNOWN, found, f"not found, and it may define them: {missing}")
    return judgement


def _count(found: Collection[Binding]) -> Verdict:
    providers = {binding.provider for binding in found if binding.provider is not None}
    if len(providers) > 1:
        return Verdict.SPLIT
    if any(binding.provider is None and not binding.weak for binding in found) or not providers:
        return Verdict.ABSENT
    return Verdict.ONE


def _unseen(load_set: LoadSet) -> str:
    for module in load_set.modules:
        if reason := module.image.symbols.unseen:
            return f"{module.image.path}: {reason}"
    return ""
