"""LC102 wrong-machine: an ELF file was built for another machine than the one it must run on.

## What it checks

That an ELF file was built for the machine it must run on: e_machine, the class (32- or 64-bit) and the byte order of
its ELF header. `linkcheck prebuilt` compares them with those of the host or of `--machine`. `linkcheck verify` compares
those of a file that is to be opened with dlopen, or that bears the name of a needed library but cannot be loaded, with
those of the program that would load it.

## Why it matters

A linker that looks for `-lextension_cuda` says "skipping incompatible" and goes on, perhaps to a static archive of
the same name in another directory: the state is duplicated without an error. ld.so says "cannot open shared object
file: No such file or directory" about a file that is there.

## Bad

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so --machine s390x    # built for this machine, wanted for another
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so
```

## Causes and remedies

* The library was taken from another platform's package or build folder: take the one of the target machine.
* A cross build is checked against the build machine: say `--machine NAME`.
* A 32-bit library (`-m32`, `-mx32`) stands beside 64-bit programs: build it with the flags of the program.

## Options

`linkcheck prebuilt --machine NAME` names the machine to check against; the default is the one that runs linkcheck.

## What it cannot see

Variants of one machine that share the three numbers: the float ABI of Arm and RISC-V, the two ABIs of 64-bit POWER,
instruction-set levels such as x86-64-v3, and the operating system or C library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Confidence, FileKind, Finding, Location, Outcome, Severity
from linkcheck.rules.rule import Rule, RuleMeta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import Candidate

META = RuleMeta(
    "LC102",
    "wrong-machine",
    "an ELF file was built for another machine, class or byte order than it must run on",
    Severity.ERROR,
    "0.1",
)


def check_file(candidate: Candidate, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding when the candidate's target is not the wanted one."""
    identity = candidate.identity
    if candidate.wanted is None:
        yield Check(META.code, identity.path, Outcome.NOT_APPLICABLE, "no machine is asked for")
    elif identity.kind is FileKind.MALFORMED_ELF:
        yield Check(META.code, identity.path, Outcome.NOT_APPLICABLE, "the file is malformed (LC103)")
    elif identity.target is None:
        yield Check(META.code, identity.path, Outcome.NOT_APPLICABLE, "the file is not ELF (LC101)")
    elif identity.target == candidate.wanted:
        yield Check(META.code, identity.path, Outcome.PASS)
    else:
        found, wanted = identity.target, candidate.wanted
        yield Finding(
            code=META.code,
            name=META.name,
            severity=META.severity,
            confidence=Confidence.HIGH,
            message=(
                f"{identity.path} was built for {found}, and {wanted} is wanted: a linker that finds it by -l skips "
                "it and may take a static archive instead, and ld.so passes it over as if it were not there."
            ),
            remedy=f"Take or build the library for {wanted.machine_name}; for a cross build, name the target machine "
            "with --machine.",
            primary=Location(identity.path),
            evidence={"found": str(found), "wanted": str(wanted)},
        )


RULE = Rule(META, __doc__ or "", check_file=check_file)
