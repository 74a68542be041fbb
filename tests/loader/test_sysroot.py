"""Programs below a sysroot, judged by the real ld.so after chroot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.loader.files import Files
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.system import System
from linkcheck.model import FoundBy, LoadSet
from tests.loader.test_cache import needs_ldconfig, run_ldconfig
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

INTERPRETER = Path("/lib64/ld-linux-x86-64.so.2")


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    (tmp_path / "etc").mkdir()
    (tmp_path / "lib64").mkdir()
    return Workshop(tmp_path)


def ours(shop: Workshop, program: str) -> LoadSet:
    system = System(read_image, Files(str(shop.base)))
    return load(system.image(f"/{program}"), system)


def real(shop: Workshop, program: str) -> list[str]:
    if os.geteuid() != 0:
        pytest.skip("the judge needs chroot, and chroot needs root")
    if not (shop.base / "lib64" / INTERPRETER.name).exists():
        shutil.copy(INTERPRETER, shop.base / "lib64")
    done = subprocess.run(
        [f"/{program}"],
        capture_output=True,
        text=True,
        env={"LD_TRACE_LOADED_OBJECTS": "1"},
        preexec_fn=lambda: os.chroot(shop.base),
        check=False,
    )
    listed = [line.strip().partition(" => ") for line in done.stdout.splitlines() if "linux-vdso" not in line]
    assert listed, done.stderr
    lines = [line for line in listed if line[1] or "/ld-linux" not in line[0]]  # as in trace()
    return [where.partition(" (")[0] or name for name, _, where in lines]


def identity(shop: Workshop, path: str) -> tuple[int, int]:
    """Device and inode of `path` as a process sees it after chroot."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chroot(shop.base)
            status = Path(path).stat()
            os.write(writing, f"{status.st_dev} {status.st_ino}".encode())
        finally:  # never back into pytest, in a root directory without it
            os._exit(0)
    os.close(writing)
    with open(reading) as stream:
        device, inode = stream.read().split()
    os.waitpid(child, 0)
    return int(device), int(inode)


def agree(shop: Workshop, program: str) -> LoadSet:
    load_set = ours(shop, program)
    expected = [identity(shop, path) for path in real(shop, program) if path != "not found"]
    assert [(m.image.device, m.image.inode) for m in load_set.modules[1:]] == expected
    assert all(m.image.path.startswith(f"{shop.base}/") for m in load_set.modules)
    return load_set


@needs_compiler[1]
class TestJudged:
    pytestmark = needs_compiler

    def test_the_hosts_libraries_are_not_seen(self, shop: Workshop) -> None:
        shop.executable("bin/main", needs=("libm.so.6", "libc.so.6"))
        load_set = ours(shop, "bin/main")
        assert [u.needed for u in load_set.unresolved] == ["libm.so.6", "libc.so.6"]
        assert real(shop, "bin/main") == ["not found", "not found"]

    def test_absolute_paths_and_links_stay_inside(self, shop: Workshop) -> None:
        shop.library("opt/real/libx.so.1", soname="libx.so.1", needs=("liby.so",), runpath="/opt/y/../y")
        shop.library("opt/y/liby.so", soname="liby.so")
        (shop.base / "usr").mkdir()
        (shop.base / "usr/links").symlink_to("/../../../opt/real")
        (shop.base / "opt/real/libx.so").symlink_to("/opt/real/libx.so.1")
        shop.executable("bin/main", needs=("libx.so",), runpath="/usr/links")
        agree(shop, "bin/main")

    def test_origin_is_inside(self, shop: Workshop) -> None:
        shop.library("lib/libx.so", soname="libx.so")
        shop.executable("opt/bin/main", needs=("libx.so",), runpath="$ORIGIN/../../../../lib")
        (shop.base / "bin").mkdir()
        (shop.base / "bin/main").symlink_to("/opt/bin/main")
        agree(shop, "bin/main")

    def test_default_directories_are_those_of_its_own_interpreter(self, shop: Workshop) -> None:
        shop.library("usr/lib/libx.so", soname="libx.so")
        shop.library("lib/x86_64-linux-gnu/liby.so", soname="liby.so")
        shop.library("usr/lib64/libz.so", soname="libz.so")
        shop.executable("bin/main", needs=("libx.so", "liby.so"))
        shutil.copy(INTERPRETER, shop.base / "lib64")
        agree(shop, "bin/main")

    @needs_ldconfig
    @pytest.mark.parametrize("layout", ["new", "compat", "old"])
    def test_its_own_cache_is_used(self, shop: Workshop, layout: str) -> None:
        shop.library("opt/libx.so", soname="libx.so.1")
        (shop.base / "etc/ld.so.conf").write_text("/opt\n")
        shop.executable("bin/main", needs=("libx.so.1",))
        shop.library("opt/glibc-hwcaps/x86-64-v2/libx.so", soname="libx.so.1")
        shop.library("opt/glibc-hwcaps/x86-64-v3/libx.so", soname="libx.so.1")
        shop.library("opt/glibc-hwcaps/x86-64-v9/libx.so", soname="libx.so.1")
        run_ldconfig("-r", str(shop.base), "-c", layout)
        load_set = agree(shop, "bin/main")
        assert load_set.modules[1].found_by is FoundBy.CACHE

    @needs_ldconfig
    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            pytest.param(lambda good: b"no cache" + good[8:], "the magic is neither", id="another magic"),
            pytest.param(lambda good: good[:60], "entries do not fit into 60 bytes", id="cut off in the entries"),
            pytest.param(lambda good: good[:40], "truncated header", id="cut off in the header"),
            pytest.param(lambda good: b"", "the magic is neither", id="empty"),
        ],
    )
    def test_a_cache_that_ld_so_passes_over_is_said_to_be_of_no_use(
        self, shop: Workshop, damage: Callable[[bytes], bytes], words: str
    ) -> None:
        shop.library("opt/libx.so", soname="libx.so.1")
        (shop.base / "etc/ld.so.conf").write_text("/opt\n")
        shop.executable("bin/main", needs=("libx.so.1",))
        run_ldconfig("-r", str(shop.base), "-c", "new")
        cache = shop.base / "etc/ld.so.cache"
        assert agree(shop, "bin/main").unresolved == ()
        cache.write_bytes(damage(cache.read_bytes()))
        (missing,) = agree(shop, "bin/main").unresolved
        assert missing.cache_fault.startswith(f"{cache}: ")
        assert words in missing.cache_fault


@needs_compiler[1]
class TestAlone:
    pytestmark = needs_compiler

    def test_without_a_cache_the_directories_of_ld_so_conf_count(self, shop: Workshop) -> None:
        shop.library("opt/libx.so", soname="libx.so")
        (shop.base / "etc/ld.so.conf").write_text("/opt\n")
        shop.executable("bin/main", needs=("libx.so",))
        assert [m.found_by for m in ours(shop, "bin/main").modules] == [FoundBy.ROOT, FoundBy.CACHE]

    def test_no_cache_at_all_is_no_fault_of_it(self, shop: Workshop) -> None:
        shop.executable("bin/main", needs=("libx.so",))
        assert [missing.cache_fault for missing in ours(shop, "bin/main").unresolved] == [""]

    def test_a_cache_that_cannot_be_read_is_said_to_be_of_no_use(self, shop: Workshop) -> None:
        (shop.base / "etc/ld.so.cache").mkdir()
        shop.executable("bin/main", needs=("libx.so", "/opt/liby.so"))
        faults = [missing.cache_fault for missing in ours(shop, "bin/main").unresolved]
        # A name with a slash is not searched for, so that no cache could have helped.
        assert faults == [f"{shop.base}/etc/ld.so.cache: cannot be read: not a regular file", ""]

    def test_a_dlopen_may_be_named_by_the_hosts_path(self, shop: Workshop) -> None:
        plugin = shop.library("opt/plugin.so", needs=("libx.so",), runpath="$ORIGIN")
        shop.library("opt/libx.so", soname="libx.so")
        main = shop.executable("bin/main")
        system = System(read_image, Files(str(shop.base)))
        for name in (str(plugin), "/opt/plugin.so"):
            load_set = load(read_image(str(main)), system, dlopen=[Dlopen(name)])
            assert [Path(m.image.path).name for m in load_set.modules] == ["main", "plugin.so", "libx.so"]


def test_links_that_loop_and_paths_that_climb(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "up").symlink_to("../../../../etc")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("inside")
    files = Files(str(tmp_path))
    with pytest.raises(OSError, match="symbolic links"):
        files.status("/a/x")
    assert files.read("/up/passwd", 100) == b"inside"
    assert files.read("/../../up/./passwd", 100) == b"inside"
    with pytest.raises(FileNotFoundError):
        files.status("/etc/shadow")


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        Files(str(tmp_path)).read("/fifo", 100)
