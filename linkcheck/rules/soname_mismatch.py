"""LC104 soname-mismatch: a library that is to own a shared state does not have the owner's SONAME.

## What it checks

That a library which is to stand in for the owner of a shared state has a SONAME (DT_SONAME) that the policy lists for
that owner, such as `libextension_cuda.so` or `libexecutorch_extension_cuda.so`, with or without `.N`.

`linkcheck prebuilt` asks it of the file that it judges. `linkcheck verify` asks it of every loaded file that was asked
for under a name of the owner; there a file without a SONAME passes, because ld.so then knows it by that name.

## Why it matters

What links a library records its SONAME, not its file name, and ld.so takes two libraries for one only when the names
are the same. Under another SONAME the file is loaded beside the real owner, and the state exists twice. Without a
SONAME every dependent records the path or name that stood on its own link line, which often is a path of the build
machine.

## Bad

```console
$ g++ -shared -fPIC caller_stream.cpp -o libextension_cuda.so                           # no SONAME
$ linkcheck prebuilt libextension_cuda.so
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libmine.so -o libextension_cuda.so    # somebody else's
$ linkcheck prebuilt libextension_cuda.so
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so
```

## Causes and remedies

* CMake's `NO_SONAME`, or a hand-written link line without `-Wl,-soname`: set it.
* A tool that makes names unique renamed the library (auditwheel's `libfoo-1a2b3c4d.so`): exclude the owner from it.
* The owner really has another name in this project: add it to `owner` of the `[[state]]` in linkcheck.toml, and
  to `need` and `when-need` of the roles that ask for the owner: those are lists of their own (LC201). An entry takes
  the place of the profile's entry of the same name as a whole, so copy what else that one says.

## Options

`[[state]] owner = [...]` in the policy lists the allowed SONAMEs; `*` is a wildcard.

## What it cannot see

Under which name dependents that are already linked need the library; `linkcheck verify` follows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Finding, Location, Outcome, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules.ownership import owner_in_question
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import listed, owner_keys, owner_libraries, owner_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Settings, State
    from linkcheck.rules.rule import Candidate

META = RuleMeta(
    "LC104",
    "soname-mismatch",
    "a library that is to own a shared state does not have the owner's SONAME",
    Severity.ERROR,
    "0.1",
)


def check_file(candidate: Candidate, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding when the candidate's SONAME is absent or none of its state's owners."""
    path = candidate.identity.path
    question = owner_in_question(candidate)
    if isinstance(question, str):
        yield Check(META.code, path, Outcome.NOT_APPLICABLE, question)
        return
    state, image = question
    owners = owner_libraries(state)
    if not owners:
        yield Check(META.code, path, Outcome.NOT_APPLICABLE, f"the {state.name} belongs to the executable")
    elif image.soname is not None and matches_any(image.soname, owners):
        yield Check(META.code, path, Outcome.PASS, f"SONAME {image.soname}")
    else:
        yield _finding(path, image, state, settings)


def check_load_set(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a result for each module that was asked for by an owner's name."""
    for state in settings.states:
        owners = owner_libraries(state)
        for module in load_set.modules:
            if not matches_any(module.requested_as.rpartition("/")[2], owners):
                continue
            path, soname = module.image.path, module.image.soname
            if soname is None or matches_any(soname, owners):
                yield Check(META.code, path, Outcome.PASS, f"SONAME {soname}" if soname else "no SONAME, the name fits")
            else:
                yield _finding(path, module.image, state, settings)


def _finding(path: str, image: Image, state: State, settings: Settings) -> Finding:
    names = owner_names(state)
    allowed = listed(names, "or")
    if not image.soname:
        message = (
            f"{path} has no SONAME (DT_SONAME): what links it records the path or name of its own link line instead, "
            f"and ld.so does not take it for the owner of the {state.name}, which is called {allowed}."
        )
    else:
        message = (
            f"{path} has the SONAME {image.soname}, and the owner of the {state.name} is called {allowed}: what "
            f"links it needs {image.soname}, and wherever the owner is loaded as well there are two copies."
        )
    return META.finding(
        message=message,
        remedy=(
            f"Link the library with -Wl,-soname,{names[0]}; or, when it really is the owner, add its name in "
            f"linkcheck.toml to {owner_keys(state, settings)}."
        ),
        primary=Location(path),
        evidence={"soname": image.soname, "owner": list(state.owner)},
    )


RULE = Rule(META, __doc__ or "", check_file=check_file, check_load_set=check_load_set)
