"""The rules, one a file. They read no file and print nothing.

LOAD_SET_RULES are those that look at what a process loads. A check of a healthy program needs no others, so these are
in modules of their own: link_rules.py has LINK_RULES, all about how files were linked, and program_rules.py those about
ExecuTorch's files (LC7...), and ALL_RULES. The lists are written by hand, so that "go to definition" always works, and
in the order of the codes.
"""

from __future__ import annotations

from linkcheck.rules import (
    absent_state,
    duplicate_library,
    forbidden_needed,
    missing_export,
    missing_import,
    missing_needed,
    private_definition,
    private_thread_local,
    soname_mismatch,
    split_state,
    undefined_symbol,
    unreachable_needed,
    unresolved_needed,
    unsatisfied_version,
    wrong_machine,
    wrong_provider,
)

LOAD_SET_RULES = (
    wrong_machine.RULE,  # LC102
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
)

#: The code that carries "this input is no file we could judge", and the one of a file whose numbers do not fit it.
KIND_CODE, MALFORMED_CODE = "LC101", "LC103"
#: Codes of the rules in program_rules.py, and of those in link_rules.py about the policy.
PROGRAM_CODES = ("LC701", "LC702", "LC703", "LC704", "LC705", "LC706", "LC707")
_POLICY_CODES = ("LC901", "LC902", "LC903")

#: Every code, for policies to be checked against.
ALL_CODES = tuple(
    sorted((KIND_CODE, MALFORMED_CODE, *[rule.meta.code for rule in LOAD_SET_RULES], *PROGRAM_CODES, *_POLICY_CODES))
)
