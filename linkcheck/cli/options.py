"""The options that several commands share: how a process is loaded, and what judges it. It does neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from linkcheck.errors import UsageProblemError
from linkcheck.model import Libc

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., object]")


def loading_options(*, opener: str = "The process") -> Callable[[_Command], _Command]:
    """Add --dlopen, --dlopen-global, --preload, --library-path, --root and --libc to a command.

    `opener` is who opens the libraries, in the help text. A value that is empty raises UsageProblemError.
    """
    options = [
        _several("--dlopen", "P", f"{opener} also opens P, with RTLD_LOCAL. Repeatable."),
        _several("--dlopen-global", "P", "The same with RTLD_GLOBAL. Repeatable."),
        _several("--preload", "P", "P is in LD_PRELOAD. Repeatable."),
        _several("--library-path", "DIR", "Search DIR as LD_LIBRARY_PATH would be. Repeatable."),
        click.option(
            "--root", "sysroot", metavar="DIR", help="Take DIR as the root directory (a sysroot or container tree)."
        ),
        click.option(
            "--libc",
            type=click.Choice(("auto", *(libc.value for libc in Libc))),
            default="auto",
            show_default=True,
            callback=_read_libc,
            help="Whose loader to follow; auto: the one that the program or library was linked for.",
        ),
    ]

    def add_options(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add_options


def external_option(command: _Command) -> _Command:
    """Add --external to a command."""
    text = "The target machine provides SONAME (pattern)."
    return click.option("--external", metavar="SONAME", multiple=True, help=text)(command)


def judging_options(command: _Command) -> _Command:
    """Add --profile and --policy to a command."""
    policy = "Judge by this linkcheck.toml or pyproject.toml; else by the nearest one."
    profile = (
        "Judge by this built-in profile, and by the nearest linkcheck.toml; without either by executorch-caller-stream."
    )
    command = click.option("--policy", metavar="FILE", help=policy)(command)
    return click.option("--profile", metavar="NAME", help=profile)(command)


def selecting_options(command: _Command) -> _Command:
    """Add --select and --ignore to a command, which gets them as tuples of prefixes."""
    command = _prefixes("--ignore", "Not the rules with these code prefixes.")(command)
    return _prefixes("--select", "Only rules with these code prefixes (comma-separated).")(command)


def _several(name: str, metavar: str, help_text: str) -> Callable[[_Command], _Command]:
    return click.option(name, metavar=metavar, multiple=True, callback=_refuse_empty, help=help_text)


def _refuse_empty(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """An empty value is a variable that nothing set; ld.so would take it for the current directory."""
    if "" in values:
        raise UsageProblemError(f"{option.opts[0]}: an empty value names nothing")
    return values


def _read_libc(_: click.Context, __: click.Parameter, value: str) -> Libc | None:
    return None if value == "auto" else Libc(value)


def _prefixes(name: str, help_text: str) -> Callable[[_Command], _Command]:
    return click.option(name, metavar="CODES", multiple=True, callback=_split, help=help_text)


def _split(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The prefixes as they are written, each value a list with commas, blanks around them allowed; one without any,
    such as a variable that nothing set, is refused.
    """
    found: list[str] = []
    for text in values:
        codes = [code.strip() for code in text.split(",") if code.strip()]
        if not codes:
            raise UsageProblemError(f"{option.opts[0]}: an empty value names nothing")
        for code in codes:
            _refuse_name(option.opts[0], code.lower())
        found += codes
    return tuple(found)


def _refuse_name(option: str, word: str) -> None:
    """Raise UsageProblemError, which tells the code, for a rule's name: reports show both, the code selects."""
    if word.startswith("lc"):
        return
    from linkcheck.rules.program_rules import ALL_RULES

    for rule in ALL_RULES:
        if rule.meta.name == word:
            raise UsageProblemError(f"{option}: rules are selected by code: {word} is {rule.meta.code}")
