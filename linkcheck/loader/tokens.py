"""Dynamic string tokens ($ORIGIN, $LIB, $PLATFORM) of RPATH, RUNPATH and NEEDED; it splits no path lists.

Source: gABI "Substitution Sequences" and glibc elf/dl-load.c (is_dst, _dl_dst_substitute).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A bare name ends where no letter, digit or underscore follows; the brace ends the other form by itself.
_SUBSTITUTION = r"\$(?:\{(ORIGIN|PLATFORM|LIB)\}|(ORIGIN|PLATFORM|LIB)(?![A-Za-z0-9_]))"


def expand(text: str, value_of: Callable[[str], str | None]) -> str | None:
    """`text` with its tokens replaced by `value_of` "ORIGIN", "LIB" or "PLATFORM", which is asked only when needed.

    None when a token has no value: ld.so then drops the whole element.
    """
    if "$" not in text:
        return text
    missing = False

    def replace(match: re.Match[str]) -> str:
        nonlocal missing
        value = value_of(match[1] or match[2])
        missing |= value is None
        return value or ""

    expanded = re.sub(_SUBSTITUTION, replace, text)
    return None if missing else expanded
