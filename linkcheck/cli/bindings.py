"""`linkcheck bindings`: options and printing. What binds to what is found by the loader, through api.bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit, refuse_inputs
from linkcheck.cli.options import loading_options
from linkcheck.report.bindings import BINDINGS_FORMATS

if TYPE_CHECKING:
    from linkcheck.model import Libc


@click.command(cls=Command)
@click.argument("root", metavar="ROOT")
@click.option(
    "--symbol",
    "symbols",
    metavar="S",
    multiple=True,
    help="Only S: a mangled or C++ name, * allowed. Repeatable. Without it, every import.",
)
@loading_options()
@click.option("--format", "format_", type=click.Choice(BINDINGS_FORMATS), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write the result there instead of standard output.")
def command(
    root: str,
    symbols: tuple[str, ...],
    dlopen: tuple[str, ...],
    dlopen_global: tuple[str, ...],
    preload: tuple[str, ...],
    library_path: tuple[str, ...],
    sysroot: str | None,
    libc: Libc | None,
    format_: str,
    output: str | None,
) -> int:
    """Show which definition every import of a process of ROOT is bound to.

    With --symbol, also the definitions of S: where a call from inside their own file ends up, and copies that no
    other file can use. Nothing is run.

    Exit status: 0 the question was answered, 2 it could not be. What is not found is part of the answer.
    """
    from linkcheck.api import bindings
    from linkcheck.report.bindings import render_bindings

    refuse_inputs(output, (root, *dlopen, *dlopen_global, *preload))
    found = bindings(
        root,
        symbols=symbols,
        dlopen=dlopen,
        dlopen_global=dlopen_global,
        preload=preload,
        library_path=library_path,
        sysroot=sysroot,
        libc=libc,
    )
    emit(render_bindings(found.load_set, found.bindings, format_), output)
    return 0
