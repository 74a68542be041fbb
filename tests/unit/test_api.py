"""linkcheck.api as another program calls it."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from linkcheck.api import check_prebuilt, load_settings, scan, verify
from linkcheck.errors import UsageProblemError
from linkcheck.loader.system import System
from linkcheck.loader.undefined import DefinitionFinder
from linkcheck.model import Image, LoadSet
from linkcheck.report.report import ReportOutcome
from linkcheck.verification import Verification
from tests.programs.build import build_named, make_archive, make_owner, make_programs

pytestmark = pytest.mark.compile
SETTINGS = load_settings(profile="executorch-caller-stream")


def test_verify_passes_what_is_shared_and_fails_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    good = make_programs(build_named("shared"), tmp_path / "good")
    bad = make_programs(build_named("hidden-linked-stripped"), tmp_path / "bad")
    assert verify([str(good.runner)], settings=SETTINGS).outcome is ReportOutcome.PASS
    report = verify([str(bad.runner)], settings=SETTINGS)
    assert report.outcome is ReportOutcome.FAIL
    assert "LC301" in {reported.finding.code for reported in report.findings}


def test_nothing_of_a_run_outlives_it_but_the_report(tmp_path: Path) -> None:
    """Whoever keeps the settings, to judge with them again, keeps no image by them."""
    runner = str(make_programs(build_named("hidden-linked-stripped"), tmp_path).runner)
    before = _count_alive()
    reports = [verify([runner], settings=SETTINGS), scan([str(tmp_path)], settings=SETTINGS)]
    assert _count_alive() == before
    assert all(report.findings for report in reports)


def _count_alive() -> Counter[type]:
    """How many things of a run there are; tests that ran before may hold some."""
    gc.collect()
    kinds = (Image, LoadSet, System, Verification, DefinitionFinder)
    return Counter(type(thing) for thing in gc.get_objects() if isinstance(thing, kinds))


def test_check_prebuilt_tells_a_library_from_an_archive(tmp_path: Path) -> None:
    make_owner(tmp_path / "libextension_cuda.so")
    make_archive(tmp_path / "archive.so")
    assert check_prebuilt(str(tmp_path / "libextension_cuda.so"), settings=SETTINGS).outcome is ReportOutcome.PASS
    assert check_prebuilt(str(tmp_path / "archive.so"), settings=SETTINGS).outcome is ReportOutcome.FAIL
    with pytest.raises(UsageProblemError, match="is called nonsense; one of: “caller stream”"):
        check_prebuilt("x", settings=SETTINGS, state="nonsense")


def test_one_path_is_not_taken_for_its_characters() -> None:
    with pytest.raises(TypeError, match=re.escape("give [path]")):
        verify("runner", settings=SETTINGS)


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    [example] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "build").mkdir()
    programs = make_programs(build_named("shared-dlopened"), tmp_path / "build")
    programs.delegate.rename(programs.delegate.with_name("libdelegate.so"))
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pass\n{")
