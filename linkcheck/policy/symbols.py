"""Compares the symbols a policy speaks of with the names of dynamic symbol tables. Judges nothing, reads no file.

Mangled names are looked up as they are. C++ names that no profile knows are compared with demangled ones, and only
the entries of a table that could match are demangled (see demangle.py).

In a policy's text `*` stands for anything, but after a word inside brackets it is a C++ pointer: `f(char*)` means
that one function, `f(*)` every `f`, and `ns::get*` everything in `ns` that starts with `get`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from linkcheck.errors import UndemangledNameError
from linkcheck.policy.settings import SymbolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from linkcheck.model import Symbol, SymbolTable


#: A C++ name in a message; with templates in its parameters one can take a hundred lines.
_LONGEST_SHOWN = 512


def make_spec(text: str, mangled_names: Mapping[str, tuple[str, ...]]) -> SymbolSpec:
    """The SymbolSpec for the policy's `text`; `mangled_names` are the C++ names known to the profiles in force.

    A mangled name, a plain C name or a known C++ name gets its exact names; everything else is left to be matched.
    Spaces that C++ does not need do not count: `CUstream_st *` is `CUstream_st*`.
    """
    if (exact := mangled_names.get(text)) is not None:
        return SymbolSpec(text, exact)
    wanted = normalise(text)
    for known, mangled in mangled_names.items():
        if normalise(known) == wanted:
            return SymbolSpec(text, mangled)
    if len(_split_at_wildcards(wanted)) == 1 and not _is_cxx(wanted):
        return SymbolSpec(text, (wanted,))
    return SymbolSpec(text)


def find_fault(text: str) -> str | None:
    """Why `text` can match no symbol, or None when it may."""
    if not text.strip():
        return "an empty name matches no symbol"
    if "@" in text and "(" not in text:
        return f"write the symbol without its version: {text.partition('@')[0]}"
    return None


def matching_exports(table: SymbolTable, spec: SymbolSpec) -> tuple[Symbol, ...]:
    """The definitions in `table` that another image can bind to and that `spec` means.

    Raises UndemangledNameError when a C++ name would have to be compared and cannot be.
    """
    if spec.mangled:
        return tuple(symbol for name in spec.mangled for symbol in table.exported(name))
    matches = _make_matcher(spec.text)
    return tuple(symbol for symbol in table.exports() if matches(symbol.name))


def matching_imports(table: SymbolTable, spec: SymbolSpec) -> tuple[Symbol, ...]:
    """The undefined entries of `table` that `spec` means. Raises as matching_exports."""
    if spec.mangled:
        return tuple(symbol for name in spec.mangled if (symbol := table.imported(name)) is not None)
    matches = _make_matcher(spec.text)
    return tuple(symbol for symbol in table.imports() if matches(symbol.name))


def matching_private(table: SymbolTable, spec: SymbolSpec) -> tuple[str, ...]:
    """The names that only `.symtab` defines and that `spec` means, as far as its words tell (SymbolTable.private_with).

    Raises UndemangledNameError when there are some to compare and none can be.
    """
    if spec.mangled:
        return table.private(spec.mangled)
    names = table.private_with(_parts_of_names(normalise(spec.text)))
    if not names:
        return ()
    matches = _make_matcher(spec.text)
    return tuple(name for name in names if matches(name))


def is_pattern(spec: SymbolSpec) -> bool:
    """Whether `spec` has a wildcard, so that it may mean names that nobody thought of."""
    return not spec.mangled and len(_split_at_wildcards(normalise(spec.text))) > 1


def matches_name(spec: SymbolSpec, name: str) -> bool:
    """Whether `spec` means the symbol that a symbol table or a message calls `name`. Raises as matching_exports."""
    if name in spec.mangled or normalise(name) == normalise(spec.text):
        return True
    return not spec.mangled and _make_matcher(spec.text)(name)


def display(symbol: SymbolSpec | str, mangled_names: Mapping[str, tuple[str, ...]]) -> str:
    """What messages call `symbol`, a spec or a name of a symbol table: C++ names as people write them.

    The policy's own text and the names that a profile knows come before what demangling gives. A mangled name stays one
    when it cannot be demangled, or would fill a page.
    """
    text = symbol.text if isinstance(symbol, SymbolSpec) else symbol
    return next((known for known, mangled in mangled_names.items() if text in mangled), None) or _spell(text)


@lru_cache(maxsize=1024)
def _spell(name: str) -> str:
    if not name.startswith("_Z"):
        return name
    from linkcheck.policy.demangle import make_demangler

    try:
        spelt = make_demangler()(name)
    except UndemangledNameError:
        return name
    return spelt if spelt is not None and len(spelt) <= _LONGEST_SHOWN else name


def normalise(name: str) -> str:
    """`name` without the spaces that C++ does not need, so that spellings of one name compare equal.

    Spaces stay between two words (`unsigned long`); `vector<int, A<int> >` becomes `vector<int,A<int>>`.
    """
    name = " ".join(name.split())
    return re.sub(r"(?<!\w) | (?!\w)", "", name) if " " in name else name


def _is_cxx(text: str) -> bool:
    """Whether `text` is a C++ name as people write it, not a name as a symbol table has it."""
    return not text.startswith("_Z") and any(mark in text for mark in ("::", "(", " "))


def _make_matcher(text: str) -> Callable[[str], bool]:
    """A function that says whether `text`, which may hold wildcards, means a symbol table's name."""
    text = normalise(text)
    pieces = _split_at_wildcards(text)
    if not _is_cxx(text):
        return lambda name: _fits(pieces, name)
    # A function named without its parameters means all of its overloads; else a forgotten () would match nothing,
    # and a state that nothing matches passes every check.
    overloads = None if "(" in text.replace(_ANONYMOUS, "") else [*pieces[:-1], f"{pieces[-1]}(", ""]
    words = _words_in_mangled_names(text)
    demangle: Callable[[str], str | None] | None = None

    def matches(name: str) -> bool:
        nonlocal demangle
        if not name.startswith("_Z"):  # a name as messages show it, or a C name
            shown: str | None = name
        elif all(word in name for word in words):
            if demangle is None:
                from linkcheck.policy.demangle import make_demangler

                demangle = make_demangler()
            shown = demangle(name)
        else:
            return False
        if shown is None:
            return False
        shown = normalise(shown)
        return _fits(pieces, shown) or (overloads is not None and _fits(overloads, shown))

    return matches


_ANONYMOUS = "(anonymous namespace)"
#: Words of C++ names that mangled names spell otherwise or not at all (Itanium C++ ABI, 5.1 "External Names"):
#: builtin types and operators, the abbreviated members of std, and the prose that demanglers add.
# fmt: off
_ABBREVIATED = frozenset((
    "VTT", "_Complex", "_Float128", "_Float16", "_Float32", "_Float32x", "_Float64", "_Float64x", "_Imaginary", "abi",
    "allocator", "anonymous", "arg", "auto", "basic_iostream", "basic_istream", "basic_ostream", "basic_string",
    "bfloat16_t", "bool", "char", "char16_t", "char32_t", "char8_t", "char_traits", "clone", "co_await", "complex",
    "const", "construction", "covariant", "decimal128", "decimal32", "decimal64", "decltype", "default", "delete",
    "double", "false", "fixed", "float", "for", "function", "guard", "half", "imaginary", "init", "initialization",
    "initializer", "int", "iostream", "istream", "lambda", "long", "module", "name", "namespace", "new", "noexcept",
    "non", "nullptr", "nullptr_t", "operator", "ostream", "parm", "reference", "requires", "restrict", "return",
    "short", "signed", "sizeof", "static", "std", "string", "template", "temporary", "this", "thread_local", "thunk",
    "tls", "to", "transaction", "true", "type", "typeinfo", "typename", "unnamed", "unsigned", "variable", "virtual",
    "void", "volatile", "vtable", "wchar_t", "wrapper",
))
# fmt: on


def _words_in_mangled_names(text: str) -> tuple[str, ...]:
    """Identifiers that every mangled form of the C++ name `text` contains, so that the others need no demangling.

    Only those in front of the parameters: they suffice, and types there have more abbreviations.
    """
    front = text.replace(_ANONYMOUS, "").partition("(")[0]
    words = re.findall(r"(?<!\w)[A-Za-z_]\w*", front)
    return tuple(word for word in words if word not in _ABBREVIATED and not word.startswith("__"))


def _parts_of_names(text: str) -> tuple[str, ...]:
    """What every name of a symbol table that the normalised `text` means contains: few other names do."""
    if not _is_cxx(text):
        return tuple(piece for piece in _split_at_wildcards(text) if piece)
    # Of a whole identifier the mangled name has the length, too (<source-name>): `7session`.
    front = text.replace(_ANONYMOUS, "").partition("(")[0]
    return tuple(
        word if f"{word}*" in front or f"*{word}" in front or f"~{word}" in front else f"{len(word.encode())}{word}"
        for word in _words_in_mangled_names(text)
    )


def _split_at_wildcards(text: str) -> list[str]:
    """The parts of the normalised `text` between its wildcards; one part when there is none."""
    pieces = [""]
    depth = 0
    for index, character in enumerate(text):
        if character == "*" and not (depth > 0 and _is_pointer(text, index)):
            pieces.append("")
            continue
        depth += (character in "(<") - (character in ")>" and depth > 0)
        pieces[-1] += character
    return pieces


def _is_pointer(text: str, index: int) -> bool:
    """Whether the `*` at `index`, inside brackets, ends a type; at the very end of a text it cannot."""
    before = text[:index].rstrip("*")[-1:]
    return index + 1 < len(text) and (before.isalnum() or before in ("_", ">"))


def _fits(pieces: list[str], name: str) -> bool:
    """Whether `name` is the `pieces` with anything between them. Linear in the name, unlike a regular expression."""
    if len(pieces) == 1:
        return name == pieces[0]
    first, *middle, last = pieces
    position = len(first)
    if not name.startswith(first):
        return False
    for piece in middle:
        position = name.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return name.endswith(last) and len(name) - len(last) >= position
