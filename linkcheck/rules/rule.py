"""What a rule is: its card (RuleMeta) and one check function. The list of rules is in rules/__init__.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from linkcheck.model import LoadSet, RuleResult, Severity
    from linkcheck.policy.settings import Settings


@dataclass(frozen=True, slots=True)
class RuleMeta:
    """The card of a rule: `code` selects by prefix, `name` is for people and reads well in "allow <name>"."""

    code: str
    name: str
    summary: str
    severity: Severity
    #: Version of linkcheck that first had the rule.
    since: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule over the load set of one root.

    `check` yields a Finding for every fault and a Check for every subject that passed, did not apply or could not be
    seen. It reads no file, prints nothing and filters nothing: selection and waivers are the caller's.
    `page` is the rule's manual page, in Markdown.
    """

    meta: RuleMeta
    check: Callable[[LoadSet, Settings], Iterator[RuleResult]]
    page: str
