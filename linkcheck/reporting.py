"""Makes the Report of one run: waivers applied, and the policy judged last. It judges no file and renders nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Finding
from linkcheck.report.report import Report, ReportedFinding

if TYPE_CHECKING:
    import datetime
    from collections.abc import Collection, Sequence

    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import PolicyUse


def make_report(
    command: str,
    paths: Sequence[str],
    results: Sequence[RuleResult],
    settings: Settings,
    codes: Collection[str] = (),
    today: datetime.date | None = None,
    use: PolicyUse | None = None,
) -> Report:
    """The report of `command` on `paths`: `results` with the waivers of `settings` as of `today` (None: now).

    The rules among `codes` that look at the policy have their say about what became of it; `use` is what is known of
    its entries other than waivers.
    """
    findings = [result for result in results if isinstance(result, Finding)]
    return Report(
        command=command,
        profile=settings.profile,
        inputs=tuple(paths),
        checks=tuple(result for result in results if isinstance(result, Check)),
        findings=_waive(findings, settings, codes, today, use),
        by_default=settings.by_default,
    )


def _waive(
    findings: list[Finding],
    settings: Settings,
    codes: Collection[str],
    today: datetime.date | None,
    use: PolicyUse | None,
) -> tuple[ReportedFinding, ...]:
    """`findings` with the waivers that accept them, and what the rules among `codes` have to say about the policy.

    `use` is what is known of the policy's other entries.
    """
    reported = tuple(ReportedFinding(finding) for finding in findings)
    if settings.source is None and not settings.waivers:
        return reported
    from linkcheck.rules.link_rules import LINK_RULES
    from linkcheck.rules.rule import PolicyUse
    from linkcheck.value import replace

    use = use or PolicyUse()
    if settings.waivers:
        import datetime

        from linkcheck.policy.waivers import apply_waivers

        waived = apply_waivers(
            findings,
            settings.waivers,
            today or datetime.date.today(),
            codes=codes,
            mangled_names=settings.mangled_names,
        )
        reported = waived.reported
        use = replace(use, unused=waived.unused, missed=waived.missed, expired=waived.expired)
    about_policy = (
        ReportedFinding(finding, about_policy=True)
        for rule in LINK_RULES
        if rule.check_policy is not None and rule.meta.code in codes
        for finding in rule.check_policy(use, settings)
    )
    return (*reported, *about_policy)
