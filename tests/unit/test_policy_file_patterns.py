"""Which files a policy's patterns mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from linkcheck.policy.patterns import means_file
from tests.unit.rules.worlds import image

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("path", "pattern", "means"),
    [
        ("build/bin/runner", "bin/*", True),
        ("build/bin/runner", "./build/bin/runner", True),
        ("build/bin/runner", "runner", True),
        ("build/sbin/runner", "bin/*", False),
        ("/home/runner/build/tool", "*runner*", False),
        ("lib/x.so.1.2", "libx.so*", True),  # its SONAME
    ],
)
def test_a_pattern_means_the_end_of_a_path_or_a_name(path: str, pattern: str, means: bool) -> None:
    assert means_file(image(path, soname="libx.so.1" if ".so" in path else None), (pattern,)) is means


def test_a_path_pattern_holds_wherever_the_user_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path / "bin")
    assert means_file(image("runner"), ("bin/*runner*",))
    assert not means_file(image("../runner"), ("bin/*runner*",))
