"""What the tests of running processes share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import Verdict
from tests.live.workshop import LiveShop, open_shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Ask = Callable[..., Verdict]


@pytest.fixture
def shop() -> Iterator[LiveShop]:
    with open_shop() as shop:
        yield shop


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str]) -> Ask:
    """Run `linkcheck live PID` and read its JSON."""

    def ask(pid: int, *arguments: str | Path) -> Verdict:
        status = run(["live", str(pid), "--format", "json", *map(str, arguments)])
        captured = capfd.readouterr()
        assert captured.err == ""
        return Verdict(status, json.loads(captured.out))

    return ask
