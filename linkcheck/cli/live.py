"""`linkcheck live`: options and printing. The judging is api.live's."""

from __future__ import annotations

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit_report, refuse_inputs
from linkcheck.cli.options import judging_options, selecting_options
from linkcheck.report import FORMATS


def _read_pid(_: click.Context, __: click.Parameter, value: str) -> int:
    if value.isascii() and value.isdigit() and len(value) < 20 and int(value):
        return int(value)
    raise click.BadParameter(f"{value!r} is not a process ID, which is a whole number from 1 on")


@click.command(cls=Command)
@click.argument("pid", metavar="PID", callback=_read_pid)
@judging_options
@selecting_options
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write the report there instead of standard output.")
def command(
    pid: int,
    profile: str | None,
    policy: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    format_: str,
    output: str | None,
) -> int:
    """Judge a running process: how many copies of each shared state does it hold, and in which files?

    It is read through /proc, is not stopped, and needs no ptrace; only the same user or root may. In which order and
    with which scope it opened libraries cannot be seen: what hangs on that is reported as such.

    Exit status: 0 clean, 1 findings, 2 could not check (no such process, no permission, it ended meanwhile).
    """
    from linkcheck.api import live, load_settings

    settings = load_settings(profile=profile, policy=policy, select=select, ignore=ignore)
    refuse_inputs(output, (settings.source,) if settings.source else ())
    report = live(pid, settings=settings)
    emit_report(report, format_, output)
    return report.outcome.exit_status
