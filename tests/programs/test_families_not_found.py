"""Libraries that are not found at run time: what ld.so says, what linkcheck says, and the build that is right.

Reported by users of cupy (#8227), openmm-torch (#174), onnxruntime (#18597), pytorch (#80637, #188892) and
auditwheel (#451, #671), each on GitHub.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.elf.test_dlopen_notes import write_note
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler

RUNTIME = "int runtime_version(void) { return %d; }"
MODULE = "int runtime_version(void); int probe(void) { return runtime_version(); }"
SITE = "site/nvidia/cuda_runtime/lib"


def runtime(yard: Yard, directory: str, major: int) -> Path:
    return yard.library(f"{directory}/libcudart.so.{major}", RUNTIME % major)


def test_a_module_for_another_major_version_than_the_installed_one(yard: Yard) -> None:
    old = runtime(yard, "site/ext", 12)
    new = runtime(yard, "site/ext", 13)
    module = yard.library("site/ext/core.so", MODULE, old, "-Wl,-rpath,$ORIGIN", soname="")
    old.unlink()
    assert yard.open(module).output.startswith("libcudart.so.12: cannot open shared object file")
    verdict = yard.judge(module)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC202")
    assert finding["primary"] == {"path": str(module), "symbol": "libcudart.so.12"}
    assert finding["evidence"]["similar"] == [str(new)]

    yard.library("site/ext/core.so", MODULE, new, "-Wl,-rpath,$ORIGIN", soname="")
    assert yard.open(module).output == "13"
    verdict = yard.judge(module)
    assert (verdict.status, verdict.findings) == (0, [])


def test_a_sibling_package_that_no_search_path_reaches(yard: Yard) -> None:
    """The finding has the very flag that makes the module work."""
    library = runtime(yard, SITE, 12)
    module = yard.library("site/plugin/lib/core.so", MODULE, library, soname="")
    assert yard.open(module).output.startswith("libcudart.so.12: cannot open shared object file")
    verdict = yard.judge(module)
    assert verdict.status == 1
    verdict = yard.verify(yard.base / "site", "--select", "LC2")
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"], finding["primary"]["path"]) == (1, "LC203", str(module))
    (flag,) = re.findall(r"-Wl,-rpath,'(\$ORIGIN/[^']*)'", finding["remedy"])

    yard.library("site/plugin/lib/core.so", MODULE, library, f"-Wl,-rpath,{flag}", soname="")
    assert yard.open(module).output == "12"
    verdict = yard.verify(yard.base / "site", "--select", "LC2")
    assert (verdict.status, verdict.findings) == (0, [])
    assert yard.judge(module).status == 0


#: Tries the provider that it was asked for, and falls back without a word.
FALLBACK = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) { puts(dlopen(names[1], RTLD_NOW | RTLD_LOCAL) ? "gpu" : "cpu"); return 0; }
"""


def test_a_provider_that_is_opened_and_lacks_a_library(yard: Yard) -> None:
    options = ("--profile", "default")
    program = yard.program("app", FALLBACK, "-ldl")
    library = yard.library("build/libnvinfer.so.10", "int infer(void) { return 1; }")
    provider = yard.library(
        "lib/provider.so",
        "int infer(void); int use(void) { return infer(); }",
        library,
        "-Wl,-rpath,$ORIGIN",
        soname="",
    )
    assert yard.run(program, str(provider)).output == "cpu"
    assert yard.verify(program, *options).status == 0  # the program by itself has nothing missing
    verdict = yard.verify(program, "--dlopen", provider, *options)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC202")
    assert finding["primary"] == {"path": str(provider), "symbol": "libnvinfer.so.10"}

    shutil.copy(library, yard.base / "lib")
    assert yard.run(program, str(provider)).output == "gpu"
    assert yard.verify(program, "--dlopen", provider, *options).status == 0


@pytest.mark.parametrize(("tags", "taken"), [("enable", "system"), ("disable", "wheel")])
def test_a_runpath_gives_way_to_the_environment_and_an_rpath_does_not(yard: Yard, tags: str, taken: str) -> None:
    for number, directory in enumerate(("system", "wheel"), 8):
        yard.library(f"{directory}/libcudnn.so.9", RUNTIME % number)
    flags = (f"-Wl,--{tags}-new-dtags", "-Wl,-rpath,$ORIGIN", yard.base / "wheel/libcudnn.so.9")
    module = yard.library("wheel/core.so", MODULE, *flags, soname="")
    environment = str(yard.base / "system")
    real = yard.run(yard.host(), str(module), LD_LIBRARY_PATH=environment).output
    assert real == ("8" if taken == "system" else "9")
    (tree,) = yard.ask("tree", yard.host(), "--dlopen", module, "--library-path", environment)["trees"]
    found = [one["path"] for one in tree["modules"] if one["path"].endswith("libcudnn.so.9")]
    assert found == [str(yard.base / taken / "libcudnn.so.9")]
    # Without the environment it is the wheel's own, and that two are there is said where both are looked at.
    assert yard.judge(module).status == 0
    (copies,) = yard.ask("scan", yard.base / "system", yard.base / "wheel")["findings"]
    assert (copies["code"], copies["severity"]) == ("LC403", "info")
    assert copies["evidence"]["sonames"] == ["libcudnn.so.9", "libcudnn.so.9"]


#: A library that opens a part of itself by a bare name, as cuDNN does.
OPENER = """
#include <dlfcn.h>
int probe(void) {
  int (*version)(void) = 0;
  void *part = dlopen("libcudnn_graph.so.9", RTLD_NOW | RTLD_LOCAL);
  if (part) version = (int (*)(void))dlsym(part, "runtime_version");
  return version ? version() : -1;
}
"""


def test_a_part_that_is_opened_by_a_bare_name(yard: Yard) -> None:
    """The library says so itself (.note.dlopen); without that nothing in the files does."""
    note = write_note(1, '[{"soname": ["libcudnn_graph.so.9"], "priority": "required"}]')
    library = yard.library("wheel/libcudnn.so.9", OPENER + note, "-ldl", "-Wl,-rpath,$ORIGIN")
    assert yard.open(library).output == "-1"
    verdict = yard.judge(library)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC202")
    assert finding["primary"] == {"path": str(library), "symbol": "libcudnn_graph.so.9"}
    # Where the wheel lacks it and the machine has another version, that one is taken.
    taken = yard.library("system/libcudnn_graph.so.9", RUNTIME % 8)
    environment = str(taken.parent)
    assert yard.run(yard.host(), str(library), LD_LIBRARY_PATH=environment).output == "8"
    (tree,) = yard.ask("tree", yard.host(), "--dlopen", library, "--library-path", environment)["trees"]
    assert [one["path"] for one in tree["modules"]][-1] == str(taken)

    yard.library("wheel/libcudnn_graph.so.9", RUNTIME % 9)
    assert yard.open(library).output == "9"
    verdict = yard.judge(library)
    assert (verdict.status, verdict.findings) == (0, [])


SECOND = "int second(void) { return 4; }"
FIRST = "int second(void); int first(void) { return second(); }"
TOP = "int first(void); int probe(void) { return first(); }"


def make_two_levels(yard: Yard, tags: str, *first_flags: str) -> Path:
    """top.so -> lib/libfirst.so -> lib/libsecond.so; top.so has the only search path unless `first_flags` add one."""
    second = yard.library("lib/libsecond.so", SECOND)
    first = yard.library("lib/libfirst.so", FIRST, second, *first_flags)
    flags = (f"-Wl,--{tags}-new-dtags", "-Wl,-rpath,$ORIGIN/lib", "-Wl,--allow-shlib-undefined")
    return yard.library("top.so", TOP, first, *flags, soname="")


def test_the_runpath_of_a_module_does_not_reach_the_second_level(yard: Yard) -> None:
    top = make_two_levels(yard, "enable")
    assert yard.open(top).output.startswith("libsecond.so: cannot open shared object file")
    verdict = yard.judge(top)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC203")
    assert finding["primary"] == {"path": str(yard.base / "lib/libfirst.so"), "symbol": "libsecond.so"}
    assert "-Wl,-rpath,'$ORIGIN'" in finding["remedy"]


@pytest.mark.parametrize(("tags", "flags"), [("enable", ("-Wl,-rpath,$ORIGIN",)), ("disable", ())])
def test_a_path_of_its_own_or_an_rpath_reaches_it(yard: Yard, tags: str, flags: tuple[str, ...]) -> None:
    top = make_two_levels(yard, tags, *flags)
    assert yard.open(top).output == "4"
    verdict = yard.judge(top)
    assert (verdict.status, verdict.findings) == (0, [])
