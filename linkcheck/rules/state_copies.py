"""What `scan` says under LC401's name: what of a process concerns the files that are here, and files that define one
state and that no root loads together, which is information. split_state.py judges the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.scope import describe_filters
from linkcheck.model import Finding, Location, Outcome, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules import split_state
from linkcheck.rules.library_copies import Likeness, find_copies
from linkcheck.rules.ownership import defined_symbols, definers, judge_copies, missing_libraries, state_names
from linkcheck.rules.wording import consequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Settings, State
    from linkcheck.rules.library_copies import ScannedFiles


def check_process(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield what LC401 says of each state, but not that a missing library may hold a copy that nothing here asks for.

    Which is so where one file here defines the state at most, and all uses are bound to it.
    """
    for state, result in zip(settings.states, split_state.check(load_set, settings), strict=True):
        if isinstance(result, Finding) or result.outcome is not Outcome.UNKNOWN or _may_meet(load_set, state, settings):
            yield result


def _may_meet(load_set: LoadSet, state: State, settings: Settings) -> bool:
    """Whether a copy in `load_set` may meet another, as far as an unknown result leaves it open."""
    missing = missing_libraries(load_set, settings)
    filters = bool(describe_filters(load_set))
    if not (missing or filters) or any(module.image.symbols.unseen is not None for module in load_set.modules):
        return True  # about the files themselves
    judgement = judge_copies(state, load_set, settings)
    copies = {*judgement.providers, *definers(load_set, state_names(state, load_set))}
    if len(copies) != 1:
        return len(copies) > 1
    unbound = any(binding.provider is None for binding in judgement.bindings)
    owner = any(matches_any(unresolved.needed.rpartition("/")[2], state.owner) for unresolved in missing)
    return filters or unbound or owner or bool(judgement.doubt)


def check_scanned(files: ScannedFiles, settings: Settings) -> Iterator[Finding]:
    """Yield one piece of information for each state that several libraries define, but no root's process twice.

    Copies of one library are LC403's; what a process would really hold twice is LC401's, in that process.
    """
    libraries = [
        {image.path for image in copies.images}
        for copies in find_copies(files.images, lambda _: None)
        if copies.likeness is not Likeness.NAMESAKES
    ]
    for state in settings.states:
        definers = [image for image in files.images if defined_symbols(image, state)]
        paths = {image.path for image in definers}
        if len(definers) < 2 or any(paths <= library for library in libraries):
            continue
        if state.only_with_owner and not any(matches_any(image.name, state.owner) for image in files.images):
            continue
        if any(sum(m.image.path in paths for m in load_set.modules) > 1 for load_set in files.load_sets):
            continue
        message = (
            f"{len(definers)} files define the {state.name}:"
            + "".join(f"\n    {_describe(image)}" for image in definers)
            + "\nNo root here loads two of them. A process that did would hold one copy only where all uses are bound "
            f"to one file.{consequence(state)}"
        )
        yield split_state.META.finding(
            message,
            "",
            Location(definers[0].path, state.name),
            related=tuple(Location(image.path) for image in definers),
            evidence={"state": state.name, "definers": [image.path for image in definers]},
            severity=Severity.INFO,
        )


def _describe(image: Image) -> str:
    return image.path if image.soname is None else f"{image.path} (SONAME {image.soname})"
