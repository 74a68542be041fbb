"""Answers of `verify` at the edges: what is refused for no fault of a file, what is external, what nobody asked."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile

from linkcheck.api import load_settings, verify
from linkcheck.model import Outcome
from linkcheck.report.report import ReportOutcome

if TYPE_CHECKING:
    from linkcheck.policy.settings import Settings

pytestmark = pytest.mark.compile


def _compile(target: Path, *flags: str, source: str = "int main(void) { return 0; }") -> str:
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o", target, *flags], input=source, text=True, check=True)
    return str(target)


def _settings(tmp_path: Path, policy: str = "", select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> Settings:
    file = tmp_path / "linkcheck.toml"
    file.write_text(policy)
    return load_settings(policy=str(file), select=select, ignore=ignore)


def test_a_library_that_may_not_be_dlopened_is_reported_and_ld_so_agrees(tmp_path: Path) -> None:
    library = _compile(tmp_path / "libno.so", "-shared", "-nostdlib", "-Wl,-z,nodlopen", source="int f;")
    program = _compile(tmp_path / "program")
    report = verify([program], settings=_settings(tmp_path), dlopen=[library])
    assert [(f.finding.code, f.finding.primary.symbol) for f in report.findings] == [("LC202", library)]
    assert "linked with -z nodlopen" in report.findings[0].finding.message
    opener = "#include <dlfcn.h>\nint main(int c, char **v) { return dlopen(v[1], RTLD_NOW) == 0; }"
    assert subprocess.run([_compile(tmp_path / "open", source=opener), library], check=False).returncode == 1


def test_a_rejected_file_of_an_external_library_is_no_finding(tmp_path: Path) -> None:
    library = tmp_path / "libext.so"
    _compile(library, "-shared", "-nostdlib", "-Wl,-soname,libext.so", source="int f;")
    program = _compile(tmp_path / "program", "-Wl,--no-as-needed", str(library), "-Wl,-rpath,$ORIGIN")
    library.write_bytes(b"!<arch>\n")  # in its place now: an archive
    refused = verify([program], settings=_settings(tmp_path))
    assert [f.finding.code for f in refused.findings] == ["LC101"]
    told = verify([program], settings=_settings(tmp_path, 'external = ["libext.so"]\n'))
    assert not told.findings
    assert told.outcome is ReportOutcome.PASS


def test_a_run_in_which_no_check_applies_is_no_pass(tmp_path: Path) -> None:
    program = _compile(tmp_path / "program")
    state = '[[state]]\nname = "s"\nowner = ["libs.so"]\nsymbols = ["s_get"]\n'
    report = verify([program], settings=_settings(tmp_path, state, select=("LC401",)))
    assert [check.outcome for check in report.checks] == [Outcome.NOT_APPLICABLE]
    assert report.outcome is ReportOutcome.COULD_NOT_CHECK


def test_a_program_that_a_role_names_is_judged_also_when_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    _compile(tmp_path / "bin/runner", "-Wl,--no-as-needed", "-lm")
    demand = 'import = ["s_get"]\nforbid-need = ["libm.so*"]\n'
    state = '[[state]]\nname = "s"\nowner = ["libs.so"]\nsymbols = ["s_get"]\n'
    named = _settings(tmp_path, f'{state}[[role]]\nname = "r"\nfiles = ["bin/runner"]\n{demand}')
    found = verify([str(tmp_path / "bin")], settings=named)
    assert {f.finding.code for f in found.findings} == {"LC204", "LC301"}
    by_kind = _settings(tmp_path, f'{state}[[role]]\nname = "r"\nkind = "executable"\n{demand}')
    assert not verify([str(tmp_path / "bin")], settings=by_kind).findings


def test_a_library_in_another_input_is_unreachable_and_not_missing(tmp_path: Path) -> None:
    for name in ("one/deep", "two/deep"):
        (tmp_path / name).mkdir(parents=True)
    library = _compile(tmp_path / "two/deep/libx.so", "-shared", "-nostdlib", "-Wl,-soname,libx.so", source="int f;")
    _compile(tmp_path / "one/deep/program", "-Wl,--no-as-needed", library)
    report = verify([str(tmp_path / "one"), str(tmp_path / "two")], settings=_settings(tmp_path))
    assert [f.finding.code for f in report.findings] == ["LC203"]
    assert library in report.findings[0].finding.message
    alone = verify([str(tmp_path / "one")], settings=_settings(tmp_path))
    assert [f.finding.code for f in alone.findings] == ["LC202"]


def test_versioned_names_elsewhere_are_named_with_the_line_that_starts_the_program(tmp_path: Path) -> None:
    """The SDKs' folders hold what the program needs, and no search path leads there. No machine has these libraries."""
    folders = {"libnvinfer_lc.so.11": tmp_path / "tensor rt/lib", "libcudart_lc.so.13": tmp_path / "$cuda"}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        _compile(folder / name, "-shared", "-nostdlib", f"-Wl,-soname,{name}", source="int f;")
    libraries = [str(folder / name) for name, folder in folders.items()]
    program = _compile(tmp_path / "program", "-Wl,--no-as-needed", *libraries)
    report = verify([program, *map(str, folders.values())], settings=_settings(tmp_path, select=("LC202", "LC203")))
    assert [(f.finding.code, f.finding.primary.symbol) for f in report.findings] == [
        ("LC203", name) for name in folders
    ]
    (line,) = {f.finding.remedy.splitlines()[-1].strip() for f in report.findings}

    def start(shell: str, before: str) -> subprocess.CompletedProcess[str]:
        command = f'{shell}\nprintf %s "$LD_LIBRARY_PATH"; {shlex.quote(program)}'
        environment = {"LD_LIBRARY_PATH": before} if before else {}
        return subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)

    assert "libnvinfer_lc.so.11: cannot open shared object file" in start("", "").stderr
    appended = ":".join(map(str, folders.values()))
    for before, after in (("", appended), ("/before", f"/before:{appended}")):
        done = start(line, before)
        assert (done.returncode, done.stdout) == (0, after), done.stderr
    told = verify([program], settings=_settings(tmp_path, select=("LC202", "LC203")), library_path=[appended])
    assert not told.findings


def test_damage_that_only_a_rule_meets_is_lc103_unless_that_is_not_asked_for(tmp_path: Path) -> None:
    """The facts of the file can be read; the name of its first symbol lies beyond the string table."""
    library = Path(
        _compile(tmp_path / "libx.so", "-shared", "-nostdlib", source="int g(void); int f(void) { return g(); }")
    )
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynsym")
        assert section is not None
        place = section["sh_offset"] + 24
    library.write_bytes((data := library.read_bytes())[:place] + b"\xff\xff\xff\x7f" + data[place + 4 :])
    role = '[[role]]\nname = "user"\nimport = ["g"]\n'
    report = verify([str(library)], settings=_settings(tmp_path, role))
    assert [f.finding.code for f in report.findings] == ["LC103"]
    ignored = verify([str(library)], settings=_settings(tmp_path, role, ignore=("LC103",)))
    assert not ignored.findings
    assert [check.code for check in ignored.unknown] == ["LC301", "LC304"]
    assert ignored.outcome is ReportOutcome.COULD_NOT_CHECK


def test_an_owner_behind_a_missing_library_may_not_be_what_the_import_gets(tmp_path: Path) -> None:
    source = "int s_get(void) { return 0; }"
    gone, owner = tmp_path / "libgone.so", tmp_path / "libs.so"
    for library in (gone, owner):
        _compile(library, "-shared", "-nostdlib", f"-Wl,-soname,{library.name}", source=source)
    flags = ("-Wl,--no-as-needed", str(gone), str(owner), "-Wl,-rpath,$ORIGIN")
    program = _compile(tmp_path / "program", *flags, source="int s_get(void); int main(void) { return s_get(); }")
    state = '[[state]]\nname = "s"\nowner = ["libs.so"]\nsymbols = ["s_get"]\n'
    settings = _settings(tmp_path, state, select=("LC303",))
    assert [f.finding.code for f in verify([program], settings=settings).findings] == ["LC303"]
    gone.unlink()
    report = verify([program], settings=settings)
    assert report.outcome is ReportOutcome.COULD_NOT_CHECK
    assert "libgone.so not found" in report.unknown[0].reason


def test_an_owner_before_a_missing_library_is_what_the_import_gets(tmp_path: Path) -> None:
    gone, owner = tmp_path / "libgone.so", tmp_path / "libs.so"
    for library, value in ((gone, 1), (owner, 0)):
        source = f"int s_get(void) {{ return {value}; }}"
        _compile(library, "-shared", "-nostdlib", f"-Wl,-soname,{library.name}", source=source)
    flags = ("-Wl,--no-as-needed", str(owner), str(gone), "-Wl,-rpath,$ORIGIN")
    program = _compile(tmp_path / "program", *flags, source="int s_get(void); int main(void) { return s_get(); }")
    state = '[[state]]\nname = "s"\nowner = ["libs.so"]\nsymbols = ["s_get"]\n'
    settings = _settings(tmp_path, state, select=("LC303",))
    assert subprocess.run([program], check=False).returncode == 0  # ld.so's own answer, while both are there
    gone.unlink()
    report = verify([program], settings=settings)
    assert [check.outcome for check in report.checks] == [Outcome.PASS]
