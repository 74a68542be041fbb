"""linkcheck_add_gate(): a build whose program has a copy of the state of its own fails, and so does its ctest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cmake.programs import CONSUMERS, DELEGATE, RUNNER, SHARED_STREAM, SPLIT_STREAM
from tests.cmake.project import CALLER_STREAM, PREAMBLE, Project

if TYPE_CHECKING:
    from tests.cmake.conftest import MakeProject

pytestmark = [pytest.mark.cmake, pytest.mark.compile]

BUNDLED = "-DLINKCHECK_BUNDLED_EXTENSION_CUDA=ON"
PROFILE = "PROFILE executorch-caller-stream"
SOURCES = {"runner.cpp": RUNNER, "delegate.cpp": DELEGATE}
SELECT = "enable_testing()\nlinkcheck_select_extension_cuda()\n"
GATE = f"linkcheck_add_gate(TARGET runner {PROFILE})\n"

#: The fault: the runner takes the code in from a static library. -Wl,--exclude-libs keeps the copy its own.
PRIVATE_COPY = f"""
add_library(copy STATIC {CALLER_STREAM}/caller_stream.cpp)
target_include_directories(copy PUBLIC {CALLER_STREAM}/include)
target_compile_features(copy PUBLIC cxx_std_17)
add_library(delegate SHARED delegate.cpp)
target_link_libraries(delegate PRIVATE linkcheck::extension_cuda)
add_executable(runner runner.cpp)
target_link_libraries(runner PRIVATE copy delegate)
target_link_options(runner PRIVATE -Wl,--exclude-libs,ALL)
"""

#: A runner that opens its delegate by path when it runs.
OPENING_RUNNER = """
#include <executorch/extension/cuda/caller_stream.h>
#include <cstdio>
#include <dlfcn.h>

int main(int, char** arguments) {
  const executorch::extension::cuda::CallerStreamGuard guard{reinterpret_cast<cudaStream_t>(0x1234)};
  void* delegate = dlopen(DELEGATE, RTLD_NOW | RTLD_LOCAL);
  if (delegate == nullptr) {
    return 1;
  }
  auto observe = reinterpret_cast<void* (*)()>(dlsym(delegate, "observe"));
  void* seen = *executorch::extension::cuda::getCallerStream();
  std::printf("runner %p delegate %p\\n", seen, observe());
}
"""
OPENING = """
add_executable(runner opening.cpp)
target_link_libraries(runner PRIVATE linkcheck::extension_cuda)
target_compile_definitions(runner PRIVATE "DELEGATE=\\"$<TARGET_FILE:delegate>\\"")
"""


def gated(targets: str, gate: str = GATE) -> dict[str, str]:
    return {"CMakeLists.txt": PREAMBLE + SELECT + targets + gate, "opening.cpp": OPENING_RUNNER, **SOURCES}


def configured(project: Project) -> Project:
    project.configure(BUNDLED).must_succeed()
    return project


generators = pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])


@generators
def test_a_good_build_passes_and_its_ctest_too(make_project: MakeProject, generator: str) -> None:
    project = configured(make_project(gated(CONSUMERS), generator))
    project.build().must_succeed()
    assert "linkcheck.runner ........" in project.test().must_succeed().text
    assert project.program("runner").raw == SHARED_STREAM


@generators
def test_a_private_copy_fails_the_build_every_time_and_the_ctest(make_project: MakeProject, generator: str) -> None:
    project = configured(make_project(gated(PRIVATE_COPY), generator))
    project.build().must_fail("LC301", "caller stream", "runner")
    # The second build has nothing to link, which must not make it a pass.
    project.build().must_fail("LC301")
    project.test().must_fail("linkcheck.runner", "LC301")
    assert project.program("runner").raw == SPLIT_STREAM, "without the fault the test shows nothing"


def test_a_private_copy_in_a_library_that_is_opened_at_run_time_fails(make_project: MakeProject) -> None:
    delegate = f"""
add_library(delegate MODULE delegate.cpp {CALLER_STREAM}/caller_stream.cpp)
target_include_directories(delegate PRIVATE {CALLER_STREAM}/include)
target_compile_features(delegate PRIVATE cxx_std_17)
target_compile_definitions(delegate PRIVATE
  "EXECUTORCH_EXTENSION_CUDA_API=__attribute__((visibility(\\"hidden\\")))")
"""
    gate = f"linkcheck_add_gate(TARGET runner {PROFILE} DLOPEN delegate)\n"
    project = configured(make_project(gated(OPENING + delegate, gate)))
    project.build().must_fail("caller stream", "libdelegate.so")
    assert project.program("runner").raw == SPLIT_STREAM, "without the fault the test shows nothing"


@pytest.mark.parametrize("keyword", ["DLOPEN", "DLOPEN_GLOBAL"])
def test_an_opened_library_that_shares_the_state_passes(make_project: MakeProject, keyword: str) -> None:
    delegate = "add_library(delegate MODULE delegate.cpp)\n"
    delegate += "target_link_libraries(delegate PRIVATE linkcheck::extension_cuda)\n"
    gate = f"linkcheck_add_gate(TARGET runner {PROFILE} {keyword} delegate)\n"
    project = configured(make_project(gated(OPENING + delegate, gate)))
    project.build().must_succeed()
    assert project.program("runner").raw == SHARED_STREAM


def test_what_the_build_opens_is_built_and_reaches_the_command_line(make_project: MakeProject) -> None:
    delegate = "add_library(delegate MODULE EXCLUDE_FROM_ALL delegate.cpp)\n"
    delegate += "target_link_libraries(delegate PRIVATE linkcheck::extension_cuda)\n"
    gate = f"linkcheck_add_gate(TARGET runner {PROFILE} DLOPEN delegate DLOPEN_GLOBAL ./libdelegate.so)\n"
    project = configured(make_project(gated(OPENING + delegate, gate)))
    project.build().must_succeed()
    file = project.build_folder / "libdelegate.so"
    assert f"--dlopen {file} --dlopen-global {file}" in project.build("--verbose").must_succeed().text


BUNDLE = """
add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -E make_directory bundle/bin bundle/lib
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:runner> bundle/bin/
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:delegate> %s bundle/lib/
  VERBATIM)
set_target_properties(runner PROPERTIES BUILD_RPATH "\\$ORIGIN/../lib")
set_target_properties(delegate PROPERTIES BUILD_RPATH "\\$ORIGIN")
add_dependencies(bundle runner delegate extension_cuda)
"""
BUNDLE_GATE = f"linkcheck_add_gate(TARGET runner {PROFILE} BUNDLE bundle DEPENDS bundle)\n"


def test_a_complete_bundle_passes(make_project: MakeProject) -> None:
    targets = CONSUMERS + BUNDLE % "$<TARGET_FILE:extension_cuda>"
    project = configured(make_project(gated(targets, BUNDLE_GATE)))
    project.build().must_succeed()
    assert "linkcheck.runner.bundle ...." in project.test().must_succeed().text


def test_a_bundle_that_holds_a_bad_program_fails_although_the_gates_own_is_good(make_project: MakeProject) -> None:
    bad = f"""
add_executable(bad runner.cpp delegate.cpp {CALLER_STREAM}/caller_stream.cpp)
target_include_directories(bad PRIVATE {CALLER_STREAM}/include)
target_compile_features(bad PRIVATE cxx_std_17)
"""
    targets = CONSUMERS + bad + (BUNDLE % "$<TARGET_FILE:extension_cuda> $<TARGET_FILE:bad>")
    targets += "add_dependencies(bundle bad)\n"
    project = configured(make_project(gated(targets, BUNDLE_GATE)))
    project.build().must_fail("LC301", "bundle/lib/bad")


def test_a_bundle_without_the_library_fails(make_project: MakeProject) -> None:
    # The build tree's search paths are absolute and would hide it here; a shipped bundle has none of them.
    targets = "set(CMAKE_SKIP_BUILD_RPATH ON)\n" + CONSUMERS + (BUNDLE % "$<TARGET_FILE:runner>")
    gate = f"linkcheck_add_gate(TARGET runner {PROFILE} BUNDLE bundle DEPENDS bundle LIBRARY_PATH nowhere)\n"
    project = configured(make_project(gated(targets, gate)))
    project.build().must_fail("libextension_cuda.so", "LC20")


def test_a_bundle_that_is_not_there_fails(make_project: MakeProject) -> None:
    gate = f"linkcheck_add_gate(TARGET runner {PROFILE} BUNDLE nowhere)\n"
    configured(make_project(gated(CONSUMERS, gate))).build().must_fail("nowhere")


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (f"linkcheck_add_gate(TARGET runner {PROFILE} PROFIL x)", "unknown arguments: PROFIL;x"),
        ("linkcheck_add_gate(TARGET runner)", "TARGET and PROFILE (or POLICY) are required"),
        (f"linkcheck_add_gate({PROFILE})", "TARGET and PROFILE (or POLICY) are required"),
        (f"linkcheck_add_gate(TARGET nobody {PROFILE})", "there is no target nobody"),
        (f"add_library(a STATIC runner.cpp)\nlinkcheck_add_gate(TARGET a {PROFILE})", "a is a STATIC_LIBRARY"),
        (f"linkcheck_add_gate(TARGET runner {PROFILE} BUNDLE)", "no value for BUNDLE"),
        (GATE * 2, "linkcheck_add_gate: runner has a gate already: one call for each target"),
        ("linkcheck_add_gate(TARGET runner POLICY nope.toml)", "linkcheck_add_gate: POLICY: there is no file "),
    ],
)
def test_wrong_use_ends_configuration(make_project: MakeProject, gate: str, message: str) -> None:
    make_project(gated(CONSUMERS, gate)).configure(BUNDLED).must_fail(message)


def test_a_policy_that_the_build_generates_need_not_be_there_before(make_project: MakeProject) -> None:
    generated = """
add_custom_command(OUTPUT own.toml VERBATIM
  COMMAND ${CMAKE_COMMAND} -E copy "${CMAKE_CURRENT_SOURCE_DIR}/own.in" own.toml DEPENDS own.in)
add_custom_target(policy DEPENDS own.toml)
"""
    gate = 'linkcheck_add_gate(TARGET runner POLICY "${CMAKE_CURRENT_BINARY_DIR}/own.toml" DEPENDS policy)\n'
    files = {**gated(CONSUMERS + generated, gate), "own.in": 'extends = ["executorch-caller-stream"]\n'}
    project = configured(make_project(files))
    assert not (project.build_folder / "own.toml").exists()
    project.build().must_succeed()


def test_a_policy_that_nobody_generates_fails_the_build(make_project: MakeProject) -> None:
    gate = 'linkcheck_add_gate(TARGET runner POLICY "${CMAKE_CURRENT_BINARY_DIR}/own.toml")\n'
    configured(make_project(gated(CONSUMERS, gate))).build().must_fail("own.toml", "no such file")


def test_what_a_bundles_program_opens_is_said_by_the_policy(make_project: MakeProject) -> None:
    delegate = "add_library(delegate MODULE delegate.cpp)\n"
    delegate += "target_link_libraries(delegate PRIVATE linkcheck::extension_cuda)\n"
    targets = OPENING + delegate + (BUNDLE % "$<TARGET_FILE:extension_cuda>")
    policy = 'extends = ["executorch-caller-stream"]\n[[dlopen]]\nfrom = "bundle/bin/runner"\n'
    policy += 'path = "../build/bundle/lib/%s"\n'
    gate = "linkcheck_add_gate(TARGET runner POLICY own.toml DLOPEN delegate BUNDLE bundle DEPENDS bundle)\n"
    for name, good in (("libdelegate.so", True), ("libnowhere.so", False)):
        project = configured(make_project({**gated(targets, gate), "own.toml": policy % name}))
        run = project.build()
        if good:
            run.must_succeed()
        else:
            run.must_fail("libnowhere.so")


def test_a_profile_that_linkcheck_does_not_know_fails_the_build(make_project: MakeProject) -> None:
    gate = "linkcheck_add_gate(TARGET runner PROFILE no-such-profile)\n"
    configured(make_project(gated(CONSUMERS, gate))).build().must_fail("no-such-profile")
