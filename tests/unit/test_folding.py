from __future__ import annotations

import datetime

from linkcheck.folding import MOST_LISTED, fold
from linkcheck.model import Check, Confidence, Finding, Location, Outcome, RuleResult, Severity
from linkcheck.policy.settings import Waiver


def check(number: int, outcome: Outcome = Outcome.PASS, reason: str = "") -> Check:
    return Check("LC702", f"model.pte: delegate {number}", outcome, reason)


def finding(number: int, severity: Severity = Severity.ERROR, path: str = "model.pte") -> Finding:
    return Finding(
        code="LC702",
        name="engine-inline-and-named",
        severity=severity,
        confidence=Confidence.HIGH,
        message=f"message {number}",
        remedy="Export again.",
        primary=Location(path, f"delegate {number}"),
    )


def test_what_is_few_stays_as_it_is() -> None:
    results: list[RuleResult] = [finding(1), check(1), *(check(n, Outcome.UNKNOWN) for n in range(MOST_LISTED))]
    assert list(fold(results)) == results


def test_what_is_left_out_keeps_its_verdict_and_is_counted() -> None:
    for outcome in (Outcome.PASS, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE):
        *listed, rest = fold(check(number, outcome, "why") for number in range(MOST_LISTED + 7))
        assert len(listed) == MOST_LISTED
        assert isinstance(rest, Check)
        assert (rest.outcome, rest.subject) == (outcome, "model.pte: 7 more")
        assert rest.reason.endswith("; why")


def test_findings_are_counted_by_their_severity_and_never_lost_among_passes() -> None:
    results = [
        result for n in range(MOST_LISTED + 2) for result in (check(n), finding(n), finding(n, Severity.WARNING))
    ]
    *_, one, two, three = fold(results)
    assert isinstance(one, Check)
    assert isinstance(two, Finding)
    assert isinstance(three, Finding)
    assert (two.severity, three.severity) == (Severity.ERROR, Severity.WARNING)
    assert two.message.startswith("2 more findings")
    assert two.primary == Location("model.pte")


def test_findings_that_may_be_waived_one_by_one_are_all_there() -> None:
    def waive(code: str) -> Waiver:
        return Waiver(code=code, path="*.pte", reason="r", owner="o", expires=datetime.date(2999, 1, 1))

    results = [finding(number) for number in range(MOST_LISTED + 2)]
    assert list(fold(results, [waive("LC702")])) == results
    assert list(fold(results, [waive("LC7")])) == results
    assert len(list(fold(results, [waive("LC703")]))) == MOST_LISTED + 1


def test_no_file_is_lost_behind_another() -> None:
    many = [finding(number, path="a.pte") for number in range(MOST_LISTED + 2)]
    few = [finding(0, path="b.pte"), finding(0, path="c.pte")]
    folded = [result for result in fold([*many, *few]) if isinstance(result, Finding)]
    assert {result.primary.path for result in folded} == {"a.pte", "b.pte", "c.pte"}
    assert all(finding in folded for finding in few)
    (rest,) = (result for result in folded if "not_listed" in result.evidence)
    assert (rest.primary.path, rest.evidence["not_listed"]) == ("a.pte", 2)
