"""What holds for every CMake module: how it is found, including it changes nothing, a missing command is an error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cmake.project import MODULES, PREAMBLE, ROOT, cmake, run_command, write

if TYPE_CHECKING:
    from tests.cmake.conftest import MakeProject
    from tests.cmake.libraries import Libraries

pytestmark = pytest.mark.cmake

FUNCTION_FILES = sorted([*MODULES.glob("linkcheck_*.cmake"), *MODULES.glob("detail/*.cmake")])
NO_LANGUAGE = "cmake_minimum_required(VERSION 3.28)\nproject(subject LANGUAGES NONE)\n"

#: Writes down everything that an include could leave behind.
SNAPSHOT = """
function(snapshot file)
  set(text "")
  foreach(kind IN ITEMS VARIABLES CACHE_VARIABLES MACROS)
    get_cmake_property(values ${kind})
    string(APPEND text "${kind} ${values}\\n")
  endforeach()
  foreach(kind IN ITEMS BUILDSYSTEM_TARGETS IMPORTED_TARGETS COMPILE_OPTIONS LINK_OPTIONS INCLUDE_DIRECTORIES
          COMPILE_DEFINITIONS TESTS CMAKE_CONFIGURE_DEPENDS)
    get_directory_property(values ${kind})
    string(APPEND text "${kind} ${values}\\n")
  endforeach()
  foreach(name IN ITEMS CMAKE_MODULE_PATH CMAKE_PREFIX_PATH CMAKE_CXX_FLAGS CMAKE_CXX_STANDARD BUILD_SHARED_LIBS)
    string(APPEND text "${name} ${${name}}\\n")
  endforeach()
  file(WRITE "${CMAKE_BINARY_DIR}/${file}" "${text}")
endfunction()
"""


@pytest.mark.parametrize("module", [path.relative_to(MODULES).as_posix() for path in FUNCTION_FILES])
def test_a_file_defines_the_function_it_is_called_after_and_says_what_it_does(module: str) -> None:
    text = (MODULES / module).read_text()
    name = (MODULES / module).stem
    assert re.findall(r"^function\((\w+)", text, re.MULTILINE) == [name]
    assert not re.search(r"^macro\(", text, re.MULTILINE)
    assert text.startswith(f"#[=[\n{name}(")
    assert "\ninclude_guard(GLOBAL)\n" in text


def test_including_every_module_changes_nothing(make_project: MakeProject) -> None:
    includes = "".join(f'include("{path}")\n' for path in FUNCTION_FILES * 2)
    project = make_project({"CMakeLists.txt": f"{NO_LANGUAGE}{SNAPSHOT}snapshot(before)\n{includes}snapshot(after)\n"})
    project.configure().must_succeed()
    before = (project.build_folder / "before").read_text()
    assert (project.build_folder / "after").read_text() == before
    assert "CMAKE_BINARY_DIR" in before, "the snapshot saw nothing"


def test_a_module_is_found_on_the_module_path(make_project: MakeProject) -> None:
    listfile = NO_LANGUAGE + f'list(APPEND CMAKE_MODULE_PATH "{MODULES}")\n'
    listfile += "include(linkcheck_find_command)\nlinkcheck_find_command(found)\nmessage(STATUS found=${found})\n"
    project = make_project({"CMakeLists.txt": listfile})
    assert f"found={project.linkcheck}" in project.configure().must_succeed().text


def test_find_package_adds_the_functions_and_one_variable(make_project: MakeProject) -> None:
    listfile = NO_LANGUAGE + SNAPSHOT + "snapshot(before)\nfind_package(linkcheck REQUIRED)\nsnapshot(after)\n"
    listfile += 'message(STATUS "modules=${linkcheck_MODULE_PATH}")\n'
    project = make_project({"CMakeLists.txt": listfile})
    assert f"modules={MODULES}" in project.configure().must_succeed().text
    before, after = ((project.build_folder / name).read_text().splitlines() for name in ("before", "after"))
    new = {
        word
        for old, now in zip(before, after, strict=True)
        for word in set(re.split("[ ;]", now)) - set(re.split("[ ;]", old))
    }
    # find_package itself keeps linkcheck_CONFIG and its kin.
    assert {word for word in new if not word.startswith("linkcheck_")} == set()


@pytest.mark.parametrize("prefix", ["linkcheck_DIR", "CMAKE_PREFIX_PATH", "linkcheck_ROOT"])
def test_find_package_takes_the_folder_by_any_of_cmakes_variables(make_project: MakeProject, prefix: str) -> None:
    project = make_project({"CMakeLists.txt": NO_LANGUAGE + "find_package(linkcheck REQUIRED)\n"})
    project.configure("-Ulinkcheck_DIR", f"-D{prefix}={MODULES}").must_succeed()


@pytest.mark.parametrize(
    ("wanted", "compatible"),
    [("0.1", True), ("0.1.0", True), ("0", True), ("0.2", False), ("0.0", False), ("1", False)],
)
def test_find_package_compares_versions(make_project: MakeProject, wanted: str, compatible: bool) -> None:
    project = make_project({"CMakeLists.txt": NO_LANGUAGE + f"find_package(linkcheck {wanted} REQUIRED)\n"})
    run = project.configure()
    if compatible:
        run.must_succeed()
    else:
        run.must_fail("compatible with requested version")


def test_the_version_is_the_packages() -> None:
    from linkcheck import __version__

    text = (MODULES / "linkcheckConfigVersion.cmake").read_text()
    stated = re.search(r'PACKAGE_VERSION "([^"]+)"', text)
    assert stated is not None
    assert __version__.split(".dev")[0] == stated[1]
    major_minor = ".".join(stated[1].split(".")[:2])
    assert f'VERSION_EQUAL "{major_minor}"' in text


class TestMissingCommand:
    CALLS = (
        "linkcheck_find_command(found)",
        "linkcheck_validate_prebuilt(FILE CMakeLists.txt)",
        "linkcheck_add_gate(TARGET program PROFILE executorch-caller-stream)",
    )

    @pytest.mark.compile
    @pytest.mark.parametrize("call", CALLS)
    def test_it_is_an_error_with_the_line_that_installs_it(
        self, make_project: MakeProject, tmp_path: Path, call: str
    ) -> None:
        listfile = PREAMBLE + "add_executable(program main.cpp)\n" + call + "\n"
        project = make_project({"CMakeLists.txt": listfile, "main.cpp": "int main() {}\n"})
        project.configure("-ULINKCHECK_EXECUTABLE", environment={"PATH": f"{tools_only(tmp_path)}"}).must_fail(
            "the linkcheck command was not found", "python3 -m pip install linkcheck-elf"
        )

    @pytest.mark.parametrize("given", ["/nowhere/linkcheck", "/bin/true", "/bin/false"])
    def test_another_program_is_not_taken_for_it(self, make_project: MakeProject, given: str) -> None:
        listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\nlinkcheck_find_command(found)\n"
        project = make_project({"CMakeLists.txt": listfile})
        project.configure(f"-DLINKCHECK_EXECUTABLE={given}").must_fail(
            f"LINKCHECK_EXECUTABLE is {given}", "python3 -m pip install linkcheck-elf"
        )


def tools_only(folder: Path) -> Path:
    """A PATH entry with the tools a build needs and no linkcheck."""
    import shutil

    tools = folder / "tools"
    tools.mkdir()
    for name in ("c++", "g++", "gcc", "cc", "as", "ld", "ar", "ranlib", "make", "ninja", "sh", "uname"):
        # ninja may come from this environment, whose own folder is not passed on: linkcheck is in it.
        if (found := shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)) is not None:
            (tools / name).symlink_to(found)
    return tools


class TestValidatePrebuilt:
    pytestmark = pytest.mark.compile

    def test_it_answers_with_the_soname(self, make_project: MakeProject, libraries: Libraries) -> None:
        listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\n"
        listfile += f'linkcheck_validate_prebuilt(FILE "{libraries.executorch_name}" SONAME soname)\n'
        listfile += "message(STATUS soname=${soname})\n"
        run = make_project({"CMakeLists.txt": listfile}).configure().must_succeed()
        assert "soname=libexecutorch_extension_cuda.so.1" in run.text

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("FILE {good} FIEL x", "unknown arguments: FIEL;x"),
            ("FILE {good} PROFILE", "no value for PROFILE"),
            ("FILE", "is empty"),
            ("", "is empty"),
            ("FILE {good} PROFILE no-such-profile", "could not be judged (2)"),
            ("FILE {good} MACHINE aarch64", "may not be linked"),
            ("FILE {good} MACHINE no-such-machine", "could not be judged (2)"),
            ("FILE {good} POLICIES x", "unknown arguments: POLICIES;x"),
            ("FILE {good} POLICY", "no value for POLICY"),
            ('FILE {good} POLICY ""', "POLICY is empty: give it a value, or leave it out."),
            ('FILE {good} STATE ""', "STATE is empty: give it a value, or leave it out."),
            ('FILE {good} PROFILE ""', "PROFILE is empty: give it a value, or leave it out."),
            ("FILE {good} POLICY nope.toml", "linkcheck_validate_prebuilt: POLICY: there is no file "),
            ("FILE {good} STATE nobody", "--state nobody: no state of executorch-caller-stream is called nobody"),
        ],
    )
    def test_wrong_use_ends_configuration(
        self, make_project: MakeProject, libraries: Libraries, arguments: str, message: str
    ) -> None:
        call = f"linkcheck_validate_prebuilt({arguments.format(good=libraries.good)})\n"
        listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\n" + call
        make_project({"CMakeLists.txt": listfile}).configure().must_fail(message)

    #: Two states, so that the first one and a named one differ.
    OWN_POLICY = """
[[state]]
name = "pool"
owner = ["libpool.so"]
symbols = ["pool"]

[[state]]
name = "session table"
owner = ["libsession.so"]
symbols = ["acme_session"]
"""

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ('POLICY own.toml STATE "session table"', ()),
            ('STATE "session table"', ("no state of executorch-caller-stream is called session table",)),
            ("POLICY own.toml", ("LC104 soname-mismatch", "libpool.so")),
            ('POLICY own.toml PROFILE executorch-caller-stream STATE "session table"', ()),
            ("POLICY own.toml PROFILE executorch-caller-stream", ("LC104 soname-mismatch", "libextension_cuda.so")),
            ('POLICY broken.toml STATE "session table"', ("could not be judged (2)", 'unknown key "ownr"')),
        ],
    )
    def test_a_library_of_ones_own_is_judged_by_ones_own_policy(
        self, make_project: MakeProject, tmp_path: Path, arguments: str, said: tuple[str, ...]
    ) -> None:
        project = make_project(
            {
                "CMakeLists.txt": NO_LANGUAGE
                + "find_package(linkcheck REQUIRED)\n"
                + f'linkcheck_validate_prebuilt(FILE "{make_session_library(tmp_path)}" {arguments})\n',
                "own.toml": self.OWN_POLICY,
                "broken.toml": self.OWN_POLICY.replace("owner", "ownr"),
            }
        )
        run = project.configure()
        if said:
            run.must_fail(*said)
        else:
            run.must_succeed()

    def test_a_policy_beside_the_listfile_is_read_for_a_state_that_is_named(
        self, make_project: MakeProject, tmp_path: Path
    ) -> None:
        call = f'linkcheck_validate_prebuilt(FILE "{make_session_library(tmp_path)}" %s)\n'
        files = {"linkcheck.toml": self.OWN_POLICY}
        for arguments, good in (('STATE "session table"', True), ("", False)):
            listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\n" + call % arguments
            run = make_project({**files, "CMakeLists.txt": listfile}).configure()
            if good:
                run.must_succeed()
            else:
                run.must_fail("LC104 soname-mismatch", "libextension_cuda.so")

    def test_a_policy_that_changed_is_asked_again_by_the_next_build(
        self, make_project: MakeProject, tmp_path: Path
    ) -> None:
        listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\n"
        listfile += f'linkcheck_validate_prebuilt(FILE "{make_session_library(tmp_path)}" POLICY own.toml STATE pool)\n'
        project = make_project(
            {
                "CMakeLists.txt": listfile,
                "own.toml": self.OWN_POLICY.replace("libpool", "libsession").replace('"pool"]', '"acme_session"]'),
            }
        )
        project.configure().must_succeed()
        project.build().must_succeed()
        write(project.source / "own.toml", self.OWN_POLICY)
        project.build().must_fail("LC104 soname-mismatch", "libpool.so")


def make_session_library(folder: Path) -> Path:
    source = write(folder / "session.c", "int acme_session(void) { return 7; }\n")
    made = folder / "libsession.so"
    run_command("gcc", "-shared", "-fPIC", "-nostdlib", source, "-Wl,-soname,libsession.so", "-o", made).must_succeed()
    return made


def test_the_selection_takes_no_arguments(make_project: MakeProject) -> None:
    listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\nlinkcheck_select_extension_cuda(BUNDLED)\n"
    make_project({"CMakeLists.txt": listfile}).configure().must_fail("unknown arguments: BUNDLED")


@pytest.mark.compile
def test_a_cross_build_asks_for_the_target_machine(
    make_project: MakeProject, libraries: Libraries, tmp_path: Path
) -> None:
    toolchain = write(
        tmp_path / "toolchain.cmake", "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
    )
    listfile = NO_LANGUAGE + "find_package(linkcheck REQUIRED)\n"
    listfile += 'linkcheck_validate_prebuilt(FILE "${LIBRARY}")\n'
    project = make_project({"CMakeLists.txt": listfile})
    options = ("--toolchain", str(toolchain))
    project.configure(*options, f"-DLIBRARY={libraries.wrong_machine}").must_succeed()
    project.configure(*options, f"-DLIBRARY={libraries.good}").must_fail("aarch64")


def test_the_checkout_and_the_package_share_the_files() -> None:
    share = ROOT / "linkcheck" / "share"
    assert (share / "cmake").resolve() == MODULES
    assert (share / "native" / "caller_stream").resolve() == ROOT / "native" / "caller_stream"


def test_an_old_cmake_is_one_message_that_says_how_to_get_a_newer(tmp_path: Path) -> None:
    """The version is a variable, so every CMake can be told that it is an old one."""
    project = f'{NO_LANGUAGE}set(CMAKE_VERSION 3.25.1)\nset(linkcheck_DIR "{MODULES}")\n'
    (tmp_path / "CMakeLists.txt").write_text(f"{project}find_package(linkcheck REQUIRED)\n")
    done = subprocess.run([cmake(), "-S", tmp_path, "-B", tmp_path / "b"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.count("CMake Error") == 1
    said = " ".join(done.stderr.split())
    assert "linkcheck needs CMake 3.28 or newer, and this is 3.25.1: `pip install cmake` brings one." in said
