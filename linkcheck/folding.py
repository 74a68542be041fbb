"""Shortens what one rule says, which can be as much as a file likes, and keeps the verdict. It judges nothing.

Ten thousand delegates with one fault are ten thousand findings, which nobody reads and which take a hundred megabytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Confidence, Finding, Location
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from linkcheck.choice import Choice
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Waiver

#: Results of one rule about one file, of each outcome and each severity, that are listed one by one.
MOST_LISTED = 1000


def fold(results: Iterable[RuleResult], waivers: Sequence[Waiver] = ()) -> Iterator[RuleResult]:
    """The first MOST_LISTED of `results` about each file, of each kind, and one that has the verdict of the others.

    Findings of a rule that `waivers` speak of stay as they are: whoever accepts each of them by name accepts them all.
    """
    seen: dict[tuple[str, Choice], int] = {}
    last: dict[tuple[str, Choice], RuleResult] = {}
    for result in results:
        kind = _kind_of(result)
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= MOST_LISTED or _may_be_waived(result, waivers):
            yield result
        else:
            last[kind] = result
    for kind, result in last.items():
        path, more = kind[0], seen[kind] - MOST_LISTED
        if isinstance(result, Check):
            reason = f"such checks of this file, the first {MOST_LISTED} of them are listed"
            reason = f"{reason}; {result.reason}" if result.reason else reason
            yield replace(result, subject=f"{path}: {more} more", reason=reason)
        else:
            yield Finding(
                code=result.code,
                name=result.name,
                severity=result.severity,
                confidence=Confidence.HIGH,
                message=f"{more} more findings of this rule about {path}, the first {MOST_LISTED} of which are listed.",
                remedy=result.remedy,
                primary=Location(path),
                evidence={"not_listed": more},
            )


def _kind_of(result: RuleResult) -> tuple[str, Choice]:
    """The file that `result` is about, and what it comes to. The subject of a check may go on: `FILE: delegate`."""
    if isinstance(result, Check):
        return result.subject.partition(": ")[0], result.outcome
    return result.primary.path, result.severity


def _may_be_waived(result: RuleResult, waivers: Sequence[Waiver]) -> bool:
    if not waivers or isinstance(result, Check):
        return False
    from linkcheck.policy.waivers import speaks_of  # for a policy with waivers only

    return any(speaks_of(waiver, result.code) for waiver in waivers)
