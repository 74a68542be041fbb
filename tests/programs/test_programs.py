"""What each build of the runner and the delegate really does when it runs; linkcheck has no part in this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from tests.programs.__main__ import main
from tests.programs.build import (
    BUILDS,
    OWNER,
    RENAMED_OWNER,
    Build,
    Programs,
    StateFrom,
    build_named,
    make_archive,
    make_owner,
    make_programs,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile

ACCESSOR = "_ZN10executorch9extension4cuda15getCallerStreamEv"
GUARD = (
    "_ZN10executorch9extension4cuda17CallerStreamGuardC1EP11CUstream_st",
    "_ZN10executorch9extension4cuda17CallerStreamGuardD1Ev",
)


@pytest.fixture(params=BUILDS, ids=lambda build: build.name, scope="module")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    build: Build = request.param
    return make_programs(build, tmp_path_factory.mktemp(build.name))


def dynamic_segment(file: ELFFile) -> DynamicSegment:
    return next(s for s in file.iter_segments() if isinstance(s, DynamicSegment))


def exports_and_imports(path: Path) -> tuple[set[str], set[str]]:
    """Names a file's dynamic symbol table defines for others, and names it wants from others (pyelftools)."""
    with open(path, "rb") as stream:
        symbols = [s for s in dynamic_segment(ELFFile(stream)).iter_symbols() if s.name]
        imports = {s.name for s in symbols if s.entry.st_shndx == "SHN_UNDEF"}
    return {s.name for s in symbols if s.entry.st_info.bind != "STB_LOCAL"} - imports, imports


def soname_and_needed(path: Path) -> tuple[str | None, list[str]]:
    with open(path, "rb") as stream:
        tags = list(dynamic_segment(ELFFile(stream)).iter_tags())
    sonames = [getattr(tag, "soname", None) for tag in tags if tag.entry.d_tag == "DT_SONAME"]
    return next(iter(sonames), None), [getattr(tag, "needed", "") for tag in tags if tag.entry.d_tag == "DT_NEEDED"]


def test_the_program_prints_what_its_build_says(programs: Programs) -> None:
    done = programs.run()
    assert (done.stdout, done.stderr, done.returncode) == (programs.build.output, "", programs.build.exit_status)


def test_only_what_was_linked_with_the_shared_owner_needs_it(programs: Programs) -> None:
    build = programs.build
    for path, source in ((programs.runner, build.runner_from), (programs.delegate, build.delegate_from)):
        assert (build.owner in soname_and_needed(path)[1]) is (source is StateFrom.OWNER), path


def test_the_delegate_imports_the_accessor_exactly_when_it_shares_the_owner(programs: Programs) -> None:
    _, imports = exports_and_imports(programs.delegate)
    assert (ACCESSOR in imports) is (programs.build.delegate_from is StateFrom.OWNER)


def test_the_runner_imports_accessor_and_guard_unless_it_has_its_own(programs: Programs) -> None:
    build = programs.build
    _, imports = exports_and_imports(programs.runner)
    wanted = {ACCESSOR, *GUARD} if build.runner_from is StateFrom.OWNER or build.archive_last else set()
    assert imports & {ACCESSOR, *GUARD} == wanted


def test_a_hidden_copy_shows_in_neither_direction(programs: Programs) -> None:
    build = programs.build
    for path, source in ((programs.runner, build.runner_from), (programs.delegate, build.delegate_from)):
        if source is StateFrom.HIDDEN_ARCHIVE:
            exports, imports = exports_and_imports(path)
            assert not (exports | imports) & {ACCESSOR, *GUARD}, path


def test_a_stripped_build_has_no_symbol_table_left(programs: Programs) -> None:
    for path in (programs.runner, programs.delegate):
        with open(path, "rb") as stream:
            assert (ELFFile(stream).get_section_by_name(".symtab") is None) is programs.build.stripped, path


@pytest.mark.parametrize("name", [OWNER, RENAMED_OWNER])
def test_the_owner_exports_executorchs_names_under_its_own_soname(tmp_path: Path, name: str) -> None:
    make_owner(tmp_path / name)
    exports, _ = exports_and_imports(tmp_path / name)
    assert exports.issuperset({ACCESSOR, *GUARD})
    assert soname_and_needed(tmp_path / name)[0] == name


@pytest.mark.parametrize("hidden", [False, True])
def test_the_archive_is_an_archive_whatever_it_is_called(tmp_path: Path, hidden: bool) -> None:
    make_archive(tmp_path / OWNER, hidden=hidden)
    assert (tmp_path / OWNER).read_bytes().startswith(b"!<arch>\n")


@pytest.mark.parametrize("kept", ["archive-linked", "archive-linked-stripped"])
def test_the_linked_archive_is_saved_only_because_the_executable_exports_its_copy(tmp_path: Path, kept: str) -> None:
    programs = make_programs(build_named(kept), tmp_path)
    for path in (programs.runner, programs.delegate):
        assert ACCESSOR in exports_and_imports(path)[0], path


def test_with_the_archive_last_the_runner_depends_on_the_delegates_copy(tmp_path: Path) -> None:
    programs = make_programs(build_named("archive-linked-last"), tmp_path)
    assert ACCESSOR in exports_and_imports(programs.delegate)[0]
    assert ACCESSOR not in exports_and_imports(programs.runner)[0]


def test_the_dlopened_archive_is_not_saved_because_nothing_made_the_executable_export(tmp_path: Path) -> None:
    programs = make_programs(build_named("archive-dlopened"), tmp_path)
    assert ACCESSOR not in exports_and_imports(programs.runner)[0]
    assert ACCESSOR in exports_and_imports(programs.delegate)[0]


def test_a_build_can_be_made_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shared-dlopened", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/bin/runner {tmp_path}/lib/libdemo_delegate.so: right")
    assert main(["no-such-build", str(tmp_path)]) == 2
    assert "hidden-linked-stripped" in capsys.readouterr().err


def test_a_runner_that_cannot_open_its_delegate_says_so(tmp_path: Path) -> None:
    programs = make_programs(build_named("shared-dlopened"), tmp_path)
    programs.delegate.unlink()
    done = programs.run()
    assert (done.stdout, done.returncode) == ("", 2)
    assert programs.delegate.name in done.stderr
