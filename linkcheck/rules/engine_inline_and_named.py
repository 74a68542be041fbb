"""LC702 engine-inline-and-named: a delegate's blob holds an engine and names another, or does neither.

## What it checks

That each TensorRT delegate's blob says exactly once where its engine is: in the blob, or in the named data.

## Why it matters

Which of the two engines is meant would be a guess, so the delegate refuses to load the program (InvalidProgram). A
reader that knows no named engines would run the one in the blob.

## Bad

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=both:engine.plan
$ linkcheck pte model.pte
$ python3 write_program.py empty.pte --method forward=neither
$ linkcheck pte empty.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=inline:engine.plan
$ linkcheck pte model.pte
```

## Causes and remedies

* A tool moved engines into the named data and left them in the blobs, too: take them out, which also makes the file
  smaller.
* An exporter wrote a blob before the engine was built, or for a build that failed: export again.

## Options

None.

## What it cannot see

Whether the engine is the right one for its method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.engines import name_delegate, note_unread_blob, skip_program, subject_of
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC702",
    "engine-inline-and-named",
    "a delegate's blob holds an engine and names another, or does neither",
    Severity.ERROR,
    "0.1",
)


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each blob that does not say exactly once where its engine is; `settings` do not matter."""
    for program in programs.files:
        if not program.tensorrt_delegates:
            yield skip_program(META.code, program, "TensorRT delegate")
    for delegate in [delegate for program in programs.files for delegate in program.tensorrt_delegates]:
        if delegate.blob is None:
            yield note_unread_blob(META.code, delegate)
            continue
        inline, key = delegate.blob.inline, delegate.blob.metadata.engine_key
        if (inline is None) != (key is None):
            yield Check(META.code, subject_of(delegate), Outcome.PASS)
            continue
        if inline is not None:
            fault = f"holds an engine of {inline.size} bytes and also names {one_line(key or '')}"
            remedy = "Export again with the engine in one place: in the blob, or in the program's named data."
        else:
            fault = "holds no engine and names none"
            remedy = "Export again; the build of this engine failed, or its bytes were not handed on."
        yield META.finding(
            message=f"The blob of {name_delegate(delegate)} {fault}. The delegate does not load it (InvalidProgram).",
            remedy=remedy,
            primary=Location(delegate.path, delegate.name),
            evidence={
                "blob_offset": delegate.place.offset,
                "engine_size": 0 if inline is None else inline.size,
                "engine_key": key,
            },
        )


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
