"""The list of all rules about how files were linked; __init__.py has those that every check needs."""

from __future__ import annotations

from linkcheck.rules import (
    absent_state,
    duplicate_library,
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
    unused_policy_entry,
    unused_waiver,
    wrong_machine,
    wrong_provider,
)

LINK_RULES = (
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
    unused_waiver.RULE,  # LC901
    expired_waiver.RULE,  # LC902
    unused_policy_entry.RULE,  # LC903
)
