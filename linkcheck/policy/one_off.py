"""Demands from the command line, for a build without a policy file, as roles. Reads no file and no arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import UsageProblemError
from linkcheck.policy.settings import Role
from linkcheck.policy.symbols import find_fault, make_spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def make_one_off_roles(
    *,
    require_needed: Iterable[str] = (),
    require_import: Iterable[str] = (),
    forbid_needed: Iterable[str] = (),
    mangled_names: Mapping[str, tuple[str, ...]],
) -> tuple[Role, ...]:
    """One Role for each value of `--require-needed`, `--require-import` and `--forbid-needed`, for the roots only.

    Each has its own role because each must hold (a role's `need` lists alternatives), and so that messages name the
    option. Raises UsageProblemError for a value that can match nothing.
    """
    roles: list[Role] = []
    for soname in require_needed:
        option = _named("--require-needed", soname)
        roles.append(Role(option, need=(soname,), roots_only=True))
    for symbol in require_import:
        option = _named("--require-import", symbol)
        if fault := find_fault(symbol):
            raise UsageProblemError(f"{option}: {fault}")
        roles.append(Role(option, import_=(make_spec(symbol, mangled_names),), roots_only=True))
    for pattern in forbid_needed:
        option = _named("--forbid-needed", pattern)
        roles.append(Role(option, forbid_need=(pattern,), roots_only=True))
    return tuple(roles)


def _named(option: str, value: str) -> str:
    if not value.strip():
        raise UsageProblemError(f"{option}: an empty value matches nothing")
    return f"{option} {value}"
