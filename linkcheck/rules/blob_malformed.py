"""LC705 blob-malformed: the blob of a TensorRT delegate contradicts its format.

## What it checks

That what a program stores for each delegate of the backend `TensorRTBackend` is a blob that the delegate can read:
header, offsets and sizes, and the JSON with its names, aliases and device.

## Why it matters

The delegate refuses such a blob when the method is loaded (InvalidProgram), on the device. Older readers check less,
and read past the end of the blob.

## Bad

```console
$ seq 1000 > not-a-blob
$ python3 write_program.py model.pte --method forward=raw:not-a-blob
$ linkcheck pte model.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=inline:engine.plan
$ linkcheck pte model.pte
```

## Causes and remedies

* The program was exported by a newer exporter with another magic: take a linkcheck and a delegate of its time.
* The blob was cut off, or changed by a tool that did not adjust its header: export again.

## Options

None. A program whose own tables do not fit the file is no finding: nothing in it can be judged, so the check is unknown
(exit status 2), and the reason names the offset.

## What it cannot see

Whether the engine can be run: TensorRT alone reads plans. Metadata of more than 2 MiB is not read, and unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.engines import name_delegate, skip_program, subject_of
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC705", "blob-malformed", "the blob of a TensorRT delegate contradicts its format", Severity.ERROR, "0.1"
)


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each blob that the delegate could not read; `settings` do not matter."""
    for program in programs.files:
        if not program.tensorrt_delegates:
            yield skip_program(META.code, program, "TensorRT delegate")
        for delegate in program.tensorrt_delegates:
            fault = delegate.fault
            if fault is None:
                yield Check(META.code, subject_of(delegate), Outcome.PASS)
                continue
            where = f"{one_line(fault.field)} at {fault.offset:#x} of the blob"
            if fault.unseen:
                yield Check(META.code, subject_of(delegate), Outcome.UNKNOWN, f"{where}: {one_line(fault.reason)}")
                continue
            yield META.finding(
                message=(
                    f"The blob of {name_delegate(delegate)} ({delegate.place}) is malformed: {where} "
                    f"({delegate.place.offset + fault.offset:#x} of the file): {one_line(fault.reason)}. "
                    "The delegate does not load it (InvalidProgram)."
                ),
                remedy="Export the program again with an exporter and a delegate of the same version.",
                primary=Location(delegate.path, delegate.name),
                evidence={"blob_offset": delegate.place.offset, "field": fault.field, "offset": fault.offset},
            )


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
