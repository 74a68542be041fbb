"""`linkcheck pte`: options and printing. The judging is api.check_programs's."""

from __future__ import annotations

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit, refuse_inputs, wants_color
from linkcheck.cli.options import selecting_options
from linkcheck.report import FORMATS


@click.command(name="pte", cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--no-hash", is_flag=True, help="Do not read engines whole: no SHA-256, copies by samples only.")
@click.option("--policy", metavar="FILE", help="Take waivers and rules from this linkcheck.toml or pyproject.toml.")
@selecting_options
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write the report there instead of standard output.")
def command(
    files: tuple[str, ...],
    no_hash: bool,
    policy: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    format_: str,
    output: str | None,
) -> int:
    """Show and check the TensorRT engines of ExecuTorch programs.

    A FILE is a program (.pte) or a data file (.ptd); the data files serve every program among them. Nothing is loaded
    or run.

    Exit status: 0 clean, 1 findings, 2 could not check.
    """
    from linkcheck.api import check_programs, load_settings
    from linkcheck.report.programs import stream_programs
    from linkcheck.rules.program_rules import ALL_RULES

    settings = load_settings(policy=policy, select=select, ignore=ignore)
    refuse_inputs(output, (*files, *((settings.source,) if settings.source else ())))
    verdict = check_programs(files, settings=settings, hashed=not no_hash)
    report = verdict.report
    told = {check.code for check in report.checks} | {reported.finding.code for reported in report.findings}
    rules = [rule for rule in ALL_RULES if rule.meta.code in told]  # every rule that ran tells of each file
    color = output is None and wants_color()
    emit(stream_programs(verdict.report, verdict.programs, format_, color=color, rules=rules), output)
    return verdict.report.outcome.exit_status
