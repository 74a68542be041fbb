"""Symbols as people write them against names as symbol tables have them; c++filt is the judge of the demangler."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from linkcheck.errors import UndemangledNameError
from linkcheck.model import Symbol, SymbolBinding, SymbolType, Visibility
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.policy import demangle, symbols
from linkcheck.policy.demangle import make_demangler
from linkcheck.policy.settings import SymbolSpec
from linkcheck.policy.symbols import display, make_spec, matches_name, matching_exports, matching_imports, normalise

GUARD = "executorch::extension::cuda::CallerStreamGuard::CallerStreamGuard(CUstream_st*)"
C1 = "_ZN10executorch9extension4cuda17CallerStreamGuardC1EP11CUstream_st"
C2 = "_ZN10executorch9extension4cuda17CallerStreamGuardC2EP11CUstream_st"
ACCESSOR = "_ZN10executorch9extension4cuda15getCallerStreamEv"
KERNELS = "_ZN10executorch7runtime16register_kernelsENS0_4SpanIKNS0_6KernelEEE"

#: Names that real libraries export, of every shape the prefilter could stumble over.
MANGLED = (
    C1,
    ACCESSOR,
    KERNELS,
    "_Znwm",
    "_ZNSolsEi",
    "_ZSt4cout",
    "_ZTV3foo",
    "_ZTIN10executorch7runtime16BackendInterfaceE",
    "_ZNSt6vectorIiSaIiEE9push_backEOi",
    "_ZNSsC1EPKcRKSaIcE",
    "_ZNKSt5ctypeIcE8do_widenEc",
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
    "_Z3fooIZ3barvEUlvE_EvT_",
    "_ZN12_GLOBAL__N_13bazEv",
    "_ZN3fooILi3EEC2Ev",
    "_ZGVZN3foo3barEvE1x",
    "_ZN3foo3barB5cxx11Ev",
    "_ZNK3foocvSsEv",
    "_ZThn16_N3foo3barEv",
    "_ZN3fooIJilEE3barEPPKc",
    "_Z1fPFvPiE",
)


def table(*names: str, defined: bool = True) -> ListedSymbols:
    return ListedSymbols(
        tuple(
            Symbol(name, SymbolBinding.GLOBAL, SymbolType.FUNC, Visibility.DEFAULT, defined, 1 if defined else 0, 8)
            for name in names
        )
    )


def exported(text: str, *names: str) -> tuple[str, ...]:
    return tuple(symbol.name for symbol in matching_exports(table(*names), make_spec(text, {})))


@pytest.fixture
def no_demangler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise AssertionError("the demangler must not be asked for this")

    monkeypatch.setattr(demangle, "make_demangler", fail)


# ---------------------------------------------------------------- exact names


@pytest.mark.usefixtures("no_demangler")
@pytest.mark.parametrize("name", [C1, "omp_get_num_threads", "main", "environ"])
def test_mangled_and_c_names_are_exact(name: str) -> None:
    assert make_spec(name, {}) == SymbolSpec(name, (name,))
    assert exported(name, f"{name}2", name) == (name,)


@pytest.mark.usefixtures("no_demangler")
@pytest.mark.parametrize("text", [GUARD, GUARD.replace("*", " *"), f" {GUARD} ", GUARD.replace("(", " ( ")])
def test_a_known_cxx_name_stands_for_its_mangled_names_whatever_its_spaces(text: str) -> None:
    spec = make_spec(text, {GUARD: (C1, C2)})
    assert spec == SymbolSpec(text, (C1, C2))
    assert matching_exports(table(C2, ACCESSOR), spec) == table(C2).symbols
    assert matching_imports(table(C1, C2, defined=False), spec) == table(C1, C2, defined=False).symbols
    assert matching_imports(table(C1), spec) == ()


# ---------------------------------------------------------------- wildcards


@pytest.mark.usefixtures("no_demangler")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("omp_*", ("omp_get_num_threads", "omp_set_lock", "omp_")),
        ("*_lock", ("omp_set_lock",)),
        ("omp*_*k", ("omp_set_lock",)),
        ("*", ("omp_get_num_threads", "omp_set_lock", "_ZN3omp1fEv", "omp_")),
        ("_ZN3omp*", ("_ZN3omp1fEv",)),
        ("omp_*_", ()),
        ("[o]mp_*", ()),
        ("omp?set_lock", ()),
    ],
)
def test_patterns_on_names_as_they_are(text: str, names: tuple[str, ...]) -> None:
    assert exported(text, "omp_get_num_threads", "omp_set_lock", "_ZN3omp1fEv", "omp_") == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("executorch::extension::cuda::*", (C1, ACCESSOR)),
        ("executorch::*::getCallerStream()", (ACCESSOR,)),
        ("*::register_kernels(*)", (KERNELS,)),
        ("executorch::*Guard*", (C1,)),
        (GUARD, (C1,)),
        (GUARD.replace("CUstream_st*", "CUstream_st *"), (C1,)),
        (GUARD.replace("CUstream_st*", "*"), (C1,)),
        (GUARD.replace("CUstream_st*", "CUstream*)*"), ()),  # CUstream* is a pointer type here
        (GUARD.replace("CUstream_st*", "CUstream_st"), ()),
        (
            "executorch::runtime::register_kernels(executorch::runtime::Span<executorch::runtime::Kernel const>)",
            (KERNELS,),
        ),
        ("executorch::runtime::register_kernels(executorch::runtime::Span<*>)", (KERNELS,)),
        ("executorch::extension::cuda::getCallerStream(int)", ()),
        ("executorch::extension::cuda::getCallerStrea", ()),
        ("torch::*", ()),
    ],
)
def test_patterns_on_cxx_names(text: str, names: tuple[str, ...]) -> None:
    assert exported(text, C1, ACCESSOR, KERNELS, "getCallerStream", "main") == names


def test_a_function_named_without_parameters_means_its_overloads() -> None:
    assert exported("ns::f", "_ZN2ns1fEv", "_ZN2ns1fEi", "_ZN2ns2ffEv", "_ZN2ns1fE") == (
        "_ZN2ns1fEv",
        "_ZN2ns1fEi",
        "_ZN2ns1fE",
    )


def test_imports_are_matched_too() -> None:
    spec = make_spec("executorch::extension::cuda::*", {})
    assert [s.name for s in matching_imports(table(ACCESSOR, "main", defined=False), spec)] == [ACCESSOR]
    assert matching_imports(table(ACCESSOR), spec) == ()


def test_only_what_could_match_is_demangled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = make_demangler()

    def spy(name: str) -> str | None:
        asked.append(name)
        return real(name)

    monkeypatch.setattr(demangle, "make_demangler", lambda: spy)
    assert exported("executorch::runtime::register_*", *MANGLED, "main") == (KERNELS,)
    assert asked == [KERNELS]


@pytest.mark.parametrize("name", MANGLED)
def test_the_demangled_name_of_a_symbol_finds_it(name: str) -> None:
    shown = make_demangler()(name)
    assert shown is not None
    assert exported(shown, *MANGLED) == (name,)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc, which says where libstdc++ is, is not installed")
def test_every_cxx_export_of_the_cxx_runtime_is_found_by_its_demangled_name() -> None:
    """The prefilter may pass over no name, so thousands of real ones are tried."""
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile

    command = ["gcc", "-print-file-name=libstdc++.so.6"]
    with open(subprocess.check_output(command, text=True).strip(), "rb") as file:
        segment = next(s for s in ELFFile(file).iter_segments() if isinstance(s, DynamicSegment))
        names = {symbol.name for symbol in segment.iter_symbols() if symbol.name.startswith("_Z")}
    assert len(names) > 3000
    real = make_demangler()
    missed = []
    for name in sorted(names):
        shown = real(name)
        if shown is not None and symbols.find_fault(shown) is None and not matches_name(make_spec(shown, {}), name):
            missed.append((name, shown))
    assert missed == []


# ---------------------------------------------------------------- the demangler


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="c++filt (binutils) is not installed")
def test_the_demangler_agrees_with_cxxfilt() -> None:
    output = subprocess.run(["c++filt"], input="\n".join(MANGLED), capture_output=True, text=True, check=True).stdout
    real = make_demangler()
    ours = [normalise((real(name) or name).replace("std::ostream", "std::basic_ostream")) for name in MANGLED]
    theirs = [
        normalise(line.replace("std::basic_ostream<char, std::char_traits<char> >", "std::basic_ostream"))
        for line in output.splitlines()
    ]
    expanded = "std::basic_string<char,std::char_traits<char>,std::allocator<char>>"
    assert [line.replace("std::string", expanded) for line in ours] == theirs


@pytest.mark.parametrize("name", ["i", "main", "_Z", "_Zbad", "_ZN3foo", "", "_Z1f\udcff"])
def test_what_is_no_mangled_name_has_no_cxx_name(name: str) -> None:
    assert make_demangler()(name) is None


def bomb(levels: int) -> str:
    """A valid mangled name of a function taking pair<pair<…>, pair<…>>, nested: twice as long with each level."""

    def substitution(number: int) -> str:
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return "S_" if number == 0 else f"S{digits[number - 1]}_"

    name, previous, following = "_Z1f1A", "S_", 1
    for level in range(levels):
        name += f"{'1B' if level == 0 else 'S0_'}I{previous}{previous}E"
        following += 1 if level else 2
        previous = substitution(following - 1)
    return name


def test_a_name_that_grows_without_bound_is_refused_at_once() -> None:
    assert len(make_demangler()(bomb(10)) or "") > 10_000  # it really grows
    start = time.perf_counter()
    with pytest.raises(UndemangledNameError, match="too complicated"):
        exported("f(*", bomb(30))
    assert time.perf_counter() - start < 1
    with pytest.raises(UndemangledNameError, match="too complicated"):
        make_demangler()("_Z1f" + "P" * 10_000 + "i")


def test_without_a_cxx_runtime_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "_RUNTIMES", ("libno-such-runtime.so.1",))
    with pytest.raises(UndemangledNameError, match="write the policy's symbols as mangled names"):
        make_demangler()


# ---------------------------------------------------------------- display and comparison


@pytest.mark.usefixtures("no_demangler")
def test_display_uses_the_policys_words_and_known_names() -> None:
    assert display(SymbolSpec("f( )", ("_Z1fv",)), {}) == "f( )"
    assert display(C2, {GUARD: (C1, C2)}) == GUARD
    assert display(SymbolSpec(C2, (C2,)), {GUARD: (C1, C2)}) == GUARD
    assert display("plain_c", {GUARD: (C1, C2)}) == "plain_c"


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="c++filt (binutils) is not installed")
@pytest.mark.parametrize("name", [C1, C2, "_Z1fv", "_ZN4acme5tableEv", "_ZZN1n1fEvE1x", "_ZTV3Foo", "_Zno_such", "f"])
def test_display_spells_a_mangled_name_as_cxxfilt_does(name: str) -> None:
    done = subprocess.run(["c++filt", name], capture_output=True, text=True, check=True)
    assert display(name, {}) == display(SymbolSpec(name, (name,)), {}) == done.stdout.strip()


@pytest.mark.parametrize("name", [bomb(10), bomb(30), "_ZN4acme*"], ids=["long", "bomb", "pattern"])
def test_display_leaves_a_name_that_fills_a_page_or_cannot_be_read(name: str) -> None:
    assert display(name, {}) == name


def test_display_goes_without_a_cxx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "_RUNTIMES", ("libno-such-runtime.so.1",))
    assert display("_ZN5never4seenEv", {}) == "_ZN5never4seenEv"


@pytest.mark.parametrize(
    ("text", "name", "same"),
    [
        (GUARD, C2, True),
        (GUARD, GUARD.replace("*", " *"), True),
        ("executorch::*", C2, True),
        ("executorch::*", GUARD, True),
        ("omp_*", "omp_get_num_threads", True),
        ("omp_*", "kmp_x", False),
        (GUARD, ACCESSOR, False),
    ],
)
def test_matches_name_takes_both_spellings(text: str, name: str, same: bool) -> None:
    assert matches_name(make_spec(text, {GUARD: (C1, C2)}), name) is same


@pytest.mark.parametrize(
    ("spelling", "normal"),
    [
        ("f(unsigned  long *, A<B<int> >)", "f(unsigned long*,A<B<int>>)"),
        ("operator new (unsigned long)", "operator new(unsigned long)"),
        ("char const * const *", "char const*const*"),
    ],
)
def test_spaces(spelling: str, normal: str) -> None:
    assert normalise(spelling) == normal
