"""What messages call the owner library of a state. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.policy.settings import ROOT_OWNER

if TYPE_CHECKING:
    from linkcheck.policy.settings import State


def owner_libraries(state: State) -> tuple[str, ...]:
    """The SONAME patterns of the libraries that may own `state`; empty when only the executable may."""
    return tuple(pattern for pattern in state.owner if pattern != ROOT_OWNER)


def owner_names(state: State) -> tuple[str, ...]:
    """The SONAMEs to show: those without wildcards, or, when every pattern has one, what stands before it."""
    patterns = owner_libraries(state)
    plain = tuple(pattern for pattern in patterns if not _has_wildcard(pattern))
    return plain or tuple(_before_wildcard(pattern) for pattern in patterns)


def _has_wildcard(pattern: str) -> bool:
    return any(c in pattern for c in "*?[")


def _before_wildcard(pattern: str) -> str:
    """`libfoo.so` for `libfoo.so*` and `libfoo.so.[0-9]*`; the pattern itself when nothing useful stands before."""
    end = min(pattern.index(c) for c in "*?[" if c in pattern)
    return pattern[:end].rstrip(".") or pattern
