"""Versions that a library lacks: what ld.so says of the same files, and where it ends."""

from __future__ import annotations

import os
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import load
from linkcheck.loader.lookup import bindings
from linkcheck.loader.system import System
from linkcheck.loader.versions import VersionFault, compare_versions
from linkcheck.model import Check, Finding, Outcome, Severity
from linkcheck.policy.settings import Settings
from linkcheck.rules.unsatisfied_version import check
from tests.loader.workshop import START, Workshop, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.model import Binding, LoadSet, RuleResult

pytestmark = needs_compiler

ACCESSOR = "int acc(void) { return 1; }"
CALL = "int acc(void); void go(void) { acc(); } " + START
#: glibc before 2.41 ends the process where a version is wanted of a library that has none.
ASSERTS = tuple(map(int, (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0.0").split()[1].split("."))) < (2, 41)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def make_program(shop: Workshop, *flags: str, source: str = CALL) -> Path:
    """A program linked against a libacc.so that has acc@@V1."""
    make_library(shop, "V1 { global: acc; };")
    return shop.executable(
        "main", source=source, flags=("-pie", *flags, str(shop.base / "libacc.so")), runpath="$ORIGIN"
    )


def make_library(shop: Workshop, script: str | None, *, soname: str = "libacc.so") -> None:
    flags: tuple[str, ...] = ()
    if script is not None:
        (shop.base / "script").write_text(script)
        flags = (f"-Wl,--version-script={shop.base}/script",)
    shop.library("libacc.so", soname=soname, source=ACCESSOR, flags=flags)


def start(program: Path) -> tuple[int, str]:
    environment = {"LD_BIND_NOW": "1", "LC_ALL": "C"}
    done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def loaded(program: Path) -> LoadSet:
    return load(read_image(str(program)), System(read_image))


def import_of(load_set: LoadSet) -> Binding:
    (found,) = (b for b in bindings(load_set, ["acc"]) if b.module == 0)
    return found


def test_a_version_that_is_there(shop: Workshop) -> None:
    program = make_program(shop)
    assert start(program) == (0, "")
    load_set = loaded(program)
    report = compare_versions(load_set)
    assert (report.refused, report.uninformed, report.compared) == ((), (), 1)
    found = import_of(load_set)
    assert (found.provider, found.version, found.unversioned) == (1, "V1", False)


def test_another_version_ends_the_start(shop: Workshop) -> None:
    program = make_program(shop)
    make_library(shop, "V2 { global: acc; };")
    status, message = start(program)
    assert status == 1
    assert f"{shop.base}/libacc.so: version `V1' not found (required by {program})" in message
    assert compare_versions(loaded(program)).refused == (VersionFault(0, "libacc.so", ("V1",), 1),)


def test_a_library_without_versions_ends_at_the_look_up_before_glibc_2_41(shop: Workshop) -> None:
    program = make_program(shop)
    make_library(shop, None)
    status, message = start(program)
    assert f"{shop.base}/libacc.so: no version information available (required by {program})" in message
    assert ("check_match: Assertion `version->filename == NULL" in message) is ASSERTS
    assert (status == 0) is not ASSERTS
    load_set = loaded(program)
    report = compare_versions(load_set)
    assert (report.refused, report.uninformed) == ((), (VersionFault(0, "libacc.so", ("V1",), 1),))
    found = import_of(load_set)
    assert (found.provider, found.unversioned) == (1, True)


def test_another_library_without_versions_serves(shop: Workshop) -> None:
    """Only the library that the version is wanted of has to have it: an interposer need not."""
    program = make_program(shop, f"-L{shop.base}")
    shop.library("libfirst.so", source=ACCESSOR)
    root = read_image(str(program))
    environment = {"LD_BIND_NOW": "1", "LD_PRELOAD": str(shop.base / "libfirst.so")}
    assert subprocess.run([str(program)], env=environment, check=False).returncode == 0
    load_set = load(root, System(read_image), preload=[environment["LD_PRELOAD"]])
    assert compare_versions(load_set).refused == ()
    found = import_of(load_set)
    assert (found.provider, found.unversioned) == (1, False)


def test_a_weak_import_wants_its_version_all_the_same(shop: Workshop) -> None:
    """GNU ld sets VER_FLG_WEAK for a version that only weak imports want; what it did decides."""
    program = make_program(shop, source="int acc(void) __attribute__((weak));" + CALL)
    make_library(shop, "V2 { global: acc; };")
    (need,) = read_image(str(program)).version_needs
    assert (start(program)[0] == 0) is need.versions[0].weak
    assert bool(compare_versions(loaded(program)).refused) is not need.versions[0].weak


#: With relative relocations, and a function of the C library in a version.
PACKED = "static int v; int *p = &v, *q[4] = {&v, &v, &v, &v}; int puts(const char *); void *f = puts;"
PACK = "-Wl,-z,pack-relative-relocs"


def make_packed(shop: Workshop, *, library: bool, libc: bool = True) -> tuple[Path, Path]:
    """The file with packed relocations, and the program to start; skips where the linker or the loader knows none."""
    more = (PACK, "-lc") if libc else (PACK,)
    source = PACKED if libc else PACKED.partition(" int puts")[0]
    if library:
        packed = shop.library("libpacked.so", soname="libpacked.so", source=source, flags=more)
        program = shop.executable("main", flags=("-pie", "-lc", str(packed)), runpath="$ORIGIN")
    else:
        packed = program = shop.executable("main", source=source + START, flags=("-pie", *more))
    if not read_image(str(packed)).packed_relocations:
        pytest.skip("this linker packs no relative relocations")
    if compare_versions(loaded(program)).unrelocated or start(program)[0] != 0:
        pytest.skip("this glibc knows no DT_RELR")
    return packed, program


def forget_mark(path: Path) -> None:
    """Let the need for GLIBC_ABI_DT_RELR name another version of the C library: lld never makes one."""
    with path.open("r+b") as file:
        section = ELFFile(file).get_section_by_name(".gnu.version_r")
        assert isinstance(section, GNUVerNeedSection)
        ((need, auxiliaries),) = [(need, list(versions)) for need, versions in section.iter_versions()]
        assert need.name == "libc.so.6"
        other = next(one for one in auxiliaries if one.name != "GLIBC_ABI_DT_RELR")
        at = section["sh_offset"] + need["vn_aux"]
        for one in auxiliaries:
            if one.name == "GLIBC_ABI_DT_RELR":
                file.seek(at)
                file.write(struct.pack("<I", other["vna_hash"]))
                file.seek(at + 8)
                file.write(struct.pack("<I", other["vna_name"]))
            at += one["vna_next"]


@pytest.mark.parametrize("library", [False, True], ids=["program", "library"])
def test_packed_relocations_have_to_be_named_among_the_versions(shop: Workshop, library: bool) -> None:
    packed, program = make_packed(shop, library=library)
    report = compare_versions(loaded(program))
    assert (report.refused, report.unmarked) == ((), ())
    assert [one.outcome for one in judge(program) if isinstance(one, Check)] == [Outcome.PASS]
    forget_mark(packed)
    status, message = start(program)
    assert status != 0
    assert f"{packed}: DT_RELR without GLIBC_ABI_DT_RELR dependency" in message
    load_set = loaded(program)
    report = compare_versions(load_set)
    assert report.refused == ()
    assert [load_set.modules[index].image.path for index in report.unmarked] == [str(packed)]
    (finding,) = judge(program)
    assert isinstance(finding, Finding)
    assert (finding.severity, finding.primary.path) == (Severity.ERROR, str(packed))


def test_packed_relocations_of_a_file_that_names_no_version_pass(shop: Workshop) -> None:
    _, program = make_packed(shop, library=True, libc=False)
    assert start(program) == (0, "")
    report = compare_versions(loaded(program))
    assert (report.refused, report.unmarked) == ((), ())


def forget_needed(program: Path, name: str) -> None:
    """Overwrite the tag of a DT_NEEDED, as a tool that removes one and leaves DT_VERNEED does."""
    with program.open("r+b") as file:
        dynamic = next(s for s in ELFFile(file).iter_segments() if isinstance(s, DynamicSegment))
        at = next(n for n, tag in enumerate(dynamic.iter_tags()) if getattr(tag, "needed", None) == name)
        file.seek(dynamic["p_offset"] + 16 * at)
        file.write(struct.pack("<Q", 0x6FFFFEF0))


def judge(program: Path, *external: str) -> list[RuleResult]:
    return list(check(loaded(program), Settings("test", external=external)))


def test_a_version_of_a_library_that_is_not_loaded_ends_in_an_assertion(shop: Workshop) -> None:
    program = make_program(shop)
    forget_needed(program, "libacc.so")
    status, message = start(program)
    assert status != 0 and "_dl_check_map_versions: Assertion `needed != NULL' failed" in message
    (finding,) = judge(program)
    assert isinstance(finding, Finding) and finding.severity is Severity.ERROR
    assert "needs the version V1 of libacc.so, and nothing is loaded by that name" in finding.message


def test_a_version_of_a_library_that_a_missing_one_may_bring_is_unknown(shop: Workshop) -> None:
    """What was linked as a library's own need comes with it, so that no DT_NEEDED names it."""
    brought = shop.library("libbringer.so", soname="libbringer.so", needs=("libacc.so",), runpath="$ORIGIN")
    make_library(shop, "V1 { global: acc; };")
    flags = ("-pie", str(shop.base / "libacc.so"), str(brought))
    program = shop.executable("main", source=CALL, flags=flags, runpath="$ORIGIN")
    forget_needed(program, "libacc.so")
    assert start(program) == (0, "")
    assert [result.outcome for result in judge(program) if isinstance(result, Check)] == [Outcome.PASS]
    brought.unlink()
    (unknown,) = judge(program)
    assert isinstance(unknown, Check) and unknown.outcome is Outcome.UNKNOWN
    assert unknown.reason == "libbringer.so not found, which may bring libacc.so, whose versions are needed"
    (other,) = judge(program, "libbringer.so")
    assert isinstance(other, Check) and other.outcome is Outcome.NOT_APPLICABLE


def test_a_missing_library_is_no_missing_version(shop: Workshop) -> None:
    program = make_program(shop)
    (shop.base / "libacc.so").unlink()
    assert "cannot open shared object file" in start(program)[1]
    load_set = loaded(program)
    assert [u.needed for u in load_set.unresolved] == ["libacc.so"]
    assert compare_versions(load_set).refused == ()
