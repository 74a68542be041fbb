"""LC102 wrong-machine: an ELF file was built for another machine or operating system than it must run on.

## What it checks

That an ELF file was built for the machine it must run on: e_machine, the class (32- or 64-bit) and the byte order of
its ELF header. `linkcheck prebuilt` compares them with those of the host or of `--machine`. `linkcheck verify` compares
those of a file that is to be opened with dlopen, or that bears the name of a needed library but cannot be loaded, with
those of the program that would load it.

Beside the machine it looks at the operating system (EI_OSABI) and the ABI version (EI_ABIVERSION) of shared
libraries: glibc's ld.so refuses another value than SYSV and GNU, and a version it does not know. Arm and MIPS have
values of their own, and on a machine whose values are not known here nothing is said. A program is not asked: Linux
looks at neither byte when it starts one.

## Why it matters

A linker that looks for `-lextension_cuda` says "skipping incompatible" and goes on, perhaps to a static archive of
the same name in another directory: the state is duplicated without an error. ld.so says "cannot open shared object
file: No such file or directory" about a file that is there. About another operating system it says "ELF file OS ABI
invalid", and the process ends.

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
* The library is of another system's package, such as FreeBSD's: take the one for Linux.
* A cross build is checked against the build machine: say `--machine NAME`.
* A 32-bit library (`-m32`, `-mx32`) stands beside 64-bit programs: build it with the flags of the program.

## Options

`linkcheck prebuilt --machine NAME` names the machine to check against; the default is the one that runs linkcheck.

## What it cannot see

Variants of one machine that share the three numbers: the float ABI of Arm and RISC-V, the two ABIs of 64-bit POWER,
and the C library. Instruction-set levels such as x86-64-v3: ld.so refuses a file whose GNU property says that it needs
one that the processor lacks ("CPU ISA level is lower than required"), and nobody knows here on which processor it will
run. Many files for other systems bear EI_OSABI SYSV, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.os_abi import refusal
from linkcheck.model import Check, FileKind, Finding, Location, Outcome, Severity
from linkcheck.rules.rule import Rule, RuleMeta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import Candidate

META = RuleMeta(
    "LC102",
    "wrong-machine",
    "an ELF file was built for another machine, class, byte order or system than it must run on",
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
        yield _judge_system(identity.path, candidate.image)
    else:
        found, wanted = identity.target, candidate.wanted
        yield META.finding(
            message=(
                f"{identity.path} was built for {found}, and {wanted} is wanted: a linker that finds it by -l skips "
                "it and may take a static archive instead, and ld.so passes it over as if it were not there."
            ),
            remedy=(
                f"Take or build the library for {wanted.machine_name}; for a cross build, name the target machine "
                "with --machine."
            ),
            primary=Location(identity.path),
            evidence={"found": str(found), "wanted": str(wanted)},
        )


def check_load_set(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding when the root is a library that ld.so would not open; what is loaded below it was looked at."""
    result = _judge_system(load_set.root.path, load_set.root)
    if isinstance(result, Finding):
        yield result


def _judge_system(path: str, image: Image | None) -> RuleResult:
    if image is None or image.is_executable:
        return Check(META.code, path, Outcome.PASS)
    reason = refusal(image.target.machine, image.os_abi, image.abi_version)
    if not reason:
        return Check(META.code, path, Outcome.PASS)
    return META.finding(
        message=f"{path} is no library that ld.so of Linux loads: {reason}.",
        remedy="Take or build the library for Linux.",
        primary=Location(path),
        evidence={"os_abi": image.os_abi, "abi_version": image.abi_version},
    )


RULE = Rule(META, __doc__ or "", check_file=check_file, check_load_set=check_load_set)
