"""`linkcheck verify` on every build of the runner and its delegate; what each program prints is the judge."""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import Verdict, verify
from tests.programs.build import (
    BUILDS,
    SIX_BROKEN_BUILDS,
    SOURCES,
    Build,
    Programs,
    StateFrom,
    build_named,
    make_programs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

pytestmark = pytest.mark.compile

STATE = "caller stream"
#: Broken builds whose runner is right, and that only a hidden, stripped delegate without a role breaks.
UNSEEN = {"hidden-delegate-linked", "hidden-delegate-dlopened"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Build], Programs]:
    """Makes each build once."""
    return functools.cache(lambda build: make_programs(build, tmp_path_factory.mktemp(build.name) / "p"))


@pytest.fixture(params=BUILDS, ids=lambda build: build.name)
def programs(request: pytest.FixtureRequest, made: Callable[[Build], Programs]) -> Programs:
    return made(request.param)


def of(builds: Iterable[Build]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("programs", list(builds), indirect=True, ids=lambda build: build.name)


@pytest.fixture(autouse=True)
def no_policy_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def judge(capfd: pytest.CaptureFixture[str], programs: Programs) -> Verdict:
    dlopen = [option for path in programs.dlopen for option in ("--dlopen", str(path))]
    return verify(capfd, programs.runner, *dlopen)


def copied(programs: Programs, directory: Path, change: Callable[[Path], None]) -> Programs:
    """The same files elsewhere, the runner and the delegate changed; the search paths are relative."""
    root = programs.runner.parent.parent
    shutil.copytree(root, directory / "copy")
    runner, delegate = (directory / "copy" / path.relative_to(root) for path in (programs.runner, programs.delegate))
    change(runner)
    change(delegate)
    return Programs(programs.build, runner, delegate, programs.owner, (delegate,) if programs.dlopen else ())


def strip_all(path: Path) -> None:
    subprocess.run(["strip", "-s", str(path)], check=True)


def remove_section_headers(path: Path) -> None:
    """Zero e_shoff, e_shnum and e_shstrndx (64-bit ELF header): the loader uses none of them."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, 0x28, 0)
    struct.pack_into("<HHH", content, 0x3A, 0, 0, 0)
    path.write_bytes(content)


def test_a_build_is_judged_by_what_is_wrong_with_it_and_not_by_what_it_prints(
    programs: Programs, capfd: pytest.CaptureFixture[str]
) -> None:
    build = programs.build
    done = programs.run()
    assert (done.stdout, done.returncode) == (build.output, build.exit_status)
    expected = 1 if build.broken and build.name not in UNSEEN else 0
    verdict = judge(capfd, programs)
    assert verdict.status == expected, verdict.document
    assert bool(verdict.errors) is bool(expected)


@of(build for build in BUILDS if build.broken and build.name not in UNSEEN)
def test_a_broken_build_is_reported_with_the_state_the_file_and_the_cure(
    programs: Programs, capfd: pytest.CaptureFixture[str]
) -> None:
    build = programs.build
    verdict = judge(capfd, programs)
    errors = [finding for finding in verdict.errors if STATE in finding["message"]]
    assert errors
    for finding in errors:
        assert finding["primary"]["path"] in (str(programs.runner), str(programs.delegate))
        assert finding["primary"]["path"] in finding["message"]
    if build.runner_from is not StateFrom.OWNER and not build.archive_last:
        # The imports are read from the dynamic symbol table; nothing but their absence shows a hidden, stripped copy.
        assert {"LC201", "LC301"} <= {finding["code"] for finding in verdict.about(programs.runner)}
    assert any("target_link_libraries(<target> PRIVATE executorch::extension_cuda)" in f["remedy"] for f in errors)


def test_the_text_says_it_too(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    status = run(["verify", str(programs.runner)])
    output = capfd.readouterr().out
    assert output.splitlines()[-1].startswith("FAIL" if status else "PASS")
    if programs.build in SIX_BROKEN_BUILDS:
        assert status == 1
        assert STATE in output
        assert str(programs.runner) in output
        assert "LC301 missing-import" in output


@pytest.mark.parametrize("change", [strip_all, remove_section_headers])
def test_neither_strip_nor_lost_section_headers_change_a_verdict(
    programs: Programs, tmp_path: Path, capfd: pytest.CaptureFixture[str], change: Callable[[Path], None]
) -> None:
    before = judge(capfd, programs)
    changed = copied(programs, tmp_path, change)
    done = changed.run()
    assert (done.stdout, done.returncode) == (programs.build.output, programs.build.exit_status)
    after = judge(capfd, changed)
    assert after.status == before.status
    # .symtab is extra evidence: it may add a finding about what the imports have shown already.
    assert {"LC201", "LC301"} & after.codes == {"LC201", "LC301"} & before.codes


@of(build for build in BUILDS if not build.broken)
def test_a_good_build_has_one_copy_and_names_who_has_it(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = judge(capfd, programs)
    assert verdict.findings == []
    assert ("LC401", f"one copy of the {STATE}: {programs.owner}") in verdict.reasons("pass")
    assert verdict.reasons("unknown") == []


def test_the_whole_directory_is_judged_as_the_program_is(
    programs: Programs, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shipped = tmp_path / "shipped"
    for folder in ("bin", "lib"):
        shutil.copytree(programs.runner.parent.parent / folder, shipped / folder)
    # A stated limit ("What it cannot see"): where hidden copies are all there is, the program has to be named.
    hidden = programs.build.name == "hidden-linked-stripped"
    assert verify(capfd, shipped).status == (0 if hidden else judge(capfd, programs).status)


def test_a_hidden_runner_is_found_in_the_directory_that_holds_the_owner(
    made: Callable[[Build], Programs], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hidden, good = (made(build_named(name)) for name in ("hidden-linked-stripped", "shared"))
    done = hidden.run()
    assert (done.stdout, done.returncode) == (hidden.build.output, 3)
    bundle = tmp_path / "bundle"
    for folder in ("bin", "lib"):
        shutil.copytree(hidden.runner.parent.parent / folder, bundle / folder)
    assert verify(capfd, bundle).status == 0
    assert good.owner is not None
    shutil.copy(good.owner, bundle / "lib")
    verdict = verify(capfd, bundle)
    assert (verdict.status, verdict.codes) == (1, {"LC201", "LC301", "LC404"})


@pytest.mark.parametrize("flags", [("-static",), ()], ids=["static", "dynamic"])
def test_a_program_with_a_thread_local_that_is_about_something_else_raises_no_alarm(
    flags: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/tool"
    command = ["gcc", *flags, "-xc", "-", "-o", str(program)]
    source = "_Thread_local int n = 3; int main(void) { return n - 3; }"
    made = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
    if flags and made.returncode:
        pytest.skip("there is no libc.a to link a static program with")
    assert made.returncode == 0, made.stderr
    assert "TLS" in subprocess.run(["readelf", "-lW", str(program)], capture_output=True, text=True, check=True).stdout
    found = verify(capfd, tmp_path / "bin")
    assert (found.status, found.errors) == (0, [])
    reason = "no runner: nothing it loads touches the state, and no other file here does"
    assert ("LC301", reason) in found.reasons("not-applicable")
    assert {"LC201", "LC301"} <= verify(capfd, program).codes


# ---------------------------------------------------------------- what only the delegate breaks


def test_a_hidden_delegate_that_the_runner_needs_shows_nothing(
    made: Callable[[Build], Programs], capfd: pytest.CaptureFixture[str]
) -> None:
    """A stated limit (LC404, "What it cannot see"): nothing tells this delegate from any library with PT_TLS."""
    programs = made(build_named("hidden-delegate-linked"))
    verdict = judge(capfd, programs)
    assert (verdict.status, verdict.about(programs.delegate)) == (0, [])


def test_a_hidden_delegate_that_is_opened_is_a_warning(
    made: Callable[[Build], Programs], capfd: pytest.CaptureFixture[str]
) -> None:
    """The same file as a dlopen root is at least named: somebody says that it takes part in this process."""
    programs = made(build_named("hidden-delegate-dlopened"))
    verdict = judge(capfd, programs)
    (finding,) = verdict.about(programs.delegate)
    assert (verdict.status, finding["code"], finding["severity"]) == (0, "LC404", "warning")
    assert STATE in finding["message"]


def test_require_import_makes_the_hidden_delegate_an_error(
    made: Callable[[Build], Programs], capfd: pytest.CaptureFixture[str]
) -> None:
    """What a project can do about the limit: say that the delegate takes part."""
    programs = made(build_named("hidden-delegate-linked"))
    accessor = "executorch::extension::cuda::getCallerStream()"
    verdict = verify(capfd, programs.delegate, "--require-import", accessor)
    assert (verdict.status, verdict.codes) == (1, {"LC301", "LC404"})


REGISTER = "_ZN10executorch7runtime16register_backendERKNS0_7BackendE"
DELEGATE = """
#include "delegate.h"
extern "C" int {register}(const void*);
extern "C" int cudaMalloc(void**, unsigned long);
extern "C" __attribute__((visibility("default"))) cudaStream_t demo_delegate_stream() {{
  void* memory = nullptr;
  cudaMalloc(&memory, 16);
  return executorch::extension::cuda::getCallerStream().value_or(nullptr);
}}
static const int registered = {register}(nullptr);
"""


@pytest.fixture(params=["hidden", "shared"])
def registering(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bool, Programs]:
    """A delegate that registers itself and uses CUDA, as a real one does; with stand-ins for both libraries."""
    hidden = request.param == "hidden"
    programs = make_programs(build_named("shared-dlopened"), tmp_path / "p")
    hidden_build = make_programs(build_named("hidden-delegate-dlopened"), tmp_path / "h") if hidden else None
    lib = programs.delegate.parent
    for name, soname, symbol in (
        ("libexecutorch.so", "libexecutorch.so", REGISTER),
        ("libcudart.so.13", "libcudart.so.13", "cudaMalloc"),
    ):
        source = f"int {symbol}() {{ return 0; }}"
        command = ["gcc", "-shared", "-fPIC", "-xc", "-", f"-Wl,-soname,{soname}", "-o", str(lib / name)]
        subprocess.run(command, input=source, text=True, check=True)
    state = [hidden_build.delegate.parent.parent / "build/hidden/libextension_cuda.so"] if hidden_build else []
    copies = ["-fvisibility=hidden", "-Wl,--exclude-libs,ALL"] if hidden else []
    subprocess.run(
        [
            *("g++", "-std=c++17", "-O2", "-fPIC", "-shared", f"-I{SOURCES}", "-xc++", "-", "-xnone", *copies),
            *map(str, state or [lib / "libextension_cuda.so"]),
            *(str(lib / "libexecutorch.so"), str(lib / "libcudart.so.13")),
            *(f"-Wl,-soname,{programs.delegate.name}", "-Wl,-rpath,$ORIGIN", "-o", str(programs.delegate)),
        ],
        input=DELEGATE.format(register=REGISTER),
        text=True,
        check=True,
    )
    strip_all(programs.delegate)
    return hidden, programs


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "on-its-own"])
def test_a_delegate_that_registers_itself_must_import_the_stream(
    registering: tuple[bool, Programs], opened: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    hidden, programs = registering
    done = programs.run()
    assert done.returncode == (3 if hidden else 0), done
    verdict = judge(capfd, programs) if opened else verify(capfd, programs.delegate)
    assert verdict.status == (1 if hidden else 0), verdict.document
    if hidden:
        assert {"LC201", "LC301", "LC404"} == verdict.codes
        (finding,) = (f for f in verdict.errors if f["code"] == "LC301")
        assert finding["primary"]["path"] == str(programs.delegate)
        assert "as a cuda-delegate must" in finding["message"]
        assert STATE in finding["message"]
