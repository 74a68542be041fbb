"""`linkcheck tree`: options and printing. What is loaded is found by the loader, through api.load_trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit, refuse_inputs
from linkcheck.cli.options import loading_options
from linkcheck.report.tree import TREE_FORMATS

if TYPE_CHECKING:
    from linkcheck.model import Libc, LoadSet


@click.command(cls=Command)
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@loading_options()
@click.option("--tried", is_flag=True, help="Show every path that is tried in vain, not only the files passed over.")
@click.option("--format", "format_", type=click.Choice(TREE_FORMATS), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write the result there instead of standard output.")
def command(
    roots: tuple[str, ...],
    dlopen: tuple[str, ...],
    dlopen_global: tuple[str, ...],
    preload: tuple[str, ...],
    library_path: tuple[str, ...],
    sysroot: str | None,
    libc: Libc | None,
    tried: bool,
    format_: str,
    output: str | None,
) -> int:
    """Show what a process of each ROOT loads: who asked for it, where it was found and by which search step.

    Each file hangs below the one that asked for it first; "also for" names the others. Nothing is run.

    Exit status: 0 everything was found, 1 something was not, 2 a ROOT could not be read; the others are shown.
    """
    from linkcheck.api import load_trees
    from linkcheck.cli.emit import print_error
    from linkcheck.errors import UnreadableFileError, UsageProblemError
    from linkcheck.report.tree import render_trees

    refuse_inputs(output, (*roots, *dlopen, *dlopen_global, *preload))
    load_sets: tuple[LoadSet, ...] = ()
    errors: dict[str, None] = {}  # each once: a --root that is none is every ROOT's
    try:
        load_sets = load_trees(
            roots,
            dlopen=dlopen,
            dlopen_global=dlopen_global,
            preload=preload,
            library_path=library_path,
            sysroot=sysroot,
            libc=libc,
            pass_over=lambda error: errors.update({str(error): None}),
        )
    except (UnreadableFileError, UsageProblemError) as error:
        errors[str(error)] = None
    if load_sets:
        emit(render_trees(load_sets, format_, tried=tried), output)
    for text in errors:
        print_error(text)
    if errors:
        return 2
    return 1 if any(load_set.unresolved or load_set.interpreter for load_set in load_sets) else 0
