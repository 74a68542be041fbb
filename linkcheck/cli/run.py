"""Runs one command and turns whatever stops it into one line and an exit status. Knows no command's inside."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import click

from linkcheck import __version__
from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit, print_error
from linkcheck.errors import LinkcheckError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Subcommand -> the module whose `command` it is; imported only when it is asked for.
COMMANDS = {
    "verify": "linkcheck.cli.verify",
    "prebuilt": "linkcheck.cli.prebuilt",
    "bindings": "linkcheck.cli.bindings",
    "tree": "linkcheck.cli.tree",
    "scan": "linkcheck.cli.scan",
    "pte": "linkcheck.cli.pte",
    "pte build": "linkcheck.cli.pte_build",
    "live": "linkcheck.cli.live",
    "rules": "linkcheck.cli.rules",
    "explain": "linkcheck.cli.explain",
    "cmake-dir": "linkcheck.cli.cmake_dir",
}


class LazyGroup(Command, click.Group):
    """The group of COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order a reader meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with, whose name may be two words, and what follows it."""
        name = " ".join(args[:2])
        if name in COMMANDS and len(args) > 1:
            return name, self.get_command(ctx, name), args[2:]
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        emit(f"linkcheck, version {__version__}\n", None)
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Prove from the files alone how native (ELF) programs were built and linked.

    Exit status: 0 clean, 1 findings, 2 could not check.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and return the exit status; raises KeyboardInterrupt on Ctrl-C."""
    try:
        if not arguments:
            # The help goes where errors go, because nothing was done. click does it otherwise before and after 8.2.
            click.echo(click.Context(cli, info_name="linkcheck", **cli.context_settings).get_help(), err=True)
            return 2
        status = cli.main(args=list(arguments), prog_name="linkcheck", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _fail(_describe(error), 2)
    except SystemExit:  # click's way to end when nobody reads standard error any more: what was begun is not done
        return 2
    except click.Abort:
        raise KeyboardInterrupt from None
    except LinkcheckError as error:
        return _fail(str(error), error.exit_status)
    except RecursionError:
        return _fail("internal error: recursion too deep", 2)
    except MemoryError:
        return _fail("internal error: out of memory", 2)
    except Exception as error:  # the one place: an internal error is a line and status 2, never a traceback
        if os.environ.get("LINKCHECK_TRACEBACK"):
            raise
        return _fail(f"internal error: {type(error).__name__}: {error} (LINKCHECK_TRACEBACK=1 shows where)", 2)


def _describe(error: click.ClickException) -> str:
    """What is wrong with the command line, and where its help is, in one line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    message = " ".join(error.format_message().split())
    return message if context is None else f"{message} (`{context.command_path} --help` lists what there is)"


def _fail(text: str, status: int) -> int:
    print_error(text)
    return status
