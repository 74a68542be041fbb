"""What ld.so would bring in for filters, which no load set holds; it follows none of them.

A filter (DT_FILTER, DT_AUXILIARY) names a library that ld.so loads too, and looks through before the filter and in its
place. musl knows no filters. Source: gABI "Dynamic Section", <elf.h> and glibc elf/dl-deps.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Libc

if TYPE_CHECKING:
    from collections.abc import Collection

    from linkcheck.model import LoadSet


def describe_filters(load_set: LoadSet, indices: Collection[int] | None = None) -> str:
    """Which of the modules (all, or those at `indices`) are filters, and what follows; empty when none is."""
    if load_set.libc is Libc.MUSL:
        return ""
    return "; ".join(
        f"{module.image.path} is a filter for {', '.join(module.image.filters)} (DT_FILTER or DT_AUXILIARY), "
        "which ld.so would search first and which was not looked at"
        for index, module in enumerate(load_set.modules)
        if module.image.filters and (indices is None or index in indices)
    )
