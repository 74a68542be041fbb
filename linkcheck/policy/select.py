"""Which rule codes run, given prefixes to select and to ignore. Knows codes as text only, and no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def select_codes(
    codes: Iterable[str],
    *,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    command_line_select: tuple[str, ...] = (),
    command_line_ignore: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Those of `codes` that run, in their order.

    The longest matching prefix decides between `select` (empty: everything) and `ignore`; of two equally long ones
    `ignore` wins. The command line wins over the policy: its `select` takes the place of both of the policy's lists,
    and what only its `ignore` names does not run, however long the policy's prefixes are.
    """
    if command_line_select:
        return tuple(code for code in codes if _runs(code, command_line_select, command_line_ignore))
    return tuple(
        code for code in codes if _runs(code, select, ignore) and _longest_prefix(code, command_line_ignore) < 0
    )


def _runs(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    return _longest_prefix(code, select or ("",)) > _longest_prefix(code, ignore)


def _longest_prefix(code: str, prefixes: tuple[str, ...]) -> int:
    """The length of the longest of `prefixes` that `code` starts with; -1 when there is none."""
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=-1)
