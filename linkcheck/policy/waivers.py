"""Findings against waivers: which finding is accepted by whom, and which waivers are to be removed. Reads no file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from linkcheck.model import Confidence, Finding, Location, Severity
from linkcheck.policy.patterns import matches
from linkcheck.policy.symbols import make_spec, matches_name
from linkcheck.report.report import ReportedFinding

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from linkcheck.model import Json
    from linkcheck.policy.settings import Waiver


def apply_waivers(
    findings: Iterable[Finding],
    waivers: Sequence[Waiver],
    today: datetime.date,
    *,
    codes: Collection[str],
    mangled_names: Mapping[str, tuple[str, ...]],
) -> tuple[tuple[ReportedFinding, ...], tuple[Finding, ...]]:
    """Each finding with the waiver that accepts it, and the findings about the waivers themselves.

    The latter are LC902 for each waiver that is past its day and LC901 for each valid one that accepted nothing, as
    far as these two are among `codes`, the codes that run. The day of expiry itself is still valid. A waiver for
    rules that do not run is not called unused. When several waivers fit a finding the first one is given and all
    count as used. Raises UndemangledNameError when a waiver's `symbol` cannot be compared.
    """
    valid = [(waiver, _make_matcher(waiver, mangled_names)) for waiver in waivers if today <= waiver.expires]
    used: set[int] = set()
    reported: list[ReportedFinding] = []
    for finding in findings:
        fitting = [index for index, (_, accepts) in enumerate(valid) if accepts(finding)]
        used.update(fitting)
        reported.append(ReportedFinding(finding, valid[fitting[0]][0] if fitting else None))

    about_waivers: list[Finding] = []
    if "LC901" in codes:
        about_waivers += [
            _unused(waiver)
            for index, (waiver, _) in enumerate(valid)
            if index not in used and any(code.startswith(waiver.code) for code in codes)
        ]
    if "LC902" in codes:
        about_waivers += [_expired(waiver) for waiver in waivers if waiver.expires < today]
    return tuple(reported), tuple(about_waivers)


def _make_matcher(waiver: Waiver, mangled_names: Mapping[str, tuple[str, ...]]) -> Callable[[Finding], bool]:
    spec = None if waiver.symbol is None else make_spec(waiver.symbol, mangled_names)
    pattern = waiver.path.removeprefix("./")
    directory = os.path.dirname(waiver.source)

    def accepts(finding: Finding) -> bool:
        if not finding.code.startswith(waiver.code):
            return False
        if not any(matches(path, pattern) for path in _spellings(finding.primary.path, directory, pattern)):
            return False
        if spec is None:
            return True
        # One finding may be about several symbols; whoever accepted one of them has not seen the others.
        symbols = [place.symbol for place in (finding.primary, *finding.related) if place.symbol is not None]
        return bool(symbols) and all(matches_name(spec, symbol) for symbol in symbols)

    return accepts


def _spellings(path: str, directory: str, pattern: str) -> tuple[str, ...]:
    """The ways a policy in `directory` may write `path`: as shown, or from there; without a slash, the file's name.

    A pattern without a slash must not meet a directory: `*plugin*` would accept everything below plugin-team/.
    """
    if "/" not in pattern:
        return (path.rpartition("/")[2],)
    spellings = [path, path.removeprefix("./")]
    with suppress(FileNotFoundError, ValueError):  # the working directory is gone, or `path` is empty
        spellings.append(os.path.relpath(path, directory or None))
    return tuple(spellings)


def _unused(waiver: Waiver) -> Finding:
    return Finding(
        code="LC901",
        name="unused-waiver",
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        message=f"{_described(waiver)} accepts no finding of this run",
        remedy="Remove the waiver if the fault is gone; otherwise correct its path or symbol.",
        primary=Location(waiver.source),
        evidence=_evidence(waiver),
    )


def _expired(waiver: Waiver) -> Finding:
    return Finding(
        code="LC902",
        name="expired-waiver",
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        message=(
            f"{_described(waiver)} expired on {waiver.expires.isoformat()} and accepts nothing any more; "
            f"{waiver.owner} gave as reason: {waiver.reason}"
        ),
        remedy=f"Fix the fault and remove the waiver, or have {waiver.owner} decide anew and set a later `expires`.",
        primary=Location(waiver.source),
        evidence=_evidence(waiver),
    )


def _described(waiver: Waiver) -> str:
    symbol = "" if waiver.symbol is None else f" ({waiver.symbol})"
    return f"the waiver of {waiver.code} on {waiver.path}{symbol}, line {waiver.line},"


def _evidence(waiver: Waiver) -> dict[str, Json]:
    return {
        "line": waiver.line,
        "code": waiver.code,
        "path": waiver.path,
        "symbol": waiver.symbol,
        "reason": waiver.reason,
        "owner": waiver.owner,
        "expires": waiver.expires.isoformat(),
    }
