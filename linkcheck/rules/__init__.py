"""The rules, one a file. They read no file and print nothing.

ALL_RULES is the one list: written by hand, so that "go to definition" always works, and in the order of the codes.
"""

from __future__ import annotations

from linkcheck.rules import (
    absent_state,
    blob_malformed,
    duplicate_library,
    engine_inline_and_named,
    engine_key_mismatch,
    engine_misaligned,
    engine_missing,
    engine_stored_twice,
    expired_waiver,
    forbidden_needed,
    malformed_elf,
    missing_export,
    missing_import,
    missing_needed,
    not_a_shared_object,
    private_definition,
    private_thread_local,
    soname_mismatch,
    split_state,
    undefined_symbol,
    unreachable_needed,
    unresolved_needed,
    unsatisfied_version,
    unused_engine,
    unused_policy_entry,
    unused_waiver,
    wrong_machine,
    wrong_provider,
)

ALL_RULES = (
    not_a_shared_object.RULE,  # LC101
    wrong_machine.RULE,  # LC102
    malformed_elf.RULE,  # LC103
    soname_mismatch.RULE,  # LC104
    missing_needed.RULE,  # LC201
    unresolved_needed.RULE,  # LC202
    unreachable_needed.RULE,  # LC203
    forbidden_needed.RULE,  # LC204
    missing_import.RULE,  # LC301
    private_definition.RULE,  # LC302
    wrong_provider.RULE,  # LC303
    undefined_symbol.RULE,  # LC304
    unsatisfied_version.RULE,  # LC305
    missing_export.RULE,  # LC306
    split_state.RULE,  # LC401
    absent_state.RULE,  # LC402
    duplicate_library.RULE,  # LC403
    private_thread_local.RULE,  # LC404
    engine_stored_twice.RULE,  # LC701
    engine_inline_and_named.RULE,  # LC702
    engine_missing.RULE,  # LC703
    engine_misaligned.RULE,  # LC704
    blob_malformed.RULE,  # LC705
    unused_engine.RULE,  # LC706
    engine_key_mismatch.RULE,  # LC707
    unused_waiver.RULE,  # LC901
    expired_waiver.RULE,  # LC902
    unused_policy_entry.RULE,  # LC903
)

#: Every code, for policies to be checked against.
ALL_CODES = tuple(rule.meta.code for rule in ALL_RULES)
