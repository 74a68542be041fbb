"""What binds to what: every binding of real programs, random graphs, and the cases that matter by name."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.lookup import bindings, match_version
from linkcheck.loader.state import judge_state
from linkcheck.loader.system import System
from linkcheck.model import (
    BindingKind,
    FileKind,
    Image,
    LoadSet,
    Symbol,
    SymbolVersion,
    Target,
    Verdict,
    Visibility,
)
from linkcheck.model.listed_symbols import ListedSymbols
from tests.loader.fuzz import fuzz
from tests.loader.workshop import Workshop, compile_c, find_program, needs_compiler

ACCESSOR = "int state; int *acc(void) { return &state; }"
USER = "int *acc(void); int *use(void) { return acc(); }"


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def load_program(program: Path, *opens: Dlopen) -> LoadSet:
    return load(read_image(str(program)), System(read_image), dlopen=opens)


@pytest.mark.parametrize(
    "program",
    ["git", "python3", "perl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cmake", "gdb"))],
)
def test_every_binding_of_a_real_program(program: str) -> None:
    found = sys.executable if program == "python3" else find_program(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    path = os.path.realpath(found)
    environment = {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "1"}
    log = subprocess.run([path], env=environment, capture_output=True, text=True, check=False).stderr
    pattern = r"binding file (\S+) \[0\] to (\S+) \[0\]: \w+ symbol `([^']*)'(?: \[([^\]]*)\])?"
    real: dict[tuple[str, str, str | None], set[str]] = {}
    for user, provider, symbol, version in re.findall(pattern, log):
        if not user.startswith("linux-vdso"):
            key = (os.path.realpath(user), symbol, version or None)
            real.setdefault(key, set()).add(os.path.realpath(provider))
    assert real
    load_set = load_program(Path(path))
    paths = [os.path.realpath(module.image.path) for module in load_set.modules]
    ours = {
        (paths[b.module], b.symbol, b.version): None if b.provider is None else paths[b.provider]
        for b in (*bindings(load_set), *bindings(load_set, {symbol for _, symbol, _ in real}))
    }
    # A program at a fixed address lends out its own PLT slot as the address of a function that it imports (an undefined
    # entry with a value). ld.so names the program there; what is reached is what the program's own import binds to.
    lent = {symbol.name for symbol in load_set.root.symbols.imports() if symbol.value}
    real = {k: v for k, v in real.items() if not (v == {path} and k[1] in lent)}
    # An executable's copy relocation looks past the executable for what it copies; its own definition is what counts.
    wrong = {k: (v, ours.get(k)) for k, v in real.items() if ours.get(k) not in v and ours.get(k) != path}
    assert wrong == {}
    # And nothing that ld.so binds is unbound with us.
    assert [k for k in real if ours.get(k) is None] == []


def test_asking_for_few_symbols_and_for_many_gives_the_same() -> None:
    load_set = load_program(Path(os.path.realpath(sys.executable)))
    names = list(dict.fromkeys(binding.symbol for binding in bindings(load_set)))[::20]
    assert len(names) < 100
    many = [*names, *(f"nobody has {number}" for number in range(300))]
    assert bindings(load_set, names) == bindings(load_set, many)


@needs_compiler[0]
@needs_compiler[1]
@needs_compiler[2]
@pytest.mark.slow
def test_random_graphs() -> None:
    tally = fuzz(range(1, 301))
    assert tally.disagreeing == []
    assert tally.compared > 200


@needs_compiler[0]
@needs_compiler[1]
@needs_compiler[2]
@pytest.mark.parametrize("taken", [True, False])
def test_a_weak_function_that_a_program_at_a_fixed_address_lends_out(shop: Workshop, taken: bool) -> None:
    """Its address is a slot of the program, which is not 0 when nothing is bound: the program's own test is no test."""
    shop.library("liba.so", soname="liba.so", source="int acc(void) { return 0; }")
    call = "if (acc) acc();" if taken else "acc();"
    exit_ = '__asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");'
    source = f"int acc(void) __attribute__((weak)); void _start(void) {{ {call} {exit_} }}"
    flags = ("-no-pie", "-fno-pic", str(shop.base / "liba.so"))
    main = shop.executable("main", source=source, flags=flags, runpath="$ORIGIN")
    assert subprocess.run([str(main)], check=False).returncode == 0
    shop.library("liba.so", soname="liba.so")
    assert subprocess.run([str(main)], check=False).returncode == -signal.SIGSEGV
    (found,) = bindings(load_program(main), ["acc"])
    assert (found.provider, found.weak, found.slot) == (None, True, taken)


class TestState:
    pytestmark = needs_compiler

    def verdict(self, load_set: LoadSet) -> Verdict:
        return judge_state(load_set, ["acc"]).verdict

    def test_one_owner(self, shop: Workshop) -> None:
        shop.library("libown.so", soname="libown.so", source=ACCESSOR)
        shop.library("libuse.so", soname="libuse.so", source=USER, needs=("libown.so",), runpath="$ORIGIN")
        main = shop.executable("main", needs=("libuse.so",), runpath="$ORIGIN")
        judgement = judge_state(load_program(main), ["acc"])
        assert (judgement.verdict, judgement.providers, judgement.touching) == (Verdict.ONE, (2,), (1, 2))
        assert [b.kind for b in judgement.bindings] == [BindingKind.IMPORT, BindingKind.DEFINITION]

    def test_two_default_copies_are_one_by_interposition(self, shop: Workshop) -> None:
        for name in ("liba.so", "libb.so"):
            shop.library(name, soname=name, source=ACCESSOR + USER)
        main = shop.executable("main", needs=("liba.so", "libb.so"), runpath="$ORIGIN")
        judgement = judge_state(load_program(main), ["acc"])
        assert (judgement.verdict, judgement.providers) == (Verdict.ONE, (1,))

    def test_a_hidden_copy_splits_and_a_stripped_one_is_not_seen(self, shop: Workshop) -> None:
        shop.library("liba.so", soname="liba.so", source=ACCESSOR)
        library = shop.library("libb.so", soname="libb.so", source=ACCESSOR + USER, flags=("-fvisibility=hidden",))
        main = shop.executable("main", needs=("liba.so", "libb.so"), runpath="$ORIGIN")
        assert self.verdict(load_program(main)) is Verdict.SPLIT
        subprocess.run(["strip", "-s", str(library)], check=True)
        # Only a rule that asks libb.so for the import can see this one.
        assert self.verdict(load_program(main)) is Verdict.ONE

    def test_bsymbolic_splits(self, shop: Workshop) -> None:
        shop.library("liba.so", soname="liba.so", source=ACCESSOR)
        shop.library("libb.so", soname="libb.so", source=ACCESSOR + USER, flags=("-Wl,-Bsymbolic",))
        main = shop.executable("main", needs=("liba.so", "libb.so"), runpath="$ORIGIN")
        assert self.verdict(load_program(main)) is Verdict.SPLIT

    @pytest.mark.parametrize(("global_", "verdict"), [(False, Verdict.SPLIT_UNLESS_GLOBAL), (True, Verdict.ONE)])
    def test_two_plug_ins_with_a_copy_each(self, shop: Workshop, global_: bool, verdict: Verdict) -> None:
        paths = [shop.library(f"plug{n}.so", source=ACCESSOR + USER) for n in (1, 2)]
        main = shop.executable("main")
        load_set = load_program(main, *(Dlopen(str(path), global_) for path in paths))
        assert self.verdict(load_set) is verdict

    def test_some_of_the_functions_in_a_second_library_split(self, shop: Workshop) -> None:
        more = "int one(void) { return 2; } int two(void) { return one(); }"
        shop.library("liba.so", soname="liba.so", source="int one(void) { return 1; }")
        shop.library("libb.so", soname="libb.so", source=more)
        main = shop.executable("main", needs=("liba.so", "libb.so"), runpath="$ORIGIN")
        load_set = load_program(main)
        assert judge_state(load_set, ["one"]).verdict is Verdict.ONE
        assert judge_state(load_set, ["one", "two"]).verdict is Verdict.SPLIT

    def test_nobody_defines_it(self, shop: Workshop) -> None:
        shop.library("libuse.so", soname="libuse.so", source=USER)
        main = shop.executable("main", needs=("libuse.so",), runpath="$ORIGIN")
        assert self.verdict(load_program(main)) is Verdict.ABSENT
        lost = shop.executable("lost", needs=("libuse.so", "libgone.so"), runpath="$ORIGIN")
        judgement = judge_state(load_program(lost), ["acc"])
        assert judgement.verdict is Verdict.UNKNOWN
        assert "libgone.so" in judgement.reason

    def test_a_weak_import_may_stay_unbound(self, shop: Workshop) -> None:
        shop.library("libown.so", soname="libown.so", source=ACCESSOR)
        weak = "int *acc(void) __attribute__((weak)); int *use(void) { return acc ? acc() : 0; }"
        shop.library("libuse.so", soname="libuse.so", source=weak)
        plug = shop.library("plug.so", source=USER, needs=("libown.so",), runpath="$ORIGIN")
        main = shop.executable("main", needs=("libuse.so",), runpath="$ORIGIN")
        judgement = judge_state(load_program(main, Dlopen(str(plug))), ["acc"])
        assert [(b.module, b.provider, b.weak) for b in judgement.bindings] == [
            (1, None, True),
            (2, 3, False),
            (3, 3, False),
        ]
        assert judgement.verdict is Verdict.ONE

    def test_the_executable_exports_its_copy_or_keeps_it(self, shop: Workshop, tmp_path: Path) -> None:
        plug = shop.library("plug.so", source=ACCESSOR + USER)
        start = "void _start(void) { acc(); }"
        interpreter = "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2"
        for flag, verdict in (("-rdynamic", Verdict.ONE), ("-Wl,--no-export-dynamic", Verdict.SPLIT)):
            compile_c(ACCESSOR + start, tmp_path / "main", "-pie", interpreter, flag)
            assert self.verdict(load_program(tmp_path / "main", Dlopen(str(plug)))) is verdict


def image(*symbols: Symbol, versions: tuple[str, ...] = ()) -> Image:
    definitions = (SymbolVersion("libx.so", base=True), *map(SymbolVersion, versions)) if versions else ()
    target = Target(62, 64, "little")
    return Image(
        "libx.so", FileKind.SHARED_OBJECT, target, version_definitions=definitions, symbols=ListedSymbols(symbols)
    )


def define(version: str | None = None, *, hidden: bool = False) -> Symbol:
    return Symbol(
        "f", 1, 2, Visibility.DEFAULT, True, 1, 1, None if version is None else SymbolVersion(version, hidden)
    )


class TestCopies:
    pytestmark = needs_compiler

    START = "extern int state; void _start(void) { state = 1; }"

    def make(self, shop: Workshop, library: str) -> LoadSet:
        shop.library("libown.so", soname="libown.so", source=library)
        shop.library("libuse.so", soname="libuse.so", source="extern int state; int *use(void) { return &state; }")
        interpreter = "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2"
        libraries = [str(shop.base / name) for name in ("libuse.so", "libown.so")]
        flags = ("-no-pie", "-fno-pic", "-Wl,--no-as-needed", f"-Wl,-rpath,{shop.base}", *libraries)
        compile_c(self.START, shop.base / "main", interpreter, *flags)
        return load_program(shop.base / "main")

    def test_an_executable_that_holds_a_copy_imports_it(self, shop: Workshop) -> None:
        load_set = self.make(shop, "int state = 7; int *own(void) { return &state; }")
        assert [(b.module, b.kind, b.provider, b.copy_of) for b in bindings(load_set, ["state"])] == [
            (0, BindingKind.IMPORT, 0, 2),
            (1, BindingKind.IMPORT, 0, 2),
            (2, BindingKind.DEFINITION, 0, 2),
        ]
        # Everybody uses it, so it is the object of the library that it is copied from.
        judgement = judge_state(load_set, ["state"])
        assert (judgement.verdict, judgement.providers) == (Verdict.ONE, (2,))

    def test_the_copy_of_nothing_is_absent(self, shop: Workshop) -> None:
        self.make(shop, "int state = 7;")
        shop.library("libown.so", soname="libown.so", source="int other;")
        assert judge_state(load_program(shop.base / "main"), ["state"]).verdict is Verdict.ABSENT


class TestVersions:
    def test_with_a_version_that_very_one_or_one_without(self) -> None:
        old, new, plain = define("V1", hidden=True), define("V2"), define()
        assert match_version(image(versions=("V1", "V2")), (new, old), "V1") is old
        assert match_version(image(versions=("V1", "V2")), (new, old), "V3") is None
        assert match_version(image(), (plain,), "V1") is plain
        assert match_version(image(versions=("V1",)), (plain, old), "V1") is old

    def test_without_a_version_the_oldest_or_the_only_default(self) -> None:
        first, second, third = define("V1", hidden=True), define("V2"), define("V3")
        library = image(versions=("V1", "V2", "V3"))
        assert match_version(library, (second, first), None) is first
        assert match_version(library, (second,), None) is second
        assert match_version(library, (second, third), None) is None
        assert match_version(library, (define("V2", hidden=True),), None) is None
