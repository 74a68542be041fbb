"""LC204 forbidden-needed: a file depends on something that the policy forbids.

## What it checks

Every role of the policy with a `forbid-need` list (and `--forbid-needed`): no file of the load set below a file
that plays the role may have a name that matches, directly, through other libraries, or through what the program
opens. The SONAME counts, and the name it was asked for by. A forbidden DT_NEEDED that could not be found counts as
well.

Every role with a `forbid-import` list: the file that plays the role must not import any of these symbols. An import
is a dependency as well, whichever library happens to satisfy it.

## Why it matters

A program that is meant to run without a large framework stops being free of it by one careless link line, and nobody
notices until it is deployed where the framework is not. A use of its symbols that no DT_NEEDED shows works only while
something else has loaded the framework first.

## Bad

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ echo 'int torch() { return 0; }' > torch.cpp
$ g++ -shared -fPIC torch.cpp -Wl,-soname,libtorch.so -o libtorch.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,--no-as-needed -ltorch -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Causes and remedies

* The message names the chain of loads. Take the library off the link line of the last file in that chain that is
  yours; with `-Wl,--as-needed` an entry that nothing is imported from goes away by itself.
* A forbidden import comes from an object or archive that uses the symbol: `-Wl,--trace-symbol=SYMBOL` names it.

## Options

`forbid-need` and `forbid-import` of a `[[role]]`; `--forbid-needed PATTERN`.

## What it cannot see

What hides below a library that could not be found, or that a filter (DT_FILTER, DT_AUXILIARY) brings in: then the
answer is `unknown`. Uses through dlsym.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.scope import describe_filters
from linkcheck.model import Check, Finding, Location, Outcome, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules.ownership import list_imports, missing_libraries, roles_of
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import counted, forbidden_by, listed, name_symbol
from linkcheck.text import one_line, unique
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Role, Settings

META = RuleMeta("LC204", "forbidden-needed", "a file depends on what the policy forbids", Severity.ERROR, "0.1")


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each forbidden library and import, or what else became of each role that forbids some."""
    for index, module in enumerate(load_set.modules):
        for role in roles_of(index, load_set, settings):
            if role.forbid_need:
                yield from _judge_needs(load_set, index, role, settings)
            if role.forbid_import:
                yield _judge_imports(module.image, role, settings)


def _judge_needs(load_set: LoadSet, start: int, role: Role, settings: Settings) -> Iterator[RuleResult]:
    path = load_set.modules[start].image.path
    reached = tuple(_reached(load_set, start))
    findings = []
    for one in reached:
        name = next((name for name in one.names if matches_any(name, role.forbid_need)), None)
        if name is not None:
            findings.append(_needs_finding(one, name, role))
    yield from findings
    if findings:
        return
    indices = {start, *(one.index for one in reached if one.index is not None)}
    missing = [u.needed for u in missing_libraries(load_set, settings) if u.module in indices]
    if missing:
        reason = f"what {listed(unique(missing))} would bring in cannot be seen"
        yield Check(META.code, path, Outcome.UNKNOWN, reason)
    elif filters := describe_filters(load_set, indices):
        yield Check(META.code, path, Outcome.UNKNOWN, filters)
    else:
        yield Check(META.code, path, Outcome.PASS)


def _needs_finding(one: _Reached, name: str, role: Role) -> Finding:
    path, last = one.path[0], one.path[-1]
    chain = [*one.path, name]
    if one.opened:
        remedy = f"Do not let the process of {last} load {name} at run time (dlopen, LD_PRELOAD)."
    else:
        remedy = (
            f"Take {name} off the link line of {last}; where nothing is imported from it, `-Wl,--as-needed` drops the "
            "entry."
        )
    return META.finding(
        f"{path} brings in {name}, {forbidden_by(role)}: {' -> '.join(chain)}. "
        f"It then runs only where {name} is there, too.",
        remedy,
        Location(path, name),
        related=(Location(last),),
        evidence={"chain": list(chain), "forbidden": list(role.forbid_need), "role": role.name},
    )


def _judge_imports(image: Image, role: Role, settings: Settings) -> RuleResult:
    found = {spec: list_imports(image, spec) for spec in role.forbid_import}
    texts = [name_symbol(spec, settings) for spec, symbols in found.items() if symbols]
    names = unique(one_line(symbol.name) for symbols in found.values() for symbol in symbols)
    if not names:
        if image.symbols.unseen is not None:
            return Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
        return Check(META.code, image.path, Outcome.PASS, "imports nothing that is forbidden")
    return META.finding(
        f"{image.path} imports {listed(texts)}, {forbidden_by(role)} "
        f"({counted(len(names), 'import')}, the first is {name_symbol(names[0], settings)}).",
        f"Take what uses it off the link line of {image.path}; the linker names it:\n"
        f"    c++ <objects> -Wl,--trace-symbol={names[0]}",
        Location(image.path, names[0]),
        related=tuple(Location(image.path, name) for name in names[1:]),
        evidence={"imports": list(names), "forbidden": [spec.text for spec in role.forbid_import], "role": role.name},
    )


class _Reached(Value):
    """A library that a file brings in: the paths that lead to it, what it is called, and its module if it was found."""

    path: tuple[str, ...]
    names: tuple[str, ...]
    index: int | None
    #: No DT_NEEDED asks for it: the process opens or preloads it.
    opened: bool = False


def _reached(load_set: LoadSet, start: int) -> Iterator[_Reached]:
    """Yield each library that module `start` brings in, once. All that the process opens belongs to the root, too."""
    root = load_set.modules[start].image
    queue: list[tuple[int, tuple[str, ...]]] = [(start, (root.path,))]
    seen = {start}
    if start == 0:
        for index, module in enumerate(load_set.modules):
            if index and module.needed_by is None:  # preloaded or dlopened into this process
                seen.add(index)
                queue.append((index, (root.path, module.image.path)))
                names = unique((module.image.name, _last_part(module.requested_as)))
                yield _Reached((root.path,), names, index, opened=True)
    for index, path in queue:
        module = load_set.modules[index]
        for needed, dependency in zip(module.image.needed, module.dependencies, strict=False):
            if dependency is None:
                yield _Reached(path, (_last_part(needed),), None)
            elif dependency not in seen:
                seen.add(dependency)
                image = load_set.modules[dependency].image
                queue.append((dependency, (*path, image.path)))
                yield _Reached(path, unique((image.name, _last_part(needed))), dependency)


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


RULE = Rule(META, __doc__ or "", check_load_set=check)
