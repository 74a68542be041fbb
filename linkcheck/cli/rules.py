"""`linkcheck rules`: the list of rules. Judges nothing."""

from __future__ import annotations

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit


@click.command(cls=Command)
def command() -> int:
    """List every rule: code, severity, name and what it finds."""
    from linkcheck.rules.program_rules import ALL_RULES

    cards = [rule.meta for rule in ALL_RULES]
    width = max(len(card.name) for card in cards)
    lines = [f"{card.code}  {card.severity.value:<7}  {card.name:<{width}}  {card.summary}" for card in cards]
    emit("\n".join(lines) + "\n", None)
    return 0
