"""LC303 wrong-provider: an import of a state is bound to a file that is not its owner.

## What it checks

Every import of a state's symbols, in every file of the load set: the definition that ld.so binds it to must be in an
owner of the state. It is asked where an owner is loaded, and of files whose role says that they must import the symbol;
without either nothing says that an owner has to be there, and LC302 and LC401 tell who defines the state.

## Why it matters

The import is there, so the file looks right on its own. But a file that comes earlier in the order of the search, or
that is the only one to define the symbol, is what the file really shares its state with, and not with those that reach
the owner.

## Bad

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libother.so -o libother.so                 # the same code once more
$ g++ runner.cpp -L. -Wl,--no-as-needed -lother -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Causes and remedies

* A library on the link line contains the owner's code (a static archive in it): link that one to the owner instead.
* The owner has another name than the policy knows: add its SONAME to `owner` of the `[[state]]`.
* A preloaded library, or the program with `-rdynamic`, exports a copy: take it out. One that is there to take the
  calls, such as an allocator, is the owner: name it in `owner`, in place of the library that it replaces.

## Options

`owner` and `symbols` of the `[[state]]`; `import` of a `[[role]]`; `only-with-owner`.

## What it cannot see

An import that nobody defines is LC304's and LC402's. While a library is missing (LC202 names it), an import that is
bound to the owner may yet be bound to the missing file, and it is `unknown` where that would come before the owner in
the order of the search; what would come after it takes nothing, unless the symbol is STB_GNU_UNIQUE and nobody has
looked it up before the missing file could be there. So is an import
that another file answers while an owner is missing that would come before that file, or any file that may need the
owner and so bring it there. It is `unknown`, too, when a file
that ld.so would look into has symbols that cannot be seen, with a filter (DT_FILTER, DT_AUXILIARY) in the process, and
where it hangs on whether a process that runs has opened a library with RTLD_GLOBAL (`linkcheck live`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import finder_of
from linkcheck.loader.scope import describe_filters
from linkcheck.model import BindingKind, Check, Finding, Location, Outcome, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules.ownership import (
    defined_symbols,
    is_owner,
    judge_copies,
    judge_copies_if_global,
    missing_libraries,
    owner_modules,
    roles_of,
    state_of,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    SCOPE_OF_OPENED,
    chain_text,
    consequence,
    link_remedy,
    loaded_text,
    not_found,
    owner_keys,
    owner_text,
    shown,
)
from linkcheck.text import unique
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from linkcheck.loader.state import Judgement
    from linkcheck.model import Binding, LoadSet, RuleResult, Unresolved
    from linkcheck.policy.settings import Settings, State

META = RuleMeta(
    "LC303", "wrong-provider", "an import of a state is bound to a file that is not its owner", Severity.ERROR, "0.1"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a result for each state and file that imports it."""
    for state in settings.states:
        owners = owner_modules(state, load_set)
        if not state.only_with_owner or owners:
            yield from _judge(load_set, state, settings)


def _judge(load_set: LoadSet, state: State, settings: Settings) -> Iterator[RuleResult]:
    judgement = judge_copies(state, load_set, settings)
    bound = [b for b in judgement.bindings if b.kind is BindingKind.IMPORT and b.provider is not None]
    if not bound:
        return
    owner_defines = any(
        defined_symbols(load_set.modules[index].image, state) for index in owner_modules(state, load_set)
    )
    widest = judge_copies_if_global(state, load_set, settings)
    missing = missing_libraries(load_set, settings)
    rivals: Mapping[int, tuple[Unresolved, ...]] = {}
    if missing:
        from linkcheck.loader.missing import find_rivals

        rivals = find_rivals(replace(load_set, unresolved=missing), bound)
    for index in _list_modules(bound):
        path = load_set.modules[index].image.path
        wrong = _list_wrong(index, judgement, state, load_set)
        wrong_at_widest = {b.symbol for b in _list_wrong(index, widest, state, load_set)}
        if not (owner_defines or _must_import(index, state, load_set, settings)):
            continue
        if filters := describe_filters(load_set):
            yield Check(META.code, path, Outcome.UNKNOWN, filters)
        elif wrong_at_widest != {b.symbol for b in wrong}:
            reason = f"whether its imports of the {state.name} are bound to the owner hangs on {SCOPE_OF_OPENED}"
            yield Check(META.code, path, Outcome.UNKNOWN, reason)
        elif wrong:
            if lost := [u for u in rivals.get(index, ()) if matches_any(u.needed.rpartition("/")[2], state.owner)]:
                reason = f"{not_found(_names(lost))} may be the owner that its imports of the {state.name} get"
                yield Check(META.code, path, Outcome.UNKNOWN, reason)
                continue
            bringers = _find_bringers(replace(load_set, unresolved=missing), wrong)
            if certain := [b for b, some in zip(wrong, bringers, strict=True) if not some]:
                yield _finding(load_set, state, settings, certain)
            else:
                names = _names([unresolved for some in bringers for unresolved in some])
                what = f"what its imports of the {state.name} get"
                reason = f"{not_found(names)} may bring the owner before {what}"
                yield Check(META.code, path, Outcome.UNKNOWN, reason)
        elif doubt := _find_doubt([b for b in bound if b.module == index], load_set):
            yield Check(META.code, path, Outcome.UNKNOWN, doubt)
        elif index in rivals:
            reason = f"{not_found(_names(rivals[index]))} may define the {state.name} before the owner does"
            yield Check(META.code, path, Outcome.UNKNOWN, reason)
        else:
            yield Check(META.code, path, Outcome.PASS, f"its imports of the {state.name} are bound to the owner")


def _find_bringers(load_set: LoadSet, wrong: Sequence[Binding]) -> tuple[tuple[Unresolved, ...], ...]:
    """For each of `wrong` the missing libraries that may bring the owner before the provider."""
    if not load_set.unresolved:
        return tuple(() for _ in wrong)
    from linkcheck.loader.missing import find_bringers

    return find_bringers(load_set, wrong)


def _find_doubt(bindings: list[Binding], load_set: LoadSet) -> str:
    """Why `bindings`, which are of one module, may lead to a definition that cannot be seen, or an empty text."""
    if all(module.image.symbols.unseen is None for module in load_set.modules):
        return ""
    scopes = finder_of(load_set).list_scopes(load_set)
    search = next((scope.modules for scope in scopes if scope.module == bindings[0].module), ())
    for other in search:
        image = load_set.modules[other].image
        if image.symbols.unseen is not None:
            return f"{image.path}: {image.symbols.unseen}"
    return ""


def _names(missing: Sequence[Unresolved]) -> list[str]:
    return sorted({unresolved.needed for unresolved in missing})


def _list_modules(bindings: list[Binding]) -> tuple[int, ...]:
    """The modules that `bindings` are about, in order."""
    return tuple(dict.fromkeys(binding.module for binding in bindings))


def _list_wrong(index: int, judgement: Judgement, state: State, load_set: LoadSet) -> list[Binding]:
    """The imports of module `index` that are bound, and not to an owner."""
    bound = [b for b in judgement.bindings if b.kind is BindingKind.IMPORT and b.provider is not None]
    return [b for b in bound if b.module == index and not _is_owned(b, state, load_set)]


def _is_owned(binding: Binding, state: State, load_set: LoadSet) -> bool:
    source = _source(binding)
    return source is not None and is_owner(load_set.modules[source].image, state, load_set)


def _source(binding: Binding) -> int | None:
    """The module whose definition is used: what the program holds as a copy of an object (R_*_COPY) is that object."""
    return binding.provider if binding.copy_of is None else binding.copy_of


def _must_import(index: int, state: State, load_set: LoadSet, settings: Settings) -> bool:
    return any(
        state_of(spec, settings) is state for role in roles_of(index, load_set, settings) for spec in role.import_
    )


def _finding(load_set: LoadSet, state: State, settings: Settings, wrong: list[Binding]) -> Finding:
    path = load_set.modules[wrong[0].module].image.path
    symbols = unique(b.symbol for b in wrong)
    providers = dict.fromkeys(source for b in wrong if (source := _source(b)) is not None)
    chains = "".join(f"\n    {chain_text(load_set, index)}" for index in providers)
    user = f"{path}{loaded_text(load_set, wrong[0].module)}"
    return META.finding(
        f"{user} imports {shown(symbols, settings)}, and ld.so binds that to a file that does not own the "
        f"{state.name}; {owner_text(state)} does:{chains}{_after(consequence(state))}",
        f"{link_remedy(state)}{_doubt_owner(load_set, state, settings, min(providers))}",
        Location(path, symbols[0]),
        related=tuple(Location(load_set.modules[index].image.path) for index in providers),
        evidence={
            "state": state.name,
            "symbols": list(symbols),
            "providers": [load_set.modules[index].image.path for index in providers],
            "owner": list(state.owner),
        },
    )


def _doubt_owner(load_set: LoadSet, state: State, settings: Settings, provider: int) -> str:
    """What else may be wrong, as a line of the remedy: the policy, where no file that it calls the owner is loaded."""
    if owner_modules(state, load_set):
        return ""
    image = load_set.modules[provider].image
    return (
        f"\nNo file here is called like the owner. When {image.path} is the owner, the policy is wrong: add "
        f"{image.name} to {owner_keys(state, settings)}."
    )


def _after(text: str) -> str:
    return f"\n{text.strip()}" if text else ""


RULE = Rule(META, __doc__ or "", check_load_set=check)
