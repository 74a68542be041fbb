"""`linkcheck explain CODE`: a rule's manual page. Judges nothing."""

from __future__ import annotations

import click

from linkcheck.cli.command import Command
from linkcheck.cli.emit import emit


@click.command(cls=Command)
@click.argument("code")
def command(code: str) -> int:
    """Print the manual page of a rule.

    CODE is its code or its name: LC301 or missing-import.
    """
    from linkcheck.errors import LinkcheckError, UsageProblemError
    from linkcheck.rules.program_rules import ALL_RULES

    wanted = code.lower()
    for rule in ALL_RULES:
        if wanted in (rule.meta.code.lower(), rule.meta.name):
            if not rule.page:
                reason = "Python runs without docstrings (-OO or PYTHONOPTIMIZE=2), and the manual pages are docstrings"
                raise LinkcheckError(f"explain {rule.meta.code}: {reason}")
            emit(rule.page.rstrip() + "\n", None)
            return 0
    known = ", ".join(rule.meta.code for rule in ALL_RULES)
    raise UsageProblemError(f"no rule is called {code}; there are {known}")
