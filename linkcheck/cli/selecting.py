"""The options that say which rules run, for the commands that run several. Knows no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., object]")


def selecting_options(command: _Command) -> _Command:
    """Add --select and --ignore to a command, which gets them as tuples of prefixes."""
    command = _prefixes("--ignore", "Not the rules with these code prefixes.")(command)
    return _prefixes("--select", "Only rules with these code prefixes (comma-separated).")(command)


def _prefixes(name: str, help_text: str) -> Callable[[_Command], _Command]:
    return click.option(name, metavar="CODES", multiple=True, callback=_split, help=help_text)


def _split(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The prefixes, each value a list with commas; one without any, such as a variable that nothing set, is refused."""
    found: list[str] = []
    for text in values:
        codes = [code for code in text.split(",") if code.strip()]
        if not codes:
            from linkcheck.errors import UsageProblemError

            raise UsageProblemError(f"{option.opts[0]}: an empty value names nothing")
        found += codes
    return tuple(found)
