"""What ci/ says on a machine that lacks something, and what it installs. Runs neither apt-get nor pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci import environment
from ci.environment import DEBIAN_HEADERS, NEEDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """A folder for PATH with no more on it than the scripts need to start."""
    for command in ("bash", "dirname", "id"):
        found = shutil.which(command)
        assert found is not None, command
        (tmp_path / command).symlink_to(found)
    (tmp_path / "python3").symlink_to(sys.executable)
    return tmp_path


def run(script: str, path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", ROOT / script, *arguments],
        env={"PATH": str(path), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("script", "tools", "headers"),
    [
        ("ci/gate", {"g++"}, {"nlohmann/json.hpp"}),
        ("ci/native", {"g++"}, set(DEBIAN_HEADERS)),
        ("ci/test", {"binutils", "g++", "gcc", "make", "musl-tools"}, set(DEBIAN_HEADERS)),
    ],
)
def test_a_missing_compiler_is_one_line_that_names_the_packages(
    bare_machine: Path, script: str, tools: set[str], headers: set[str]
) -> None:
    done = run(script, bare_machine)
    assert (done.returncode, done.stdout) == (2, "")
    absent = {DEBIAN_HEADERS[header] for header in headers if not Path("/usr/include", header).exists()}
    assert done.stderr == f"ci: missing here: as root, apt-get install {' '.join(sorted(tools | absent))}\n"


@pytest.mark.parametrize("script", ["ci/gate", "ci/test"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_who_asks_for_the_usage_gets_it_and_nothing_is_run(bare_machine: Path, script: str, option: str) -> None:
    """On a machine where each of them would end with 2."""
    done = run(script, bare_machine, option)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {script}")


def test_the_environment_is_made_for_a_command_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main(["tset"]) == 2
    assert capsys.readouterr().err == "usage: ci/environment.py gate|native|test\n"


def test_what_is_installed_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One environment serves all three commands; a change of the sources makes all of it doubtful."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(environment, "INSTALLED", tmp_path / "installed")
    monkeypatch.setattr(environment, "install_with_pip", lambda names, options: calls.append((*options, *names)))
    digest = "one"
    monkeypatch.setattr(environment, "digest_of_sources", lambda: digest)

    def install(*commands: str) -> list[tuple[str, ...]]:
        calls.clear()
        for command in commands:
            environment.install_python_packages(NEEDS[command])
        return calls

    gate = [("linkcheck", "cmake", "ninja"), ("--no-deps", "executorch")]
    assert install("gate", "gate") == gate
    assert install("test", "test", "gate") == [("linkcheck[test]", "clang-format")]
    digest = "two"
    assert install("gate", "gate") == gate
    assert install("test") == [("linkcheck[test]", "clang-format")]


def test_a_missing_python_is_one_line_that_names_the_package(bare_machine: Path) -> None:
    (bare_machine / "python3").unlink()
    done = run("ci/gate", bare_machine)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ci: python3 is missing: install the Debian package python3\n"


def test_an_old_python_is_one_line_that_says_which_is_needed(bare_machine: Path) -> None:
    old = bare_machine / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 || exit 1\n')
    old.chmod(0o755)
    done = run("ci/gate", bare_machine, PYTHON="old-python")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ci: Python 3.9.2 is too old: install Python 3.10 or newer and name it in PYTHON\n"


def test_the_ci_service_calls_ci_test(bare_machine: Path, tmp_path: Path) -> None:
    """In a tree with nothing but .ci/run and a ci/test that says how it was called."""
    checkout = tmp_path / "checkout"
    for folder in (".ci", "ci"):
        (checkout / folder).mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci" / "run")
    test = checkout / "ci" / "test"
    test.write_text('#!/bin/bash\nprintf "[%s]" "$0" "$@"\nexit 7\n')
    test.chmod(0o755)
    done = subprocess.run(
        [checkout / ".ci" / "run", "-m", "not slow"],
        env={"PATH": str(bare_machine)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (7, "")
    script, *arguments = done.stdout.strip("[]").split("][")
    assert (Path(script).resolve(), arguments) == (test, ["-m", "not slow"])
