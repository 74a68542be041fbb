"""LC302 private-definition: a file defines symbols that it must leave to others.

## What it checks

Every file of the load set that is not an owner of a state, but defines one of the state's symbols: in its dynamic
symbol table, or, for files that still have one, in `.symtab` as a local or hidden symbol (not for a state with
`exported-only`). A program's copy of a library's object (R_*_COPY) is no definition of its own.

Every role of the policy with a `forbid-export` list: the file that plays the role must not define any of these
symbols for others to bind to.

## Why it matters

The definition brings its own variable along. Whether the process then has one copy or two depends on visibility, on
load order and on RTLD_LOCAL, that is on luck. It is an error where the file's role says that it must import the
symbol, and for a state with `only-with-owner`. Elsewhere it is information, and LC401 tells whether the process really
has two copies.

## Bad

```console
$ g++ -c -fPIC caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ g++ runner.cpp libextension_cuda.a -o runner
$ nm runner | grep -c ' T .*getCallerStream'
1
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ nm runner | grep -c ' U .*getCallerStream'
1
$ linkcheck verify runner
```

## Causes and remedies

Link the shared owner and no archive, object library or source file that contains the symbols. Hiding the copy
(`-fvisibility=hidden`, `--exclude-libs`) does not help: it makes the second copy certain. Every file that includes a
header has what the header defines (inline variables, static members of templates): where the owner alone is to have it,
only declare it in the header, and define it in one source file of the owner.

A symbol that `forbid-export` names and that no state is behind may stay in the file when it is hidden: a version
script with `local: *;`, or `-fvisibility=hidden`.

## Options

`owner`, `symbols` and `exported-only` of the `[[state]]`; `forbid-export` of a `[[role]]`.

## What it cannot see

A hidden copy in a stripped file leaves no symbol; LC301 and LC404 look for what is missing instead. What a filter
(DT_FILTER, DT_AUXILIARY) stands for is not looked at, so that such a file is `unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.scope import describe_filters
from linkcheck.model import Check, Finding, Location, Outcome, Severity
from linkcheck.rules.ownership import (
    defined_symbols,
    definers,
    imported_symbols,
    is_owner,
    list_definitions,
    owner_modules,
    private_symbols,
    roles_of,
    state_names,
    state_of,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import consequence, forbidden_by, link_remedy, owner_text, shown
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Role, Settings, State
    from linkcheck.rules.header_code import Definitions

META = RuleMeta("LC302", "private-definition", "a file defines what it must leave to its owner", Severity.ERROR, "0.1")


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a result for each file that touches a state it does not own, and for each role that forbids exports."""
    for state in settings.states:
        if state.only_with_owner and not owner_modules(state, load_set):
            continue
        definitions: Definitions | None = None
        for index, module in enumerate(load_set.modules):
            image = module.image
            if is_owner(image, state, load_set):
                continue
            defined = defined_symbols(image, state)
            private = () if defined or state.exported_only else private_symbols(module, state)
            if defined:
                definitions = definitions or _describe_definitions(load_set, state)
                yield _finding(load_set, index, settings, state, defined, definitions)
            elif private:
                yield _finding(load_set, index, settings, state, private, None)
            elif image.symbols.unseen is not None:
                yield Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
            elif imported_symbols(image, state):
                yield Check(META.code, image.path, Outcome.PASS, f"imports the {state.name}, defines none of it")
    for index, module in enumerate(load_set.modules):
        if settings.states and module.image.filters:
            yield Check(META.code, module.image.path, Outcome.UNKNOWN, describe_filters(load_set, (index,)))
        for role in roles_of(index, load_set, settings):
            if role.forbid_export:
                yield _judge_exports(module.image, role, settings)


def _judge_exports(image: Image, role: Role, settings: Settings) -> RuleResult:
    forbidden = role.forbid_export
    names = unique(symbol.name for spec in forbidden for symbol in list_definitions(image, spec))
    if not names:
        if image.symbols.unseen is not None:
            return Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
        return Check(META.code, image.path, Outcome.PASS, "exports nothing that is forbidden")
    return META.finding(
        f"{image.path} exports {shown(names, settings)}, {forbidden_by(role)}: others may bind to it.",
        "Take the code out of the file, or, when only this file uses it, hide it with a version script (`local: *;`) "
        "or -fvisibility=hidden.",
        Location(image.path, names[0]),
        related=tuple(Location(image.path, name) for name in names[1:]),
        evidence={"symbols": list(names), "forbidden": [spec.text for spec in forbidden], "role": role.name},
    )


def _describe_definitions(load_set: LoadSet, state: State) -> Definitions:
    from linkcheck.rules.header_code import describe_definitions

    names = state_names(state, load_set)
    return describe_definitions(load_set, definers(load_set, names), names)


def _finding(
    load_set: LoadSet,
    index: int,
    settings: Settings,
    state: State,
    names: tuple[str, ...],
    definitions: Definitions | None,
) -> Finding:
    """The finding about module `index`; `definitions` are those of the load set, None for names that it hides."""
    image = load_set.modules[index].image
    must_import = any(
        state_of(spec, settings) is state for role in roles_of(index, load_set, settings) for spec in role.import_
    )
    severity = META.severity if must_import or state.only_with_owner else Severity.INFO
    seen = "has a private definition (.symtab) of" if definitions is None else "exports its own definition of"
    belongs = f"the {state.name} belongs to {owner_text(state)} alone"
    remedy = link_remedy(state)
    if definitions is not None and definitions.from_header:
        from linkcheck.rules.header_code import header_remedy

        remedy = header_remedy(state, definitions)
        if severity is Severity.INFO:
            belongs = "so has every file that includes the header"
            remedy = "" if definitions.merged else remedy
    return META.finding(
        f"{image.path} {seen} {shown(names, settings)}; {belongs}."
        f"{consequence(state) if severity is Severity.ERROR else ''}",
        remedy,
        Location(image.path, names[0]),
        related=tuple(Location(image.path, name) for name in names[1:]),
        evidence={
            "symbols": list(names),
            "exported": definitions is not None,
            "state": state.name,
            "role_demands_import": must_import,
        },
        severity=severity,
    )


RULE = Rule(META, __doc__ or "", check_load_set=check)
