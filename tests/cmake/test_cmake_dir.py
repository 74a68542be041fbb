"""`linkcheck cmake-dir`: the modules are where it says, from a checkout and from an installed wheel."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from tests.cmake.programs import CONSUMERS, DELEGATE, RUNNER, SHARED_STREAM
from tests.cmake.project import MODULES, PREAMBLE, ROOT, run_command, write

if TYPE_CHECKING:
    from tests.cmake.conftest import MakeProject

CONSUMER = {
    "CMakeLists.txt": f"""{PREAMBLE}
enable_testing()
linkcheck_select_extension_cuda()
{CONSUMERS}
linkcheck_add_gate(TARGET runner PROFILE executorch-caller-stream)
""",
    "runner.cpp": RUNNER,
    "delegate.cpp": DELEGATE,
}


def test_a_checkout_answers_with_its_own_folder(linkcheck: Path) -> None:
    assert run_command(linkcheck, "cmake-dir").must_succeed().raw == f"{MODULES}\n"


def test_it_is_one_of_the_commands(linkcheck: Path) -> None:
    assert "cmake-dir" in run_command(linkcheck, "--help").must_succeed().raw


def test_a_copy_without_the_modules_says_so(tmp_path: Path) -> None:
    package = tmp_path / "linkcheck"
    package.mkdir()
    for name in ("__init__.py", "errors.py", "cli/command.py"):
        write(package / name, (ROOT / "linkcheck" / name).read_text())
    command = write(package / "cli" / "cmake_dir.py", (ROOT / "linkcheck" / "cli" / "cmake_dir.py").read_text())
    write(command.with_name("__init__.py"), "")
    code = (
        "from linkcheck.errors import LinkcheckError\n"
        "from linkcheck.cli.cmake_dir import find_modules\n"
        "try: find_modules()\n"
        "except LinkcheckError as error: print(error)\n"
    )
    environment = {"PYTHONPATH": str(tmp_path)}
    run = run_command(sys.executable, "-c", code, cwd=tmp_path, environment=environment).must_succeed()
    assert run.raw == f"{package}/share/cmake: the CMake modules are not there; install linkcheck-elf again\n"


@pytest.mark.cmake
@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("how", ["wheel", "editable"])
def test_an_installed_linkcheck_serves_any_project(make_project: MakeProject, tmp_path: Path, how: str) -> None:
    """The modules, the bundled sources and the command of one environment work together, without this checkout."""
    environment = tmp_path / "environment"
    run_command(sys.executable, "-m", "venv", environment).must_succeed()
    python = environment / "bin" / "python"
    site = next((environment / "lib").glob("python*")) / "site-packages"
    # The dependency is this environment's; nothing else of it, for it may hold a linkcheck of its own.
    (site / "click").symlink_to(Path(click.__file__).parent)
    if sys.version_info < (3, 11):
        (site / "tomli").symlink_to(Path(importlib.import_module("tomli").__file__ or "").parent)
    checkout = copy_checkout(tmp_path / "checkout")  # building leaves folders behind, which another build would take in
    what = ["--editable", checkout] if how == "editable" else [checkout]
    pip = run_command(python, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", *what)
    if pip.status != 0 and "Could not find a version" in pip.text:
        pytest.skip(f"setuptools cannot be fetched to build the package: {pip.text[-200:]}")
    pip.must_succeed()

    command = environment / "bin" / "linkcheck"
    modules = run_command(command, "cmake-dir", cwd=tmp_path).must_succeed().raw.strip()
    if how == "wheel":
        assert modules == f"{site.resolve()}/linkcheck/share/cmake"
    else:
        assert modules == f"{checkout.resolve()}/cmake"

    project = make_project(CONSUMER)
    # An installed copy finds the command of its own environment; an editable one is outside of it and uses PATH.
    path = {"PATH": f"{environment}/bin:{Path(sys.executable).parent}:/usr/bin:/bin"} if how == "editable" else {}
    options = ("-ULINKCHECK_EXECUTABLE", f"-Dlinkcheck_DIR={modules}", "-DLINKCHECK_BUNDLED_EXTENSION_CUDA=ON")
    project.configure(*options, environment=path).must_succeed()
    assert f"LINKCHECK_EXECUTABLE:FILEPATH={command}" in (project.build_folder / "CMakeCache.txt").read_text()
    project.build().must_succeed()
    project.test().must_succeed()
    assert project.program("runner").raw == SHARED_STREAM


def copy_checkout(folder: Path) -> Path:
    """What the package is built from, with its symbolic links as they are."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("linkcheck", "cmake", "native"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
