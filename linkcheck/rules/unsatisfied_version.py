"""LC305 unsatisfied-version: a library lacks a symbol version that a file needs of it.

## What it checks

Every version that a file of the load set names for one of its libraries (DT_VERNEED): the library that ld.so loads
under that name has to define it (DT_VERDEF), unless the need is weak.

A file with packed relative relocations (DT_RELR) that needs the C library and names versions has to name the version
GLIBC_ABI_DT_RELR, too: glibc 2.36 and newer refuse it otherwise.

A version of a library that nothing in the process is known as ends the start in an assertion of ld.so.

A library that defines no versions at all is another build of the one that the file was linked with. ld.so says `no
version information available` and goes on, so it is information; but where that library needs no version of another one
either, glibc before 2.41 ends the process when it looks one of the symbols up (`Inconsistency detected by ld.so`), so
it is a warning.

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
* lld's `--pack-dyn-relocs=relr` adds no GLIBC_ABI_DT_RELR: link with `-z pack-relative-relocs` in its place.

## Options

`--root DIR` asks the libraries of a target machine instead of this one's; `external` in the policy.

## What it cannot see

A need for a library that was not found is `unknown`, and not asked for when the policy declares it external. Whether a
library defines a symbol in a version that it has is LC304's question. Whether a symbol that is wanted in a version is
looked up at all in the library without versions, or found before it. A glibc before 2.36 knows no DT_RELR, and leaves
the addresses of a file that does not name GLIBC_ABI_DT_RELR as they are: `unknown`. Some systems have patched glibc to
take such files. musl's loader compares no versions, so the rule does not apply to its programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.versions import MARK_OF_RELR, compare_versions
from linkcheck.model import Check, Finding, Libc, Location, Outcome, Severity
from linkcheck.rules.ownership import missing_libraries
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import chain_text, listed, loaded_text
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.loader.versions import VersionFault
    from linkcheck.model import LoadSet, RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC305", "unsatisfied-version", "a library lacks a symbol version that a file needs", Severity.ERROR, "0.1"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each file and library whose versions do not fit, or one result for the whole load set."""
    subject = load_set.root.path
    if load_set.libc is Libc.MUSL:
        yield Check(META.code, subject, Outcome.NOT_APPLICABLE, "musl's loader compares no versions")
        return
    report = compare_versions(load_set)
    for fault in report.uninformed:
        yield _uninformed(load_set, fault)
    for fault in report.refused:
        yield _refused(load_set, fault)
    for index in report.unmarked:
        yield _unmarked(load_set, index)
    for index in report.unrelocated:
        reason = (
            f"it has DT_RELR, and a glibc without {MARK_OF_RELR} (before 2.36) leaves the addresses in it as they are"
        )
        yield Check(META.code, load_set.modules[index].image.path, Outcome.UNKNOWN, reason)
    if report.refused or report.unmarked:
        return
    if missing_names := unique(unresolved.needed for unresolved in missing_libraries(load_set, settings)):
        wanted = {need.library for module in load_set.modules for need in module.image.version_needs}
        if unseen := [name for name in missing_names if name in wanted]:
            reason = f"{listed(unseen)} not found, so its versions cannot be compared"
            yield Check(META.code, subject, Outcome.UNKNOWN, reason)
            return
        if report.unplaced:
            wanting = listed(unique(fault.library for fault in report.unplaced))
            reason = f"{listed(missing_names)} not found, which may bring {wanting}, whose versions are needed"
            yield Check(META.code, subject, Outcome.UNKNOWN, reason)
            return
    if not report.compared:
        yield Check(META.code, subject, Outcome.NOT_APPLICABLE, "no file needs a version of a library")
    elif not (report.uninformed or report.unrelocated):
        yield Check(META.code, subject, Outcome.PASS, "every library has the versions that are needed of it")


def _refused(load_set: LoadSet, fault: VersionFault) -> Finding:
    missing = listed(list(fault.versions))
    it = "it" if len(fault.versions) == 1 else "them"
    if fault.provider is None:
        message = (
            f"needs the {_counted(fault)} of {fault.library}, and nothing is loaded by that name: ld.so ends in an "
            "assertion (dl-version.c, needed != NULL)."
        )
        remedy = f"Link {load_set.modules[fault.module].image.path} to {fault.library}, so that it names it as needed."
    else:
        provider = load_set.modules[fault.provider].image
        message = (
            f"needs the {_counted(fault)} of {provider.name}, and {provider.path} (loaded as "
            f"{chain_text(load_set, fault.provider)}) does not define {it}: ld.so refuses to start with it."
        )
        remedy = (
            f"Build {load_set.modules[fault.module].image.path} against the oldest {provider.name} that it has to run "
            f"with, or ship one that defines {missing} where it is found before {provider.path}."
        )
    return _finding(load_set, fault, META.severity, message, remedy)


def _unmarked(load_set: LoadSet, index: int) -> Finding:
    image = load_set.modules[index].image
    return META.finding(
        f"{image.path}{loaded_text(load_set, index)} has packed relative relocations (DT_RELR) and does not name the "
        f"version {MARK_OF_RELR} of the C library: glibc 2.36 and newer refuse it "
        f'("DT_RELR without {MARK_OF_RELR} dependency"), and older ones do not relocate it.',
        "Link it with `-Wl,-z,pack-relative-relocs`, which names the version, in place of lld's "
        "`--pack-dyn-relocs=relr`; or without packed relocations.",
        Location(image.path, MARK_OF_RELR),
        evidence={"missing": [MARK_OF_RELR]},
    )


def _uninformed(load_set: LoadSet, fault: VersionFault) -> Finding:
    path = load_set.modules[fault.module].image.path
    provider = load_set.modules[fault.provider or 0].image
    message = (
        f"needs the {_counted(fault)} of {fault.library}, and {provider.path} (loaded as "
        f"{chain_text(load_set, fault.provider or 0)}) has no versions at all: it is another build of that library. "
        f'ld.so says "no version information available" where it starts a program with it, and takes '
    )
    if provider.version_needs:
        severity = Severity.INFO
        message += "the symbols as they are."
    else:
        severity = Severity.WARNING
        message += (
            "the symbols as they are since glibc 2.41; before, it ends the process where it looks one of them up "
            "(dl-lookup.c, check_match)."
        )
    remedy = (
        f"Ship the {fault.library} that {path} was linked with, or one that has its versions, where it is found before "
        f"{provider.path}."
    )
    return _finding(load_set, fault, severity, message, remedy)


def _counted(fault: VersionFault) -> str:
    return f"{'version' if len(fault.versions) == 1 else 'versions'} {listed(list(fault.versions))}"


def _finding(load_set: LoadSet, fault: VersionFault, severity: Severity, message: str, remedy: str) -> Finding:
    path = load_set.modules[fault.module].image.path
    provider = None if fault.provider is None else load_set.modules[fault.provider].image
    return META.finding(
        f"{path} {message}",
        remedy,
        Location(path, fault.versions[0]),
        related=() if provider is None else (Location(provider.path),),
        evidence={
            "library": fault.library if provider is None else provider.path,
            "missing": list(fault.versions),
            "defined": [] if provider is None else [v.name for v in provider.version_definitions if not v.base],
        },
        severity=severity,
    )


RULE = Rule(META, __doc__ or "", check_load_set=check)
