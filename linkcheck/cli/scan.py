"""`linkcheck scan`: options and printing. The comparing is api.scan's."""

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
@loading_options(opener="Every program")
@selecting_options
@external_option
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
    format_: str,
    output: str | None,
) -> int:
    """Look for libraries and shared states that several packages hold a copy of.

    A PATH is a file, a directory, a wheel, zip, tar or .deb, or dist:NAME, an installed Python distribution. What one
    process would load twice is reported as by verify. Copies that no program or extension module here loads together
    are information.

    Exit status: 0 clean, 1 findings, 2 could not check.
    """
    from linkcheck.api import load_settings, scan

    settings = load_settings(profile=profile, policy=policy, select=select, ignore=ignore, external=external)
    refuse_inputs(output, (*paths, *dlopen, *dlopen_global, *preload, *((settings.source,) if settings.source else ())))
    report = scan(
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
