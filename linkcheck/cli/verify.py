"""`linkcheck verify`: options and printing. The judging is api.verify's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit_report, refuse_inputs
from linkcheck.cli.options import external_option, judging_options, loading_options, selecting_options
from linkcheck.report import FORMATS

if TYPE_CHECKING:
    from linkcheck.model import Libc


@click.command(cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@judging_options
@loading_options()
@selecting_options
@external_option
@click.option("--require-needed", metavar="SONAME", multiple=True, help="Each PATH must need SONAME (pattern).")
@click.option("--require-import", metavar="SYMBOL", multiple=True, help="Each PATH must import SYMBOL.")
@click.option("--forbid-needed", metavar="SONAME", multiple=True, help="No PATH may load SONAME (pattern).")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write the report there instead of standard output.")
def command(
    paths: tuple[str, ...],
    profile: str | None,
    policy: str | None,
    dlopen: tuple[str, ...],
    dlopen_global: tuple[str, ...],
    preload: tuple[str, ...],
    library_path: tuple[str, ...],
    sysroot: str | None,
    libc: Libc | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    external: tuple[str, ...],
    require_needed: tuple[str, ...],
    require_import: tuple[str, ...],
    forbid_needed: tuple[str, ...],
    format_: str,
    output: str | None,
) -> int:
    """Verify how programs and libraries were linked.

    Every PATH is the root of a process of its own; a directory stands for every ELF file below it.

    Exit status: 0 clean, 1 findings, 2 could not check.
    """
    from linkcheck.api import load_settings, verify

    settings = load_settings(
        profile=profile,
        policy=policy,
        select=select,
        ignore=ignore,
        require_needed=require_needed,
        require_import=require_import,
        forbid_needed=forbid_needed,
        external=external,
    )
    refuse_inputs(output, (*paths, *dlopen, *dlopen_global, *preload, *((settings.source,) if settings.source else ())))
    report = verify(
        paths,
        settings=settings,
        dlopen=dlopen,
        dlopen_global=dlopen_global,
        preload=preload,
        library_path=library_path,
        sysroot=sysroot,
        libc=libc,
    )
    emit_report(report, format_, output)
    return report.outcome.exit_status
