"""Dynamic string tokens ($ORIGIN, $LIB, $PLATFORM) of RPATH, RUNPATH and NEEDED; it splits no path lists.

Source: gABI "Substitution Sequences" and glibc elf/dl-load.c (is_dst, _dl_dst_substitute).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKENS = ("ORIGIN", "PLATFORM", "LIB")


def expand(text: str, value_of: Callable[[str], str | None]) -> str | None:
    """`text` with its tokens replaced by `value_of` "ORIGIN", "LIB" or "PLATFORM", which is asked only when needed.

    None when a token has no value: ld.so then drops the whole element.
    """
    before, *pieces = text.split("$")
    expanded = [before]
    missing = False
    for piece in pieces:
        token, rest = _split_token(piece)
        value: str | None = "$"
        if token is not None:
            value = value_of(token)
            missing |= value is None
        expanded += [value or "", rest]
    return None if missing else "".join(expanded)


def has_token(name: str) -> bool:
    """Whether `name` has a token in it: where that leads is for the loader to say."""
    return "$" in name and expand(name, lambda _: "") != name


def _split_token(piece: str) -> tuple[str | None, str]:
    """The token that `piece`, which follows a dollar sign, begins with, and the rest; None when it is none."""
    if piece.startswith("{"):
        name, brace, rest = piece[1:].partition("}")
        return (name, rest) if brace and name in _TOKENS else (None, piece)
    for token in _TOKENS:
        if piece.startswith(token):
            # A bare name ends where no letter, digit or underscore follows; the brace ends the other form by itself.
            after = piece[len(token) : len(token) + 1]
            longer = after == "_" or (after.isascii() and after.isalnum())
            return (None, piece) if longer else (token, piece[len(token) :])
    return None, piece
