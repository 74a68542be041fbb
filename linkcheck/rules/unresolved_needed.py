"""LC202 unresolved-needed: a library that a file needs is nowhere the loader may look.

## What it checks

Every DT_NEEDED entry of every file in the load set is searched for as ld.so searches (man 8 ld.so): DT_RPATH,
`--library-path`, DT_RUNPATH, ld.so.cache, the default directories. The environment counts as empty:
`LD_LIBRARY_PATH` of the shell that runs linkcheck is not used.

Before all that the kernel starts the loader that a program names (PT_INTERP): it has to be there, and be an ELF file
for the same machine.

A library that a file names in its dlopen metadata (`.note.dlopen`) as `required` counts like a DT_NEEDED entry, when
none of the names that it gives is found. What is `recommended` or `suggested` may be missing.

## Why it matters

The program does not start: "cannot open shared object file: No such file or directory". Build machines hide it with
`LD_LIBRARY_PATH`, absolute build paths or an installed toolkit.

## Bad

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so.1 -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner    # records .so.1
$ linkcheck verify runner
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so.1 -o libextension_cuda.so
$ ln -s libextension_cuda.so libextension_cuda.so.1
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Causes and remedies

* The library belongs to the target machine (a driver, a toolkit): list it under `external`, or pass `--library-path`.
* Only the unversioned development name is there: the file that the recorded SONAME names has to be there too.
* It was never shipped: ship it and add a relative search path.
* The name that is recorded has a slash in it, because the library had no SONAME when the file was linked to its path,
  or one with a slash: ld.so opens such a name as it stands (a relative one from the directory in which the process
  runs; `$ORIGIN` and the like are replaced), and no search path helps. Give the library a SONAME
  (`-Wl,-soname,NAME`), or link with `-LDIR -lNAME`, and link the file again.
* ld.so.cache cannot be used (cut off, of another format, not readable), and only it leads to the library. The finding
  says so: let `ldconfig` write it again.

## Options

`external` in the policy; `--external PATTERN`; `--library-path DIR`; `--root DIR` for a sysroot.

## What it cannot see

Whether the kernel may execute the program and its loader: a file without its x bit, or on a file system mounted
noexec, does not start. Whether the processor has the x86 ISA level that a file asks for (LC102). Libraries that the
program opens by name with dlopen, unless they are declared (`--dlopen`, `[[dlopen]]`, dlopen metadata). A file that is
to be opened or preloaded by its path is not searched for, and LC101 says what is wrong with it; to LC303, LC304 and
LC401 to LC403 it is missing all the same. When the searches of one process look into more than 262,144 directories they
are given up: what was not found by then is `unknown`, not missing.

What another machine has: on x86-64 the directories and ld.so.cache hold libraries for x86-64. So a library that an
aarch64 file needs, and that does not lie where the file's own search path or `--library-path` leads, is `unknown`, and
so is the loader of an aarch64 program. `--root` takes the root directory of a system of that machine, and `--external`
what is left to it. A machine that has the loader of the other architecture is taken to have its libraries, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.search import NOT_TO_BE_OPENED
from linkcheck.model import DLOPEN_PRIORITIES, Check, Finding, FoundBy, Location, Outcome, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules.ownership import is_loader_external
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    as_evidence,
    as_lines,
    asks_for,
    cache_line,
    chain_text,
    counted,
    judged_otherwise,
    library_path_line,
    listed,
    path_remedy,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import LoadSet, RuleResult, Unresolved
    from linkcheck.policy.settings import Settings

META = RuleMeta("LC202", "unresolved-needed", "a needed library is nowhere the loader looks", Severity.ERROR, "0.1")


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a result for each name that nothing was found for, or one pass for the whole load set."""
    if load_set.interpreter is not None:
        yield _judge_interpreter(load_set, load_set.interpreter, settings)
    yield from _not_searched(load_set, settings)
    # What is wrong with a file that somebody named by its path, LC101 or LC103 says.
    searched = [unresolved for unresolved in load_set.unresolved if not unresolved.examined]
    if not searched and load_set.interpreter is None:
        count = len(load_set.modules)
        yield Check(META.code, load_set.root.path, Outcome.PASS, f"{counted(count, 'file')}, every DT_NEEDED found")
    for module in load_set.modules:
        for note, opened in zip(module.image.dlopen_notes, module.noted, strict=True):
            if opened is None and note.priority != DLOPEN_PRIORITIES[0]:
                reason = f"may open {listed(note.sonames, 'or')}, which is not found and only {note.priority}"
                yield Check(META.code, module.image.path, Outcome.NOT_APPLICABLE, reason)
    for unresolved in searched:
        if unresolved.given_up:
            continue
        subject = load_set.modules[unresolved.module].image.path
        if matches_any(unresolved.needed, settings.external):
            reason = f"{unresolved.needed} is declared external"
        elif unresolved.rejected and unresolved.rejected[-1].reason == NOT_TO_BE_OPENED:
            yield _refused(load_set, unresolved)
            continue
        elif unresolved.rejected:
            reason = f"{unresolved.rejected[0].path} is there but cannot be loaded: {unresolved.rejected[0].reason}"
        elif unresolved.elsewhere:
            reason = f"{unresolved.needed} exists where no search path reaches it (LC203)"
        else:
            yield _finding(load_set, unresolved, settings)
            continue
        yield Check(META.code, subject, Outcome.NOT_APPLICABLE, reason)


def _judge_interpreter(load_set: LoadSet, interpreter: Unresolved, settings: Settings) -> RuleResult:
    path, wanted = load_set.root.path, interpreter.needed
    if is_loader_external(load_set, settings):
        return Check(META.code, path, Outcome.NOT_APPLICABLE, f"{wanted} is left to the target machine (external)")
    if interpreter.given_up:
        return Check(META.code, path, Outcome.UNKNOWN, f"{wanted}: {interpreter.given_up}")
    message = f"The kernel cannot start {path}: its interpreter (PT_INTERP) is {wanted}, "
    reason = ""
    if interpreter.rejected:
        reason = interpreter.rejected[-1].reason
        message += f"and {interpreter.rejected[-1].path} is none that it can use: {reason}."
    else:
        message += 'and there is no such file. A shell says "No such file or directory" of the program itself.'
    remedy = "\n".join(
        (
            "Link it for the loader of the machine that it is to run on:",
            "    -Wl,--dynamic-linker=<path of the loader>",
            "or, when the target machine provides it, say so in the policy:",
            f'    external = ["{wanted}"]',
            "or judge it below the root directory of a machine that has it (--root DIR).",
        )
    )
    return META.finding(
        message,
        remedy,
        Location(path, wanted),
        evidence={"needed": wanted, "reason": reason or None},
    )


def _not_searched(load_set: LoadSet, settings: Settings) -> Iterator[Check]:
    """An unknown check for each file whose libraries were not searched for where they may be, and each reason."""
    names: dict[tuple[int, str], list[str]] = {}
    for unresolved in load_set.unresolved:
        if unresolved.given_up and not matches_any(unresolved.needed, settings.external):
            beside = f" (there is one at {unresolved.elsewhere[0]})" if unresolved.elsewhere else ""
            names.setdefault((unresolved.module, unresolved.given_up), []).append(f"{unresolved.needed}{beside}")
    for (index, reason), needed in names.items():
        subject = load_set.modules[index].image.path
        yield Check(META.code, subject, Outcome.UNKNOWN, f"{listed(shorten(needed))} not found: {reason}")


def _refused(load_set: LoadSet, unresolved: Unresolved) -> Finding:
    path = load_set.modules[unresolved.module].image.path
    attempt = unresolved.rejected[-1]
    return META.finding(
        f"{path} opens {unresolved.needed}, and ld.so refuses {attempt.path}: it {attempt.reason}.",
        f"Link {attempt.path} without `-z nodlopen`, or link it to the program instead of opening it.",
        Location(path, unresolved.needed),
        related=(Location(attempt.path),),
        evidence={"needed": unresolved.needed, "refused": attempt.path, "reason": attempt.reason},
    )


def _finding(load_set: LoadSet, unresolved: Unresolved, settings: Settings) -> Finding:
    path = load_set.modules[unresolved.module].image.path
    message = f"{asks_for(load_set, unresolved)}, and "
    count = len(unresolved.directories)
    if count:
        where = "the one directory" if count == 1 else f"any of the {count} directories"
        message += f"no such file is in {where} that the loader searches:"
        message += as_lines(unresolved.directories)
    else:
        message += "there is no such file."
    message += cache_line(unresolved)
    if unresolved.similar:
        verb = "is" if len(unresolved.similar) == 1 else "are"
        message += f"\nThere {verb} {listed(shorten(unresolved.similar))}, but the name that is recorded is "
        message += f"{unresolved.needed}."
    if unresolved.special is FoundBy.PRELOAD:
        message += "\nThe loader says so and starts the program without it."
    if unresolved.module != 0:
        message += f"\nIt is wanted through {chain_text(load_set, unresolved.module)}."
    if unresolved.special is FoundBy.PRELOAD:
        remedy = "Correct the name, or the place: --preload takes what LD_PRELOAD does, a path or a name to search for."
    elif _is_said_to_be_opened(load_set, unresolved):
        remedy = f"Correct the name, or the place: --dlopen and [[dlopen]] take a path, or a name that {path} opens."
    elif not (remedy := judged_otherwise(load_set)):
        ship = path_remedy if "/" in unresolved.needed else _ship_it
        remedy = ship(path, unresolved.needed) + _external_line(unresolved.needed, settings)
    return META.finding(
        message,
        remedy,
        Location(path, unresolved.needed),
        evidence={
            "needed": unresolved.needed,
            "searched": as_evidence(unresolved.directories),
            "similar": as_evidence(unresolved.similar),
            "chain": [load_set.modules[i].image.path for i in load_set.chain(unresolved.module)],
            "cache": unresolved.cache_fault or None,
        },
    )


def _is_said_to_be_opened(load_set: LoadSet, unresolved: Unresolved) -> bool:
    """Whether only the user says that it is opened (--dlopen, [[dlopen]]), and no file: the name may be misspelt."""
    image = load_set.modules[unresolved.module].image
    noted = (soname for note in image.dlopen_notes for soname in note.sonames)
    return unresolved.needed not in image.needed and unresolved.needed not in noted


def _may_own_a_state(needed: str, settings: Settings) -> bool:
    """Whether it has the name of an owner: what is declared external is taken not to hold a state (LC402)."""
    return any(matches_any(needed.rpartition("/")[2], state.owner) for state in settings.states)


def _ship_it(path: str, needed: str) -> str:
    lines = (
        f"Ship {needed} where a search path of {path} leads:",
        "    -Wl,-rpath,'$ORIGIN/<directory seen from this file>'",
        "or append its directory at run time (and give it here as --library-path):",
        f"    {library_path_line(f'<directory of {needed}>')}",
    )
    return "\n".join(lines)


def _external_line(needed: str, settings: Settings) -> str:
    if _may_own_a_state(needed, settings):
        return ""
    return f'\nor, when the target machine provides it, say so in the policy:\n    external = ["{needed}"]'


RULE = Rule(META, __doc__ or "", check_load_set=check)
