"""LC701 engine-stored-twice: the bytes of one engine are in two places.

## What it checks

That no two places of a program, and of the data files given with it, hold the same engine, compared by SHA-256, and
that no two of these files have the same key of an engine, whatever is stored under it.

## Why it matters

An engine is most of a program. A second copy doubles the file, the download, and what is read when it starts.

When a program and a data file have the same key, ExecuTorch 1.5 takes the data file's engine and says nothing. With two
data files that have it, no program is loaded (InvalidArgument).

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
* The same engine is in the program and in a data file (.ptd): leave it in one of them.
* Two files have the same key, of an earlier and a later export for example: give the program the data of its own
  export.

## Options

With `--no-hash` engines are not read whole. Two of the same size that agree in five samples of 4096 bytes are then
unknown.

## What it cannot see

Two engines that were built from the same network and differ in a byte. Copies in two programs: nothing loads them
together, and a data file could hold what they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Finding, Location, Outcome, Severity
from linkcheck.rules.engines import (
    SHARED_ENGINE,
    engines_of,
    name_place,
    name_users,
    note_unread_blob,
    skip_program,
    unread_blobs,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import MOST_IN_EVIDENCE, shorten
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import Engine, Place, ProgramFile, ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta("LC701", "engine-stored-twice", "the bytes of one engine are in two places", Severity.ERROR, "0.1")


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each engine that a file and the data files hold more than once; `settings` do not matter."""
    told = _Told()
    for program in programs.files:
        engines = engines_of(program, programs)
        unread = unread_blobs(program)
        for delegate in unread:
            yield note_unread_blob(META.code, delegate)
        if not unread and not any(engine.place.path == program.path for engine in engines):
            yield skip_program(META.code, program, "engine")
            continue
        clashes = _find_clashes(program, programs)
        for key, entries in clashes.items():
            if told.add(entries):
                yield _judge_clash(key, entries, program)
        groups: dict[str, list[Engine]] = {}
        for engine in engines:
            groups.setdefault(engine.digest or engine.sample, []).append(engine)
        copies = [group for group in groups.values() if len(group) > 1]
        for group in copies:
            if told.add([engine.place for engine in group]):
                yield _judge(group, program.path, hashed=programs.hashed)
        if copies or clashes or unread:
            continue
        if programs.unread_data:
            reason = f"{programs.unread_data[0]} could not be read, and may hold a copy"
            yield Check(META.code, program.path, Outcome.UNKNOWN, reason)
        else:
            count = "its engine is" if len(engines) == 1 else f"{len(engines)} engines, each is"
            yield Check(META.code, program.path, Outcome.PASS, f"{count} stored once")


class _Told:
    """Sets of places that there is a finding about."""

    def __init__(self) -> None:
        self._sets: dict[Place, list[frozenset[Place]]] = {}

    def add(self, places: list[Place]) -> bool:
        """Take `places` for told, and say whether they are news: not all of them in one set that was told before."""
        new = frozenset(places)
        if any(new <= others for others in self._sets.get(places[0], ())):
            return False
        for place in new:
            self._sets.setdefault(place, []).append(new)
        return True


def _find_clashes(program: ProgramFile, programs: ProgramSet) -> dict[str, list[Place]]:
    """Keys of engines that several of the files have which are loaded with `program`, each with its places."""
    named = {delegate.blob.metadata.engine_key for delegate in program.tensorrt_delegates if delegate.blob is not None}
    entries: dict[str, dict[str, Place]] = {}
    for file in (program, *(file for file in programs.files if file.is_data and file is not program)):
        for entry in file.named_data:
            if entry.is_engine or entry.key in named:
                entries.setdefault(entry.key, {}).setdefault(file.path, entry.place)
    return {key: [*places.values()] for key, places in entries.items() if len(places) > 1}


def _judge_clash(key: str, places: list[Place], program: ProgramFile) -> Finding:
    listed = "; ".join(shorten([name_place(place) for place in places]))
    if program.is_data or len(places) > 2:
        consequence = "ExecuTorch loads no program with two data files that have one key (InvalidArgument)."
    else:
        consequence = f"ExecuTorch 1.5 takes the one of {places[1].path}; the one of {program.path} is never read."
    return META.finding(
        message=f"The key {one_line(key)} is in {len(places)} files that are loaded together: {listed}. {consequence}",
        remedy="Leave the engine in one of the files; when they are of different exports, take both of the same one.",
        primary=Location(places[1].path, key),
        related=tuple(Location(place.path, key) for place in (places[0], *places[2 : MOST_IN_EVIDENCE + 1])),
        evidence={
            "key": key,
            "places": [{"path": place.path, "offset": place.offset} for place in places[:MOST_IN_EVIDENCE]],
        },
    )


def _judge(group: list[Engine], path: str, *, hashed: bool) -> RuleResult:
    listed = "; ".join(shorten([f"{name_place(e.place)} ({one_line(e.name)}, {name_users(e)})" for e in group]))
    size = group[0].place.size
    if not hashed:
        reason = f"engines of the same size may be one, and --no-hash keeps them from being compared: {listed}"
        return Check(META.code, path, Outcome.UNKNOWN, reason)
    first, *others = group
    return META.finding(
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
