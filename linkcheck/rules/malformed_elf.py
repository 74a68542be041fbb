"""LC103 malformed-elf: an ELF file is cut off or contradicts itself.

## What it checks

That an ELF file fits itself: its header, program header table, segments and dynamic section lie inside the file and
have the sizes that the ELF format gives them.

The section header table is asked about only where a file is to be linked (`linkcheck prebuilt`): linkers refuse a
library whose table is cut off or contradicts the header. ld.so does not look at it and loads the library, so
`linkcheck verify`, which asks what a process loads, accepts it.

## Why it matters

A cut-off file looks like a library by name, size and first bytes. Linkers refuse it ("file too short", "file format
not recognized"), and so does ld.so, unless only the section header table at its end is gone. Nothing that a malformed
file says about itself can be trusted, so no other verdict is given.

## Bad

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ head -c 8000 libextension_cuda.so > cut.so
$ linkcheck prebuilt cut.so
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ cp libextension_cuda.so whole.so && cmp libextension_cuda.so whole.so
$ linkcheck prebuilt whole.so
```

## Causes and remedies

* A download, copy or unpacking stopped early, or the disk was full: fetch the file again and compare its checksum.
* A tool that rewrites ELF files (a packer, an old patchelf) damaged it: start from the original.
* A build was interrupted while the linker wrote: build again.

## Options

None.

## What it cannot see

Damage that leaves every bound intact, such as a block of zeros within the code. Segments whose address and offset agree
modulo a page and not modulo their alignment, as some tools leave them: glibc before 2.35 refuses these, later ones
load them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, FileKind, Location, Outcome, Severity
from linkcheck.rules.rule import Rule, RuleMeta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import Finding, RuleResult
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import Candidate

META = RuleMeta("LC103", "malformed-elf", "an ELF file is cut off or contradicts itself", Severity.ERROR, "0.1")


def check_file(candidate: Candidate, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding when the candidate is ELF and does not fit itself, or its use; `settings` do not matter."""
    identity = candidate.identity
    if identity.kind is FileKind.MALFORMED_ELF:
        yield _finding(
            identity.path, identity.detail, "Linkers refuse it, and nothing else that it says can be trusted."
        )
    elif candidate.link_fault:
        consequence = "ld.so does not look at section headers and would load it, but linkers refuse it."
        yield _finding(identity.path, candidate.link_fault, consequence)
    elif identity.target is None:
        yield Check(META.code, identity.path, Outcome.NOT_APPLICABLE, "the file is not ELF (LC101)")
    else:
        yield Check(META.code, identity.path, Outcome.PASS)


def _finding(path: str, reason: str, consequence: str) -> Finding:
    return META.finding(
        message=f"{path} is a malformed ELF file: {reason}. {consequence}",
        remedy="Build, copy or download the file again, and compare its size and checksum with the source.",
        primary=Location(path),
        evidence={"reason": reason},
    )


RULE = Rule(META, __doc__ or "", check_file=check_file)
