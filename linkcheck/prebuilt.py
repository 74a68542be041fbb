"""Judges whether one file may be linked as the library that owns a state. It links and loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.kind import correct_identity
from linkcheck.elf.link_view import LinkView, read_link_view
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError, UsageProblemError
from linkcheck.inputs.process import Examiner
from linkcheck.inputs.shown import show_file, show_identity
from linkcheck.model import FileKind
from linkcheck.policy.settings import ROOT_OWNER, select_codes
from linkcheck.rules import malformed_elf, not_a_shared_object
from linkcheck.rules.link_rules import LINK_RULES
from linkcheck.rules.rule import Candidate
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from linkcheck.model import FileIdentity, Image, RuleResult, Target
    from linkcheck.policy.settings import Settings, State

#: Rules that are applied whatever the policy selects: without them every archive and text file would pass.
ALWAYS_ASKED = frozenset({not_a_shared_object.META.code, malformed_elf.META.code})


class JudgedFile(Value):
    """What the rules say about one file, and the facts that a build may want to know besides."""

    results: tuple[RuleResult, ...]
    identity: FileIdentity
    #: Its facts; None when it is no ELF image, or a malformed one.
    image: Image | None


def choose_state(settings: Settings, name: str | None) -> State:
    """The state called `name`, or the first one that a library may own.

    Raises UsageProblemError, which lists the names, when there is none.
    """
    states = [state for state in settings.states if any(owner != ROOT_OWNER for owner in state.owner)]
    if not states:
        raise UsageProblemError(f"no state of {settings.profile} is owned by a library")
    if name is None:
        return states[0]
    for state in states:
        if state.name == name:
            return state
    listed = ", ".join(f"“{state.name}”" for state in states)
    raise UsageProblemError(f"no state of {settings.profile} is called {name}; one of: {listed}")


def judge_file(path: str, settings: Settings, state: State, wanted: Target | None) -> JudgedFile:
    """What the rules say about linking the file at `path` as the owner of `state`, built for `wanted` (None: any).

    Whatever is wrong with the file is a result. Raises UsageProblemError for the name of a file inside an archive.
    """
    if "!/" in path:
        from linkcheck.inputs.refused import refuse_member

        refuse_member(path)
    examined = Examiner().examine(path)
    identity, image = examined.identity, examined.image
    try:
        view = read_link_view(path) if identity.kind is FileKind.SHARED_OBJECT else LinkView()
        if view.caution:
            identity = replace(identity, detail=view.caution)
        shown = show_file(replace(examined, identity=identity), str)
        results = _check_file(Candidate(shown.identity, shown.image, wanted, state, view.fault), settings)
    except (MalformedElfError, UnreadableFileError, NotAnImageError) as error:
        # The symbol table is read only when a rule asks. What it cannot give puts all that was read before in doubt.
        identity, image = correct_identity(identity, error), None
        results = _check_file(Candidate(show_identity(identity, str), None, wanted, state), settings)
    return JudgedFile(tuple(results), identity, image)


def _check_file(candidate: Candidate, settings: Settings) -> list[RuleResult]:
    rules = [rule for rule in LINK_RULES if rule.check_file is not None]
    codes = select_codes([rule.meta.code for rule in rules], select=settings.select, ignore=settings.ignore)
    return [
        result
        for rule in rules
        if rule.meta.code in codes or rule.meta.code in ALWAYS_ASKED
        if rule.check_file is not None
        for result in rule.check_file(candidate, settings)
    ]
