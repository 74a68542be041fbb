"""LC902 expired-waiver: a waiver in the policy is past its day.

## What it checks

The `expires` date of every `[[waiver]]` of the policy files in force. The day itself is still valid; from the next
day on (by the clock of the machine) the waiver accepts nothing, and it is reported as an error at the policy file,
with its owner and reason.

## Why it matters

A waiver says "not now". Its date is when somebody promised to look again. A waiver that went on for ever would turn a
known fault into an unknown one.

## Bad

```toml
# linkcheck.toml
extends = ["executorch-caller-stream"]

[[waiver]]
code = "LC204"
path = "runner"
reason = "libtorch comes in through the tokenizer until its next release"
owner = "runtime team"
expires = 2020-01-31
```

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ echo 'int torch() { return 0; }' > torch.cpp
$ g++ -shared -fPIC torch.cpp -Wl,-soname,libtorch.so -o libtorch.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,--no-as-needed -ltorch -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Good

The fault is gone and so is the waiver; or its owner has looked again and decided anew:

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
$ echo 'int torch() { return 0; }' > torch.cpp
$ g++ -shared -fPIC torch.cpp -Wl,-soname,libtorch.so -o libtorch.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,--no-as-needed -ltorch -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Causes and remedies

* The fault was fixed: remove the waiver.
* The fault is still there: fix it. Its own finding is reported again, beside this one.
* The reason still holds: let the owner that the waiver names set a later date, and say in `reason` what has changed.

## Options

None that accepts the fault again. `ignore = ["LC902"]` hides only this report; the findings that the waiver accepted
are reported all the same.

## What it cannot see

Whether the fault is still there, when the run looked at other files. `prebuilt` does not ask: there an expired waiver
accepts nothing, and that is all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Finding, Location, Severity
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import waiver_evidence, waiver_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import PolicyUse

META = RuleMeta(
    code="LC902",
    name="expired-waiver",
    summary="a waiver in the policy is past its day",
    severity=Severity.ERROR,
    since="0.1",
)


def check_policy(use: PolicyUse, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each waiver that is past its day; `settings` do not matter."""
    for waiver in use.expired:
        yield META.finding(
            f"{waiver_text(waiver)} expired on {waiver.expires.isoformat()} and accepts nothing any more; "
            f"its reason was “{waiver.reason}” (owner: {waiver.owner})",
            f"Fix the fault and remove the waiver, or have {waiver.owner} decide anew and set a later `expires`.",
            Location(waiver.source),
            evidence=waiver_evidence(waiver),
        )


RULE = Rule(META, __doc__ or "", check_policy=check_policy)
