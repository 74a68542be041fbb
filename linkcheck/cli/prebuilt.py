"""`linkcheck prebuilt`: options, printing and exit status. What may be linked is decided by api.py and the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkcheck.cli.command import Command

if TYPE_CHECKING:
    from linkcheck.api import PrebuiltVerdict
    from linkcheck.model import Target


@click.command(name="prebuilt", cls=Command)
@click.argument("file")
@click.option("--profile", metavar="NAME", help="Built-in profile to judge by.")
@click.option("--policy", metavar="FILE", help="Policy file to judge by; else the nearest linkcheck.toml.")
@click.option("--state", "state_name", metavar="NAME", help="State whose owner FILE would be; else the policy's first.")
@click.option("--machine", metavar="NAME", help="Machine FILE must be built for; else the one that runs this.")
@click.option(
    "--format", "format_name", type=click.Choice(("text", "json", "cmake")), default="text", show_default=True
)
@click.option("--output", metavar="FILE", help="Write the report there instead of to standard output.")
def command(
    file: str,
    profile: str | None,
    policy: str | None,
    state_name: str | None,
    machine: str | None,
    format_name: str,
    output: str | None,
) -> int:
    """May FILE stand in for the library that owns a shared state?

    The content of FILE decides, not its name: it must be a shared object for the right machine, with the owner's
    SONAME, that exports the state's symbols. Nothing is linked, loaded or run.

    Exit status: 0 it may be linked, 1 it may not (also when FILE is missing), 2 wrong usage or policy.
    """
    from linkcheck.api import choose_state, judge_prebuilt, load_settings
    from linkcheck.cli.emit import emit, refuse_inputs
    from linkcheck.elf.machine import parse_machine
    from linkcheck.errors import UsageProblemError
    from linkcheck.report.report import ReportOutcome

    wanted = parse_machine(machine) if machine is not None else _host()
    settings = load_settings(profile=profile, policy=policy)
    try:
        state = choose_state(settings, state_name)
    except UsageProblemError as error:
        raise UsageProblemError(f"--state {state_name}: {error}" if state_name else str(error)) from None
    refuse_inputs(output, (file, *((settings.source,) if settings.source else ())))
    verdict = judge_prebuilt(file, settings=settings, state=state, wanted=wanted)
    emit(_render(verdict, format_name, to_terminal=output is None), output)
    return 0 if verdict.report.outcome is ReportOutcome.PASS else 1


def _host() -> Target:
    from linkcheck.elf.machine import MACHINES, detect_host
    from linkcheck.errors import UsageProblemError

    host = detect_host()
    if host is None:
        raise UsageProblemError(f"this machine is not known; say --machine with one of: {', '.join(MACHINES)}")
    return host


def _render(verdict: PrebuiltVerdict, format_name: str, *, to_terminal: bool) -> str:
    if format_name == "cmake":
        from linkcheck.report.cmake import render_cmake

        kind = verdict.identity.kind.name.lower().replace("_", "-")
        soname = verdict.image.soname if verdict.image is not None else None
        return render_cmake(verdict.report, kind=kind, soname=soname)
    from linkcheck.cli.emit import wants_color
    from linkcheck.report import render
    from linkcheck.rules.link_rules import LINK_RULES

    return render(verdict.report, format_name, color=to_terminal and wants_color(), rules=LINK_RULES)
