"""Several files that define one state and that no root loads together: information for `scan`, under LC401's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Finding, Location, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules import split_state
from linkcheck.rules.library_copies import Likeness, find_copies
from linkcheck.rules.ownership import defined_symbols
from linkcheck.rules.wording import consequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.library_copies import ScannedFiles


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
