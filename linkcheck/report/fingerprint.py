"""Names a finding so that the next run recognises it, on any machine; not a digest of a file's content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.model import Finding
    from linkcheck.report.report import ReportedFinding


def fingerprint_findings(findings: Sequence[ReportedFinding]) -> tuple[str, ...]:
    """One fingerprint of 32 hexadecimal digits for each finding, in the order given, all different.

    It is made of the code, the last part of the primary path and the primary symbol. Directories, severity, wording
    and waivers are left out, so a finding keeps its name across checkouts, releases of linkcheck and policies.
    Findings that agree in those three are numbered by path, then by related places, then by message; the first of
    them keeps the unnumbered name, and findings outside that group never change a name.
    """
    groups: dict[str, list[int]] = {}
    for index, reported in enumerate(findings):
        groups.setdefault(_identity(reported.finding), []).append(index)
    names = [""] * len(findings)
    for identity, members in groups.items():
        members.sort(key=lambda index: _order(findings[index].finding))
        for ordinal, index in enumerate(members):
            names[index] = _digest(identity if ordinal == 0 else f"{identity}\0{ordinal}")
    return tuple(names)


def _identity(finding: Finding) -> str:
    # NUL cannot be part of a file name or of a symbol, so no two triples make one text.
    return "\0".join((finding.code, finding.primary.path.rpartition("/")[2], finding.primary.symbol or ""))


def _order(finding: Finding) -> tuple[str, tuple[tuple[str, str], ...], str]:
    related = tuple((place.path, place.symbol or "") for place in finding.related)
    return finding.primary.path, related, finding.message


def _digest(text: str) -> str:
    # surrogatepass: a name that is not UTF-8 still has a fingerprint, and no text at all can fail.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
