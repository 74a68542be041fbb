"""LC707 engine-key-mismatch: an engine's bytes do not have the SHA-256 that its key says.

## What it checks

That an engine stored under `tensorrt_engine_` and 64 hexadecimal digits has the SHA-256 of these digits.

## Why it matters

The key is the engine's identity: caches and people take two engines of one key for the same. Other bytes under it are
a damaged engine, which TensorRT may run all the same, or another model's.

## Bad

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=named:engine.plan
$ printf X | dd of=model.pte bs=1 seek=$(($(stat -c %s model.pte) - 9)) conv=notrunc status=none
$ linkcheck pte model.pte
```

## Good

```console
$ seq 1000 > engine.plan
$ python3 write_program.py model.pte --method forward=named:engine.plan
$ linkcheck pte model.pte
```

## Causes and remedies

* The file was damaged on its way: fetch it again, and compare its checksum.
* The engine was replaced (refitted, quantised) under its old key: export again, so that it gets its own.

## Options

`--no-hash` leaves this out.

## What it cannot see

Damage of an engine that is in a blob, or under a key of another form: nothing says what its bytes should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Location, Outcome, Severity
from linkcheck.rules.engines import digest_in, name_place, name_users, skip_program
from linkcheck.rules.rule import Rule, RuleMeta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings

META = RuleMeta(
    "LC707",
    "engine-key-mismatch",
    "an engine's bytes do not have the SHA-256 that its key says",
    Severity.ERROR,
    "0.1",
)


def check_programs(programs: ProgramSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding for each named engine whose hash is not the one in its key; `settings` do not matter."""
    for program in programs.files:
        if not any(entry.is_engine for entry in program.named_data):
            yield skip_program(META.code, program, "named engine")
    for engine in programs.engines:
        for key in engine.keys:
            subject = f"{engine.place.path}: {key}"
            wanted = digest_in(key)
            if wanted is None:
                yield Check(META.code, subject, Outcome.NOT_APPLICABLE, "the key holds no SHA-256")
            elif engine.digest is None:
                yield Check(META.code, subject, Outcome.NOT_APPLICABLE, "engines are not hashed (--no-hash)")
            elif engine.digest == wanted:
                yield Check(META.code, subject, Outcome.PASS)
            else:
                yield META.finding(
                    message=(
                        f"The engine under {key} ({name_place(engine.place)}, {name_users(engine)}) has the SHA-256 "
                        f"{engine.digest}: its bytes were damaged or replaced."
                    ),
                    remedy="Fetch or export the program again.",
                    primary=Location(engine.place.path, key),
                    evidence={"key": key, "sha256": engine.digest, "offset": engine.place.offset},
                )


RULE = Rule(META, __doc__ or "", check_programs=check_programs)
