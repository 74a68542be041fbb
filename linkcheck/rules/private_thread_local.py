"""LC404 private-thread-local: a file has thread-local storage of its own where it must import a shared one.

## What it checks

Files whose role says that they must import a state that is a `thread_local` of its owner: when such a file imports
nothing of the state, but has a PT_TLS segment, the segment is what a hidden, stripped private copy leaves behind.

## Why it matters

It says where the second copy is when no symbol is left to say so. It is inferred, so the confidence is medium: the
segment may hold other thread-local variables. For a dlopened file (`--dlopen`, `[[dlopen]]`) that plays no
importing role it is a warning: such a file may have nothing to do with the state. A file that exports definitions of
the state's symbols leaves no doubt, and is always an error. Of what a running process has opened (`linkcheck live`)
nothing is suspicious as long as nothing loaded touches the state.

## Bad

```console
$ g++ -c -fPIC -fvisibility=hidden caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ g++ -fvisibility=hidden runner.cpp libextension_cuda.a -Wl,--exclude-libs,ALL -o runner && strip -s runner
$ readelf -lW runner | grep -o '^  TLS '
  TLS
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner && strip -s runner
$ readelf -lW runner | grep '^  TLS ' || echo nothing
nothing
$ linkcheck verify runner
```

## Causes and remedies

As for LC301: link the shared owner.

## Options

`thread-local = true` of the `[[state]]`; with `only-with-owner` it asks only in processes that load an owner.

## What it cannot see

A private copy that is not thread-local, and one that was linked into a file which also imports the owner's symbols.

A hidden, stripped copy in a library that the program needs and that plays no role (it does not register a CUDA
delegate and does not need the owner): it looks like any library with thread-local storage, such as libstdc++. Give it
a role with an `import` list, or `--require-import` in a check of that file. When such a library is opened, it is the
warning above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity
from linkcheck.rules.ownership import (
    defined_symbols,
    imported_symbols,
    is_opened,
    is_owner,
    owner_modules,
    roles_of,
    state_of,
    uses_any,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import counted, link_remedy, loaded_text, owner_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import LoadSet, RuleResult
    from linkcheck.policy.settings import Settings, State

META = RuleMeta(
    "LC404",
    "private-thread-local",
    "a file has thread-local storage where it must import a shared one",
    Severity.ERROR,
    "0.1",
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield one result for each file and thread-local state that it must import or, being dlopened, may well use."""
    for index, module in enumerate(load_set.modules):
        demanded = {
            state.name
            for role in roles_of(index, load_set, settings)
            for spec in role.import_
            if (state := state_of(spec, settings)) is not None
        }
        for state in settings.states:
            if not state.thread_local or is_owner(module.image, state, load_set):
                continue
            if state.only_with_owner and not owner_modules(state, load_set):
                continue
            if state.name in demanded or is_opened(index, load_set):
                result = _judge(index, load_set, state, demanded=state.name in demanded)
                if isinstance(result, Finding) and state.name not in demanded and _is_guess(state, load_set):
                    reason = f"nothing that the process loads touches the {state.name}"
                    result = Check(META.code, module.image.path, Outcome.NOT_APPLICABLE, reason)
                yield result


def _is_guess(state: State, load_set: LoadSet) -> bool:
    """Whether a file that was opened is under no suspicion: a process opens anything, and nothing touches `state`.

    Where somebody names the files to open, that is because they have to do with the state.
    """
    return load_set.observed and not (
        owner_modules(state, load_set) or any(uses_any(module.image, state) for module in load_set.modules)
    )


def _judge(index: int, load_set: LoadSet, state: State, *, demanded: bool) -> RuleResult:
    image = load_set.modules[index].image
    if imported_symbols(image, state):
        return Check(META.code, image.path, Outcome.PASS, f"imports the {state.name}")
    if image.symbols.unseen is not None:
        return Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
    if image.tls is None:
        return Check(META.code, image.path, Outcome.NOT_APPLICABLE, "no PT_TLS segment")
    certain = bool(defined_symbols(image, state))
    if certain and not demanded:
        return Check(
            META.code, image.path, Outcome.NOT_APPLICABLE, "it exports its definitions: LC302 and LC401 judge them"
        )
    size = counted(image.tls.memory_size, "byte")
    message = (
        f"{image.path}{loaded_text(load_set, index)} has {size} of thread-local storage of its own (PT_TLS) and "
        f"imports nothing of the {state.name}, which is a thread_local of {owner_text(state)}."
    )
    if certain:
        message += " It defines the symbols itself, so the storage is a second copy."
    elif demanded:
        message += " A private copy whose symbols are hidden or stripped looks just like this."
    else:
        message += (
            " A private copy whose symbols are hidden or stripped looks just like this; but no role says that the file "
            "must import the symbols, so the storage may be for something else."
        )
    return META.finding(
        message,
        link_remedy(state),
        Location(image.path, state.symbols[0].mangled[0] if state.symbols[0].mangled else state.symbols[0].text),
        evidence={"thread_local_bytes": image.tls.memory_size, "state": state.name, "demanded": demanded},
        severity=META.severity if demanded else Severity.WARNING,
        confidence=Confidence.HIGH if certain else Confidence.MEDIUM if demanded else Confidence.LOW,
    )


RULE = Rule(META, __doc__ or "", check_load_set=check)
