"""LC704 engine-misaligned: an engine does not begin at a multiple of 16 bytes.

## What it checks

That every engine begins at a file offset which is a multiple of 16, so that it is aligned in memory when the file is
mapped or read as it is.

## Why it matters

The delegate refuses a named engine at another address (InvalidProgram), and the blob's format promises the alignment
for inline ones.

## Bad

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=named:engine.plan --shift 4
$ linkcheck pte model.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=named:engine.plan
$ linkcheck pte model.pte
```

## Causes and remedies

* The named data was added with a smaller alignment, and the program written with a segment alignment below 16: add
  engines with `alignment=16`, and leave ExecuTorch's segment alignment at its default of 128.
* A tool put bytes before the segments: write the program again.

## Options

None.

## What it cannot see

Where a loader of the application's own puts the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.engines import name_engine, name_place, name_users, skip_program, unread_blobs
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC704", "engine-misaligned", "an engine does not begin at a multiple of 16 bytes", Severity.ERROR, "0.1"
)


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each engine that does not begin at a multiple of 16; `settings` do not matter."""
    for program in programs.files:
        unread = unread_blobs(program)
        if unread:
            reason = f"the blob of {one_line(unread[0].name)} could not be read (LC705), and may hold an engine"
            yield Check(META.code, program.path, Outcome.UNKNOWN, reason)
        elif not any(engine.place.path == program.path for engine in programs.engines):
            yield skip_program(META.code, program, "engine")
    for engine in programs.engines:
        place = engine.place
        if engine.is_aligned:
            yield Check(META.code, f"{place.path}: {engine.name}", Outcome.PASS)
            continue
        consequence = (
            "The delegate asks for 16 and does not load it (InvalidProgram)."
            if engine.keys
            else "The blob's format promises 16, and TensorRT may read it as if it were."
        )
        yield META.finding(
            message=(
                f"{name_engine(engine)}, {name_place(place)}, {name_users(engine)}, is aligned to "
                f"{place.alignment} bytes only. {consequence}"
            ),
            remedy="Add the engine to the named data with alignment=16, and write the program again.",
            primary=Location(place.path, engine.name),
            evidence={"offset": place.offset, "size": place.size, "alignment": place.alignment},
        )


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
