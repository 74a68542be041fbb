"""Evidence as lines for people: one or more a key, long lists cut. Programs read the JSON instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from linkcheck.model import Json

#: Entries of one list that people are shown; the JSON has all.
LONGEST_LIST = 10
#: Characters up to which the entries of a list share one line.
LONGEST_LINE = 80


def describe_evidence(evidence: Mapping[str, Json]) -> Iterator[str]:
    """Printable lines, without what holds nothing (None, empty text, an empty list or object)."""
    for key, value in evidence.items():
        if value is None or value in ("", [], {}):
            continue
        name = printable(key.replace("_", " "))
        if not isinstance(value, list):
            yield f"{name}: {_describe(value)}"
            continue
        entries = [_describe(item) for item in value[:LONGEST_LIST]]
        if len(value) > LONGEST_LIST:
            entries.append(f"… and {len(value) - LONGEST_LIST} more")
        line = f"{name}: {', '.join(entries)}"
        if len(line) <= LONGEST_LINE:
            yield line
        else:
            yield f"{name}:"
            yield from (f"  {entry}" for entry in entries)


def _describe(value: Json) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{printable(key)}={_describe(item)}" for key, item in value.items())
    if isinstance(value, list):
        return f"[{', '.join(_describe(item) for item in value)}]"
    return printable(str(value))
