"""`linkcheck verify` on bundles with ExecuTorch programs: does some process register every backend that they call?

A library stands in for ExecuTorch's registry, and the runner asks it for the backend, so that the real process is the
judge. The same is asked of the public executorch wheel.
"""

from __future__ import annotations

import os
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import Verdict, verify
from tests.cmake.wheels import fetch_wheel
from tests.elf.workshop import make, run_tool
from tests.executorch.write_program import Delegate, Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile

REGISTRY = """
#include <string.h>
struct backend { const char *name; void *that; };
static struct backend known[8];
static int count;
HIDDEN int _ZN10executorch7runtime16register_backendERKNS0_7BackendE(const struct backend *one)
{ known[count++] = *one; return 0; }
HIDDEN void *_ZN10executorch7runtime17get_backend_classEPKc(const char *name)
{ for (int i = 0; i < count; i++) if (strcmp(known[i].name, name) == 0) return known[i].that; return 0; }
"""
BACKEND = """
struct backend { const char *name; void *that; };
int _ZN10executorch7runtime16register_backendERKNS0_7BackendE(const struct backend *);
static int object;
__attribute__((constructor)) static void start(void)
{ struct backend one = {"AcmeBackend", &object}; _ZN10executorch7runtime16register_backendERKNS0_7BackendE(&one); }
"""
RUNNER = """
#include <dlfcn.h>
void *_ZN10executorch7runtime17get_backend_classEPKc(const char *);
int main(int argc, char **argv) {
  for (int i = 2; i < argc; i++) if (!dlopen(argv[i], RTLD_NOW)) return 9;
  return _ZN10executorch7runtime17get_backend_classEPKc(argv[1]) == 0;
}
"""
#: A runner that only speaks of the backend.
MENTION = RUNNER + '\nconst char *advice = "AcmeBackend";\n'


class Bundle:
    """A folder with a runner, libraries and programs, and tools to build them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = folder / "runner"
        self.program = self.write("model.pte", "AcmeBackend")
        for name, text in {"registry": REGISTRY, "backend": BACKEND, "runner": RUNNER, "mention": MENTION}.items():
            (folder / f"{name}.c").write_text(text)

    def write(self, name: str, *backends: str) -> Path:
        """A program that calls `backends`."""
        path = self.folder / name
        path.write_bytes(Program({"forward": [Delegate(b"what it needs", one) for one in backends]}, {}).to_bytes())
        return path

    def cc(self, *arguments: str | Path) -> None:
        make("gcc", "-DHIDDEN=", *arguments, directory=self.folder)

    def library(self, name: str, *sources: str) -> str:
        self.cc("-shared", "-fPIC", "-o", name, *sources, f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN")
        return name

    def link(self, *arguments: str, source: str = "runner.c") -> None:
        self.cc("-o", "runner", source, *arguments, "-Wl,-rpath,$ORIGIN")

    def runs(self, *opened: Path, backend: str = "AcmeBackend") -> bool:
        """Whether the real process finds the backend."""
        done = run_tool(self.runner, backend, *opened)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(tmp_path)


def judge(capfd: pytest.CaptureFixture[str], *arguments: Path | str) -> Verdict:
    return verify(capfd, "--select", "LC402", "--policy", _empty_policy(arguments), *arguments)


def _empty_policy(arguments: tuple[Path | str, ...]) -> Path:
    first = next(one for one in arguments if not isinstance(one, str))
    policy = (first if first.is_dir() else first.parent) / "linkcheck.toml"
    policy.write_text("")
    return policy


def test_a_linked_backend_is_registered(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.library("libacme.so", "backend.c", "libregistry.so")
    bundle.link("-Wl,--no-as-needed", "libacme.so", "libregistry.so")
    assert bundle.runs()
    verdict = judge(capfd, bundle.runner, bundle.program)
    assert verdict.status == 0
    [(code, reason)] = verdict.reasons("pass")
    assert code == "LC402"
    assert reason == (f"registered in a process of {bundle.runner}: AcmeBackend by {bundle.folder}/libacme.so")


def test_a_backend_that_as_needed_dropped_is_not(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.library("libacme.so", "backend.c", "libregistry.so")
    bundle.link("-Wl,--as-needed", "libacme.so", "libregistry.so")
    assert not bundle.runs()
    verdict = judge(capfd, bundle.runner, bundle.program)
    [finding] = verdict.errors
    assert (verdict.status, finding["code"], finding["confidence"]) == (1, "LC402", "high")
    assert (finding["primary"]["path"], finding["primary"]["symbol"]) == (str(bundle.program), "AcmeBackend")
    # In the whole folder the library is there, and whether the runner opens it is not in any file.
    verdict = judge(capfd, bundle.folder)
    [finding] = verdict.errors
    assert finding["confidence"] == "medium"
    assert finding["evidence"]["registered_beside"] == [str(bundle.folder / "libacme.so")]
    assert f"--dlopen {bundle.folder / 'libacme.so'}" in finding["remedy"]
    # When it does, it is right.
    assert bundle.runs(bundle.folder / "libacme.so")
    assert judge(capfd, bundle.folder, "--dlopen", str(bundle.folder / "libacme.so")).status == 0


@pytest.mark.parametrize("whole", [True, False])
def test_a_static_backend_needs_the_whole_archive(
    bundle: Bundle, capfd: pytest.CaptureFixture[str], whole: bool
) -> None:
    bundle.cc("-c", "registry.c", "backend.c")
    make("ar", "rcs", "libacme.a", "backend.o", directory=bundle.folder)
    bundle.link("registry.o", *(("-Wl,--whole-archive",) if whole else ()), "libacme.a", "-Wl,--no-whole-archive")
    assert bundle.runs() == whole
    assert judge(capfd, bundle.runner, bundle.program).status == (0 if whole else 1)


@pytest.mark.parametrize("source", ["runner.c", "mention.c"])
def test_of_a_hidden_and_stripped_runtime_only_the_id_is_left(
    bundle: Bundle, capfd: pytest.CaptureFixture[str], source: str
) -> None:
    """The file of a runner that registers the backend looks like that of one which only speaks of it."""
    hidden = '-DHIDDEN=__attribute__((visibility("hidden")))'
    make("gcc", hidden, "-c", "registry.c", "backend.c", directory=bundle.folder)
    bundle.link("registry.o", *(("backend.o",) if source == "runner.c" else ()), "-s", source=source)
    assert bundle.runs() == (source == "runner.c")
    verdict = judge(capfd, bundle.runner, bundle.program)
    assert verdict.status == 2
    [(_, reason)] = verdict.reasons("unknown")
    assert "has the id AcmeBackend, and whether it registers is not to be seen" in reason
    # Without the id there is nothing to doubt.
    other = bundle.write("other.pte", "OtherBackend")
    assert not bundle.runs(backend="OtherBackend")
    assert judge(capfd, bundle.runner, other).status == 1


def test_who_only_speaks_of_a_backend_does_not_register_with_a_shared_runtime(
    bundle: Bundle, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.link("libregistry.so", source="mention.c")
    assert not bundle.runs()
    verdict = judge(capfd, bundle.runner, bundle.program)
    [finding] = verdict.errors
    assert finding["confidence"] == "medium"
    assert f"{bundle.runner} has that id, and does not import register_backend" in finding["message"]


def test_a_missing_library_may_register(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.library("libacme.so", "backend.c", "libregistry.so")
    bundle.link("-Wl,--no-as-needed", "libacme.so", "libregistry.so")
    (bundle.folder / "libacme.so").unlink()
    verdict = judge(capfd, bundle.runner, bundle.program)
    assert verdict.status == 2
    assert verdict.reasons("unknown")[-1] == ("LC402", "libacme.so not found, which may register AcmeBackend")


def test_one_of_several_programs_that_registers_all_is_enough(
    bundle: Bundle, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.library("libacme.so", "backend.c", "libregistry.so")
    bundle.link("libregistry.so")
    bundle.runner.rename(bundle.folder / "another")
    bundle.link("-Wl,--no-as-needed", "libacme.so", "libregistry.so")
    assert judge(capfd, bundle.folder).status == 0
    bundle.write("model.pte", "AcmeBackend", "OtherBackend")
    verdict = judge(capfd, bundle.folder)
    assert [finding["primary"]["symbol"] for finding in verdict.errors] == ["OtherBackend"]
    assert verdict.errors[0]["evidence"]["process"] == str(bundle.runner)


def test_programs_without_anything_that_runs_them(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    (bundle.folder / "plain.c").write_text("int main(void) { return 0; }")
    bundle.cc("-o", "plain", "plain.c")
    named = judge(capfd, bundle.program)
    assert named.status == 2
    assert "which program runs it is not known" in named.reasons("unknown")[0][1]
    found = judge(capfd, bundle.folder)  # nothing says that this folder is about ExecuTorch's programs
    assert [code for code, _ in found.reasons("not-applicable")] == ["LC402"]
    assert not found.findings
    # A program that the user names together with it is the one that is to run it.
    assert judge(capfd, bundle.folder / "plain", bundle.program).status == 1


def test_libraries_on_their_own_may_register_and_may_not(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.library("libacme.so", "backend.c", "libregistry.so")
    backend, registry = bundle.folder / "libacme.so", bundle.folder / "libregistry.so"
    assert judge(capfd, backend, bundle.program).status == 0
    verdict = judge(capfd, registry, bundle.program)
    assert verdict.status == 2
    assert "which program opens the libraries here is not known" in verdict.reasons("unknown")[0][1]


def test_programs_that_call_nothing_or_cannot_be_read(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.link("libregistry.so")
    plain = bundle.write("plain.pte")
    assert ("LC402", "the program calls no backend") in judge(capfd, bundle.runner, plain).reasons("not-applicable")
    data = bundle.folder / "weights.ptd"
    data.write_bytes(Program({}, {"weight": b"1234"}, is_data=True).to_bytes())
    assert ("LC402", "a data file calls no backend") in judge(capfd, bundle.runner, data).reasons("not-applicable")
    cut = bundle.folder / "cut.pte"
    cut.write_bytes(bundle.program.read_bytes()[:60])
    verdict = judge(capfd, bundle.runner, cut)
    assert verdict.status == 2
    assert verdict.reasons("unknown")[0][1].startswith(f"{cut}: malformed ExecuTorch file: ")
    old = bundle.folder / "old.pte"
    old.write_bytes(b"\0\0\0\0ET11" + bytes(60))
    assert "of format ET11" in judge(capfd, bundle.runner, old).reasons("unknown")[0][1]


@pytest.mark.parametrize("format_name", ["text", "markdown", "github"])
def test_a_folder_with_nothing_but_a_program_says_why_it_was_not_checked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], format_name: str
) -> None:
    Bundle(tmp_path)
    reason = "which program runs it is not known, so neither is what it registers"
    for asked in (tmp_path, tmp_path / "model.pte"):
        assert run(["verify", str(asked), "--format", format_name]) == 2
        assert reason in capfd.readouterr().out


def test_what_is_only_called_like_a_program_is_none(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    bundle.library("libregistry.so", "registry.c")
    bundle.link("libregistry.so")
    bundle.program.write_text("a template of some page\n")
    assert (
        verify(capfd, "--select", "LC101,LC402", "--policy", _empty_policy((bundle.folder,)), bundle.folder).errors
        == []
    )
    named = verify(capfd, "--select", "LC101,LC402", "--policy", _empty_policy((bundle.folder,)), bundle.program)
    assert named.codes == {"LC101"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public executorch wheel, unpacked."""
    if os.uname().machine != "x86_64":
        pytest.skip("the wheel is for x86-64")
    folder = tmp_path_factory.mktemp("executorch")
    with zipfile.ZipFile(fetch_wheel("executorch==1.5.1", folder / "download")) as archive:
        archive.extractall(folder / "wheel")
    return folder / "wheel"


@pytest.mark.network
@pytest.mark.parametrize("backend", ["XnnpackBackend", "OpenvinoBackend", "QnnBackend"])
def test_the_python_runtime_of_the_wheel_registers_its_backends(
    wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: str
) -> None:
    program = Bundle(tmp_path).write("model.pte", backend)
    [reason] = [r for code, r in judge(capfd, program, wheel).reasons("pass") if backend in r]
    assert f"/lib/libexecutorch_backend_{backend.removesuffix('Backend').lower()}.so" in reason


@pytest.mark.network
def test_a_backend_that_is_none_of_the_wheels(wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """torch is not in the wheel, so it cannot be known; a policy that says so leaves no doubt."""
    bundle = Bundle(tmp_path)
    program = bundle.write("model.pte", "TensorRTBackend")
    assert any("libtorch" in reason for _, reason in judge(capfd, program, wheel).reasons("unknown"))
    verdict = judge(capfd, program, wheel, "--external", "libtorch*.so*", "--external", "libc10*.so*")
    assert [finding["primary"]["symbol"] for finding in verdict.errors] == ["TensorRTBackend"]


@pytest.mark.network
def test_a_runner_of_the_wheels_runtime(wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Linked by hand to the real libraries; ld.so and the real registry judge."""
    source = 'extern "C" void* _ZN10executorch7runtime17get_backend_classEPKc(const char*);\n'
    source += "int main(int, char** v) { return !_ZN10executorch7runtime17get_backend_classEPKc(v[1]); }"
    libraries = wheel / "executorch" / "lib"
    for backends in ((), ("-lexecutorch_backend_xnnpack",)):
        runner = tmp_path / f"runner{len(backends)}"
        command = ["g++", "-x", "c++", "-", "-x", "none", "-o", str(runner), f"-L{libraries}", "-Wl,--no-as-needed"]
        command += [*backends, "-lexecutorch", f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{libraries}"]
        subprocess.run(command, input=source, text=True, check=True)
        program = Bundle(tmp_path).write("model.pte", "XnnpackBackend")
        found = run_tool(runner, "XnnpackBackend").returncode == 0
        assert found == bool(backends)
        assert judge(capfd, runner, program).status == (0 if found else 1)
