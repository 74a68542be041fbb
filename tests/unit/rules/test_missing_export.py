"""LC306 missing-export, on plain values: a file that is to stand in for an owner, and the owner a process loads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from linkcheck.model import (
    Image,
    Outcome,
    Severity,
    Symbol,
    SymbolBinding,
    SymbolType,
    SymbolVersion,
    Visibility,
)
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.rules import missing_export
from linkcheck.rules.rule import Candidate
from tests.unit.rules.candidates import SETTINGS, SHARED, candidate
from tests.unit.rules.worlds import (
    ACCESSOR,
    GUARD,
    GUARD_BASE,
    GUARD_END,
    GUARD_END_BASE,
    OWNER,
    PROFILE,
    checks,
    findings,
    image,
    load_set,
    only_finding,
    outcomes,
    owner,
    role,
    runner,
    small_policy,
    spec,
)

if TYPE_CHECKING:
    from linkcheck.policy.settings import Settings


def versioned(name: str, *, hidden: bool) -> Symbol:
    version = SymbolVersion("V1", hidden=hidden)
    return Symbol(name, SymbolBinding.GLOBAL, SymbolType.FUNC, Visibility.DEFAULT, True, 64, 8, version)


def test_passes_any_alternative_of_a_symbol() -> None:
    for guard in (GUARD, GUARD_BASE):
        subject = candidate(image("lib/x.so", exports=(ACCESSOR, guard)))
        assert outcomes(missing_export.check_file(subject, SETTINGS)) == [Outcome.PASS]


def test_finds_a_missing_symbol_and_names_it() -> None:
    (finding,) = findings(missing_export.check_file(candidate(image("lib/x.so", exports=(ACCESSOR,))), SETTINGS))
    assert finding.primary.symbol == "Guard::Guard()"
    assert finding.evidence["missing"] == ["Guard::Guard()"]


def test_cannot_see_a_symbol_in_a_part_of_the_table() -> None:
    subject = candidate(image("lib/x.so", exports=(ACCESSOR,), unseen="no hash table tells how many symbols there are"))
    (check,) = missing_export.check_file(subject, SETTINGS)
    assert outcomes([check]) == [Outcome.UNKNOWN]
    seen = candidate(image("lib/x.so", exports=(ACCESSOR, GUARD), unseen="part of the table"))
    assert outcomes(missing_export.check_file(seen, SETTINGS)) == [Outcome.PASS]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (image("x", imports=(ACCESSOR,)), "accessor() (imported, not defined)"),
        (image("x", private=(ACCESSOR,)), "accessor() (defined, but hidden or local)"),
        (
            replace(image("x"), symbols=ListedSymbols((versioned(ACCESSOR, hidden=True),))),
            "accessor() (only with the version @V1, which new links do not bind to)",
        ),
        (image("x", needed=(f"{OWNER}.1",)), f"It needs {OWNER}.1 itself"),
    ],
)
def test_finds_what_is_there_instead(table: Image, words: str) -> None:
    (finding,) = findings(missing_export.check_file(candidate(table), SETTINGS))
    assert words in finding.message


def test_passes_a_default_version() -> None:
    table = ListedSymbols((versioned(ACCESSOR, hidden=False), versioned(GUARD, hidden=False)))
    subject = candidate(replace(image("x"), symbols=table))
    assert outcomes(missing_export.check_file(subject, SETTINGS)) == [Outcome.PASS]


def test_cannot_see_an_owner_in_what_stands_for_none() -> None:
    assert outcomes(missing_export.check_file(Candidate(SHARED, image("x")), SETTINGS)) == [Outcome.NOT_APPLICABLE]
    assert outcomes(missing_export.check_file(candidate(None), SETTINGS)) == [Outcome.NOT_APPLICABLE]


# ---------------------------------------------------------------- in a process


def test_finds_a_loaded_owner_that_hides_what_others_import() -> None:
    world = load_set(runner(), owner(exports=(ACCESSOR,), private=(GUARD, GUARD_END)))
    finding = only_finding(missing_export.check_load_set(world, PROFILE))
    assert (finding.severity, finding.primary.path) == (Severity.ERROR, f"lib/{OWNER}")
    assert "missing: executorch::extension::cuda::CallerStreamGuard::CallerStreamGuard(CUstream_st*)" in finding.message
    assert "defined, but hidden or local" in finding.message
    assert "caller stream" in finding.message


def test_finds_what_a_role_must_export() -> None:
    policy = small_policy(role(export=(spec("plugin_init"), spec("plugin_version"))))
    world = load_set(image("lib/p.so", exports=("plugin_version",)))
    finding = only_finding(missing_export.check_load_set(world, policy))
    assert finding.message.startswith("lib/p.so does not export plugin_init, as a part must")
    assert finding.evidence["missing"] == ["plugin_init"]
    assert finding.primary.symbol == "plugin_init"


def test_passes_an_owner_with_one_form_of_constructor_and_destructor() -> None:
    world = load_set(runner(), owner(exports=(ACCESSOR, GUARD_BASE, GUARD_END_BASE)))
    assert checks(missing_export.check_load_set(world, PROFILE)) == [
        (f"lib/{OWNER}", Outcome.PASS, "exports 3 symbols of the caller stream")
    ]


def test_passes_an_owner_that_lacks_only_what_nobody_imports() -> None:
    world = load_set(runner(imports=(ACCESSOR,)), owner(exports=(ACCESSOR,)))
    assert outcomes(missing_export.check_load_set(world, PROFILE)) == [Outcome.PASS]


def test_tells_apart_what_is_hidden_and_what_is_not_there() -> None:
    policy = small_policy(role(export=(spec("plugin_exit"),)))
    absent = only_finding(missing_export.check_load_set(load_set(image("lib/p.so", exports=("x",))), policy))
    assert absent.message.endswith("so no other file can use it. No definition of it is in sight.")
    assert absent.remedy.startswith("Link the object that defines it into this file")
    hidden = only_finding(missing_export.check_load_set(load_set(image("lib/p.so", private=("plugin_exit",))), policy))
    assert hidden.message.endswith("so no other file can use it.")
    assert hidden.remedy.startswith("Export the symbols with default visibility: look for -fvisibility=hidden")


def test_passes_what_a_role_must_export() -> None:
    policy = small_policy(role(export=(spec("plugin_init"),)))
    world = load_set(image("lib/p.so", exports=("plugin_init",)))
    assert outcomes(missing_export.check_load_set(world, policy)) == [Outcome.PASS]


@pytest.mark.parametrize("policy", [PROFILE, small_policy(role(export=(spec("plugin_init"),)))])
def test_cannot_see_an_export_in_a_table_without_an_end(policy: Settings) -> None:
    world = load_set(runner(), owner(exports=(), unseen="no hash table tells how many symbols there are"))
    results = checks(missing_export.check_load_set(world, policy), Outcome.UNKNOWN)
    assert results == [(f"lib/{OWNER}", Outcome.UNKNOWN, "no hash table tells how many symbols there are")]


def test_cannot_see_what_nobody_uses() -> None:
    assert list(missing_export.check_load_set(load_set(runner(imports=()), owner()), PROFILE)) == []


@pytest.mark.parametrize("type_", [SymbolType.OBJECT, SymbolType.TLS, SymbolType.COMMON])
def test_finds_data_that_bears_a_functions_name(type_: SymbolType) -> None:
    data = Symbol(ACCESSOR, SymbolBinding.GLOBAL, type_, Visibility.DEFAULT, True, 64, 8)
    whole = image("lib/x.so", exports=(GUARD,))
    subject = candidate(replace(whole, symbols=ListedSymbols((data, *whole.symbols))))
    finding = only_finding(missing_export.check_file(subject, SETTINGS))
    assert "missing: accessor() (it is data, not a function)" in finding.message


def test_finds_an_owner_that_needs_another_owner() -> None:
    other = "libexecutorch_extension_cuda.so"
    exports = (ACCESSOR, GUARD)
    both = candidate(image("lib/x.so", soname=OWNER, needed=(other,), exports=exports))
    finding = only_finding(missing_export.check_file(both, SETTINGS))
    assert f"needs the owner {other} itself: two copies in one process" in finding.message
    itself = candidate(image("lib/x.so", soname=OWNER, needed=(OWNER, "libc.so.6"), exports=exports))
    assert outcomes(missing_export.check_file(itself, SETTINGS)) == [Outcome.PASS]


def test_finds_a_filter_in_place_of_the_owner() -> None:
    subject = candidate(image("lib/x.so", soname=OWNER, filters=("libg.so",), exports=(ACCESSOR, GUARD)))
    assert "lib/x.so is a filter for libg.so" in only_finding(missing_export.check_file(subject, SETTINGS)).message
