"""LC701 engine-stored-twice: the bytes of one engine are in two places.

## What it checks

That no two places of a program, and of the data files given with it, hold the same engine, compared by SHA-256.

## Why it matters

An engine is most of a program. A second copy doubles the file, the download, and what is read when it starts.

## Bad

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method prefill=inline:engine.plan --method decode=inline:engine.plan
$ linkcheck pte model.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method prefill=named:engine.plan --method decode=named:engine.plan
$ linkcheck pte model.pte
```

## Causes and remedies

* Several methods run one engine, and the exporter puts the engine into each delegate's blob: store it once in the
  program's named data, under a key that all blobs name.
* The same engine is in the program and in a data file (.ptd): leave it in one of them. When both have it under one key
  ExecuTorch does not load the program at all.

## Options

With `--no-hash` engines are not read whole. Two of the same size that agree in five samples of 4096 bytes are then
unknown.

## What it cannot see

Two engines that were built from the same network and differ in a byte. Copies in two programs: nothing loads them
together, and a data file could hold what they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity, one_line
from linkcheck.rules.engines import (
    SHARED_ENGINE,
    engines_of,
    name_place,
    name_users,
    note_unread_blob,
    skip_program,
    unread_blobs,
)
from linkcheck.rules.long_lists import MOST_IN_EVIDENCE, shorten
from linkcheck.rules.rule import Rule, RuleMeta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import Engine, Place, ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta("LC701", "engine-stored-twice", "the bytes of one engine are in two places", Severity.ERROR, "0.1")


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each engine that a file and the data files hold more than once; `settings` do not matter."""
    told: set[frozenset[Place]] = set()
    for program in programs.files:
        engines = engines_of(program, programs)
        unread = unread_blobs(program)
        for delegate in unread:
            yield note_unread_blob(META.code, delegate)
        if not unread and not any(engine.place.path == program.path for engine in engines):
            yield skip_program(META.code, program, "engine")
            continue
        groups: dict[str, list[Engine]] = {}
        for engine in engines:
            groups.setdefault(engine.digest or engine.sample, []).append(engine)
        copies = [group for group in groups.values() if len(group) > 1]
        for group in copies:
            places = frozenset(engine.place for engine in group)
            if places not in told:
                told.add(places)
                yield _judge(group, program.path, hashed=programs.hashed)
        if copies or unread:
            continue
        if programs.unread_data:
            reason = f"{programs.unread_data[0]} could not be read, and may hold a copy"
            yield Check(META.code, program.path, Outcome.UNKNOWN, reason)
        else:
            count = "its engine is" if len(engines) == 1 else f"{len(engines)} engines, each is"
            yield Check(META.code, program.path, Outcome.PASS, f"{count} stored once")


def _judge(group: list[Engine], path: str, *, hashed: bool) -> RuleResult:
    listed = "; ".join(shorten([f"{name_place(e.place)} ({one_line(e.name)}, {name_users(e)})" for e in group]))
    size = group[0].place.size
    if not hashed:
        reason = f"engines of the same size may be one, and --no-hash keeps them from being compared: {listed}"
        return Check(META.code, path, Outcome.UNKNOWN, reason)
    first, *others = group
    return Finding(
        code=META.code,
        name=META.name,
        severity=META.severity,
        confidence=Confidence.HIGH,
        message=(
            f"One engine is stored {len(group)} times: {listed}. All have the SHA-256 {first.digest}. "
            f"{size * len(others)} bytes are stored, and read, in vain."
        ),
        remedy=SHARED_ENGINE,
        primary=Location(others[0].place.path, others[0].name),
        related=tuple(Location(e.place.path, e.name) for e in (first, *others[1 : MOST_IN_EVIDENCE + 1])),
        evidence={
            "sha256": first.digest,
            "size": size,
            "places": [{"path": e.place.path, "offset": e.place.offset} for e in group[:MOST_IN_EVIDENCE]],
        },
    )


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
