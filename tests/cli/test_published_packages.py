"""Two published packages side by side, each with a caller stream of its own: what `scan` says, and what `verify`.

torch-tensorrt has a program that needs its libextension_cuda.so; torch-tensorrt-executorch-runtime has a Python
extension module with another build of it, reached through a library that has no search path.
"""

from __future__ import annotations

import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import verify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the wheels are for x86-64"),
]

RUNNER = "runner/torch_tensorrt/bin/example_executorch_runner"
RUNNERS_OWNER = "runner/torch_tensorrt/lib/libextension_cuda.so"
MODULE = "runtime/torch_tensorrt_executorch_runtime/_portable_lib.cpython-311-x86_64-linux-gnu.so"
MODULES_OWNER = "runtime/torch_tensorrt_executorch_runtime/libextension_cuda.so"
SHIMS = "runtime/torch_tensorrt_executorch_runtime/libaoti_cuda_shims.so"


@pytest.fixture(scope="module")
def packages(
    torch_tensorrt_wheel: Path, executorch_runtime_wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A directory with what the two wheels hold that bears on the caller stream."""
    directory = tmp_path_factory.mktemp("packages")
    for wheel, name, wanted in (
        (torch_tensorrt_wheel, "runner", (RUNNER, RUNNERS_OWNER)),
        (executorch_runtime_wheel, "runtime", (MODULE, MODULES_OWNER, SHIMS)),
    ):
        with zipfile.ZipFile(wheel) as archive:
            for member in wanted:
                archive.extract(member.removeprefix(f"{name}/"), directory / name)
    return directory


@pytest.fixture(autouse=True)
def no_policy_of_the_checkout(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(packages)


def scan(capfd: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["scan", *arguments, "--format", "json"]) == 0
    return json.loads(capfd.readouterr().out)


def test_scan_names_both_owners_and_no_process_that_loads_two(
    packages: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (finding,) = scan(capfd, "runner", "runtime")["findings"]
    assert (finding["code"], finding["severity"]) == ("LC403", "info")
    assert f"{RUNNERS_OWNER} (8,328 bytes, loaded by {RUNNER})" in finding["message"]
    assert f"{MODULES_OWNER} (6,624 bytes, loaded by {MODULE})" in finding["message"]
    assert [(packages / owner).stat().st_size for owner in (RUNNERS_OWNER, MODULES_OWNER)] == [8328, 6624]
    assert "A process that reaches them by DT_NEEDED loads the first only" in finding["message"]
    assert "A process that opens each by its path holds two copies." in finding["message"]
    assert "No root here loads two of them." in finding["message"]


def test_the_wheel_files_say_the_same(
    torch_tensorrt_wheel: Path, executorch_runtime_wheel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = scan(capfd, str(torch_tensorrt_wheel), str(executorch_runtime_wheel))["findings"]
    (finding,) = (f for f in found if f["primary"]["path"].endswith("/libextension_cuda.so"))
    assert "(8,328 bytes, " in finding["message"]
    assert "(6,624 bytes, " in finding["message"]


def test_the_second_is_not_loaded_where_it_is_only_needed(packages: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # The module needs libextension_cuda.so, and the program has loaded one.
    verdict = verify(capfd, RUNNER, "--dlopen", MODULE)
    assert not {"LC401", "LC403"} & verdict.codes
    tree = load_tree(capfd, RUNNER, "--dlopen", MODULE)
    assert str(packages / RUNNERS_OWNER) in tree
    assert str(packages / MODULES_OWNER) not in tree


def test_the_second_is_loaded_where_its_path_is_opened(packages: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tree = load_tree(capfd, RUNNER, "--dlopen", MODULES_OWNER)
    # glibc compares the names that a library was asked for by with the SONAMEs: a path is none, so it is opened.
    assert {str(packages / RUNNERS_OWNER), str(packages / MODULES_OWNER)} <= tree
    verdict = verify(capfd, RUNNER, "--dlopen", MODULES_OWNER)
    (finding,) = (f for f in verdict.findings if f["code"] == "LC403")
    assert MODULES_OWNER in finding["message"]


def load_tree(capfd: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """The real paths of all that the process loads."""
    run(["tree", *arguments, "--format", "json"])
    (tree,) = json.loads(capfd.readouterr().out)["trees"]
    return {module["path"] for module in tree["modules"]}


def test_a_library_without_a_search_path_is_found_below_the_module(capfd: pytest.CaptureFixture[str]) -> None:
    missing = {f["primary"]["symbol"] for f in verify(capfd, MODULE).errors if f["code"] in ("LC202", "LC203")}
    assert "libnvinfer.so.11" in missing  # no wheel brings it
    assert not {"libextension_cuda.so", "libaoti_cuda_shims.so"} & missing


def test_as_a_root_it_has_a_finding(capfd: pytest.CaptureFixture[str]) -> None:
    (finding,) = (f for f in verify(capfd, SHIMS).errors if f["primary"]["symbol"] == "libextension_cuda.so")
    assert finding["code"] == "LC203"
    assert MODULES_OWNER in finding["message"]
    assert "$ORIGIN" in finding["remedy"]
