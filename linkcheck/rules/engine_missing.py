"""LC703 engine-missing: a delegate names an engine that the named data does not have.

## What it checks

That each engine key which a TensorRT delegate's blob names is a key of the program's named data, or of a data file
(.ptd) given with it, and that there is something under it.

## Why it matters

The program loads until the delegate asks for its engine, and then fails with InvalidProgram: on the device, at the
first call of that method, which may be a rare one.

## Bad

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=key:tensorrt_engine_1 --entry tensorrt_engine_2=engine.plan
$ linkcheck pte model.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=key:tensorrt_engine_1
$ python3 write_program.py engines.ptd --data --entry tensorrt_engine_1=engine.plan
$ linkcheck pte model.pte engines.ptd
```

## Causes and remedies

* The engines are in a data file: give it, too, `linkcheck pte model.pte engines.ptd`, and ship it with the program.
* The named data was dropped when the program was written: hand the exporter's NamedDataStore on to the writer.
* Program and data file are of different exports: export both again.

## Options

Data files on the command line serve every program there.

## What it cannot see

Data that the application itself gives to the program when it loads it. While a data file that was given cannot be read,
an engine that is nowhere else is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.engines import name_delegate, note_unread_blob, skip_program, subject_of
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import MOST_SHOWN, as_evidence, shorten
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.model import Json, RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC703",
    "engine-missing",
    "a delegate names an engine that the named data does not have",
    Severity.ERROR,
    "0.1",
)


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each engine that is named and not there; `settings` do not matter."""
    from linkcheck.executorch.facts import NamedDataIndex

    named_data = NamedDataIndex(programs.files)
    known: dict[str, list[Json]] = {}
    for program in programs.files:
        known[program.path] = [*[entry.key for entry in program.named_data if entry.is_engine][:MOST_SHOWN]]
        if not program.tensorrt_delegates:
            yield skip_program(META.code, program, "TensorRT delegate")
    data = [file.path for file in programs.files if file.is_data]
    for delegate in [delegate for program in programs.files for delegate in program.tensorrt_delegates]:
        if delegate.blob is None:
            yield note_unread_blob(META.code, delegate)
            continue
        key = delegate.blob.metadata.engine_key
        if key is None:
            yield Check(META.code, subject_of(delegate), Outcome.NOT_APPLICABLE, "the blob names no engine")
            continue
        entry = named_data.find(key, delegate.path)
        if entry is not None and entry.place.size:
            yield Check(META.code, subject_of(delegate), Outcome.PASS)
            continue
        if entry is None and programs.unread_data:
            reason = f"{programs.unread_data[0]} could not be read, and may hold the engine {key}"
            yield Check(META.code, subject_of(delegate), Outcome.UNKNOWN, reason)
            continue
        searched = (delegate.path, *data)
        where = " or ".join(shorten(searched))
        fault = "that entry is empty" if entry is not None else f"there is no such key in {where}"
        yield META.finding(
            message=(
                f"{name_delegate(delegate)} runs the engine {one_line(key)}, and {fault}. "
                "The delegate fails when it is loaded (InvalidProgram)."
            ),
            remedy=(
                "When the engine is in a data file, check it together with the program:\n"
                f"    linkcheck pte {delegate.path} DATA.ptd\n"
                "Otherwise export again, and hand the named data on to the writer of the program."
            ),
            primary=Location(delegate.path, delegate.name),
            evidence={"engine_key": key, "engines": known[delegate.path], "searched": as_evidence(searched)},
        )


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
