"""LC706 unused-engine: the named data has an engine that no delegate runs.

## What it checks

That for every key of the named data that begins with `tensorrt_engine_` some TensorRT delegate's blob names it, in one
of the programs given.

## Why it matters

The engine is downloaded and stored for nothing. Often it is the trace of an export that went wrong: what the program
runs instead is another engine, or a copy of this one.

## Bad

```console
$ seq 1000 > engine.plan
$ seq 2000 > other.plan
$ python3 write_program.py model.pte --method forward=inline:engine.plan --entry tensorrt_engine_1=other.plan
$ linkcheck pte model.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=named:engine.plan
$ linkcheck pte model.pte
```

## Causes and remedies

* A method was removed and its engine stayed in the named data: export again.
* A data file (.ptd) serves several programs: give all of them.

## Options

None.

## What it cannot see

Named data under other keys, and delegates that no method calls. A data file alone is not judged. While a program
that was given, or a blob, cannot be read, an engine that nobody else names is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.engines import name_delegate, name_place, skip_program
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramFile, ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta("LC706", "unused-engine", "the named data has an engine that no delegate runs", Severity.WARNING, "0.1")


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each named engine that nobody names; `settings` do not matter."""
    given = bool(programs.unread_programs) or not all(file.is_data for file in programs.files)
    unread = _name_unread(programs)
    for program in programs.files:
        if not any(entry.is_engine for entry in program.named_data):
            yield skip_program(META.code, program, "named engine")
            continue
        if not given:
            reason = "no program is given with the data file"
            yield Check(META.code, program.path, Outcome.NOT_APPLICABLE, reason)
            continue
        named = _find_named(program, programs)
        unused = [e for e in programs.engines if e.place.path == program.path and not e.users and not named & {*e.keys}]
        if not unused:
            yield Check(META.code, program.path, Outcome.PASS)
        elif unread:
            reason = f"{unread} could not be read, and may name the engine"
            yield Check(META.code, program.path, Outcome.UNKNOWN, reason)
        for engine in unused if not unread else ():
            yield META.finding(
                message=f"No delegate names the engine {one_line(engine.name)}, {name_place(engine.place)}.",
                remedy="Export again without it; when another program uses it, check that one together with this file.",
                primary=Location(engine.place.path, engine.name),
                evidence={"keys": [*engine.keys], "offset": engine.place.offset, "size": engine.place.size},
            )


def _find_named(program: ProgramFile, programs: ProgramSet) -> set[str | None]:
    """The keys that delegates name which `program` serves. One that they find in another file is LC701's to tell."""
    served = programs.files if program.is_data else (program,)
    blobs = [delegate.blob for file in served for delegate in file.tensorrt_delegates]
    return {blob.metadata.engine_key for blob in blobs if blob is not None}


def _name_unread(programs: ProgramSet) -> str:
    """What was given and not read, and may name an engine; empty when everything was read."""
    for program in programs.files:
        for delegate in program.tensorrt_delegates:
            if delegate.blob is None:
                return f"the blob of {name_delegate(delegate)}"
    return one_line(programs.unread_programs[0]) if programs.unread_programs else ""


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
