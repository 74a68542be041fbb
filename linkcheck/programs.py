"""Judges ExecuTorch programs and their data files, for `pte`. What verify asks of programs is bundle.py's business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import EMPTY_NAME
from linkcheck.executorch.survey import survey_programs
from linkcheck.folding import fold
from linkcheck.model import Check, Outcome
from linkcheck.rules import PROGRAM_CODES, blob_malformed, expired_waiver, unused_waiver
from linkcheck.rules.program_rules import PROGRAM_RULES
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

#: What `pte` asks. Of the rules about the policy only those about waivers: roles and states are of no concern (LC903).
CODES = (*PROGRAM_CODES, unused_waiver.META.code, expired_waiver.META.code)


class JudgedPrograms(Value):
    """What the rules say about some programs, and what these hold."""

    results: tuple[RuleResult, ...]
    programs: ProgramSet


def judge_programs(paths: Sequence[str], settings: Settings, codes: frozenset[str], *, hashed: bool) -> JudgedPrograms:
    """What the rules with `codes` say about the programs and data files at `paths`; what cannot be read is unknown.

    The data files serve every program among them. Engines are read whole only when `hashed`.
    """
    survey = survey_programs([path for path in paths if path], hashed=hashed)
    results: list[RuleResult] = [
        Check(blob_malformed.META.code, path, Outcome.UNKNOWN, str(error))
        for path, error in (*(("", EMPTY_NAME) for path in paths if not path), *survey.errors)
    ]
    for rule in PROGRAM_RULES:
        if rule.check_programs is not None and rule.meta.code in codes:
            results += fold(rule.check_programs(survey.programs, settings), settings.waivers)
    return JudgedPrograms(tuple(results), survey.programs)
