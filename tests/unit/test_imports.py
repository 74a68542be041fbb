"""What a passing `linkcheck verify` imports: the guard of its start-up time (docs/performance.md), without a clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.executorch import samples

PACKAGE_ROOT = Path(__file__).resolve().parents[2]

#: Module -> why a check that passes must not import it. Times are whole imports on the machine of docs/performance.md.
UNWANTED = {
    "lief": "0.4 s and 62 MiB; it judges the reader in the tests",
    "elftools": "40 ms; it judges the reader in the tests",
    "dataclasses": "0.6 ms for every class it makes; frozen values derive from linkcheck.value.Value",
    "json": "only for --format json and sarif",
    "xml": "only for --format junit",
    "html": "only for --format markdown",
    "hashlib": "only for fingerprints",
    "difflib": "only to name the nearest key after a typing error",
    "string": "1 ms for a constant or two; it also compiles a pattern",
    "bisect": "0.3 ms for two comparisons",
    "fnmatch": "only when the literal start of a pattern fits",
    "tomllib": "2 ms with the reading; profiles are plain enough for linkcheck.policy.plain_toml",
    "ctypes": "only to demangle C++ names that no profile spells out",
    "argparse": "click reads the arguments",
    "subprocess": "nothing is ever executed",
    "tempfile": "nothing is unpacked",
    "shutil": "nothing is unpacked",
    "logging": "a report says everything",
    "urllib": "only for URIs in SARIF",
    "locale": "1 ms; click's own help option asks for it, linkcheck.cli.command's does not",
    "typing_extensions": "only for type checkers",
    "importlib.metadata": "the version stands in linkcheck/__init__.py",
    "linkcheck.elf.kind": "only for what is no ELF image",
    "linkcheck.elf.link_view": "only for what is to be linked",
    "linkcheck.elf.static_symbols": "only for an executable without PT_DYNAMIC",
    "linkcheck.elf.dlopen_notes": "only for a file with dlopen metadata",
    "linkcheck.inputs.interpreter": "only when there are libraries among the inputs",
    "linkcheck.policy.hosts": "only when a library on its own leaves something undefined",
    "linkcheck.rules.program_rules": "only for pte, and to list the rules",
    "linkcheck.rules.engine_missing": "only for pte, and to list the rules",
    "linkcheck.rules.link_rules": "only for what is judged as a file, for a policy, and to name or list the rules",
    "linkcheck.model.listed_symbols": "only for images that are made of plain values",
    "linkcheck.part_of_program": "only for a library that alone does not find all it needs",
    "linkcheck.rules.late_definition": "only for a finding",
    "linkcheck.rules.unexported_definition": "only for a finding",
    "linkcheck.rules.malformed_elf": "only for a file that is judged as one",
    "linkcheck.rules.unused_waiver": "only for a policy",
    "linkcheck.loader.processor": "only where something is there for some processors only",
    "linkcheck.policy.one_off": "only for --require-needed and its kin",
    "linkcheck.inputs.distribution": "only for dist:NAME",
    "linkcheck.inputs.origins": "only when there are libraries among the inputs",
    "linkcheck.inputs.extension_module": "only for a library in a directory that another one loads",
    "linkcheck.loader.nearby": "only when a library is not found",
    "linkcheck.loader.conf": "only for a sysroot without ld.so.cache",
    "linkcheck.loader.musl": "only for a process of musl",
    "linkcheck.loader.musl.load": "only for a process of musl",
    "linkcheck.loader.musl.lookup": "only for a process of musl",
    "linkcheck.policy.lines": "only to name the line of a mistake",
    "linkcheck.policy.nearest": "only to name the nearest key after a typing error",
    "linkcheck.policy.waivers": "only when the policy has waivers",
    "linkcheck.report.json_document": "only for --format json",
    "linkcheck.report.sarif": "only for --format sarif",
    "linkcheck.report.junit": "only for --format junit",
    "linkcheck.report.markdown": "only for --format markdown",
    "linkcheck.report.github": "only for --format github",
    "linkcheck.cli.prebuilt": "another command",
    "linkcheck.executorch.facts": "only for pte, and for programs among the inputs of verify",
    "linkcheck.bundle": "only for programs among the inputs",
    "linkcheck.rules.registration": "only for programs among the inputs",
    "linkcheck.elf.texts": "only for programs among the inputs",
}

_STATE = (
    "_ZN10executorch9extension4cuda15getCallerStreamEv",
    "_ZN10executorch9extension4cuda17CallerStreamGuardC1EP11CUstream_st",
    "_ZN10executorch9extension4cuda17CallerStreamGuardD1Ev",
)


@pytest.fixture(scope="module")
def good_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that imports the whole caller stream from its owner, with symbols, found by its RUNPATH."""
    directory = tmp_path_factory.mktemp("good")
    (directory / "owner.c").write_text("".join(f"void {name}(void) {{}}\n" for name in _STATE))
    uses = "".join(f"void {name}(void);\n" for name in _STATE)
    calls = "".join(f"{name}(); " for name in _STATE)
    (directory / "runner.c").write_text(f"{uses}void _start(void) {{ {calls} for (;;); }}\n")
    library = "libextension_cuda.so"
    cc = ["gcc", "-nostdlib", "-o"]
    for command in (
        [*cc, library, "owner.c", "-shared", "-fPIC", f"-Wl,-soname,{library}"],
        [*cc, "runner", "runner.c", "-L.", "-lextension_cuda", "-Wl,-rpath,$ORIGIN"],
    ):
        subprocess.run(command, cwd=directory, check=True)
    return directory / "runner"


def list_imports(code: str, directory: Path) -> set[str]:
    """The modules that a fresh interpreter has imported at the end of `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('MODULES', *sys.modules)"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.partition("MODULES ")[2].split())


@pytest.mark.compile
def test_a_passing_check_imports_only_what_it_needs(good_program: Path) -> None:
    code = f"from linkcheck.cli.run import run\nassert run(['verify', {str(good_program)!r}]) == 0"
    imported = list_imports(code, good_program.parent)
    assert "linkcheck.rules.split_state" in imported, "the check ran in another process than the one looked at"
    ours = imported - list_imports("import click", good_program.parent)
    assert {name: reason for name, reason in UNWANTED.items() if name in ours} == {}


@pytest.mark.compile
def test_a_failing_check_imports_no_heavy_package_either(good_program: Path) -> None:
    (good_program.parent / "libextension_cuda.so").rename(good_program.parent / "elsewhere.so")
    try:
        code = f"from linkcheck.cli.run import run\nassert run(['verify', {str(good_program)!r}]) == 1"
        assert not list_imports(code, good_program.parent) & {"lief", "elftools", "dataclasses", "json"}
    finally:
        (good_program.parent / "elsewhere.so").rename(good_program.parent / "libextension_cuda.so")


def test_a_check_of_a_program_imports_nothing_of_executorch(tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(samples.good_program().to_bytes())
    imported = list_imports("from linkcheck.cli.run import run\nassert run(['pte', 'model.pte']) == 0", tmp_path)
    assert "linkcheck.executorch.survey" in imported
    ours = {"linkcheck.executorch.backend", "linkcheck.executorch.engine_file", "linkcheck.verification"}
    assert not imported & {"executorch", "torch", "lief", "elftools", "dataclasses", "subprocess", "tempfile", *ours}


@pytest.mark.parametrize("name", [name for name in UNWANTED if name.startswith("linkcheck.")])
def test_the_unwanted_parts_of_linkcheck_exist(name: str) -> None:
    """A part that was renamed would be guarded no more."""
    path = PACKAGE_ROOT.joinpath(*name.split("."))
    assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
