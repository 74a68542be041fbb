"""LC203 unreachable-needed: a needed library exists, but no search path of the file that needs it leads there.

## What it checks

For every DT_NEEDED entry that the loader would not find, the neighbourhood is looked through: the named directories,
the directory of every file of the load set, `lib` and `lib64` in it and beside it, and the one above it. A file of
that very name found there is this finding; none is LC202. A library that only the search path of its program serves is
judged by itself when no program among the inputs loads it: name the program, too.

## Why it matters

The program does not start although the library is shipped. Typical: DT_RUNPATH of the program serves only the
program's own DT_NEEDED entries, not those of the libraries it loads (DT_RPATH did).

## Bad

```console
$ mkdir lib
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o lib/libextension_cuda.so
$ g++ -shared -fPIC delegate.cpp -Llib -lextension_cuda -o lib/libdelegate.so    # no RUNPATH of its own
$ linkcheck verify lib/libdelegate.so
```

## Good

```console
$ mkdir lib
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o lib/libextension_cuda.so
$ g++ -shared -fPIC delegate.cpp -Llib -lextension_cuda -Wl,-rpath,'$ORIGIN' -o lib/libdelegate.so
$ linkcheck verify lib/libdelegate.so
```

## Causes and remedies

* Add `$ORIGIN/...` to the DT_RUNPATH of the file that needs the library, not of the program above it.
* In CMake: `set_target_properties(<target> PROPERTIES INSTALL_RPATH "$ORIGIN/...")`.
* When the libraries are the machine's own business, an SDK with versioned names in several folders for example: append
  the folders to `LD_LIBRARY_PATH` with the line that the finding prints. It names those of all libraries of the process
  that were found like this, and goes behind what the variable already holds.

## Options

`--library-path DIR` makes a directory reachable, as LD_LIBRARY_PATH does.

## What it cannot see

Files outside that neighbourhood, libraries whose search was given up, and what lies nearby for a file of another
machine, which may have that library in its own directories (LC202 says so of both).
"""

from __future__ import annotations

from posixpath import dirname, relpath
from typing import TYPE_CHECKING

from linkcheck.model import Check, Finding, Libc, Location, Outcome, Severity
from linkcheck.policy.patterns import matches_any
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    MOST_SHOWN,
    as_evidence,
    as_lines,
    asks_for,
    cache_line,
    judged_otherwise,
    library_path_line,
    listed,
    shorten,
)
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import LoadSet, RuleResult, Unresolved
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC203", "unreachable-needed", "a needed library exists, but no search path leads to it", Severity.ERROR, "0.1"
)


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each unresolved name that exists nearby, or one pass for the whole load set."""
    unreachable = [
        unresolved
        for unresolved in load_set.unresolved
        if unresolved.elsewhere
        if not (unresolved.given_up or unresolved.rejected or matches_any(unresolved.needed, settings.external))
    ]
    # The process needs them all, so each finding has the line that is right for all.
    directories = unique(directory_of(u) for u in unreachable if not _other_loader(load_set, u))
    for unresolved in unreachable:
        if other := _other_loader(load_set, unresolved):
            yield other
            continue
        path = load_set.modules[unresolved.module].image.path
        origin = origin_entry(path, directory_of(unresolved))
        yield META.finding(
            f"{asks_for(load_set, unresolved)}, which exists at {listed(shorten(unresolved.elsewhere))}, but no search "
            f"path of {path} leads there. Searched:" + as_lines(unresolved.directories) + cache_line(unresolved),
            judged_otherwise(load_set)
            or "\n".join((*_give_search_path(path, origin), *_append_at_run_time(directories))),
            Location(path, unresolved.needed),
            related=tuple(Location(other) for other in unresolved.elsewhere[:MOST_SHOWN]),
            evidence={
                "needed": unresolved.needed,
                "searched": as_evidence(unresolved.directories),
                "exists": as_evidence(unresolved.elsewhere),
                "add": origin,
                "cache": unresolved.cache_fault or None,
            },
        )
    given_up = (u.given_up for u in load_set.unresolved if not matches_any(u.needed, settings.external))
    unsearched = next(filter(None, given_up), "")
    if unsearched:
        yield Check(META.code, load_set.root.path, Outcome.UNKNOWN, unsearched)
    elif not unreachable:
        yield Check(META.code, load_set.root.path, Outcome.PASS)


def _other_loader(load_set: LoadSet, unresolved: Unresolved) -> Finding | None:
    """A finding for what only the other C library has: no search path helps a file that is not linked for musl."""
    name = unresolved.needed
    if load_set.libc is not Libc.MUSL or not (name == "libc.so.6" or name.startswith("ld-linux")):
        return None
    path = load_set.modules[unresolved.module].image.path
    return META.finding(
        f"{path} needs {name}, which is a part of glibc: the file is linked for glibc, and this process starts with "
        "musl's loader.",
        judged_otherwise(load_set) or f"Take a build of {path} for musl.",
        Location(path, name),
        evidence={"needed": name, "exists": as_evidence(unresolved.elsewhere)},
    )


def _give_search_path(path: str, origin: str) -> tuple[str, ...]:
    return (
        f"Give {path} a search path of its own:",
        f"    -Wl,-rpath,'{origin}'",
        f'    set_target_properties(<target> PROPERTIES INSTALL_RPATH "{origin}")',
    )


def _append_at_run_time(directories: tuple[str, ...]) -> tuple[str, ...]:
    if any("!/" in directory for directory in directories):
        return ()  # in an archive: no process could look there
    noun = "directory" if len(directories) == 1 else "directories"
    return f"or append the {noun} at run time:", f"    {library_path_line(*directories)}"


def directory_of(unresolved: Unresolved) -> str:
    """The first directory that holds the library."""
    return dirname(unresolved.elsewhere[0]) or "."


def origin_entry(path: str, directory: str) -> str:
    """The RUNPATH element that leads from the directory of `path` to `directory`."""
    relative = relpath(directory, dirname(path) or ".")
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


RULE = Rule(META, __doc__ or "", check_load_set=check)
