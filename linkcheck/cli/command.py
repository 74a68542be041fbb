"""The kind of click command that linkcheck's are: with a help option that is not translated. Defines no command.

click asks gettext for the text of its own options, and gettext imports locale to find out that there is no translation:
1 ms of every start.
"""

from __future__ import annotations

import click


class Command(click.Command):
    """A command as click's, whose `--help` costs nothing until it is used."""

    _own_help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The help option with the names of the context, made once."""
        if self._own_help is None:
            self._own_help = click.Option(
                self.get_help_option_names(ctx),
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_show_help,
                help="Show this message and exit.",
            )
        return self._own_help


def _show_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from linkcheck.cli.emit import emit  # click.echo writes nothing to a closed standard output, and says nothing

        emit(f"{ctx.get_help()}\n", None)
        ctx.exit()
