"""Compares everything that several packages hold: libraries and states that are there more than once.

What one process would really load is judged by the rules, as `verify` does; here comes what no root loads together.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, UnreadableFileError
from linkcheck.inputs.shown import show_error
from linkcheck.model import Check, Finding, Outcome
from linkcheck.rules import (
    LOAD_SET_RULES,
    duplicate_library,
    expired_waiver,
    malformed_elf,
    not_a_shared_object,
    split_state,
    state_copies,
    unused_waiver,
)
from linkcheck.rules.library_copies import ScannedFiles
from linkcheck.text import one_line
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import RuleResult
    from linkcheck.rules.rule import Rule
    from linkcheck.verification import Verification

#: What `scan` asks of each file, of each process, and of the waivers. Roles take no part, so their entries are not
#: judged either (LC903).
CODES = tuple(
    rule.META.code
    for rule in (not_a_shared_object, malformed_elf, split_state, duplicate_library, unused_waiver, expired_waiver)
)
_SPLIT = split_state.META.code
_DUPLICATE = duplicate_library.META.code


def list_rules() -> tuple[Rule, ...]:
    """The rules about processes, without what those of CODES say only of libraries that are not among the inputs.

    Whether such a library would bring another copy is not what was asked, and `verify` says it; whether it would put
    copies together that are here, or tell them apart, is.
    """
    own = {_SPLIT: state_copies.check_process, _DUPLICATE: duplicate_library.check_process}
    return tuple(
        replace(rule, check_load_set=own[rule.meta.code]) if rule.meta.code in own else rule for rule in LOAD_SET_RULES
    )


def compare_files(verification: Verification) -> Iterator[RuleResult]:
    """Yield what a finished `verification` of CODES by `list_rules` found and could not see, and then what is there
    twice that no root loads together.
    """
    for result in verification.results:
        if isinstance(result, Finding) or result.outcome is Outcome.UNKNOWN:
            yield result
    files = ScannedFiles(
        tuple(verification.images),
        tuple(verification.load_sets),
        {one_line(verification.inputs.show(file.path)): _size(file.path) for file in verification.inputs.files},
    )
    if not files.images:
        return
    try:
        if _DUPLICATE in verification.codes:
            yield from duplicate_library.check_scanned(files, verification.settings)
        if _SPLIT in verification.codes:
            yield from state_copies.check_scanned(files, verification.settings)
    except (MalformedElfError, UnreadableFileError) as met:
        error = show_error(met, verification.inputs.show)
        yield Check(_DUPLICATE, error.path, Outcome.UNKNOWN, str(error))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # it vanished since it was read; its path and build ID are evidence enough
