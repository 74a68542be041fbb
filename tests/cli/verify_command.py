"""Runs `linkcheck verify` in this process and reads what it answers; it judges nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkcheck.cli.run import run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@dataclass(frozen=True)
class Verdict:
    """What the command answered, from its JSON."""

    status: int
    document: dict[str, Any]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.document["findings"])

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The findings that make the run fail."""
        return [f for f in self.findings if f["severity"] == "error" and f["waiver"] is None]

    @property
    def codes(self) -> set[str]:
        """The codes of the errors."""
        return {finding["code"] for finding in self.errors}

    def about(self, path: Path | str) -> list[dict[str, Any]]:
        """The findings whose file is `path`."""
        return [f for f in self.findings if f["primary"]["path"] == str(path)]

    def reasons(self, outcome: str) -> list[tuple[str, str]]:
        """Code and reason of each check that came out as `outcome`."""
        return [(c["code"], c["reason"]) for c in self.document["checks"] if c["outcome"] == outcome]


def verify(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> Verdict:
    status = run(["verify", "--format", "json", *map(str, arguments)])
    captured = capfd.readouterr()
    assert captured.err == ""
    return Verdict(status, json.loads(captured.out))
