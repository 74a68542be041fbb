"""LC403 duplicate-library: a process would load one library twice, under two names or by two paths.

## What it checks

Every two files of a load set: whether they are copies of one library. The same build ID shows one build, whatever it
was renamed to; without it, like names (`libgomp.so.1` and `libgomp-a34b3233.so.1.0.0`) and the same exported names
show two builds. `linkcheck scan` compares in addition all files of several packages, also those that no root loads
together, and says what would happen if a process did: that is information, never an error.

## Why it matters

The loader takes a library that is loaded already only for the same SONAME or the same file. A copy under another name
is a second library with its own variables: two thread pools, two registries, two allocators. Nothing fails at once.

## Bad

```console
$ echo 'static int count; int counter_next(void) { return ++count; }' > counter.c
$ echo 'int counter_next(void); int use(void) { return counter_next(); }' > user.c
$ gcc -shared -fPIC counter.c -Wl,--build-id=0xc0ffee,-soname,libcounter-aaaaaaaa.so -o libcounter-aaaaaaaa.so
$ gcc -shared -fPIC counter.c -Wl,--build-id=0xc0ffee,-soname,libcounter-bbbbbbbb.so -o libcounter-bbbbbbbb.so
$ gcc -shared -fPIC user.c libcounter-aaaaaaaa.so -Wl,-rpath,'$ORIGIN' -o one.so
$ gcc -shared -fPIC user.c libcounter-bbbbbbbb.so -Wl,-rpath,'$ORIGIN' -o two.so
$ linkcheck verify one.so --dlopen two.so --select LC403
```

## Good

```console
$ echo 'static int count; int counter_next(void) { return ++count; }' > counter.c
$ echo 'int counter_next(void); int use(void) { return counter_next(); }' > user.c
$ gcc -shared -fPIC counter.c -Wl,-soname,libcounter.so -o libcounter.so
$ gcc -shared -fPIC user.c libcounter.so -Wl,-rpath,'$ORIGIN' -o one.so
$ gcc -shared -fPIC -Duse=use_too user.c libcounter.so -Wl,-rpath,'$ORIGIN' -o two.so
$ linkcheck verify one.so --dlopen two.so --select LC403
```

## Causes and remedies

* Two wheels that each carry a copy which a repair tool renamed by its hash: leave it out of both
  (`auditwheel repair --exclude SONAME`) and let both need the package that provides it.
* A library that is opened by its path, and needed by name from elsewhere: open it by its SONAME.
* Two versions of one library: build everything against one.

## Options

None. `[[waiver]]` in the policy, for copies that have no state.

## What it cannot see

A library that was linked statically into another (LC401, LC404), copies without a build ID whose names and exports
differ, and what an unresolved library brings: while one is missing, a clean load set is `unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Confidence, FileKind, Finding, Location, Outcome, Severity
from linkcheck.rules.library_copies import Copies, Likeness, find_copies, stem_of
from linkcheck.rules.ownership import defined_symbols, missing_libraries
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    chain_text,
    counted,
    listed,
    not_found,
)
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Image, LoadSet, RuleResult, Unresolved
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.library_copies import ScannedFiles

META = RuleMeta(
    "LC403", "duplicate-library", "a library is there twice, under two names or paths", Severity.WARNING, "0.1"
)

_REMEDY = (
    "Ship one of them, and let every file need it by its SONAME. For wheels:\n"
    "    auditwheel repair --exclude <SONAME> <wheel>"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each library that the process would load twice, or one result for the whole load set."""
    yield from _compare(load_set, missing_libraries(load_set, settings))


def check_process(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """The same for `scan`: a missing library counts only where what is loaded looks like another copy of it."""
    loaded = {stem_of(module.image.name) for module in load_set.modules} - {None}
    missing = missing_libraries(load_set, settings)
    yield from _compare(load_set, [u for u in missing if stem_of(u.needed.rpartition("/")[2]) in loaded])


def _compare(load_set: LoadSet, missing: Sequence[Unresolved]) -> Iterator[RuleResult]:
    subject = load_set.root.path
    unseen: list[str] = []
    found = [
        copies
        for copies in find_copies([module.image for module in load_set.modules], unseen.append)
        if copies.likeness not in (Likeness.SAME_FILE, Likeness.NAMESAKES)
    ]
    for copies in found:
        yield _loaded_twice(load_set, copies)
    if found:
        return
    if missing:
        reason = f"{not_found(unique(u.needed for u in missing))} may bring another copy of a library"
        yield Check(META.code, subject, Outcome.UNKNOWN, reason)
    elif unseen:
        yield Check(META.code, subject, Outcome.UNKNOWN, unseen[0])
    else:
        yield Check(META.code, subject, Outcome.PASS, f"{counted(len(load_set.modules), 'file')}, no library twice")


def check_scanned(files: ScannedFiles, settings: Settings) -> Iterator[RuleResult]:
    """Yield information about each library of which `files` hold two that no root loads together."""
    unseen: list[str] = []
    found = together = False
    for copies in find_copies(files.images, unseen.append):
        if copies.likeness is Likeness.NAMESAKES and not _is_needed(copies, files):
            continue  # extension modules may be called alike: nobody finds them by their SONAME
        one_file = copies.likeness is Likeness.SAME_FILE
        if one_file or not any(_holds_two(load_set, copies) for load_set in files.load_sets):
            found = True
            yield _found_twice(files, copies, settings)
        else:
            together = True
    for reason in unique(unseen):
        yield Check(META.code, reason.partition(": ")[0], Outcome.UNKNOWN, reason)
    if not found and not unseen:
        for image in files.images[:1]:
            but = " but for what one process here loads together" if together else ""
            reason = f"{counted(len(files.images), 'file')}, no library twice{but}"
            yield Check(META.code, image.path, Outcome.PASS, reason)


def _loaded_twice(load_set: LoadSet, copies: Copies) -> Finding:
    indices = [index for index, module in enumerate(load_set.modules) if module.image in copies.images]
    lines = "".join(f"\n    {chain_text(load_set, index)}" for index in indices)
    message = (
        f"One process would load {counted(len(indices), 'copy', 'copies')} of one library, each with its own state:"
        f"{lines}\n{_evidence_text(copies)}"
    )
    return _finding(copies, META.severity, message, _REMEDY, load_set.root.path)


def _found_twice(files: ScannedFiles, copies: Copies, settings: Settings) -> Finding:
    lines = "".join(f"\n    {_describe(files, image)}" for image in copies.images)
    paths = [image.path for image in copies.images]
    if copies.likeness is Likeness.SAME_FILE:
        message = f"One file is found under {counted(len(paths), 'path')}; the loader maps it once:{lines}"
        return _finding(copies, Severity.INFO, message, "", paths[0])
    states = [s.name for s in settings.states if all(defined_symbols(image, s) for image in copies.images)]
    defined = f" Each defines the {listed(states)}." if states else ""
    name = copies.images[0].name
    if copies.likeness in (Likeness.SAME_SONAME, Likeness.NAMESAKES):
        message = (
            f"{counted(len(paths), 'file')} have the SONAME {name}:{lines}\n{_evidence_text(copies)}{defined}\n"
            f"A process that reaches them by DT_NEEDED loads the first only: for the others the loader takes what is "
            f"loaded under that SONAME. A process that opens each by its path holds {_number(len(paths))} copies."
        )
    else:
        sonames = listed(unique(image.name for image in copies.images))
        message = (
            f"One library is there under {counted(len(paths), 'name')}, {sonames}:{lines}\n"
            f"{_evidence_text(copies)}{defined}\n"
            f"A process that loads them holds {_number(len(paths))} copies, whichever way it reaches them: the loader "
            f"knows a library by its SONAME and its file."
        )
    message += " No root here loads two of them."
    return _finding(copies, Severity.INFO, message, "", paths[0])


def _describe(files: ScannedFiles, image: Image) -> str:
    """The path, its size, and which roots load it."""
    loaders = [
        load_set.root.path
        for load_set in files.load_sets
        if load_set.root.kind is not FileKind.STAND_IN
        if any(_is_same(module.image, image) for module in load_set.modules)
    ]
    others = [path for path in loaders if path != image.path]
    facts = [f"{files.sizes[image.path]:,} bytes"] if image.path in files.sizes else []
    facts.append(f"loaded by {listed(others)}" if others else "opened by nobody here")
    return f"{image.path} ({', '.join(facts)})"


def _evidence_text(copies: Copies) -> str:
    if copies.one_build:
        return f"They are one build: all have the build ID {copies.images[0].build_id}."
    known = all(image.build_id is not None for image in copies.images)
    builds = "They are different builds (their build IDs differ)" if known else "Not all of them have a build ID"
    return f"{builds}; {_names_text(copies)}."


def _names_text(copies: Copies) -> str:
    whose = "both" if len(copies.images) == 2 else f"all {len(copies.images)}"
    if not copies.exported:
        return "none of them exports a name"
    if copies.common == copies.exported:
        return f"{whose} export the same {counted(copies.exported, 'name')}"
    return f"of the {counted(copies.exported, 'name')} that any of them exports, {whose} export {copies.common}"


def _finding(copies: Copies, severity: Severity, message: str, remedy: str, primary: str) -> Finding:
    high = copies.one_build or copies.likeness in (Likeness.SAME_FILE, Likeness.SAME_SONAME)
    return META.finding(
        message,
        remedy,
        Location(primary, copies.images[0].name),
        related=tuple(Location(image.path) for image in copies.images),
        evidence={
            "likeness": copies.likeness.value,
            "files": [image.path for image in copies.images],
            "sonames": [image.soname for image in copies.images],
            "build_ids": [image.build_id for image in copies.images],
            "exports_in_common": copies.common,
            "exports": copies.exported,
        },
        severity=severity,
        confidence=Confidence.HIGH if high else Confidence.MEDIUM,
    )


def _holds_two(load_set: LoadSet, copies: Copies) -> bool:
    return sum(any(_is_same(m.image, image) for m in load_set.modules) for image in copies.images) > 1


def _is_same(one: Image, other: Image) -> bool:
    return (one.device, one.inode) == (other.device, other.inode) if one.inode else one.path == other.path


def _is_needed(copies: Copies, files: ScannedFiles) -> bool:
    names = {image.soname for image in copies.images}
    return any(names & set(image.needed) for image in files.images)


def _number(count: int) -> str:
    return {2: "two", 3: "three", 4: "four"}.get(count, str(count))


RULE = Rule(META, __doc__ or "", check_load_set=check)
