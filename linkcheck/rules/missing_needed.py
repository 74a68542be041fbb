"""LC201 missing-needed: a file does not declare a library that its role says it must need.

## What it checks

Every role of the policy with a `need` list (and `--require-needed`): each file that plays the role must have a
DT_NEEDED entry that matches one of the listed SONAME patterns. The patterns of one role are alternatives, so a
library that ships under two names is one requirement.

## Why it matters

DT_NEEDED is the only thing in a file that makes the loader bring a library in. A program that uses a library's state
without declaring the library either carries a private copy of it or works only while something else happens to
load it first.

## Bad

```console
$ g++ -c -fPIC caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ g++ runner.cpp libextension_cuda.a -o runner
$ readelf -d runner | grep extension_cuda || echo nothing
nothing
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ readelf -d runner | grep extension_cuda
 0x0000000000000001 (NEEDED)             Shared library: [libextension_cuda.so]
$ linkcheck verify runner
```

## Causes and remedies

* An archive or object on the link line: link the shared library instead.
* The linker dropped the entry because nothing was imported from it (`--as-needed`): use the library, or it is not
  needed.

## Options

`need` of a `[[role]]`; `--require-needed PATTERN` on the command line for a check of the named files only.

## What it cannot see

A library that is opened with dlopen has no DT_NEEDED entry; declare it with `[[dlopen]]` or `--dlopen`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.ownership import needs_any, roles_of, state_owned_by
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import demanded_by, link_remedy, listed, names_of, owner_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import LoadSet, RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC201", "missing-needed", "a file does not declare a library that its role must need", Severity.ERROR, "0.1"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield one result for each file and role with a `need` list."""
    for index, module in enumerate(load_set.modules):
        image = module.image
        for role in roles_of(index, load_set, settings):
            if not role.need:
                continue
            if needs_any(image, role.need):
                yield Check(META.code, image.path, Outcome.PASS)
                continue
            if role.when_import and image.symbols.unseen is not None:
                yield Check(META.code, image.path, Outcome.UNKNOWN, image.symbols.unseen)
                continue
            declared = listed(image.needed) or "nothing"
            state = state_owned_by(role.need, settings)
            wanted = listed(owner_names(state) if state else names_of(role.need), "or")
            if state:
                wanted += f", the owner of the {state.name}"
            yield META.finding(
                f"{image.path} has no DT_NEEDED entry for {wanted}, {demanded_by(role)}; it needs {declared}. "
                "Without the entry ld.so does not load the library for this file.",
                link_remedy(state) if state else f"Link {image.path} against {names_of(role.need)[0]}.",
                Location(image.path, role.need[0]),
                evidence={"needed": list(image.needed), "required": list(role.need), "role": role.name},
            )


RULE = Rule(META, __doc__ or "", check_load_set=check)
