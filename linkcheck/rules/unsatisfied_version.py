"""LC305 unsatisfied-version: a library lacks a symbol version that a file needs of it.

## What it checks

Every version that a file of the load set names for one of its libraries (DT_VERNEED): the library that ld.so loads
under that name has to define it (DT_VERDEF), unless the need is weak. A library without any versions satisfies every
need, as ld.so has it.

## Why it matters

ld.so compares the versions before the program starts, and refuses it: ``version `GLIBC_2.38' not found``. A file built
on a newer system, or an older copy of the library that is found first, is the usual reason.

## Bad

```console
$ echo 'int size(void) { return 1; }' > table.c
$ echo 'int size(void); int main(void) { return size() - 1; }' > main.c
$ echo 'TABLE_2 { global: size; };' > new.map && echo 'TABLE_1 { global: size; };' > old.map
$ gcc -shared -fPIC table.c -Wl,-soname,libtable.so,--version-script=new.map -o libtable.so
$ gcc main.c -L. -ltable -Wl,-rpath,'$ORIGIN' -o main
$ gcc -shared -fPIC table.c -Wl,-soname,libtable.so,--version-script=old.map -o libtable.so
$ linkcheck verify main --select LC305
```

## Good

```console
$ echo 'int size(void) { return 1; }' > table.c
$ echo 'int size(void); int main(void) { return size() - 1; }' > main.c
$ echo 'TABLE_1 { global: size; };' > old.map
$ gcc -shared -fPIC table.c -Wl,-soname,libtable.so,--version-script=old.map -o libtable.so
$ gcc main.c -L. -ltable -Wl,-rpath,'$ORIGIN' -o main
$ linkcheck verify main --select LC305
```

## Causes and remedies

* Built against a newer C library or libstdc++ than the target machine has: build on the oldest system to be supported.
* An older copy of the library is found first (`linkcheck tree` shows why): remove it, or the search path to it.
* A bundled libstdc++ or libgcc_s: leave it to the system.

## Options

`--root DIR` asks the libraries of a target machine instead of this one's; `external` in the policy.

## What it cannot see

A need for a library that was not found is `unknown`, and not asked for when the policy declares it external. Whether a
library defines a symbol in a version that it has is LC304's question. Loaders other than glibc's: musl's looks at no
version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity, unique
from linkcheck.rules.ownership import missing_libraries
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import chain_text, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC305", "unsatisfied-version", "a library lacks a symbol version that a file needs", Severity.ERROR, "0.1"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each file and library whose versions do not fit, or one result for the whole load set."""
    found = False
    compared = False
    for index, module in enumerate(load_set.modules):
        for need in module.image.version_needs:
            library = _find(load_set, index, need.library)
            if library is None:
                continue
            provider = load_set.modules[library].image
            compared = True
            missing = _missing(provider, [version.name for version in need.versions if not version.weak])
            if missing:
                found = True
                yield _finding(load_set, index, library, missing)
    if found:
        return
    subject = load_set.root.path
    if missing_names := unique(unresolved.needed for unresolved in missing_libraries(load_set, settings)):
        wanted = {need.library for module in load_set.modules for need in module.image.version_needs}
        if unseen := [name for name in missing_names if name in wanted]:
            reason = f"{listed(unseen)} not found, so its versions cannot be compared"
            yield Check(META.code, subject, Outcome.UNKNOWN, reason)
            return
    if compared:
        yield Check(META.code, subject, Outcome.PASS, "every library has the versions that are needed of it")
    else:
        yield Check(META.code, subject, Outcome.NOT_APPLICABLE, "no file needs a version of a library")


def _find(load_set: LoadSet, index: int, name: str) -> int | None:
    """The module that ld.so takes for `name` in a DT_VERNEED of module `index` (glibc elf/dl-version.c find_needed)."""
    module = load_set.modules[index]
    for needed, dependency in zip(module.image.needed, module.dependencies, strict=False):
        if needed == name and dependency is not None:
            return dependency
    for other, candidate in enumerate(load_set.modules):
        if name in (candidate.image.soname, candidate.requested_as):
            return other
    return None


def _missing(provider: Image, versions: Sequence[str]) -> list[str]:
    """Those of `versions` that `provider` lacks; none when it has no versions at all."""
    defined = {version.name for version in provider.version_definitions}
    return [name for name in versions if name not in defined] if defined else []


def _finding(load_set: LoadSet, index: int, library: int, missing: Sequence[str]) -> Finding:
    image, provider = load_set.modules[index].image, load_set.modules[library].image
    word = "version" if len(missing) == 1 else "versions"
    return Finding(
        META.code,
        META.name,
        META.severity,
        Confidence.HIGH,
        f"{image.path} needs the {word} {listed(list(missing))} of {provider.name}, and {provider.path} "
        f"(loaded as {chain_text(load_set, library)}) does not define {'it' if len(missing) == 1 else 'them'}: ld.so "
        f"refuses to start with it.",
        f"Build {image.path} against the oldest {provider.name} that it has to run with, or ship one that defines "
        f"{listed(list(missing))} where it is found before {provider.path}.",
        Location(image.path, missing[0]),
        related=(Location(provider.path),),
        evidence={
            "library": provider.path,
            "missing": list(missing),
            "defined": [v.name for v in provider.version_definitions if not v.base],
        },
    )


RULE = Rule(META, __doc__ or "", check_load_set=check)
