"""A process of musl: search, load order and bindings, and what musl's own loader does with the same graph."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.files import Files
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.lookup import bindings
from linkcheck.loader.musl.machine import find_loader, system_directories
from linkcheck.loader.musl.search import expand_origin
from linkcheck.loader.state import judge_state
from linkcheck.loader.system import System
from linkcheck.model import FileKind, FoundBy, Image, Libc, LoadSet, Target, Verdict
from linkcheck.model.listed_symbols import ListedSymbols
from tests.loader.fuzz import fuzz
from tests.loader.fuzz.toolchain import why_not
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

LOADER = "/lib/ld-musl-x86_64.so.1"
needs_musl = pytest.mark.skipif(bool(why_not(Libc.MUSL)), reason=why_not(Libc.MUSL) or "never")
ACCESSOR = "int state; int *acc(void) { return &state; }"
USER = "int *acc(void); int *use(void) { return acc(); }"
X86_64 = Target(62, 64, "little")


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def executable(shop: Workshop, path: str = "main", **options: object) -> Path:
    """A program that starts with musl's loader, and only exits."""
    more = (f"-Wl,--dynamic-linker={LOADER}", "-pie")
    return shop.executable(path, flags=more, **options)  # type: ignore[arg-type]


def judge(
    program: Path, *, library_path: str | None = None, preload: Sequence[str] = (), opens: Sequence[Dlopen] = ()
) -> LoadSet:
    """Our load set of `program`, after checking that musl lists and misses the same files in the same order."""
    base = program.parent
    environment = {}
    if library_path is not None:
        environment["LD_LIBRARY_PATH"] = library_path
    if preload:
        environment["LD_PRELOAD"] = ":".join(preload)
    # The path of the program as the kernel would give it: --list takes $ORIGIN from this word.
    done = subprocess.run(
        [LOADER, "--list", str(program)], cwd=base, env=environment, capture_output=True, text=True, check=False
    )
    listed = re.findall(r"^\t(?:\S+ => )?(\S+) \(0x[0-9a-f]+\)$", done.stdout, re.MULTILINE)
    missing = re.findall(r"^Error loading shared library ([^:\n]+): ", done.stderr, re.MULTILINE)
    system = System(
        read_image, Files(working_directory=str(base)), library_path=() if library_path is None else (library_path,)
    )
    root = read_image(str(program))
    ours = load(root, system, preload=preload)
    assert ours.libc is Libc.MUSL
    paths = [m.image.path for m in ours.modules[1:] if m.found_by is not FoundBy.INTERPRETER]
    assert paths == [os.path.join(base, path) for path in listed if path != LOADER]
    assert [u.needed for u in ours.unresolved if u.needed not in preload] == missing
    return load(root, system, preload=preload, dlopen=opens) if opens else ours


def found(load_set: LoadSet) -> dict[str, FoundBy]:
    return {module.requested_as: module.found_by for module in load_set.modules[1:]}


@pytest.mark.compile
@needs_musl
class TestSearch:
    pytestmark = needs_compiler

    def test_a_runpath_is_inherited_like_an_rpath(self, shop: Workshop) -> None:
        shop.library("lib/liba.so", needs=("libb.so",))
        shop.library("lib/libb.so")
        program = executable(shop, needs=("liba.so",), runpath="$ORIGIN/lib")
        assert found(judge(program)) == {"liba.so": FoundBy.RUNPATH, "libb.so": FoundBy.RUNPATH}

    def test_the_library_path_comes_before_an_rpath(self, shop: Workshop) -> None:
        for directory in ("first", "second"):
            shop.library(f"{directory}/liba.so")
        program = executable(shop, needs=("liba.so",), rpath="$ORIGIN/second")
        assert found(judge(program, library_path="first")) == {"liba.so": FoundBy.LIBRARY_PATH}
        assert found(judge(program)) == {"liba.so": FoundBy.RPATH}

    def test_the_requesters_own_path_comes_before_the_programs(self, shop: Workshop) -> None:
        shop.library("lib/liba.so", needs=("libb.so",), runpath="$ORIGIN/own")
        shop.library("lib/own/libb.so")
        shop.library("lib/libb.so")
        load_set = judge(executable(shop, needs=("liba.so",), rpath="$ORIGIN/lib"))
        assert load_set.modules[-1].image.path == str(shop.base / "lib/own/libb.so")

    def test_an_empty_element_is_no_directory(self, shop: Workshop) -> None:
        shop.library("liba.so")
        program = executable(shop, needs=("liba.so",))
        assert [u.needed for u in judge(program, library_path=":").unresolved] == ["liba.so"]
        assert found(judge(program, library_path=":.\n")) == {"liba.so": FoundBy.LIBRARY_PATH}

    @pytest.mark.parametrize(
        ("path", "there"), [("${ORIGIN}/lib", True), ("$ORIGIN/$LIB:$ORIGIN/lib", False), ("$PLATFORM:lib", False)]
    )
    def test_another_token_than_origin_makes_the_tag_void(self, shop: Workshop, path: str, there: bool) -> None:
        shop.library("lib/liba.so")
        assert bool(judge(executable(shop, needs=("liba.so",), rpath=path)).unresolved) is not there

    def test_no_token_is_replaced_in_a_needed_name(self, shop: Workshop) -> None:
        shop.library("liba.so")
        program = executable(shop, needs=("$ORIGIN/liba.so",))
        assert [u.needed for u in judge(program).unresolved] == ["$ORIGIN/liba.so"]

    @pytest.mark.parametrize("what", ["directory", "loop", "text"])
    def test_the_first_file_that_is_there_ends_the_search(self, shop: Workshop, what: str) -> None:
        shop.library("second/liba.so")
        first = shop.base / "first/liba.so"
        first.parent.mkdir()
        if what == "directory":
            first.mkdir()
        elif what == "loop":
            first.symlink_to(first)
        else:
            first.write_text("INPUT(liba.so.1)\n")
        program = executable(shop, needs=("liba.so",), runpath="$ORIGIN/first:$ORIGIN/second")
        (missing,) = judge(program).unresolved
        assert [attempt.path for attempt in missing.rejected] == [str(first)]

    def test_a_preload_and_its_needs_do_not_see_the_programs_path(self, shop: Workshop) -> None:
        shop.library("lib/libp.so", needs=("libq.so",))
        shop.library("lib/libq.so")
        program = executable(shop, runpath="$ORIGIN/lib")
        load_set = judge(program, preload=["libp.so", "lib/libp.so"])
        assert [u.needed for u in load_set.unresolved] == ["libp.so", "libq.so"]

    def test_the_file_of_directories_is_read(self, shop: Workshop, tmp_path: Path) -> None:
        etc = tmp_path / "root/etc"
        etc.mkdir(parents=True)
        files = Files(str(tmp_path / "root"))
        assert system_directories(files, LOADER) == ("/lib", "/usr/local/lib", "/usr/lib")
        (etc / "ld-musl-x86_64.path").write_text("/a:/b\n/c\n")
        assert system_directories(files, LOADER) == ("/a", "/b", "/c")
        assert system_directories(files, "/opt/lib/ld-musl-x86_64.so.1") == ("/lib", "/usr/local/lib", "/usr/lib")
        (etc / "ld-musl-x86_64.path").unlink()
        (etc / "ld-musl-x86_64.path").mkdir()
        assert system_directories(files, LOADER) == ()


@pytest.mark.compile
@needs_musl
class TestIdentity:
    pytestmark = needs_compiler

    def test_a_soname_is_no_name(self, shop: Workshop) -> None:
        shop.library("file.so", soname="libname.so")
        program = executable(shop, needs=("file.so", "libname.so"), runpath="$ORIGIN")
        assert [u.needed for u in judge(program).unresolved] == ["libname.so"]

    def test_what_was_loaded_by_path_is_unknown_by_name_until_a_search_meets_it(self, shop: Workshop) -> None:
        path = shop.library("lib/liba.so")
        shop.library("lib/libb.so", needs=("liba.so",))
        first = executable(shop, "first", needs=(str(path), "lib/libb.so"))
        assert [u.needed for u in judge(first).unresolved] == ["liba.so"]
        second = executable(shop, "second", needs=(str(path), "libb.so"), runpath="$ORIGIN/lib")
        assert len(judge(second).modules) == 3

    def test_a_link_to_a_loaded_file_is_that_file(self, shop: Workshop) -> None:
        shop.library("liba.so.1")
        (shop.base / "liba.so").symlink_to("liba.so.1")
        program = executable(shop, needs=("liba.so.1", "liba.so"), runpath="$ORIGIN")
        load_set = judge(program)
        assert len(load_set.modules) == 2
        assert load_set.modules[0].dependencies == (1, 1)

    @pytest.mark.parametrize("name", ["libc.so", "libc.so.6", "libpthread.so.0", "libm.so.6", "libdl.so.2", LOADER])
    def test_the_c_library_under_any_name_is_the_loader(self, shop: Workshop, name: str) -> None:
        shop.library(name.lstrip("/"))
        load_set = judge(executable(shop, needs=(name, "libc.musl-x86_64.so.1"), runpath="$ORIGIN"))
        assert [module.image.path for module in load_set.modules[1:]] == [LOADER]
        assert load_set.modules[0].dependencies == (1, 1)

    def test_another_libc_is_replaced_by_the_loader(self, shop: Workshop) -> None:
        shop.library("libother.so", source="int __libc_start_main(void) { return 0; } int stdin;")
        load_set = judge(executable(shop, needs=("libother.so",), runpath="$ORIGIN"))
        assert found(load_set) == {"libother.so": FoundBy.INTERPRETER}

    def test_a_program_may_be_loaded_as_a_library(self, shop: Workshop) -> None:
        executable(shop, "libtool.so")
        assert len(judge(executable(shop, needs=("libtool.so",), runpath="$ORIGIN")).modules) == 2

    def test_a_loader_that_is_not_here_is_missing(self, shop: Workshop, tmp_path: Path) -> None:
        root = tmp_path / "empty"
        root.mkdir()
        program = executable(shop, needs=("libc.so",))
        load_set = load(read_image(str(program)), System(read_image, Files(str(root))))
        (missing,) = load_set.unresolved
        assert (missing.needed, missing.directories, missing.rejected) == ("libc.so", (f"{root}/lib",), ())

    def test_dlopen_searches_from_the_program_whoever_calls(self, shop: Workshop) -> None:
        plugin = shop.library("plugins/libplugin.so")
        shop.library("liba.so", runpath="$ORIGIN/plugins")
        opened = Dlopen("libplugin.so", caller=str(shop.base / "liba.so"))
        without = judge(executable(shop, "without", needs=("liba.so",), rpath="$ORIGIN"), opens=[opened])
        assert [u.needed for u in without.unresolved] == ["libplugin.so"]
        with_it = judge(executable(shop, "with", needs=("liba.so",), rpath="$ORIGIN:$ORIGIN/plugins"), opens=[opened])
        assert with_it.modules[-1].image.path == str(plugin)


@pytest.mark.compile
@needs_musl
class TestLookup:
    """The rules that random graphs judge by running them, case by case."""

    pytestmark = needs_compiler

    def provider(self, load_set: LoadSet, name: str, symbol: str = "acc") -> str | None:
        paths = [module.image.path.rpartition("/")[2] for module in load_set.modules]
        (found,) = (b for b in bindings(load_set, [symbol]) if paths[b.module] == name)
        return None if found.provider is None else paths[found.provider]

    def both(self, shop: Workshop, build: Callable[..., Path]) -> tuple[LoadSet, LoadSet]:
        """The load sets of one graph by the rules of musl and of glibc."""
        program = build(needs=("liba.so", "libb.so", "libuse.so"), runpath="$ORIGIN")
        root = read_image(str(program))
        musl, glibc = (load(root, System(read_image, libc=libc)) for libc in (Libc.MUSL, Libc.GLIBC))
        return musl, glibc

    def make(self, shop: Workshop) -> tuple[LoadSet, LoadSet]:
        return self.both(shop, lambda **options: executable(shop, **options))

    def test_a_hidden_version_is_passed_over(self, shop: Workshop) -> None:
        script = shop.base / "script"
        script.write_text("V1 { global: acc; };")
        old = '__asm__(".symver old, acc@V1"); int old(void) { return 1; }'
        shop.library("liba.so", source=old, flags=(f"-Wl,--version-script={script}",))
        shop.library("libb.so", source=ACCESSOR)
        shop.library("libuse.so", source=USER)
        musl, glibc = self.make(shop)
        assert (self.provider(musl, "libuse.so"), self.provider(glibc, "libuse.so")) == ("libb.so", "liba.so")

    def test_a_unique_symbol_is_like_any_other(self, shop: Workshop) -> None:
        unique = '__asm__(".data\\n.globl acc\\n.type acc, @gnu_unique_object\\n.size acc, 4\\nacc: .long 0\\n");'
        for name in ("liba.so", "libb.so"):
            shop.library(name, source=f"{unique} extern int acc; int *own(void) {{ return &acc; }}")
        shop.library("libuse.so", source="extern int acc; int *use(void) { return &acc; }")
        opens = [Dlopen(str(shop.base / name)) for name in ("liba.so", "libb.so")]
        root = read_image(str(executable(shop, needs=("libuse.so",), runpath="$ORIGIN")))
        for libc, verdict in ((Libc.MUSL, Verdict.SPLIT_UNLESS_GLOBAL), (Libc.GLIBC, Verdict.ONE)):
            load_set = load(root, System(read_image, libc=libc), dlopen=opens)
            defined = [b for b in bindings(load_set, ["acc"]) if b.kind.value == "definition"]
            assert (len({b.provider for b in defined}) == 1) is (verdict is Verdict.ONE)

    def test_the_unique_variable_of_a_function_is_one_a_file(self, shop: Workshop) -> None:
        unique = '__asm__(".data\\n.globl _ZZ3accvE1n\\n.type _ZZ3accvE1n, @gnu_unique_object\\n'
        unique += '.size _ZZ3accvE1n, 4\\n_ZZ3accvE1n: .long 0\\n.text\\n");'
        source = "extern int _ZZ3accvE1n; int *_Z3accv(void) { return &_ZZ3accvE1n; }"
        opens = [Dlopen(str(shop.library(name, source=unique + source))) for name in ("liba.so", "libb.so")]
        root = read_image(str(executable(shop)))
        for libc, verdict in ((Libc.MUSL, Verdict.SPLIT_UNLESS_GLOBAL), (Libc.GLIBC, Verdict.ONE)):
            load_set = load(root, System(read_image, libc=libc), dlopen=opens)
            assert judge_state(load_set, ["_Z3accv"]).verdict is verdict

    def test_an_indirect_function_is_none(self, shop: Workshop) -> None:
        source = (
            "static int f(void) { return 1; } static void *r(void) { return f; } "
            'int acc(void) __attribute__((ifunc("r")));'
        )
        shop.library("liba.so", source=source)
        shop.library("libb.so", source=ACCESSOR)
        shop.library("libuse.so", source=USER)
        musl, glibc = self.make(shop)
        assert (self.provider(musl, "libuse.so"), self.provider(glibc, "libuse.so")) == ("libb.so", "liba.so")

    def test_what_is_linked_symbolically_looks_up_the_rest_in_load_order(self, shop: Workshop) -> None:
        shop.library("liba.so", source=ACCESSOR)
        shop.library("libb.so", source=ACCESSOR + USER, flags=("-Wl,-Bsymbolic",))
        shop.library("libuse.so", source=USER)
        musl, _ = self.make(shop)
        assert self.provider(musl, "libb.so") == "libb.so"
        assert self.provider(musl, "libuse.so") == "liba.so"
        assert judge_state(musl, ["acc"]).verdict is Verdict.SPLIT

    def test_a_name_for_large_files_is_the_loaders_own(self, shop: Workshop) -> None:
        source = "int fopen64(void), nosuch64(void); int use(void) { return fopen64() + nosuch64(); }"
        shop.library("libuse.so", source=source, needs=("libc.so",))
        for name in ("liba.so", "libb.so"):
            shop.library(name)
        musl, _ = self.make(shop)
        assert self.provider(musl, "libuse.so", "fopen64") == LOADER.rpartition("/")[2]
        assert self.provider(musl, "libuse.so", "nosuch64") is None

    def test_a_filter_is_followed_by_glibc_only(self, shop: Workshop) -> None:
        shop.library("liba.so", source=ACCESSOR, flags=("-Wl,--auxiliary,libb.so",))
        shop.library("libb.so")
        shop.library("libuse.so", source=USER)
        musl, glibc = self.make(shop)
        assert judge_state(musl, ["acc"]).verdict is Verdict.ONE
        assert judge_state(glibc, ["acc"]).verdict is Verdict.UNKNOWN


class TestWhichLibc:
    def image(self, *, interpreter: str | None = None, needed: tuple[str, ...] = (), machine: int = 62) -> Image:
        kind = FileKind.SHARED_OBJECT if interpreter is None else FileKind.PIE
        return Image("/x", kind, Target(machine, 64, "little"), ListedSymbols(), interpreter=interpreter, needed=needed)

    @pytest.mark.parametrize(
        ("interpreter", "needed", "libc"),
        [
            (LOADER, (), Libc.MUSL),
            ("/nix/store/x-musl/lib/ld-musl-aarch64.so.1", (), Libc.MUSL),
            ("/lib64/ld-linux-x86-64.so.2", ("libc.so",), Libc.GLIBC),
            (None, ("libc.so",), Libc.MUSL),
            (None, ("libz.so.1", "libc.musl-x86_64.so.1"), Libc.MUSL),
            (None, ("libc.so.6",), Libc.GLIBC),
            (None, (), Libc.GLIBC),
        ],
    )
    def test_the_root_tells(self, interpreter: str | None, needed: tuple[str, ...], libc: Libc) -> None:
        root = self.image(interpreter=interpreter, needed=needed)
        assert System(read_image).libc_of(root) is libc
        assert System(read_image, libc=Libc.GLIBC).libc_of(root) is Libc.GLIBC

    def test_the_interpreter_of_musl_is_none_of_glibcs(self) -> None:
        root = self.image(interpreter=LOADER)
        system = System(read_image, libc=Libc.GLIBC)
        assert system.loader_of(root) == "/lib64/ld-linux-x86-64.so.2"

    def test_the_loader_of_a_machine(self, tmp_path: Path) -> None:
        files = Files(str(tmp_path))
        assert find_loader(files, self.image(needed=("libc.so",))) == LOADER
        assert find_loader(files, self.image(interpreter="/opt/ld-musl-x.so.1")) == "/opt/ld-musl-x.so.1"
        assert find_loader(files, self.image(machine=258)) == "/lib/ld-musl-loongarch64.so.1"
        assert find_loader(files, self.image(machine=190)) is None

    def test_the_origin(self) -> None:
        assert expand_origin("$ORIGIN/a:${ORIGIN}/b", "/o") == "/o/a:/o/b"
        assert expand_origin("$ORIGINAL", "/o") == "/oAL"
        assert expand_origin("$ORIGIN/a", None) == ""
        assert expand_origin("/a", None) == "/a"


@needs_compiler[0]
@needs_musl
@pytest.mark.slow
def test_random_graphs() -> None:
    tally = fuzz(range(1, 61), Libc.MUSL)
    assert tally.disagreeing == []
    assert tally.compared > 40
    assert {"ran", "missing file", "undefined symbol", "a dlopen failed"} <= set(tally.endings)


@needs_compiler[0]
@needs_musl
def test_a_protected_object_that_gold_leaves_to_the_loader() -> None:
    """Graphs of which musl binds a protected object's use to another file: it does not ask for the visibility."""
    tally = fuzz((210007, 210085, 210109, 210166, 210249), Libc.MUSL)
    if not tally.compared:
        pytest.skip("needs gold")
    assert tally.disagreeing == []
