"""Load order and search, file by file what the real ld.so does with the same graph."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from linkcheck.elf.reader import read_image
from linkcheck.loader.files import Files
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.system import System
from linkcheck.model import FoundBy, Libc, LoadSet
from tests.loader.workshop import Trace, Workshop, find_program, needs_compiler, trace

pytestmark = needs_compiler


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def judge(program: Path, *, library_path: str | None = None, preload: str | None = None) -> tuple[LoadSet, Trace]:
    """Our load set and ld.so's trace of `program`, after checking that they agree."""
    base = program.parent
    real = trace(program, library_path=library_path, preload=preload, cwd=base)
    system = System(
        read_image, Files(working_directory=str(base)), library_path=() if library_path is None else (library_path,)
    )
    ours = load(read_image(str(program)), system, preload=preload.split(":") if preload else ())
    assert [m.image.path for m in ours.modules[1:] if m.found_by is not FoundBy.INTERPRETER] == list(real.loaded)
    preloads = set(preload.split(":")) if preload else set()
    assert {u.needed for u in ours.unresolved} - preloads == set(real.missing)
    return ours, real


def paths_we_try(load_set: LoadSet) -> list[str]:
    paths = []
    for module in load_set.modules[1:]:
        paths += [attempt.path for attempt in module.tried]
        if module.found_by is not FoundBy.CACHE:
            paths.append(module.image.path)
    return paths


def paths_it_tries(real: Trace) -> list[str]:
    # Directories that do not exist are no step of ours, nor are the tls/ and x86_64/ ones that glibc 2.37 gave up.
    return [path for path in real.tried if Path(path).parent.is_dir()]


def found_by(load_set: LoadSet) -> dict[str, FoundBy]:
    return {module.requested_as: module.found_by for module in load_set.modules[1:]}


def test_loads_breadth_first(shop: Workshop) -> None:
    shop.library("liba.so", soname="liba.so", needs=("libc1.so",), runpath="$ORIGIN")
    shop.library("libb.so", soname="libb.so", needs=("libc2.so", "liba.so"), runpath="$ORIGIN")
    shop.library("libc1.so", soname="libc1.so")
    shop.library("libc2.so", soname="libc2.so", needs=("libc1.so",), runpath="$ORIGIN")
    ours, real = judge(shop.executable("main", needs=("liba.so", "libb.so"), runpath="$ORIGIN"))
    assert [Path(m.image.path).name for m in ours.modules] == ["main", "liba.so", "libb.so", "libc1.so", "libc2.so"]
    assert [m.dependencies for m in ours.modules] == [(1, 2), (3,), (4, 1), (), (3,)]
    assert paths_we_try(ours) == paths_it_tries(real)


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
def test_rpath_is_inherited_and_runpath_is_not(shop: Workshop, tag: str) -> None:
    shop.library("lib/libc.so", soname="libc.so", needs=("libd.so",))
    shop.library("lib/libd.so", soname="libd.so")
    needs = ("libc.so",)
    if tag == "rpath":
        ours, _ = judge(shop.executable("main", needs=needs, rpath="$ORIGIN/lib"))
        assert found_by(ours) == {"libc.so": FoundBy.RPATH, "libd.so": FoundBy.RPATH}
    else:
        ours, _ = judge(shop.executable("main", needs=needs, runpath="$ORIGIN/lib"))
        (missing,) = ours.unresolved
        assert (missing.module, missing.needed) == (1, "libd.so")
        assert str(shop.base / "lib") not in missing.directories


@pytest.mark.parametrize("main_tag", ["rpath", "runpath", None])
@pytest.mark.parametrize("middle_tag", ["rpath", "runpath", None])
@pytest.mark.parametrize("environment", [True, False])
def test_rpath_environment_runpath_matrix(
    shop: Workshop, main_tag: str | None, middle_tag: str | None, environment: bool
) -> None:
    for directory in ("of_main", "of_middle", "of_env"):
        shop.library(f"{directory}/libleaf.so", soname="libleaf.so")
    shop.library(
        "of_main/libmiddle.so",
        soname="libmiddle.so",
        needs=("libleaf.so",),
        rpath="$ORIGIN/../of_middle" if middle_tag == "rpath" else None,
        runpath="$ORIGIN/../of_middle" if middle_tag == "runpath" else None,
    )
    main = shop.executable(
        "main",
        needs=("libmiddle.so",) if main_tag else ("of_main/libmiddle.so",),
        rpath="$ORIGIN/of_main" if main_tag == "rpath" else None,
        runpath="$ORIGIN/of_main" if main_tag == "runpath" else None,
    )
    ours, real = judge(main, library_path=str(shop.base / "of_env") if environment else None)
    if not ours.unresolved:
        assert paths_we_try(ours)[1:] == paths_it_tries(real)[1:] or main_tag is None


@pytest.mark.parametrize("runpath", ["", "none"])
def test_rpath_is_ignored_beside_runpath(shop: Workshop, runpath: str) -> None:
    shop.library("r/libx.so", soname="libx.so")
    main = shop.executable("main", needs=("libx.so",), rpath="r:none")
    data = main.read_bytes()
    # Linkers write one of the two tags; the other is made out of DT_DEBUG (21), which ld.so only writes to.
    strings = data.index(b"r:none\0") - next(
        value for tag, value in struct.iter_unpack("<qQ", _dynamic_section(main)) if tag == 15
    )
    offset = data.index(b"none\0" if runpath else b"\0", data.index(b"r:none\0")) - strings
    debug = data.index(struct.pack("<qQ", 21, 0))
    main.write_bytes(data[:debug] + struct.pack("<qQ", 29, offset) + data[debug + 16 :])
    image = read_image(str(main))
    assert (image.rpath, image.runpath) == ("r:none", runpath)
    ours, _ = judge(main)
    assert [u.needed for u in ours.unresolved] == ["libx.so"]


def _dynamic_section(path: Path) -> bytes:
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynamic")
        assert section is not None
        data = section.data()
    assert isinstance(data, bytes)
    return data


def test_rpath_of_the_loaders_is_searched_up_the_chain(shop: Workshop) -> None:
    shop.library("one/liba.so", soname="liba.so", needs=("libb.so",), rpath="$ORIGIN/../two")
    shop.library("two/libb.so", soname="libb.so", needs=("libc.so",))
    shop.library("two/libc.so", soname="libc.so", needs=("libd.so",))
    shop.library("one/libd.so", soname="libd.so")
    ours, _ = judge(shop.executable("main", needs=("liba.so",), rpath="$ORIGIN/one"))
    assert set(found_by(ours).values()) == {FoundBy.RPATH}


def test_a_requester_with_runpath_sees_nobodys_rpath(shop: Workshop) -> None:
    shop.library("lib/liba.so", soname="liba.so", needs=("libb.so",), runpath="$ORIGIN/nowhere")
    shop.library("lib/libb.so", soname="libb.so")
    ours, _ = judge(shop.executable("main", needs=("liba.so",), rpath="$ORIGIN/lib"))
    assert [u.needed for u in ours.unresolved] == ["libb.so"]


def test_a_link_in_the_chain_with_runpath_lends_no_rpath(shop: Workshop) -> None:
    shop.library("lib/liba.so", soname="liba.so", needs=("libb.so",), runpath="$ORIGIN")
    shop.library("lib/libb.so", soname="libb.so", needs=("libc.so",))
    shop.library("top/libc.so", soname="libc.so")
    judge(shop.executable("main", needs=("liba.so",), rpath="$ORIGIN/lib:$ORIGIN/top"))


@pytest.mark.parametrize(
    "needed", ["sub/libx.so", "./sub/libx.so", "$ORIGIN/sub/libx.so", "${ORIGIN}/sub/libx.so", "sub/../sub/libx.so"]
)
def test_a_needed_with_a_slash_is_a_path(shop: Workshop, needed: str) -> None:
    shop.library("sub/libx.so", soname="libx.so")
    ours, _ = judge(shop.executable("main", needs=(needed,)))
    assert found_by(ours) == {needed: FoundBy.PATH}


def test_a_missing_path_is_not_searched(shop: Workshop) -> None:
    shop.library("lib/libx.so", soname="libx.so")
    ours, _ = judge(shop.executable("main", needs=("sub/libx.so",), runpath="$ORIGIN/lib"))
    assert ours.unresolved[0].directories == ()


@pytest.mark.parametrize("path", [":", "$ORIGIN/none:", "::", "./", "."])
def test_an_empty_element_is_the_current_directory(shop: Workshop, path: str) -> None:
    shop.library("libx.so", soname="libx.so")
    judge(shop.executable("main", needs=("libx.so",), runpath=path))
    judge(shop.executable("main2", needs=("libx.so",)), library_path=path)


@pytest.mark.parametrize(
    "path", ["$ORIGIN/$LIB", "$ORIGIN/${LIB}", "$ORIGIN/$PLATFORM", "$ORIGINAL", "${ORIGIN", "$ORIGIN/lib//"]
)
def test_tokens(shop: Workshop, path: str) -> None:
    for directory in ("lib/x86_64-linux-gnu", "lib64", "lib", "x86_64", "haswell", "$ORIGINAL", "${ORIGIN"):
        shop.library(f"{directory}/libx.so", soname="libx.so")
    judge(shop.executable("main", needs=("libx.so",), runpath=path))
    judge(shop.executable("main2", needs=("libx.so",)), library_path=path)


def test_library_path_splits_at_semicolons_too(shop: Workshop) -> None:
    shop.library("b/libx.so", soname="libx.so")
    main = shop.executable("main", needs=("libx.so",))
    judge(main, library_path=f"{shop.base}/a;{shop.base}/b")
    judge(main, library_path="")
    judge(shop.executable("main2", needs=("libx.so",), runpath=f"{shop.base}/a;{shop.base}/b"))


def test_soname_is_reused_whatever_path_is_asked_for(shop: Workshop) -> None:
    shop.library("one/libx.so", soname="libx.so.1")
    shop.library("two/libx.so.1", soname="libx.so.1")
    shop.library("liba.so", soname="liba.so", needs=("libx.so.1",), runpath="$ORIGIN/two")
    ours, _ = judge(shop.executable("main", needs=("one/libx.so", "liba.so"), runpath="$ORIGIN"))
    assert ours.modules[2].dependencies == (1,)


def test_two_directories_with_one_soname_give_the_first(shop: Workshop) -> None:
    shop.library("one/libx.so", soname="libx.so")
    shop.library("two/libx.so", soname="libx.so")
    shop.library("two/liba.so", soname="liba.so", needs=("libx.so",), runpath="$ORIGIN")
    judge(shop.executable("main", needs=("libx.so", "liba.so"), runpath="$ORIGIN/one:$ORIGIN/two"))
    judge(shop.executable("main2", needs=("liba.so", "libx.so"), runpath="$ORIGIN/one:$ORIGIN/two"))


def test_one_soname_by_two_paths_is_two_modules(shop: Workshop) -> None:
    shop.library("one/libx.so", soname="libx.so")
    shop.library("two/libx.so", soname="libx.so")
    ours, _ = judge(shop.executable("main", needs=("one/libx.so", "two/libx.so")))
    assert len(ours.modules) == 3


def test_one_inode_under_two_names_is_one_module(shop: Workshop) -> None:
    shop.library("libx.so.1.2", soname=None)
    (shop.base / "libx.so.1").symlink_to("libx.so.1.2")
    os.link(shop.base / "libx.so.1.2", shop.base / "liby.so")
    main = shop.executable("main", needs=("libx.so.1", "libx.so.1.2", "liby.so"), runpath="$ORIGIN")
    ours, _ = judge(main)
    assert ours.modules[0].dependencies == (1, 1, 1)


def test_origin_of_a_library_is_the_link_that_found_it(shop: Workshop) -> None:
    shop.library("real/libx.so", soname="libx.so", needs=("liby.so",), runpath="$ORIGIN")
    shop.library("links/liby.so", soname="liby.so")
    (shop.base / "links/libx.so").symlink_to("../real/libx.so")
    judge(shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/links"))


def test_origin_of_an_executable_is_its_real_directory(shop: Workshop) -> None:
    shop.library("real/libx.so", soname="libx.so")
    main = shop.executable("real/main", needs=("libx.so",), runpath="$ORIGIN")
    link = shop.base / "main"
    link.symlink_to(main)
    judge(link)


@pytest.mark.parametrize("bits", [b"\xb7\x00", b"\x03\x00"])
def test_a_file_for_another_machine_is_passed_over(shop: Workshop, bits: bytes) -> None:
    other = shop.library("one/libx.so", soname="libx.so")
    data = bytearray(other.read_bytes())
    data[18:20] = bits
    other.write_bytes(data)
    shop.library("two/libx.so", soname="libx.so")
    ours, _ = judge(shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/one:$ORIGIN/two"))
    assert "wrong machine" in ours.modules[1].tried[0].reason
    ours, _ = judge(shop.executable("main2", needs=("libx.so",), runpath="$ORIGIN/one"))
    assert [a.path for a in ours.unresolved[0].rejected] == [str(other)]


def test_a_file_of_another_class_is_passed_over(shop: Workshop) -> None:
    other = shop.library("one/libx.so", soname="libx.so")
    data = bytearray(other.read_bytes())
    data[4] = 1
    other.write_bytes(data)
    shop.library("two/libx.so", soname="libx.so")
    ours, _ = judge(shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/one:$ORIGIN/two"))
    assert "wrong class" in ours.modules[1].tried[0].reason


def _text(path: Path) -> None:
    path.write_text("INPUT(-lfoo)\n" * 20)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _directory(path: Path) -> None:
    path.mkdir()


def _other_byte_order(path: Path) -> None:
    data = bytearray(path.with_name("good.so").read_bytes())
    data[5] = 2
    path.write_bytes(data)


def _relocatable(path: Path) -> None:
    data = bytearray(path.with_name("good.so").read_bytes())
    data[16] = 1
    path.write_bytes(data)


def _fixed_address(path: Path) -> None:
    data = bytearray(path.with_name("good.so").read_bytes())
    data[16] = 2
    path.write_bytes(data)


def _short(path: Path) -> None:
    path.write_bytes(path.with_name("good.so").read_bytes()[:60])


def _pie(path: Path) -> None:
    shutil.copy(Workshop(path.parent).executable("pie"), path)


@pytest.mark.parametrize(
    "spoil", [_text, _empty, _directory, _other_byte_order, _relocatable, _fixed_address, _short, _pie]
)
def test_a_broken_file_ends_the_search(shop: Workshop, spoil: object) -> None:
    shop.library("one/good.so", soname="libx.so")
    shop.library("two/libx.so", soname="libx.so")
    bad = shop.base / "one/libx.so"
    assert callable(spoil)
    spoil(bad)
    main = shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/one:$ORIGIN/two")
    real = trace(main, cwd=shop.base)
    assert real.error, "the real ld.so ends here"
    ours = load(read_image(str(main)), System(read_image))
    (missing,) = ours.unresolved
    assert missing.rejected[-1].path == str(bad)
    assert missing.rejected[-1].reason


def test_a_loop_of_links_ends_the_step_only(shop: Workshop) -> None:
    (shop.base / "one").mkdir()
    (shop.base / "one/libx.so").symlink_to("libx.so")
    shop.library("two/libx.so", soname="libx.so")
    shop.library("three/libx.so", soname="libx.so")
    main = shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/one:$ORIGIN/two")
    judge(main)
    judge(
        shop.executable("main2", needs=("libx.so",), rpath="$ORIGIN/one:$ORIGIN/two"),
        library_path=f"{shop.base}/three",
    )


def test_a_file_in_place_of_a_directory_is_passed_over(shop: Workshop) -> None:
    (shop.base / "one").write_text("")
    shop.library("two/libx.so", soname="libx.so")
    judge(shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/one:$ORIGIN/two"))


def test_preloads_come_after_the_executable(shop: Workshop) -> None:
    shop.library("libp.so", soname="libp.so", needs=("libq.so",), runpath="$ORIGIN")
    shop.library("libq.so", soname="libq.so")
    shop.library("liba.so", soname="liba.so", needs=("libp.so",), runpath="$ORIGIN")
    main = shop.executable("main", needs=("liba.so",), runpath="$ORIGIN")
    ours, _ = judge(main, preload="./libp.so:libnone.so")
    assert [m.found_by for m in ours.modules[1:]] == [FoundBy.PRELOAD, FoundBy.RUNPATH, FoundBy.RUNPATH]


@pytest.mark.parametrize("tag", ["rpath", "runpath", None])
@pytest.mark.parametrize("main_tag", ["rpath", "runpath"])
def test_a_bare_name_is_searched_as_the_caller_of_dlopen_would(shop: Workshop, tag: str | None, main_tag: str) -> None:
    """The plug-in's own needs are searched without the caller, but with the executable's RPATH."""
    shop.library("plugs/libplug.so", soname="libplug.so", needs=("libleaf.so",))
    shop.library("plugs/libleaf.so", soname="libleaf.so")
    shop.library("lib/libleaf.so", soname="libleaf.so")
    source = 'void *dlopen(const char *, int); int call(void) { return dlopen("libplug.so", 2) != 0; }'
    here = "$ORIGIN/../plugs"
    shop.library(
        "lib/libcall.so",
        soname="libcall.so",
        source=source,
        rpath=here if tag == "rpath" else None,
        runpath=here if tag == "runpath" else None,
    )
    start = (
        "int call(void); __attribute__((force_align_arg_pointer)) void _start(void) { long code = call() ? 0 : 3;"
        ' __asm__ volatile("syscall" : : "a"(231L), "D"(code)); __builtin_unreachable(); }'
    )
    lib = "$ORIGIN/lib"
    main = shop.executable(
        "main",
        needs=("libcall.so", "libc.so.6"),
        source=start,
        flags=("-pie", str(shop.base / "lib/libcall.so")),
        rpath=lib if main_tag == "rpath" else None,
        runpath=lib if main_tag == "runpath" else None,
    )
    opened = subprocess.run([str(main)], env={"LD_DEBUG": "files"}, capture_output=True, text=True, check=False)
    assert opened.returncode in (0, 3), opened.stderr
    ours = load(read_image(str(main)), System(read_image), dlopen=[Dlopen("libplug.so", caller="libcall.so")])
    assert (not ours.unresolved) == (opened.returncode == 0)
    real = re.findall(r"file=(lib(?:plug|leaf)\.so) \[0\];  (?:needed|dynamically loaded) by (\S+)", opened.stderr)
    mapped = re.findall(r"calling init: (\S*lib(?:plug|leaf)\.so)", opened.stderr)
    assert ("libplug.so" in [name for name, _ in real]) is True
    if opened.returncode == 0:
        assert sorted(mapped) == sorted(m.image.path for m in ours.modules if m.loaded_for)


@pytest.mark.parametrize("libc", list(Libc))
def test_a_dlopen_waits_for_the_file_that_makes_it(shop: Workshop, libc: Libc) -> None:
    """It is made as soon as that file is there, and by the program at last when that never comes."""
    main = shop.executable("main")
    paths = {name: str(shop.library(f"{name}.so", soname=f"{name}.so")) for name in ("one", "two", "three", "lost")}
    opens = [
        Dlopen(paths["three"], caller="two.so"),
        Dlopen(paths["lost"], caller="nobody.so"),
        Dlopen(paths["two"], caller="one.so"),
        Dlopen(paths["one"]),
    ]
    ours = load(read_image(str(main)), System(read_image, libc=libc), dlopen=opens)
    assert [module.image.name for module in ours.modules[1:]] == ["one.so", "two.so", "three.so", "lost.so"]


def test_no_default_library_flag(shop: Workshop) -> None:
    main = shop.executable("main", needs=("libc.so.6",), flags=("-pie", "-Wl,-z,nodefaultlib"))
    ours, _ = judge(main)
    assert [u.needed for u in ours.unresolved] == ["libc.so.6"]


def test_the_cache_and_the_interpreter(shop: Workshop) -> None:
    ours, _ = judge(shop.executable("main", needs=("libm.so.6", "libgcc_s.so.1")))
    assert found_by(ours)["libm.so.6"] is FoundBy.CACHE
    assert found_by(ours)["ld-linux-x86-64.so.2"] is FoundBy.INTERPRETER


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v9"])
def test_hwcaps_directories_of_this_processor(shop: Workshop, level: str) -> None:
    shop.library(f"lib/glibc-hwcaps/{level}/libx.so", soname="libx.so")
    shop.library("lib/glibc-hwcaps/x86-64-v2/libx.so", soname="libx.so")
    shop.library("lib/libx.so", soname="libx.so")
    ours, real = judge(shop.executable("main", needs=("libx.so",), runpath="$ORIGIN/lib"))
    assert paths_we_try(ours) == paths_it_tries(real)


@pytest.mark.parametrize("program", ["git", "cmake", "python3", "gcc", "readelf", "perl"])
def test_real_programs(program: str) -> None:
    # A name like python3 may be a script of a version manager, so the running interpreter stands for it.
    path = sys.executable if program == "python3" else find_program(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    judge(Path(os.path.realpath(path)))
