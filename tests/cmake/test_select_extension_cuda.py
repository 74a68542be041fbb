"""linkcheck_select_extension_cuda(): which library is chosen, and what ends configuration. Each case is a cmake run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cmake.executorch_tree import write_executorch_tree
from tests.cmake.programs import CONSUMERS, DELEGATE, REPORT_SELECTION, RUNNER, SHARED_STREAM
from tests.cmake.project import CALLER_STREAM, PREAMBLE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cmake.conftest import MakeProject
    from tests.cmake.libraries import Libraries

pytestmark = [pytest.mark.cmake, pytest.mark.compile]

SELECT = f"linkcheck_select_extension_cuda()\n{REPORT_SELECTION}"
SOURCES = {"runner.cpp": RUNNER, "delegate.cpp": DELEGATE}
OVERRIDE = "EXECUTORCH_EXTENSION_CUDA_LIBRARY"
BUNDLED = "-DLINKCHECK_BUNDLED_EXTENSION_CUDA=ON"

#: A project's own extension_cuda, from our sources: {} is its library type.
OWN_TARGET = f"""
add_library(extension_cuda {{}} {CALLER_STREAM}/caller_stream.cpp)
target_include_directories(extension_cuda PUBLIC {CALLER_STREAM}/include)
target_compile_features(extension_cuda PUBLIC cxx_std_17)
"""


def selecting(before: str = "", after: str = "") -> dict[str, str]:
    return {"CMakeLists.txt": PREAMBLE + before + SELECT + after}


def imported(name: str, location: Path, kind: str = "SHARED", scope: str = "") -> str:
    return (
        f"add_library({name} {kind} IMPORTED {scope})\n"
        f'set_target_properties({name} PROPERTIES IMPORTED_LOCATION "{location}")\n'
    )


class TestExistingTarget:
    @pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
    def test_a_shared_target_is_taken_and_shared_by_runner_and_delegate(
        self, make_project: MakeProject, generator: str
    ) -> None:
        project = make_project(selecting(OWN_TARGET.format("SHARED"), CONSUMERS) | SOURCES, generator)
        assert "selected: existing-target as extension_cuda" in project.configure().must_succeed().text
        project.build().must_succeed()
        assert project.program("runner").raw == SHARED_STREAM

    @pytest.mark.parametrize(
        ("kind", "type_name"),
        [("STATIC", "STATIC_LIBRARY"), ("OBJECT", "OBJECT_LIBRARY"), ("MODULE", "MODULE_LIBRARY")],
    )
    def test_another_type_is_refused(self, make_project: MakeProject, kind: str, type_name: str) -> None:
        project = make_project(selecting(OWN_TARGET.format(kind)))
        project.configure(BUNDLED).must_fail(f"the target extension_cuda is a {type_name}; it must be a SHARED library")

    def test_an_interface_that_compiles_the_code_into_each_consumer_is_refused(self, make_project: MakeProject) -> None:
        before = (
            "add_library(extension_cuda INTERFACE)\n"
            f"target_sources(extension_cuda INTERFACE {CALLER_STREAM}/caller_stream.cpp)\n"
        )
        make_project(selecting(before)).configure().must_fail("into every file that links it")

    def test_an_interface_is_followed_to_the_library(self, make_project: MakeProject, libraries: Libraries) -> None:
        before = imported("cuda_runtime", libraries.good) + imported("real_extension_cuda", libraries.good)
        before += "add_library(extension_cuda INTERFACE)\n"
        before += "target_link_libraries(extension_cuda INTERFACE real_extension_cuda cuda_runtime)\n"
        run = make_project(selecting(before)).configure().must_succeed()
        assert "selected: existing-target as real_extension_cuda" in run.text

    def test_an_interface_over_a_static_library_is_refused(self, make_project: MakeProject) -> None:
        before = OWN_TARGET.format("STATIC").replace("extension_cuda", "inner_extension_cuda")
        before += "add_library(extension_cuda INTERFACE)\n"
        before += "target_link_libraries(extension_cuda INTERFACE inner_extension_cuda)\n"
        make_project(selecting(before)).configure().must_fail(
            "the target extension_cuda (inner_extension_cuda) is a STATIC_LIBRARY"
        )

    def test_an_interface_over_nothing_that_is_a_target_is_refused(self, make_project: MakeProject) -> None:
        before = "add_library(extension_cuda INTERFACE)\ntarget_link_libraries(extension_cuda INTERFACE dl)\n"
        make_project(selecting(before)).configure().must_fail("not exactly one is the target of a shared library")

    def test_an_alias_is_followed(self, make_project: MakeProject) -> None:
        before = OWN_TARGET.format("SHARED").replace("extension_cuda", "streams")
        before += "add_library(extension_cuda ALIAS streams)\n"
        run = make_project(selecting(before)).configure().must_succeed()
        assert "selected: existing-target as streams" in run.text

    @pytest.mark.parametrize("scope", ["", "GLOBAL"])
    def test_the_namespaced_target_of_an_executorch_package_is_taken(
        self, make_project: MakeProject, libraries: Libraries, scope: str
    ) -> None:
        before = imported("executorch::extension_cuda", libraries.executorch_name, scope=scope)
        after = CONSUMERS + 'file(GENERATE OUTPUT library.txt CONTENT "$<TARGET_FILE:extension_cuda>")\n'
        project = make_project(selecting(before, after) | SOURCES)
        run = project.configure().must_succeed()
        assert "selected: existing-target as executorch::extension_cuda" in run.text
        assert (project.build_folder / "library.txt").read_text() == str(libraries.executorch_name)
        project.build().must_succeed()
        assert project.program("runner").raw == SHARED_STREAM

    def test_an_imported_shared_target_over_an_archive_is_refused(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        before = imported("executorch::extension_cuda", libraries.archive)
        make_project(selecting(before)).configure(BUNDLED).must_fail(
            "The target executorch::extension_cuda may not be linked", "is a static archive"
        )

    def test_an_archive_behind_one_configuration_is_refused(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        before = imported("extension_cuda", libraries.good)
        before += "set_target_properties(extension_cuda PROPERTIES IMPORTED_CONFIGURATIONS RELEASE\n"
        before += f'  IMPORTED_LOCATION_RELEASE "{libraries.archive}")\n'
        make_project(selecting(before)).configure().must_fail("is a static archive")

    def test_an_imported_target_of_unknown_type_is_refused(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        before = imported("extension_cuda", libraries.good, kind="UNKNOWN")
        make_project(selecting(before)).configure().must_fail("is a UNKNOWN_LIBRARY")

    def test_an_imported_library_that_the_build_will_make_is_left_to_the_gate(
        self, make_project: MakeProject, tmp_path: Path
    ) -> None:
        before = imported("extension_cuda", tmp_path / "not" / "yet.so")
        assert "not there yet" in make_project(selecting(before)).configure().must_succeed().text

    def test_both_names_for_one_library_are_fine(self, make_project: MakeProject) -> None:
        before = OWN_TARGET.format("SHARED") + "add_library(executorch::extension_cuda ALIAS extension_cuda)\n"
        make_project(selecting(before)).configure().must_succeed()

    def test_both_names_for_one_file_are_fine(self, make_project: MakeProject, libraries: Libraries) -> None:
        file = libraries.executorch_name
        before = imported("extension_cuda", file.resolve()) + imported("executorch::extension_cuda", file)
        make_project(selecting(before)).configure().must_succeed()

    def test_both_names_for_two_libraries_are_refused(self, make_project: MakeProject, libraries: Libraries) -> None:
        before = OWN_TARGET.format("SHARED") + imported("executorch::extension_cuda", libraries.good)
        make_project(selecting(before)).configure().must_fail("are two libraries")

    def test_a_target_comes_before_an_override_and_says_so(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        project = make_project(selecting(OWN_TARGET.format("SHARED")))
        run = project.configure(f"-D{OVERRIDE}={libraries.good}").must_succeed()
        assert "selected: existing-target" in run.text
        assert f"{OVERRIDE} is not used" in run.text


class TestPrebuilt:
    @pytest.mark.parametrize("case", ["good", "without_extension", "executorch_name"])
    def test_a_shared_library_is_taken_whatever_its_name(
        self, make_project: MakeProject, libraries: Libraries, case: str
    ) -> None:
        project = make_project(selecting(after=CONSUMERS) | SOURCES)
        run = project.configure(f"-D{OVERRIDE}={getattr(libraries, case)}").must_succeed()
        assert "selected: prebuilt as extension_cuda" in run.text
        project.build().must_succeed()
        assert project.program("runner").raw == SHARED_STREAM

    @pytest.mark.parametrize(
        ("case", "message"),
        [
            ("archive", "is a static archive"),
            ("thin_archive", "is a thin static archive"),
            ("linker_script", "is a GNU ld script"),
            ("object_file", "object file"),
            ("pie", "position-independent executable"),
            ("executable", "is an executable"),
            ("wrong_machine", "aarch64"),
            ("without_symbols", "getCallerStream"),
        ],
    )
    def test_anything_else_ends_configuration_and_nothing_else_is_taken(
        self, make_project: MakeProject, libraries: Libraries, case: str, message: str
    ) -> None:
        project = make_project(selecting())
        run = project.configure(f"-D{OVERRIDE}={getattr(libraries, case)}", BUNDLED)
        run.must_fail(f"{OVERRIDE} may not be linked", message)
        assert "selected:" not in run.text

    def test_an_empty_override_is_an_error(self, make_project: MakeProject) -> None:
        make_project(selecting()).configure(f"-D{OVERRIDE}=", BUNDLED).must_fail(f"{OVERRIDE} is empty")

    def test_a_missing_file_is_an_error(self, make_project: MakeProject, tmp_path: Path) -> None:
        missing = tmp_path / "nowhere" / "libextension_cuda.so"
        run = make_project(selecting()).configure(f"-D{OVERRIDE}={missing}", BUNDLED)
        run.must_fail(f"{OVERRIDE} may not be linked", str(missing))

    def test_what_a_failed_search_leaves_is_an_error(self, make_project: MakeProject) -> None:
        before = f"find_library({OVERRIDE} no_such_library_anywhere)\n"
        make_project(selecting(before)).configure(BUNDLED).must_fail(f"{OVERRIDE} is {OVERRIDE}-NOTFOUND")

    def test_a_relative_path_on_the_command_line_is_one_of_the_shells_directory(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        project = make_project(selecting())
        here = libraries.good.parent
        run = project.configure(f"-D{OVERRIDE}={libraries.good.name}", cwd=here).must_succeed()
        assert f"is the prebuilt {libraries.good}" in run.text
        assert "selected: prebuilt" in run.text

    def test_a_relative_path_in_a_listfile_is_one_of_its_directory(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        project = make_project(selecting(f"set({OVERRIDE} third_party/streams.so)\n"))
        (project.source / "third_party").mkdir()
        (project.source / "third_party" / "streams.so").symlink_to(libraries.good)
        project.configure().must_succeed()

    def test_names_with_what_cmake_takes_for_syntax_are_taken_as_they_are(
        self, make_project: MakeProject, libraries: Libraries, tmp_path: Path
    ) -> None:
        odd = tmp_path / "a $b ${c} ]] (d) 'e'" / "lib.so"
        odd.parent.mkdir()
        odd.symlink_to(libraries.archive)
        make_project(selecting()).configure(f"-D{OVERRIDE}={odd}").must_fail("is a static archive")

    def test_a_library_that_is_replaced_by_an_archive_fails_the_next_build(
        self, make_project: MakeProject, libraries: Libraries, tmp_path: Path
    ) -> None:
        library = tmp_path / "libextension_cuda.so"
        library.write_bytes(libraries.good.read_bytes())
        project = make_project(selecting(after=CONSUMERS) | SOURCES)
        project.configure(f"-D{OVERRIDE}={library}").must_succeed()
        project.build().must_succeed()
        library.write_bytes(libraries.archive.read_bytes())
        project.build().must_fail(f"{OVERRIDE} may not be linked", "is a static archive")

    def test_a_second_declaration_of_the_target_is_an_error(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        project = make_project(selecting(after=OWN_TARGET.format("SHARED")))
        project.configure(f"-D{OVERRIDE}={libraries.good}").must_fail("extension_cuda", "already exists")

    def test_a_package_that_brings_another_library_later_is_an_error(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        after = imported("executorch::extension_cuda", libraries.executorch_name)
        project = make_project(selecting(after=after))
        project.configure(f"-D{OVERRIDE}={libraries.good}").must_fail(
            "executorch::extension_cuda was declared after linkcheck_select_extension_cuda()"
        )

    def test_a_package_that_brings_the_same_file_later_is_fine(
        self, make_project: MakeProject, libraries: Libraries
    ) -> None:
        # The override names the link without a version, the package's target the file itself.
        file = libraries.executorch_name.resolve()
        project = make_project(selecting(after=imported("executorch::extension_cuda", file)))
        project.configure(f"-D{OVERRIDE}={libraries.executorch_name}").must_succeed()


class TestExecutorchSource:
    @pytest.mark.parametrize("option", ["EXECUTORCH_SOURCE_DIR", "EXECUTORCH_ROOT"])
    def test_a_checkout_builds_its_own_extension(self, make_project: MakeProject, tmp_path: Path, option: str) -> None:
        checkout = write_executorch_tree(tmp_path / "any name")
        after = CONSUMERS + 'file(GENERATE OUTPUT library.txt CONTENT "$<TARGET_SONAME_FILE_NAME:extension_cuda>")\n'
        project = make_project(selecting(after=after) | SOURCES)
        run = project.configure(f"-D{option}={checkout}").must_succeed()
        assert "selected: executorch-source as extension_cuda" in run.text
        project.build().must_succeed()
        project.configure().must_succeed()  # what the first run left behind is no obstacle
        assert project.program("runner").raw == SHARED_STREAM
        # ExecuTorch's version, from the checkout: this project has none, and the name would end in a dot.
        assert (project.build_folder / "library.txt").read_text() == "libexecutorch_extension_cuda.so.1"

    def test_the_source_directory_comes_before_the_root(self, make_project: MakeProject, tmp_path: Path) -> None:
        checkout = write_executorch_tree(tmp_path / "executorch")
        options = (f"-DEXECUTORCH_ROOT={tmp_path}/nowhere", f"-DEXECUTORCH_SOURCE_DIR={checkout}")
        make_project(selecting()).configure(*options).must_succeed()

    @pytest.mark.parametrize("option", ["EXECUTORCH_SOURCE_DIR", "EXECUTORCH_ROOT"])
    def test_a_folder_without_the_extension_is_an_error(
        self, make_project: MakeProject, tmp_path: Path, option: str
    ) -> None:
        run = make_project(selecting()).configure(f"-D{option}={tmp_path}", BUNDLED)
        run.must_fail(f"{option} is no ExecuTorch checkout", "extension/cuda/CMakeLists.txt")

    def test_an_empty_source_directory_is_an_error(self, make_project: MakeProject) -> None:
        run = make_project(selecting()).configure("-DEXECUTORCH_SOURCE_DIR=", BUNDLED)
        run.must_fail("EXECUTORCH_SOURCE_DIR is empty")

    def test_a_root_that_holds_an_installed_package_is_find_packages_business(
        self, make_project: MakeProject, tmp_path: Path
    ) -> None:
        config = tmp_path / "prefix" / "share" / "cmake" / "executorch-config.cmake"
        config.parent.mkdir(parents=True)
        config.write_text("")
        run = make_project(selecting()).configure(f"-DEXECUTORCH_ROOT={tmp_path}/prefix", BUNDLED).must_succeed()
        assert "selected: bundled" in run.text

    def test_a_checkout_whose_extension_is_static_is_refused(self, make_project: MakeProject, tmp_path: Path) -> None:
        checkout = write_executorch_tree(tmp_path / "executorch", library_type="STATIC")
        make_project(selecting()).configure(f"-DEXECUTORCH_SOURCE_DIR={checkout}").must_fail("is a STATIC_LIBRARY")

    def test_a_checkout_that_declares_no_such_target_is_refused(
        self, make_project: MakeProject, tmp_path: Path
    ) -> None:
        checkout = write_executorch_tree(tmp_path / "executorch", target="something_else")
        make_project(selecting()).configure(f"-DEXECUTORCH_SOURCE_DIR={checkout}").must_fail(
            "declares no target extension_cuda"
        )

    def test_a_second_declaration_of_the_target_is_an_error(self, make_project: MakeProject, tmp_path: Path) -> None:
        checkout = write_executorch_tree(tmp_path / "executorch")
        project = make_project(selecting(after=OWN_TARGET.format("STATIC")))
        run = project.configure(f"-DEXECUTORCH_SOURCE_DIR={checkout}")
        run.must_fail('cannot create target "extension_cuda"', "already exists")


class TestBundled:
    @pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
    def test_it_is_built_when_asked_for(self, make_project: MakeProject, generator: str) -> None:
        project = make_project(selecting(after=CONSUMERS) | SOURCES, generator)
        run = project.configure(BUNDLED).must_succeed()
        assert "selected: bundled as extension_cuda" in run.text
        project.build().must_succeed()
        assert project.program("runner").raw == SHARED_STREAM
        assert not list(project.build_folder.rglob("caller_stream_test*")), "its tests are none of this project's"

    def test_a_project_that_wants_static_libraries_gets_a_shared_one_all_the_same(
        self, make_project: MakeProject
    ) -> None:
        project = make_project(selecting(after=CONSUMERS) | SOURCES)
        project.configure(BUNDLED, "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_DEBUG_POSTFIX=d").must_succeed()
        project.build().must_succeed()
        assert [path.name for path in project.build_folder.rglob("libextension_cuda*")] == ["libextension_cuda.so"]

    def test_a_second_declaration_of_the_target_is_an_error(self, make_project: MakeProject) -> None:
        project = make_project(selecting(after=OWN_TARGET.format("SHARED")))
        project.configure(BUNDLED).must_fail('cannot create target "extension_cuda"', "already exists")

    def test_a_second_selection_changes_nothing(self, make_project: MakeProject) -> None:
        project = make_project(selecting(after="linkcheck_select_extension_cuda()\n"))
        project.configure(BUNDLED).must_succeed()


def test_none_given_is_an_error_that_lists_the_four_ways(make_project: MakeProject) -> None:
    make_project(selecting()).configure().must_fail(
        "no libextension_cuda.so was given",
        "find_package(executorch)",
        f"-D{OVERRIDE}=",
        "-DEXECUTORCH_SOURCE_DIR=",
        BUNDLED,
    )


def test_the_name_is_taken_from_a_namespaced_target_as_well(make_project: MakeProject, libraries: Libraries) -> None:
    before = imported("executorch::extension_cuda", libraries.executorch_name)
    project = make_project(selecting(before, OWN_TARGET.format("SHARED")))
    project.configure().must_fail('cannot create target "extension_cuda"', "already exists")


@pytest.mark.parametrize("way", ["bundled", "prebuilt", "executorch-source", "existing-target"])
def test_a_selection_in_one_directory_serves_its_neighbours(
    make_project: MakeProject, libraries: Libraries, tmp_path: Path, way: str
) -> None:
    option, before = {
        "bundled": (BUNDLED, ""),
        "prebuilt": (f"-D{OVERRIDE}={libraries.good}", ""),
        "executorch-source": (f"-DEXECUTORCH_SOURCE_DIR={tmp_path / 'executorch'}", ""),
        "existing-target": ("-DX=", imported("executorch::extension_cuda", libraries.good, scope="GLOBAL")),
    }[way]
    write_executorch_tree(tmp_path / "executorch")
    project = make_project(
        {
            "CMakeLists.txt": PREAMBLE + "add_subdirectory(third_party)\nadd_subdirectory(src)\n",
            "third_party/CMakeLists.txt": before + SELECT,
            "src/CMakeLists.txt": CONSUMERS + "get_target_property(type extension_cuda TYPE)\n",
            **{f"src/{name}": text for name, text in SOURCES.items()},
        }
    )
    assert f"selected: {way}" in project.configure(option).must_succeed().text
    project.build().must_succeed()
    assert project.program("src/runner").raw == SHARED_STREAM


def test_several_configurations_in_one_build_folder(make_project: MakeProject) -> None:
    gate = "linkcheck_add_gate(TARGET runner PROFILE executorch-caller-stream)\n"
    project = make_project(selecting(after=CONSUMERS + gate) | SOURCES, "Ninja Multi-Config")
    project.configure(BUNDLED).must_succeed()
    project.build("--config", "Release").must_succeed()
    assert project.program("Release/runner").raw == SHARED_STREAM
