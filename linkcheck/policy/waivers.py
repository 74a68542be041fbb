"""Findings against waivers: which finding is accepted by whom, and which waivers accept none. Reads no file.

What is said about the waivers themselves is the rules' business (LC901, LC902).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from linkcheck.policy.patterns import in_real_directory, matches
from linkcheck.policy.symbols import make_spec, matches_name
from linkcheck.report.report import ReportedFinding
from linkcheck.text import unique
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from linkcheck.model import Finding
    from linkcheck.policy.settings import Waiver


class WaivedFindings(Value):
    """Findings with the waivers that accept them, and the waivers that the policy's owner should hear of."""

    #: Every finding, in order.
    reported: tuple[ReportedFinding, ...]
    #: Valid waivers that accepted nothing, of rules that run.
    unused: tuple[Waiver, ...]
    #: Unused ones that fit a finding but for their symbol, each with the symbols of the first such finding.
    missed: tuple[tuple[Waiver, tuple[str, ...]], ...]
    expired: tuple[Waiver, ...]


def apply_waivers(
    findings: Iterable[Finding],
    waivers: Sequence[Waiver],
    today: datetime.date,
    *,
    codes: Collection[str],
    mangled_names: Mapping[str, tuple[str, ...]],
) -> WaivedFindings:
    """Each finding with the waiver that accepts it, and what became of the waivers.

    The day of expiry itself is still valid. A waiver for rules that are not among `codes`, those that run, is not
    unused. When several waivers fit a finding the first one is given and all count as used. Raises
    UndemangledNameError when a waiver's `symbol` cannot be compared.
    """
    valid = [(waiver, _make_matcher(waiver, mangled_names)) for waiver in waivers if today <= waiver.expires]
    used: set[int] = set()
    reported: list[ReportedFinding] = []
    for finding in findings:
        fitting = [index for index, (_, accepts) in enumerate(valid) if accepts(finding)]
        used.update(fitting)
        reported.append(ReportedFinding(finding, valid[fitting[0]][0] if fitting else None))
    unused = tuple(
        waiver
        for index, (waiver, _) in enumerate(valid)
        if index not in used and any(speaks_of(waiver, code) for code in codes)
    )
    missed = tuple((waiver, near) for waiver in unused if (near := _symbols_beside(waiver, reported)))
    return WaivedFindings(tuple(reported), unused, missed, tuple(w for w in waivers if w.expires < today))


def _symbols_beside(waiver: Waiver, reported: Sequence[ReportedFinding]) -> tuple[str, ...]:
    """The symbols of the first finding that `waiver` would accept if it named no symbol."""
    if waiver.symbol is None:
        return ()
    accepts = _make_matcher(replace(waiver, symbol=None), {})
    return next((_symbols_of(one.finding) for one in reported if accepts(one.finding)), ())


def _symbols_of(finding: Finding) -> tuple[str, ...]:
    places = (finding.primary, *finding.related)
    return unique(place.symbol for place in places if place.symbol is not None)


def speaks_of(waiver: Waiver, code: str) -> bool:
    """Whether `waiver` is about the rule with `code`; it may name several by the start of theirs."""
    return code.startswith(waiver.code)


def _make_matcher(waiver: Waiver, mangled_names: Mapping[str, tuple[str, ...]]) -> Callable[[Finding], bool]:
    spec = None if waiver.symbol is None else make_spec(waiver.symbol, mangled_names)
    pattern = waiver.path.removeprefix("./")
    directory = os.path.dirname(waiver.source)

    def accepts(finding: Finding) -> bool:
        if not speaks_of(waiver, finding.code):
            return False
        if not any(matches(path, pattern) for path in _spellings(finding.primary.path, directory, pattern)):
            return False
        if spec is None:
            return True
        # One finding may be about several symbols; whoever accepted one of them has not seen the others.
        symbols = _symbols_of(finding)
        return bool(symbols) and all(matches_name(spec, symbol) for symbol in symbols)

    return accepts


def _spellings(path: str, directory: str, pattern: str) -> tuple[str, ...]:
    """The ways a policy in `directory` may write `path`: as shown, from there or whole; without a slash, its last part.

    A pattern without a slash must not meet a directory: `*plugin*` would accept everything below plugin-team/.
    """
    if "/" not in pattern:
        return (path.rpartition("/")[2],)
    spellings = [path, path.removeprefix("./")]
    with suppress(FileNotFoundError, ValueError):  # the working directory is gone, or `path` is empty
        for place in (path, in_real_directory(path)):
            from_there = os.path.relpath(place, directory or None)
            # `*/lib/x.so` means lib/x.so, too, and no directory above the policy.
            spellings += [from_there, f"/{from_there}" if pattern.startswith("*") else os.path.abspath(place)]
    return tuple(spellings)
