"""LC401 split-state: one process would hold several copies of state that must exist once.

## What it checks

For every state of the policy: which definition each use of its symbols would be bound to, in every file of the load
set (the root, everything it needs, and the `--dlopen` roots with what they need), by ld.so's own rules. Uses that end
up in two different files are a split. Several definitions that all uses resolve to one of are one copy: that is
information.

## Why it matters

Each copy keeps its own value. Nothing crashes: one part of the program writes one copy, another part reads the other.

## Bad

```console
$ g++ -c -fPIC caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ g++ runner.cpp libextension_cuda.a -o runner                           # a copy in the program
$ g++ -shared -fPIC delegate.cpp libextension_cuda.a -o libdelegate.so    # and one in the library that it opens
$ linkcheck verify runner --dlopen libdelegate.so
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ g++ -shared -fPIC delegate.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o libdelegate.so
$ linkcheck verify runner --dlopen libdelegate.so
```

## Causes and remedies

* A static archive in two files: link the shared owner in both.
* Two builds of the owner under two names: ship one.

## Options

`[[state]]` in the policy; `--dlopen PATH`, `[[dlopen]]` for libraries that no DT_NEEDED names.

## What it cannot see

Hidden copies in stripped files (LC301 and LC404 look for the missing import), and what an unresolved library brings:
while one is missing, a single copy is `unknown`, not a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.state import judge_state
from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity, Verdict
from linkcheck.rules.ownership import definers, missing_libraries, owner_modules, state_names
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import chain_text, consequence, counted, link_remedy, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.loader.state import Judgement
    from linkcheck.model import LoadSet, RuleResult
    from linkcheck.policy.settings import Settings, State

META = RuleMeta("LC401", "split-state", "one process would hold several copies of one state", Severity.ERROR, "0.1")


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield one result for each state."""
    for state in settings.states:
        if state.only_with_owner and not owner_modules(state, load_set):
            reason = f"no owner of the {state.name} is loaded"
            yield Check(META.code, load_set.root.path, Outcome.NOT_APPLICABLE, reason)
        else:
            yield _judge(load_set, state, settings)


def _judge(load_set: LoadSet, state: State, settings: Settings) -> RuleResult:
    subject = load_set.root.path
    names = state_names(state, load_set)
    judgement = judge_state(load_set, names)
    if judgement.verdict in (Verdict.SPLIT, Verdict.SPLIT_UNLESS_GLOBAL):
        return _split(load_set, state, judgement)
    missing = missing_libraries(load_set, settings)
    if not judgement.touching and judgement.verdict is not Verdict.UNKNOWN:
        return Check(META.code, subject, Outcome.NOT_APPLICABLE, f"nothing loaded touches the {state.name}")
    unseen = next((m.image for m in load_set.modules if m.image.symbols.unseen is not None), None)
    if unseen is not None:
        return Check(META.code, subject, Outcome.UNKNOWN, f"{unseen.path}: {unseen.symbols.unseen}")
    if missing:
        reason = f"{listed([u.needed for u in missing])} not found, and it may hold another copy of the {state.name}"
        return Check(META.code, subject, Outcome.UNKNOWN, reason)
    if not judgement.providers:
        return Check(META.code, subject, Outcome.NOT_APPLICABLE, f"no loaded file defines the {state.name}")
    holder = load_set.modules[judgement.providers[0]].image.path
    others = [index for index in definers(load_set, names) if index != judgement.providers[0]]
    if others:
        return _merged(load_set, state, judgement.providers[0], others)
    return Check(META.code, subject, Outcome.PASS, f"one copy of the {state.name}: {holder}")


def _split(load_set: LoadSet, state: State, judgement: Judgement) -> Finding:
    copies = judgement.providers
    users = {copy: [b.module for b in judgement.bindings if b.provider == copy and b.module != copy] for copy in copies}
    lines = []
    for copy in copies:
        used = listed([_path(load_set, index) for index in dict.fromkeys(users[copy])])
        lines.append(f"    {chain_text(load_set, copy)}{f' (used by {used})' if used else ''}")
    message = f"One process would hold {counted(len(copies), 'separate copy', 'separate copies')} of the {state.name}"
    if judgement.verdict is Verdict.SPLIT_UNLESS_GLOBAL:
        message += " (one only if everything were opened with RTLD_GLOBAL)"
    after = consequence(state).strip()
    return _finding(load_set, state, copies, "\n".join([f"{message}:", *lines, *([after] if after else [])]), judgement)


def _merged(load_set: LoadSet, state: State, holder: int, others: Sequence[int]) -> Finding:
    paths = listed([_path(load_set, index) for index in others])
    verb = "defines" if len(others) == 1 else "define"
    message = (
        f"{paths} also {verb} the {state.name}, but every use in this process is bound to the copy in "
        f"{_path(load_set, holder)}. That holds only for this load order and scope."
    )
    return _finding(load_set, state, (holder, *others), message, None)


def _finding(
    load_set: LoadSet, state: State, copies: Sequence[int], message: str, judgement: Judgement | None
) -> Finding:
    paths = [_path(load_set, index) for index in copies]
    verdict = judgement.verdict if judgement else Verdict.ONE
    return Finding(
        META.code,
        META.name,
        META.severity if judgement else Severity.INFO,
        Confidence.HIGH,
        message,
        link_remedy(state),
        Location(load_set.root.path, state.name),
        related=tuple(Location(path) for path in paths),
        evidence={"state": state.name, "verdict": verdict.value, "copies": list(paths), "owner": list(state.owner)},
    )


def _path(load_set: LoadSet, index: int) -> str:
    return load_set.modules[index].image.path


RULE = Rule(META, __doc__ or "", check_load_set=check)
