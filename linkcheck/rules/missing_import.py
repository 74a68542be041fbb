"""LC301 missing-import: a file does not import a symbol that its role says it must take from the owner.

## What it checks

Every role of the policy with an `import` list (and `--require-import`): each file that plays the role must have the
symbols as undefined entries of its dynamic symbol table, or, being a program, use the owner's object by way of a copy
(R_*_COPY). The built-in profile asks it of programs (the accessor and
the guard of the caller stream) and of libraries that declare the owner or that register a CUDA delegate (the
accessor).

## Why it matters

An import is what makes the loader bind a use to the owner's one copy. A file that carries its own copy needs no
import, and when that copy is hidden and stripped nothing else is left to see: no symbol, no string. So the import
has to be there. `strip` cannot remove it, and it does not depend on section headers.

## Bad

```console
$ g++ -c -fPIC caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ g++ runner.cpp libextension_cuda.a -o runner && strip -s runner
$ nm -D runner | grep CallerStream || echo nothing
nothing
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner && strip -s runner
$ nm -D runner | grep getCallerStream
                 U _ZN10executorch9extension4cuda15getCallerStreamEv
$ linkcheck verify runner
```

## Causes and remedies

* A static archive, or an archive renamed to `.so`, on the link line: `linkcheck prebuilt FILE` names it.
* `--whole-archive`, an object library, or the source file compiled into the program: take them out.
* The file really never uses the state: then it does not play that role; narrow `files` of the role.
* It imports a part of what its role demands, and does not use the rest: call that, too, or judge the file by a role
  that demands only what it uses. linkcheck cannot tell that from a hidden copy of the rest, so it is an error.

## Options

`import` of a `[[role]]`; `--require-import SYMBOL`.

A program that is found in a named directory (or an archive), and not named itself, is left alone when nothing it
loads touches the state, and no other file among the inputs does. When another file does, it is left alone only
without a PT_TLS segment: then it can hold no copy of a thread_local. Name the program, and it is never left alone.

## What it cannot see

Uses through dlsym, and whether an import is ever called. A hidden and stripped copy in a program that is found in a
directory in which nothing else touches the state: name the program.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from linkcheck.model import Check, Finding, Location, Outcome, Severity
from linkcheck.policy.symbols import is_pattern, matching_exports, matching_imports
from linkcheck.rules.ownership import (
    defined_symbols,
    imported_symbols,
    is_owner,
    list_definitions,
    list_imports,
    owner_modules,
    private_symbols,
    roles_of,
    stands_apart,
    state_of,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    consequence,
    counted,
    demanded_by,
    link_remedy,
    listed,
    name_symbol,
    owner_text,
    shown,
)
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image, LoadSet, Module, RuleResult
    from linkcheck.policy.settings import Role, Settings, State, SymbolSpec

#: Names of the owner that a misspelt one is compared with; each takes some microseconds.
_MOST_COMPARED = 2000

META = RuleMeta(
    "LC301", "missing-import", "a file does not import what it must share with its owner", Severity.ERROR, "0.1"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield one result for each file and role with an `import` list."""
    for role in settings.roles:
        if reason := stands_apart(role, load_set, settings):
            yield Check(META.code, load_set.root.path, Outcome.NOT_APPLICABLE, f"no {role.name}: {reason}")
    for index, module in enumerate(load_set.modules):
        image = module.image
        for role in roles_of(index, load_set, settings):
            wanted = tuple(spec for spec in role.import_ if not _owns(image, spec, load_set, settings))
            missing = tuple(spec for spec in wanted if not list_imports(image, spec))
            if not wanted:
                continue
            if not missing:
                yield Check(META.code, image.path, Outcome.PASS, f"imports {counted(len(wanted), 'symbol')} it must")
            elif image.symbols.unseen is not None:
                yield Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
            else:
                yield _finding(module, role, missing, wanted, load_set, settings)


def _owns(image: Image, spec: SymbolSpec, load_set: LoadSet, settings: Settings) -> bool:
    state = state_of(spec, settings)
    return state is not None and is_owner(image, state, load_set)


def _finding(
    module: Module,
    role: Role,
    missing: tuple[SymbolSpec, ...],
    wanted: tuple[SymbolSpec, ...],
    load_set: LoadSet,
    settings: Settings,
) -> Finding:
    image = module.image
    state = state_of(missing[0], settings)
    what = name_symbol(missing[0], settings)
    if len(missing) > 1:
        what += f" and {counted(len(missing) - 1, 'more symbol')}"
    owner = f" from {owner_text(state)}" if state else ""
    message = (
        f"{image.path} does not import {what}{owner}, {demanded_by(role)} "
        f"({_what_it_imports(image, missing, wanted, state, settings)}). "
    )
    # When the owner has no such symbol the import is asked of the wrong name, and nothing is known of a copy.
    unexported = _unexported_by_owner(missing, state, load_set)
    if unexported:
        message += unexported
        remedy = "Correct the symbol in the policy, or let the owner export it (LC306)."
    elif copy := _seen_copy(module, missing[0], state, settings):
        message += copy + consequence(state)
        remedy = link_remedy(state)
    else:
        partly = len(missing) < len(wanted) or bool(_other_imports(image, state))
        message += _guess_copy(state, partly=partly)
        remedy = link_remedy(state)
        if partly:
            remedy += _if_unused(missing, role)
    return META.finding(
        message,
        remedy,
        Location(image.path, _symbol_name(missing[0], load_set)),
        related=tuple(Location(image.path, _symbol_name(spec, load_set)) for spec in missing[1:]),
        evidence={
            "missing": [_symbol_name(spec, load_set) for spec in missing],
            "needed": list(image.needed),
            "role": role.name,
            "state": state.name if state else None,
            "thread_local_bytes": image.tls.memory_size if image.tls else 0,
        },
    )


def _what_it_imports(
    image: Image,
    missing: tuple[SymbolSpec, ...],
    wanted: tuple[SymbolSpec, ...],
    state: State | None,
    settings: Settings,
) -> str:
    if len(missing) < len(wanted):
        present = [name_symbol(spec, settings) for spec in wanted if spec not in missing]
        return f"it imports {len(present)} of {len(wanted)}: {listed(present)}"
    if state and (names := _other_imports(image, state)):
        specs = sum(1 for spec in state.symbols if list_imports(image, spec))
        return f"it imports {specs} of {len(state.symbols)} of the {state.name}: {shown(names, settings)}"
    return f"it has {counted(image.symbols.count_imports(), 'other import')}"


def _other_imports(image: Image, state: State | None) -> tuple[str, ...]:
    """What `image` imports of `state`; whoever imports some of it uses the state, and may have no copy of the rest."""
    return imported_symbols(image, state) if state else ()


def _unexported_by_owner(missing: tuple[SymbolSpec, ...], state: State | None, load_set: LoadSet) -> str:
    """What says that the loaded owner exports none of `missing`, with the nearest name it has; "" when it does.

    "" also when no owner is loaded, or its symbols cannot be seen.
    """
    owners = [load_set.modules[index].image for index in owner_modules(state, load_set)] if state else []
    if not owners or any(
        owner.symbols.unseen is not None or list_definitions(owner, spec) for owner in owners for spec in missing
    ):
        return ""
    from difflib import get_close_matches  # wanted only for a message; importing it takes 2 ms

    names = [name for symbol in islice(owners[0].symbols.exports(), _MOST_COMPARED) if len(name := symbol.name) < 100]
    close = get_close_matches(_symbol_name(missing[0], load_set), names, n=1)
    hint = f" Did you mean {one_line(close[0])}?" if close else ""
    many = "it" if len(missing) == 1 else "any of them"
    return f"The owner that is loaded, {owners[0].path}, does not export {many} either.{hint}"


def _seen_copy(module: Module, spec: SymbolSpec, state: State | None, settings: Settings) -> str:
    """What says that `module` has a copy of its own, of `state` or else of the symbol `spec`; "" when none is seen."""
    if state is None:
        if not list_definitions(module.image, spec):
            return ""
        return f"It defines {name_symbol(spec, settings)} itself, and uses that definition, not another file's."
    if defined := defined_symbols(module.image, state):
        return f"It defines {name_symbol(defined[0], settings)} itself, so it has its own copy of the {state.name}."
    if private := private_symbols(module, state):
        return f"Its .symtab defines {name_symbol(private[0], settings)}, so it has a hidden copy of the {state.name}."
    return ""


def _guess_copy(state: State | None, *, partly: bool) -> str:
    if state is None:
        return "Without the import nothing binds it to the definition in another file."
    if partly:
        text = f"So it uses only a part of the {state.name}, or has a hidden copy of the rest."
    else:
        text = f"So it has a hidden copy of the {state.name}, or does not use the {state.name} at all."
    # Nobody has seen the copy, so what comes of it is no fact.
    return f"{text} If it has a copy, {state.consequence.removesuffix('.')}." if state.consequence else text


def _if_unused(missing: tuple[SymbolSpec, ...], role: Role) -> str:
    what = "that symbol" if len(missing) == 1 else "those symbols"
    if role.name.startswith("--"):
        return f"\nIf it has no copy and does not use {what}: call it, or leave out {role.name}."
    return (
        f"\nIf it has no copy and does not use {what}: call what is missing, or judge the file by a policy whose role "
        "demands only what it uses (`import` of a [[role]])."
    )


def _symbol_name(spec: SymbolSpec, load_set: LoadSet) -> str:
    """The name of the symbol table, as in other rules' places; the policy's text where no file tells it."""
    if spec.mangled:
        return spec.mangled[0]
    if not is_pattern(spec):
        for module in load_set.modules:
            for symbol in (
                *matching_exports(module.image.symbols, spec),
                *matching_imports(module.image.symbols, spec),
            ):
                return symbol.name
    return spec.text


RULE = Rule(META, __doc__ or "", check_load_set=check)
