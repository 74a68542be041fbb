"""The list of the rules about ExecuTorch's files, and that of all rules; link_rules.py has those about links."""

from __future__ import annotations

from linkcheck.rules import (
    blob_malformed,
    engine_inline_and_named,
    engine_key_mismatch,
    engine_misaligned,
    engine_missing,
    engine_stored_twice,
    unused_engine,
)
from linkcheck.rules.link_rules import LINK_RULES

PROGRAM_RULES = (
    engine_stored_twice.RULE,  # LC701
    engine_inline_and_named.RULE,  # LC702
    engine_missing.RULE,  # LC703
    engine_misaligned.RULE,  # LC704
    blob_malformed.RULE,  # LC705
    unused_engine.RULE,  # LC706
    engine_key_mismatch.RULE,  # LC707
)

ALL_RULES = tuple(sorted((*LINK_RULES, *PROGRAM_RULES), key=lambda rule: rule.meta.code))
