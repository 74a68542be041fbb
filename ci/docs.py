"""Writes what the documentation repeats from the code: help texts, and a page for each rule. It writes no prose itself.

`python -m ci.docs` brings everything up to date; tests/unit/test_docs.py fails when something is not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.rules.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
RULE_PAGES = ROOT / "docs" / "rules"
#: Columns of a help text: what click takes on a terminal of 80, so that a page shows what most readers see.
HELP_WIDTH = 78

#: A help text in a page, between comments that Markdown does not show.
_HELP = re.compile(r"(?<=<!-- begin: linkcheck )(?P<arguments>[^\n]*)--help -->\n.*?(?=<!-- end -->)", re.DOTALL)

_INDEX = """\
<!-- Made by ci/docs.py; change it there. -->
# Rules

| code | name | severity | what it finds |
|---|---|---|---|
{rows}

`linkcheck rules` prints this list, and `linkcheck explain CODE` one of the pages. `--select` and `--ignore` take codes
or the beginning of codes: `--ignore LC9`, for example.

LC1xx look at one file, LC2xx at the libraries a file needs, LC3xx at its symbols, LC4xx at the process as a whole,
LC7xx at the engines in ExecuTorch programs (`linkcheck pte`), and LC9xx at the policy.

Each page has a part *Bad*, which the rule reports, and a part *Good*, which it does not. The tests run the commands of
both as they stand there. `caller_stream.cpp`, `delegate.cpp` and their headers are those of
[tests/programs/src](../../tests/programs/src); `runner.cpp` is a program that selects a stream and asks for it.
`write_program.py` is [tests/executorch/write_program.py](../../tests/executorch/write_program.py).
"""

_PAGE = """\
<!-- Made by ci/docs.py from the docstring of {module}; change it there. -->
# {code} {name}

{first}

Severity: {severity}. Since linkcheck {since}. `linkcheck explain {code}` prints this page.

{rest}"""


def main() -> int:
    """Rewrite what is out of date, remove pages of rules that are gone, and name each file that changed."""
    wanted = documents()
    for path in stale_pages(wanted):
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


def documents() -> dict[Path, str]:
    """Every page with something generated in it, and the text that it should have."""
    from linkcheck.rules.program_rules import ALL_RULES

    wanted = {path: with_help_texts(path.read_text(encoding="utf-8")) for path in written_pages()}
    wanted.update((page_of(rule), render_page(rule)) for rule in ALL_RULES)
    rows = "\n".join(_row(rule) for rule in ALL_RULES)
    wanted[RULE_PAGES / "README.md"] = _INDEX.format(rows=rows)
    return wanted


def written_pages() -> Iterator[Path]:
    """The pages that people write."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def stale_pages(wanted: dict[Path, str]) -> list[Path]:
    """Pages in the rules' folder that no rule has."""
    return sorted(set(RULE_PAGES.glob("*")) - set(wanted))


def page_of(rule: Rule) -> Path:
    """The file of a rule's page."""
    return RULE_PAGES / f"{rule.meta.code}-{rule.meta.name}.md"


def render_page(rule: Rule) -> str:
    """A rule's page: its card as a heading, then its docstring."""
    card = rule.meta
    first, rest = rule.page.split("\n\n", 1)
    first = " ".join(first.removeprefix(f"{card.code} {card.name}: ").split())
    return _PAGE.format(
        module=f"linkcheck/rules/{card.name.replace('-', '_')}.py",
        code=card.code,
        name=card.name,
        first=first[0].upper() + first[1:],
        severity=card.severity.value,
        since=card.since,
        rest=rest,
    )


def _row(rule: Rule) -> str:
    card = rule.meta
    return f"| [{card.code}]({page_of(rule).name}) | {card.name} | {card.severity.value} | {card.summary} |"


def with_help_texts(page: str) -> str:
    """`page` with each of its help texts as the commands print them now."""
    return _HELP.sub(lambda m: f"{m['arguments']}--help -->\n{_help_block(m['arguments'].split())}", page)


def _help_block(arguments: list[str]) -> str:
    from click.testing import CliRunner

    from linkcheck.cli.run import cli

    done = CliRunner().invoke(cli, [*arguments, "--help"], prog_name="linkcheck", terminal_width=HELP_WIDTH)
    if done.exit_code != 0:
        raise ValueError(f"linkcheck {' '.join(arguments)} --help: {done.output}")
    return f"```text\n{done.stdout}```\n"


if __name__ == "__main__":
    sys.exit(main())
