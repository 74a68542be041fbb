"""LC306 missing-export: a library that is to own a shared state does not export its symbols.

## What it checks

That a library which is to stand in for the owner of a shared state exports every symbol of that state: defined in the
dynamic symbol table, not local, not hidden, and bindable without naming an old version. Of several mangled names for
one symbol (a constructor's C1 and C2) any one counts. Where the policy writes a function, data of that name does not
count.

`linkcheck prebuilt` asks it of the file that it judges, for every symbol of the state. `linkcheck verify` asks it of
every loaded owner, for those symbols that some loaded file imports (not of a program, `"<root>"`, that leaves them to
an owner library), and of every file whose role has an `export` list.
`prebuilt` also refuses a file that exports the symbols and needs another owner, which makes two copies, and one that is
a filter (DT_FILTER, DT_AUXILIARY), for ld.so looks into another library first.

## Why it matters

What the owner does not export, nobody can share. Dependents then fail to link, or somebody makes them link by adding
the source or an archive, and every such file has its own copy of the state.

## Bad

```console
$ g++ -shared -fPIC -fvisibility=hidden caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so
```

Here a user of the owner bears the owner's name, and imports the symbols itself:

```console
$ mkdir real && g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o real/libextension_cuda.so
$ g++ -shared -fPIC delegate.cpp -Lreal -lextension_cuda -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so
```

## Causes and remedies

* `-fvisibility=hidden` without an export macro, `-Wl,--exclude-libs,ALL` or a version script hides them: export them.
* The linker left the archive that holds the code out: link it with `-Wl,--whole-archive`, in the owner only.
* The file is another library, often a consumer of the owner: name the owner.
* An old build does not have the symbol yet: update it.

## Options

`symbols` of a `[[state]]` and `export` of a `[[role]]` in the policy list what must be exported.

## What it cannot see

Whether the code behind a symbol is the right one, and whether a process would find what the file itself leaves
undefined. When the dynamic symbol table cannot be read as a whole, a symbol
that was not found is reported as unknown, not as missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import UndemangledNameError
from linkcheck.model import Check, Finding, Location, Outcome, Severity, SymbolType
from linkcheck.policy.patterns import matches_any
from linkcheck.policy.settings import State
from linkcheck.policy.symbols import is_pattern, matching_private
from linkcheck.rules.ownership import (
    defined_symbols,
    imported_symbols,
    list_definitions,
    list_imports,
    owner_in_question,
    owner_modules,
    roles_of,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import counted, demanded_by, listed, name_symbol, owner_libraries
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Image, LoadSet, RuleResult, Symbol
    from linkcheck.policy.settings import Role, Settings, SymbolSpec
    from linkcheck.rules.rule import Candidate

META = RuleMeta(
    "LC306",
    "missing-export",
    "a library that is to own a shared state does not export its symbols",
    Severity.ERROR,
    "0.1",
)


def check_file(candidate: Candidate, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding when the candidate lacks exports of its state.

    Raises MalformedElfError when a symbol table entry that is looked at does not fit the file.
    """
    path = candidate.identity.path
    question = owner_in_question(candidate)
    if isinstance(question, str):
        yield Check(META.code, path, Outcome.NOT_APPLICABLE, question)
        return
    state, image = question
    try:
        missing = [spec for spec in state.symbols if not _bindable_exports(image, spec)]
    except UndemangledNameError as error:
        yield Check(META.code, path, Outcome.UNKNOWN, str(error))
        return
    if not missing and (owners := _needed_owners(image, state)):
        yield _second_owner(path, state, owners)
    elif not missing and image.filters:
        yield _filter(path, image, state)
    elif not missing:
        yield Check(
            META.code, path, Outcome.PASS, f"exports {counted(len(state.symbols), 'symbol')} of the {state.name}"
        )
    elif image.symbols.unseen is not None:
        names = ", ".join(name_symbol(spec, settings) for spec in missing)
        yield Check(META.code, path, Outcome.UNKNOWN, f"{names}: not found, but {image.symbols.unseen}")
    else:
        of = f"the {len(state.symbols)} symbols of the {state.name}"
        yield _finding(image, state, missing, f"{_count(missing, state.symbols)} of {of}", settings)


def check_load_set(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a result for each loaded owner that others import from, and for each file whose role lists exports."""
    for state in settings.states:
        if not any(imported_symbols(module.image, state) for module in load_set.modules):
            continue
        used = [spec for spec in state.symbols if any(list_imports(m.image, spec) for m in load_set.modules)]
        for index in _list_owners(state, load_set):
            yield _judge_exports(load_set.modules[index].image, state, used, settings)
    for index, module in enumerate(load_set.modules):
        for role in roles_of(index, load_set, settings):
            if role.export:
                yield _judge_exports(module.image, role, list(role.export), settings)


def _list_owners(state: State, load_set: LoadSet) -> tuple[int, ...]:
    """The owners that have to export: a program that may own the state leaves that to a library that does."""
    owners = owner_modules(state, load_set)
    root = load_set.root
    if owners[:1] != (0,) or len(owners) == 1 or matches_any(root.name, owner_libraries(state)):
        return owners
    return owners if defined_symbols(root, state) else owners[1:]


def _judge_exports(image: Image, source: State | Role, wanted: list[SymbolSpec], settings: Settings) -> RuleResult:
    """Judge what `source`, the state that `image` owns or the role that it plays, wants to be exported."""
    missing = [spec for spec in wanted if not _usable_exports(image, spec)]
    if not missing:
        whose = f"of the {source.name}" if isinstance(source, State) else demanded_by(source)
        return Check(META.code, image.path, Outcome.PASS, f"exports {counted(len(wanted), 'symbol')} {whose}")
    if image.symbols.unseen is not None:
        return Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
    if isinstance(source, State):
        of = f"the symbols of the {source.name} that other files import here"
        return _finding(image, source, missing, f"{_count(missing, wanted)} of {of}", settings)
    texts = [spec.text for spec in missing]
    names = listed([name_symbol(spec, settings) for spec in missing], "or")
    it = "it" if len(missing) == 1 else "them"
    message = f"{image.path} does not export {names}, {demanded_by(source)}, so no other file can use {it}."
    if any(_why(image, spec) or _hides(image, spec) for spec in missing):
        remedy = (
            "Export the symbols with default visibility: look for -fvisibility=hidden, --exclude-libs, version scripts."
        )
    else:
        message += f" No definition of {it} is in sight."
        remedy = (
            f"Link the object that defines {it} into this file, with default visibility, or correct the symbol in the "
            "policy. When the file has a definition and is stripped: look for -fvisibility=hidden and version scripts."
        )
    return META.finding(
        message,
        remedy,
        Location(image.path, texts[0]),
        related=tuple(Location(image.path, text) for text in texts[1:]),
        evidence={"missing": list(texts)},
    )


def _hides(image: Image, spec: SymbolSpec) -> bool:
    return not is_pattern(spec) and bool(matching_private(image.symbols, spec))


def _bindable_exports(image: Image, spec: SymbolSpec) -> tuple[Symbol, ...]:
    """The definitions that a new link can bind to: one of a hidden version (`name@V`) answers only who asks for V."""
    return tuple(s for s in _usable_exports(image, spec) if s.version is None or not s.version.hidden)


def _usable_exports(image: Image, spec: SymbolSpec) -> tuple[Symbol, ...]:
    """The definitions that are what the policy's text means: a name with parameters is a function's."""
    found = list_definitions(image, spec)
    return tuple(s for s in found if s.type not in _DATA) if "(" in spec.text else found


_DATA = frozenset({SymbolType.OBJECT, SymbolType.TLS, SymbolType.COMMON})


def _needed_owners(image: Image, state: State) -> list[str]:
    """The DT_NEEDED of `image` that name another owner of `state`; by its own name ld.so finds `image` itself."""
    return [n for n in image.needed if n != image.name and matches_any(n.rpartition("/")[2], state.owner)]


def _second_owner(path: str, state: State, owners: list[str]) -> Finding:
    return META.finding(
        f"{path} defines the {state.name} and needs the owner {listed(owners)} itself: two copies in one process.",
        f"Name {owners[0]}, the library that it needs, instead of this file, or link this file without it.",
        Location(path, state.name),
        evidence={"missing": [], "needed_owners": list(owners)},
    )


def _filter(path: str, image: Image, state: State) -> Finding:
    return META.finding(
        f"{path} is a filter for {listed(image.filters)} (DT_FILTER or DT_AUXILIARY): ld.so takes the {state.name} "
        "from there first, and this file's definitions may not be the ones that a process uses.",
        f"Link this file without -f and -F, or name {image.filters[0]}, if that is the library with the definitions.",
        Location(path, state.name),
        evidence={"missing": [], "filters": list(image.filters)},
    )


def _count(missing: Sequence[SymbolSpec], wanted: Sequence[SymbolSpec]) -> str:
    return "none" if len(missing) == len(wanted) else f"only {len(wanted) - len(missing)}"


def _finding(image: Image, state: State, missing: list[SymbolSpec], exported: str, settings: Settings) -> Finding:
    path = image.path
    reasons = {name_symbol(spec, settings): _why(image, spec) for spec in missing}
    owners = [needed for needed in image.needed if matches_any(needed, state.owner)]
    absent = "; ".join(f"{text} ({why})" if why else text for text, why in reasons.items())
    message = (
        f"{path} exports {exported}; missing: {absent}. "
        "What it does not export nobody can share, and every file that brings its own definition has its own copy."
    )
    if owners:
        message += f" It needs {owners[0]} itself: it is a user of the owner, not the owner."
        remedy = f"Name {owners[0]}, the library that it needs, instead of this file."
    else:
        remedy = (
            "Export the symbols with default visibility (look for -fvisibility=hidden, --exclude-libs and version "
            "scripts), or name the library that has them."
        )
    return META.finding(
        message=message,
        remedy=remedy,
        primary=Location(path, missing[0].text),
        related=tuple(Location(path, spec.text) for spec in missing[1:]),
        evidence={"missing": [spec.text for spec in missing], "needed_owners": list(owners)},
    )


def _why(image: Image, spec: SymbolSpec) -> str:
    """What the file holds in place of the export; empty when nothing is seen of it."""
    if list_imports(image, spec):
        return "imported, not defined"
    exports = list_definitions(image, spec)
    if exports and not _usable_exports(image, spec):
        return "it is data, not a function"
    for symbol in exports:
        if symbol.version is not None:
            return f"only with the version @{one_line(symbol.version.name)}, which new links do not bind to"
    if image.symbols.private(spec.mangled) or any(s.defined and s.name in spec.mangled for s in image.symbols):
        return "defined, but hidden or local"
    return ""


RULE = Rule(META, __doc__ or "", check_file=check_file, check_load_set=check_load_set)
