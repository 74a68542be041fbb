"""The half sentence that helps with a misspelt word. Decides nothing: the word is already known to be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def suggest(word: str, allowed: Iterable[str]) -> str:
    """`did you mean "…"? ` when one of `allowed` is close to `word`, then `allowed: …` with all of them."""
    from difflib import get_close_matches  # wanted only for a message; importing it takes 2 ms

    allowed = list(allowed)
    close = get_close_matches(word, allowed, n=1, cutoff=0.5) if len(word) < 100 else []
    hint = f'did you mean "{close[0]}"? ' if close else ""
    return f"{hint}allowed: {', '.join(allowed)}"
