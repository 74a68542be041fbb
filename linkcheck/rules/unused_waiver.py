"""LC901 unused-waiver: a waiver in the policy accepts no finding of this run.

## What it checks

Every `[[waiver]]` of the policy files in force that has not expired. One that no finding of the run fits is reported,
as a warning, at the policy file. A waiver for rules that did not run (`select`, `ignore`) is not reported.

## Why it matters

A waiver outlives its fault silently. When the fault comes back years later, on the same file, nobody will hear of it:
the old waiver accepts it. A waiver that never fitted anything, because its path has a typing error, looks like a
decision but is none.

## Bad

```toml
# linkcheck.toml
extends = ["executorch-caller-stream"]

[[waiver]]
code = "LC204"
path = "runner"
reason = "libtorch comes in through the tokenizer until its next release"
owner = "runtime team"
expires = 2099-12-31
```

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner    # without libtorch
$ linkcheck verify runner
```

## Good

The same without that `[[waiver]]`:

```toml
# linkcheck.toml
extends = ["executorch-caller-stream"]
```

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Causes and remedies

* The fault was fixed: remove the waiver.
* The file was renamed or moved: correct `path`. It is compared with the path that findings show, with the path from
  the policy file's directory, and, when it has no slash, with the file's name.
* `symbol` is written otherwise than the finding has it: copy it from the finding.
* The run looked at some of the files only: ignore this rule for that run, `--ignore LC901`.

## Options

`ignore = ["LC901"]` in the policy, or `--ignore LC901`.

## What it cannot see

Whether a run over other files would have used the waiver. `prebuilt`, which looks at one file, does not ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Finding, Location, Severity
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import listed, shorten, waiver_evidence, waiver_text
from linkcheck.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import PolicyUse

META = RuleMeta(
    code="LC901",
    name="unused-waiver",
    summary="a waiver in the policy accepts no finding of this run",
    severity=Severity.WARNING,
    since="0.1",
)


def check_policy(use: PolicyUse, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each waiver that accepted nothing; `settings` do not matter."""
    for waiver in use.unused:
        near = next((symbols for other, symbols in use.missed if other == waiver), ())
        names = listed(shorten([one_line(symbol) for symbol in near]))
        beside = f": the finding of {waiver.code} on such a file is about {names}, and a waiver has to mean all of it"
        yield META.finding(
            f"{waiver_text(waiver)} accepts no finding of this run{beside if near else ''}",
            "Correct `symbol`, or leave it out."
            if near
            else "Remove the waiver if the fault is gone; otherwise correct its path or symbol.",
            Location(waiver.source),
            evidence=waiver_evidence(waiver),
        )


RULE = Rule(META, __doc__ or "", check_policy=check_policy)
