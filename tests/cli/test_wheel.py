"""`linkcheck verify` on a runner that others built: the one in the public torch-tensorrt wheel, which links right.

It is judged on a made machine without CUDA, so that what this one has installed does not matter: a directory with the
wheel's files and the C and C++ libraries, given as `--root`. The real ld.so, on this machine, judges the stand-ins.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection

from tests.cli.verify_command import verify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.network,
    pytest.mark.compile,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the wheel is for x86-64"),
]

PLACE = "opt/torch_tensorrt"
RUNNER = "bin/example_executorch_runner"
OWNER = "lib/libextension_cuda.so"
MISSING = ("libnvinfer.so.11", "libcudart.so.13")
#: What a machine without CUDA has of what the runner needs (Debian and others: the C and the C++ library).
SYSTEM = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1")


@dataclass(frozen=True)
class Machine:
    """A made machine: its root directory, and the runner on it."""

    root: Path

    @property
    def runner(self) -> Path:
        return self.root / PLACE / RUNNER

    @property
    def owner(self) -> Path:
        return self.root / PLACE / OWNER


@pytest.fixture(scope="module")
def machine(torch_tensorrt_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    root = tmp_path_factory.mktemp("machine")
    with zipfile.ZipFile(torch_tensorrt_wheel) as archive:
        for name in (RUNNER, OWNER):
            target = root / PLACE / name
            target.parent.mkdir(parents=True)
            target.write_bytes(archive.read(f"torch_tensorrt/{name}"))
            target.chmod(0o755)
    (root / "lib64").mkdir()
    shutil.copy("/lib64/ld-linux-x86-64.so.2", root / "lib64")
    (root / "lib").mkdir()
    for name in SYSTEM:
        found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        shutil.copy(found.stdout.strip(), root / "lib" / name)
    return Machine(root)


@pytest.fixture(autouse=True)
def no_policy_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def imports(path: Path) -> dict[str, tuple[str, str] | None]:
    """Each import that is not weak: its version and the library that has to have it, or None (pyelftools)."""
    with open(path, "rb") as stream:
        elf = ELFFile(stream)
        needs = next((s for s in elf.iter_sections() if isinstance(s, GNUVerNeedSection)), None)
        versions = next((s for s in elf.iter_sections() if isinstance(s, GNUVerSymSection)), None)
        found: dict[str, tuple[str, str] | None] = {}
        dynamic = next(s for s in elf.iter_segments() if isinstance(s, DynamicSegment))
        for index, symbol in enumerate(dynamic.iter_symbols()):
            if symbol.entry.st_shndx != "SHN_UNDEF" or symbol.entry.st_info.bind == "STB_WEAK" or not symbol.name:
                continue
            number = versions.get_symbol(index).entry["ndx"] if versions is not None else 1
            version = needs.get_version(number & 0x7FFF) if needs is not None and isinstance(number, int) else None
            found[symbol.name] = (version[1].name, str(version[0].name)) if version is not None else None
    return found


def exports(path: Path) -> set[str]:
    with open(path, "rb") as stream:
        dynamic = next(s for s in ELFFile(stream).iter_segments() if isinstance(s, DynamicSegment))
        return {s.name for s in dynamic.iter_symbols() if s.entry.st_shndx != "SHN_UNDEF"}


def make_stand_in(path: Path, names: set[str], version: str | None) -> None:
    """A library that defines `names`, all of one version, and does nothing."""
    assert all(re.fullmatch(r"\w+", name) for name in names)
    source = "".join(f"void {name}(void) {{}}\n" for name in sorted(names)) or "int nothing;"
    flags = ["-shared", "-fPIC", "-nostdlib", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}"]
    if version is not None:
        script = path.with_suffix(".map")
        script.write_text(f"{version} {{ global: *; }};\n")
        flags.append(f"-Wl,--version-script={script}")
    subprocess.run(["gcc", *flags, "-xc", "-", "-o", str(path)], input=source, text=True, check=True)


@pytest.fixture(scope="module")
def stand_ins(machine: Machine) -> Path:
    """A directory on the machine with libraries that define what the runner and the owner import, and nothing else."""
    directory = machine.root / "stand-ins"
    directory.mkdir()
    wanted = {**imports(machine.owner), **imports(machine.runner)}
    cudart = {name: v for name, v in wanted.items() if v is not None and v[1] == "libcudart.so.13"}
    (version,) = {v[0] for v in cudart.values() if v is not None}
    make_stand_in(directory / "libcudart.so.13", set(cudart), version)
    plain = {name for name, v in wanted.items() if v is None}
    elsewhere = exports(machine.owner).union(*(exports(machine.root / "lib" / name) for name in SYSTEM))
    make_stand_in(
        directory / "libnvinfer.so.11", plain - elsewhere - exports(machine.root / "lib64/ld-linux-x86-64.so.2"), None
    )
    return directory


def test_only_what_a_machine_without_cuda_lacks_is_missing(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = verify(capfd, machine.runner, "--root", machine.root)
    assert (verdict.status, verdict.codes) == (1, {"LC202"})
    assert len(verdict.findings) == len(verdict.errors)
    named = {finding["primary"]["symbol"]: finding for finding in verdict.errors}
    assert set(MISSING) == set(named)
    for name in MISSING:
        tried = named[name]["evidence"]["searched"]
        assert f"needs {name}, and no such file is in any of the {len(tried)} directories" in named[name]["message"]
        assert all(directory in named[name]["message"] for directory in tried)
    runners = named["libnvinfer.so.11"]["evidence"]["searched"]
    assert str(machine.owner.parent) in runners
    assert any("_solib_k8" in directory for directory in runners)  # where it was built: of no use to anybody else
    assert str(machine.root / "lib") in runners
    assert all(directory.startswith(str(machine.root)) for directory in runners)


def test_it_imports_the_caller_stream_and_needs_its_owner(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = verify(capfd, machine.runner, "--root", machine.root)
    passed = dict(verdict.reasons("pass"))
    assert passed["LC301"] == "imports 3 symbols it must"
    assert "LC201" in passed
    assert "imports the caller stream, defines none of it" in passed["LC302"]
    assert "exports 3 symbols of the caller stream" in passed["LC306"]
    # What a missing library may hold is not guessed; libnvinfer.so.11 would even be searched before the owner.
    assert {code for code, _ in verdict.reasons("unknown")} == {"LC204", "LC303", "LC304", "LC305", "LC401", "LC403"}


def test_with_stand_ins_for_what_is_missing_it_passes(
    machine: Machine, stand_ins: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = verify(capfd, machine.runner, "--root", machine.root, "--library-path", "/stand-ins")
    assert (verdict.status, verdict.findings, verdict.reasons("unknown")) == (0, [], [])
    assert ("LC401", f"one copy of the caller stream: {machine.owner}") in verdict.reasons("pass")


def test_with_stand_ins_it_passes_on_this_machine_and_ld_so_binds_every_import(
    machine: Machine, stand_ins: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = verify(capfd, machine.runner, "--library-path", stand_ins)
    assert (verdict.status, verdict.findings) == (0, [])
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
    environment["LD_LIBRARY_PATH"] = str(stand_ins)
    done = subprocess.run([machine.runner], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "undefined symbol" not in done.stdout + done.stderr
    for name in MISSING:
        assert f"{name} => {stand_ins / name}" in done.stdout


def test_declared_external_they_are_nobodys_fault(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    external = [option for name in MISSING for option in ("--external", name)]
    verdict = verify(capfd, machine.runner, "--root", machine.root, *external)
    assert (verdict.status, verdict.findings) == (0, [])
