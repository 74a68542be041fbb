"""The rules, one a file. They read no file and print nothing.

LINK_RULES are those about how files were linked. Those about ExecuTorch's files (LC7...) are in program_rules.py, which
has ALL_RULES, too: a check of a program needs none of them, and importing them takes a millisecond. Both lists are
written by hand, so that "go to definition" always works, and in the order of the codes.
"""

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

#: Codes of the rules in program_rules.py.
PROGRAM_CODES = ("LC701", "LC702", "LC703", "LC704", "LC705", "LC706", "LC707")

#: Every code, for policies to be checked against.
ALL_CODES = tuple(sorted((*[rule.meta.code for rule in LINK_RULES], *PROGRAM_CODES)))
