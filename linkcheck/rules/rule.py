"""What a rule is: its card (RuleMeta) and one check function. The list of rules is in rules/__init__.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Confidence, Finding
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from linkcheck.executorch.facts import ProgramFile, ProgramSet
    from linkcheck.model import FileIdentity, Image, Json, LoadSet, Location, RuleResult, Severity, Target
    from linkcheck.policy.settings import DlopenEdge, Settings, State, Waiver


class RuleMeta(Value):
    """The card of a rule: `code` selects by prefix, `name` is for people and reads well in "allow <name>"."""

    code: str
    name: str
    summary: str
    severity: Severity
    #: Version of linkcheck that first had the rule.
    since: str

    def finding(
        self,
        message: str,
        remedy: str,
        primary: Location,
        *,
        related: tuple[Location, ...] = (),
        evidence: Mapping[str, Json],
        severity: Severity | None = None,
        confidence: Confidence = Confidence.HIGH,
    ) -> Finding:
        """A finding of this rule; `severity` is for one that is not of the rule's own."""
        return Finding(
            self.code,
            self.name,
            self.severity if severity is None else severity,
            confidence,
            message,
            remedy,
            primary,
            related,
            evidence,
        )


class Candidate(Value):
    """A file that somebody names or proposes to link or to load, before any process is made of it."""

    identity: FileIdentity
    #: Its facts; None when it is no ELF image, or a malformed one.
    image: Image | None
    #: What it must run on: the host's or `--machine`'s target for `prebuilt`, the root's for a dlopened file.
    wanted: Target | None = None
    #: The state whose owner library it would stand in for (`prebuilt`); None when it only has to be loadable.
    stands_for: State | None = None
    #: Why linkers refuse it although ld.so loads it, or ""; asked only of what is to be linked (`prebuilt`).
    link_fault: str = ""


class PolicyUse(Value):
    """What a run came to make of its policy, once all files are judged."""

    #: Waivers that were valid, accepted no finding, and speak of rules that ran.
    unused: tuple[Waiver, ...] = ()
    #: Waivers past their day.
    expired: tuple[Waiver, ...] = ()
    #: The processes that were judged; empty when nobody asks what the policy's other entries were about.
    load_sets: tuple[LoadSet, ...] = ()
    #: The policy's dlopens that no file of theirs makes.
    unmade: tuple[DlopenEdge, ...] = ()
    #: Those of `unused` that a finding misses by their symbol alone, each with the symbols of the first such finding.
    missed: tuple[tuple[Waiver, tuple[str, ...]], ...] = ()


class Names(Value):
    """The backend ids that stand in one file: as `whole` words, or only as the `ends` of longer ones."""

    whole: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()


class Bundle(Value):
    """ExecuTorch programs among the inputs of `verify`, and the processes there that may run them."""

    programs: tuple[ProgramFile, ...]
    processes: tuple[LoadSet, ...]
    #: Paths of the programs that the user named; the others were found in a named directory.
    named: frozenset[str]
    #: Device and inode of a file of some process -> the ids of `programs` in it; why it could not be read, in words.
    names: Mapping[tuple[int, int], Names | str]


class Rule(Value):
    """One rule: its card, its manual page in Markdown, and what it looks at.

    Each check yields a Finding for every fault and a Check for every subject that passed, did not apply or could not
    be seen. It reads no file, prints nothing and filters nothing: selection and waivers are the caller's.
    `check_file` looks at one candidate file, `check_load_set` at everything one process would load (a rule may have
    both), `check_programs` at ExecuTorch programs and their data, and `check_bundle` at programs together with the
    processes that may run them. `check_policy` looks at the policy after the run, and yields faults only.
    """

    meta: RuleMeta
    page: str
    check_file: Callable[[Candidate, Settings], Iterator[RuleResult]] | None = None
    check_load_set: Callable[[LoadSet, Settings], Iterator[RuleResult]] | None = None
    check_policy: Callable[[PolicyUse, Settings], Iterator[Finding]] | None = None
    check_programs: Callable[[ProgramSet, Settings], Iterator[RuleResult]] | None = None
    check_bundle: Callable[[Bundle, Settings], Iterator[RuleResult]] | None = None
