"""The options that say how a process is loaded, for the commands that show it. Loads nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., object]")

_OPTIONS = (
    click.option("--dlopen", metavar="P", multiple=True, help="The process also opens P, with RTLD_LOCAL. Repeatable."),
    click.option("--dlopen-global", metavar="P", multiple=True, help="The same with RTLD_GLOBAL. Repeatable."),
    click.option("--preload", metavar="P", multiple=True, help="P is in LD_PRELOAD. Repeatable."),
    click.option(
        "--library-path", metavar="DIR", multiple=True, help="Search DIR as LD_LIBRARY_PATH would be. Repeatable."
    ),
    click.option(
        "--root", "sysroot", metavar="DIR", help="Take DIR as the root directory (a sysroot or container tree)."
    ),
)


def loading_options(command: _Command) -> _Command:
    """Add --dlopen, --dlopen-global, --preload, --library-path and --root to `command`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
