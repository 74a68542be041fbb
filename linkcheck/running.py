"""Judges one running process by the rules of verify, and says what of it cannot be seen. Reads no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, UndemangledNameError, UnreadableFileError
from linkcheck.inputs.shown import show_error, show_load_set
from linkcheck.inputs.sources import Inputs
from linkcheck.model import Check, Outcome
from linkcheck.policy.settings import EVERY_FILE
from linkcheck.rules import (
    absent_state,
    duplicate_library,
    expired_waiver,
    forbidden_needed,
    missing_import,
    missing_needed,
    not_a_shared_object,
    private_definition,
    private_thread_local,
    split_state,
    unused_waiver,
    wrong_provider,
)
from linkcheck.rules.ownership import defined_symbols, needs_any
from linkcheck.text import one_line
from linkcheck.value import replace
from linkcheck.verification import Verification

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.inputs.live import LiveProcess
    from linkcheck.model import Image, RuleResult
    from linkcheck.policy.settings import Settings

#: What is asked of a running process: its states, and what roles demand. Whether libraries are found, LC202 and LC203,
#: is settled, for it runs; LC1xx look at single files. Of the policy its waivers: roles and states may be meant for
#: other programs (LC903).
CODES = tuple(
    rule.META.code
    for rule in (
        missing_needed,
        forbidden_needed,
        missing_import,
        private_definition,
        wrong_provider,
        split_state,
        absent_state,
        duplicate_library,
        private_thread_local,
        unused_waiver,
        expired_waiver,
    )
)
_FILE, _IMPORT, _SPLIT = not_a_shared_object.META.code, missing_import.META.code, split_state.META.code


class _LiveInputs(Inputs):
    """Inputs that are the files of a running process."""

    def __init__(self, live: LiveProcess) -> None:
        super().__init__()
        self._live = live

    def show(self, path: str) -> str:
        return self._live.show(path)


def judge_running(live: LiveProcess, settings: Settings, codes: frozenset[str]) -> list[RuleResult]:
    """What the rules with `codes` say about `live`, and a check for everything mapped that could not be seen."""
    results: list[RuleResult] = []
    try:
        is_python = _is_python(live.load_set.root)
    except (MalformedElfError, UnreadableFileError) as error:
        is_python = False
        results.append(_unknown(_FILE, error, live))
    if is_python:
        settings = _without_roles_of_programs(settings)
        if _IMPORT in codes:
            reason = "a Python interpreter plays no role of a program: what it opens does the work"
            results.append(Check(_IMPORT, one_line(live.load_set.root.path), Outcome.NOT_APPLICABLE, reason))

    verification = Verification(settings, _LiveInputs(live), live.system, codes)
    verification.judge_load_set(show_load_set(live.load_set, live.show))
    results += [
        Check(_FILE, one_line(unseen.path), Outcome.UNKNOWN, one_line(unseen.reason)) for unseen in live.mapped.unseen
    ]
    return [*results, *verification.results, *_namespaces(live, settings, codes)]


def _namespaces(live: LiveProcess, settings: Settings, codes: frozenset[str]) -> Iterator[RuleResult]:
    """A check for each file that defines a state and is loaded several times: each load has a state of its own."""
    if _SPLIT not in codes:
        return
    for mapped in live.mapped.images:
        if mapped.times < 2:
            continue
        for state in settings.states:
            try:
                defined = defined_symbols(mapped.image, state)
            except UndemangledNameError:
                continue  # LC401 says so
            except (MalformedElfError, UnreadableFileError) as error:
                yield _unknown(_SPLIT, error, live)
                break
            if defined:
                reason = (
                    f"it is loaded {mapped.times} times, each with its own {state.name}: by dlmopen, or for LD_AUDIT. "
                    "Who uses which cannot be seen from outside of the process"
                )
                yield Check(_SPLIT, one_line(mapped.image.path), Outcome.UNKNOWN, reason)


def _unknown(code: str, met: MalformedElfError | UnreadableFileError, live: LiveProcess) -> Check:
    error = show_error(met, live.show)
    return Check(code, error.path, Outcome.UNKNOWN, error.reason)


def _is_python(root: Image) -> bool:
    """Whether the program is a Python interpreter, with libpython built in or loaded.

    A program that embeds Python may export all of libpython, but is not called python3.
    """
    if not root.path.rpartition("/")[2].startswith("python3"):
        return False
    return needs_any(root, ("libpython*.so*",)) or bool(root.symbols.exported("Py_BytesMain"))


def _without_roles_of_programs(settings: Settings) -> Settings:
    """`settings` without the roles that any program plays for being one; a role that names its files stays."""
    return replace(
        settings,
        roles=tuple(role for role in settings.roles if role.kind != "executable" or role.files != EVERY_FILE),
    )
