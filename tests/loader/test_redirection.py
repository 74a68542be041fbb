"""How many copies there are where the symbol tables alone mislead; the exit status of the real program is the judge."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import load
from linkcheck.loader.state import judge_state
from linkcheck.loader.system import System
from linkcheck.model import Verdict
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.value import replace
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.loader.state import Judgement

pytestmark = needs_compiler

STATE = "static int state = 1; int *acc(void) { return &state; }"
USER = "int *acc(void); int use(void) { return *acc(); }"
#: Returns 0 when the delegate reads what the program has written, 1 when it reads another variable.
PROGRAM = "int *acc(void); int use(void); int main(void) { *acc() = 7; return use() != 7; }"


def compile_files(folder: Path, name: str, source: str, *flags: str) -> None:
    command = [
        "gcc",
        "-x",
        "c",
        "-",
        "-x",
        "none",
        "-o",
        name,
        "-O2",
        "-Wl,--no-as-needed",
        "-Wl,-rpath,$ORIGIN",
        *flags,
    ]
    subprocess.run(command, input=source, text=True, cwd=folder, check=True)


def library(folder: Path, name: str, source: str, *flags: str) -> None:
    compile_files(folder, name, source, "-shared", "-fPIC", f"-Wl,-soname,{name}", *flags)


def judge(folder: Path) -> Judgement:
    return judge_state(load(read_image(str(folder / "main")), System(read_image)), ["acc"])


def run(folder: Path) -> int:
    return subprocess.run([folder / "main"], env={}, check=False).returncode


@pytest.mark.parametrize(
    ("flags", "split"),
    [
        ((), False),
        (("-Wl,-z,now",), False),
        (("-fno-plt",), False),
        (("-Wl,-z,nocombreloc", "-Wl,--hash-style=sysv"), False),
        (("-Wl,-Bsymbolic-functions",), True),
        (("-fno-semantic-interposition",), True),
        (("-fno-semantic-interposition", "-flto"), True),
    ],
    ids=str,
)
def test_uses_that_no_relocation_stands_for_reach_their_own_copy(
    tmp_path: Path, flags: tuple[str, ...], split: bool
) -> None:
    library(tmp_path, "libown.so", STATE)
    library(tmp_path, "libdel.so", STATE + USER, *flags)
    compile_files(tmp_path, "main", PROGRAM, "libown.so", "libdel.so")
    assert run(tmp_path) == split
    judgement = judge(tmp_path)
    assert judgement.verdict is (Verdict.SPLIT if split else Verdict.ONE)
    assert judgement.fixed == ((2,) if split else ())


def test_relocations_that_cannot_be_told_are_unknown(tmp_path: Path) -> None:
    library(tmp_path, "libown.so", STATE)
    library(tmp_path, "libdel.so", STATE + USER)
    compile_files(tmp_path, "main", PROGRAM, "libown.so", "libdel.so")
    load_set = load(read_image(str(tmp_path / "main")), System(read_image))
    third = load_set.modules[2]
    odd = ListedSymbols(tuple(third.image.symbols), unreferenced=None)
    modules = (*load_set.modules[:2], replace(third, image=replace(third.image, symbols=odd)), *load_set.modules[3:])
    judgement = judge_state(replace(load_set, modules=modules), ["acc"])
    assert judgement.verdict is Verdict.UNKNOWN
    assert "libdel.so: its relocations cannot be read" in judgement.doubt


UNIQUE = """
extern int %(name)s;
__asm__(".data\\n.globl %(name)s\\n.type %(name)s, @gnu_unique_object\\n.size %(name)s, 4\\n%(name)s: .long 0\\n.text");
"""
OWN = "int *%(name)s_of_%(file)s(void) { return &%(name)s; }"


def test_unique_symbols_whose_relocations_cannot_be_told_are_unknown(tmp_path: Path) -> None:
    for file in ("a", "b"):
        library(tmp_path, f"lib{file}.so", (UNIQUE + OWN) % {"name": "acc", "file": file})
    compile_files(tmp_path, "main", "int main(void) { return 0; }", "liba.so", "libb.so")
    assert judge(tmp_path).verdict is Verdict.ONE
    load_set = load(read_image(str(tmp_path / "main")), System(read_image))
    second = load_set.modules[1]
    odd = ListedSymbols(tuple(second.image.symbols), unreferenced=None)
    modules = (load_set.modules[0], replace(second, image=replace(second.image, symbols=odd)), *load_set.modules[2:])
    judgement = judge_state(replace(load_set, modules=modules), ["acc"])
    assert judgement.verdict is Verdict.UNKNOWN
    assert "liba.so: its relocations cannot be read" in judgement.doubt


@pytest.mark.parametrize("used", [True, False])
def test_a_unique_symbol_that_its_file_does_not_use(tmp_path: Path, used: bool) -> None:
    """It is in no use where the file refers to others of the state; alone, what the linker has bound is not seen."""
    one, two = {"name": "acc", "file": "a"}, {"name": "more", "file": "a"}
    library(tmp_path, "liba.so", (UNIQUE + OWN) % one + UNIQUE % two + (OWN % two if used else ""))
    library(tmp_path, "libb.so", (UNIQUE + OWN) % {**one, "file": "b"} + (UNIQUE + OWN) % {**two, "file": "b"})
    compile_files(tmp_path, "main", "int main(void) { return 0; }", "libb.so", "liba.so")
    load_set = load(read_image(str(tmp_path / "main")), System(read_image))
    assert judge_state(load_set, ["acc", "more"]).verdict is Verdict.ONE
    alone = judge_state(load_set, ["more"])
    assert (alone.verdict, alone.fixed) == ((Verdict.ONE, ()) if used else (Verdict.SPLIT, (2,)))


@pytest.mark.parametrize("apart", [True, False])
def test_two_versions_of_one_symbol_are_unknown_unless_they_are_one_definition(tmp_path: Path, apart: bool) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "one.map").write_text("V1 { global: acc; local: *; };")
    (tmp_path / "two.map").write_text("V1 { global: acc; local: *; }; V2 { global: acc; } V1;")
    library(tmp_path / "v1", "libown.so", STATE, "-Wl,--version-script=../one.map")
    library(tmp_path, "libdel.so", USER, "v1/libown.so")
    old = "static int old = 1; int *acc_old(void) { return &old; }" if apart else ""
    source = f"""
    static int state = 1;
    int *acc_new(void) {{ return &state; }}
    {old}
    __asm__(".symver acc_{"old" if apart else "new"},acc@V1");
    __asm__(".symver acc_new,acc@@V2");
    """
    library(tmp_path, "libown.so", source, "-Wl,--version-script=two.map", "-fno-toplevel-reorder")
    compile_files(tmp_path, "main", PROGRAM, "libdel.so", "libown.so")
    assert run(tmp_path) == apart
    judgement = judge(tmp_path)
    assert judgement.verdict is (Verdict.UNKNOWN if apart else Verdict.ONE)
    assert ("uses are bound to V1 and V2" in judgement.doubt) is apart


@pytest.mark.parametrize("option", ["-f", "-F"])
def test_a_filter_makes_everything_unknown(tmp_path: Path, option: str) -> None:
    library(tmp_path, "libother.so", STATE)
    library(tmp_path, "libfilter.so", "int *acc(void) { return 0; }", f"-Wl,{option},libother.so")
    library(tmp_path, "libown.so", STATE)
    library(tmp_path, "libdel.so", USER)
    compile_files(tmp_path, "main", PROGRAM, "libfilter.so", "libown.so", "libdel.so")
    assert run(tmp_path) == 0  # by the definition of libother.so, which no DT_NEEDED names
    assert read_image(str(tmp_path / "libfilter.so")).filters == ("libother.so",)
    judgement = judge(tmp_path)
    assert judgement.verdict is Verdict.UNKNOWN
    assert "libfilter.so is a filter for libother.so" in judgement.reason
