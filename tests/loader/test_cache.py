"""ld.so.cache as ldconfig writes it, and bytes that it never wrote."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from linkcheck.loader.cache import LoaderCache, compare_names
from linkcheck.loader.conf import read_directories
from linkcheck.loader.files import Files
from linkcheck.model import Target
from tests.loader.workshop import Workshop, needs_compiler

X86_64 = Target(62, 64, "little")
LDCONFIG = shutil.which("ldconfig", path="/usr/sbin:/sbin:/usr/bin")
CACHE = Path("/etc/ld.so.cache")

needs_ldconfig = pytest.mark.skipif(LDCONFIG is None, reason="needs ldconfig (Debian package libc-bin)")


def run_ldconfig(*arguments: str) -> str:
    assert LDCONFIG is not None
    return subprocess.run([LDCONFIG, *arguments], capture_output=True, text=True, check=True).stdout


@needs_ldconfig
@pytest.mark.skipif(not CACHE.exists(), reason="this machine has no ld.so.cache")
def test_this_machines_cache_reads_as_ldconfig_prints_it() -> None:
    printed = []
    for line in run_ldconfig("-p").splitlines()[1:]:
        name, _, rest = line.strip().partition(" (")
        kind, _, path = rest.partition(") => ")
        if "x86-64" in kind:
            printed.append((name, path))
    cache = LoaderCache(CACHE.read_bytes(), X86_64)
    assert cache.unusable is None
    assert [pair for pair in cache if not pair[0].startswith("ld.so.cache")] == printed
    first = dict(reversed(printed))
    assert {name: cache.look_up(name) for name in first} == first


@needs_ldconfig
@pytest.mark.parametrize("layout", ["new", "compat", "old"])
class TestWritten:
    pytestmark = needs_compiler

    @pytest.fixture
    def cache(self, layout: str, tmp_path: Path) -> LoaderCache:
        shop = Workshop(tmp_path)
        for number in (1, 2, 9, 10, 11):
            shop.library(f"opt/libx.so.{number}", soname=f"libx.so.{number}")
        shop.library("opt/glibc-hwcaps/x86-64-v2/libx.so.1", soname="libx.so.1")
        shop.library("opt/glibc-hwcaps/x86-64-v3/libx.so.1", soname="libx.so.1")
        shop.library("opt/other-name.so", soname="liby.so.0")
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/ld.so.conf").write_text("/opt\n")
        run_ldconfig("-r", str(tmp_path), "-X", "-c", layout)
        return LoaderCache((tmp_path / "etc/ld.so.cache").read_bytes(), X86_64)

    def test_every_name_is_found(self, cache: LoaderCache, layout: str) -> None:
        for number in (2, 9, 10, 11):
            assert cache.look_up(f"libx.so.{number}") == f"/opt/libx.so.{number}"
        assert cache.look_up("libx.so.3") is None
        assert cache.look_up("libx.so") is None
        assert cache.look_up("") is None

    def test_hwcaps_are_taken_best_first_and_only_when_active(self, cache: LoaderCache, layout: str) -> None:
        found = [
            cache.look_up("libx.so.1", hwcaps)
            for hwcaps in (("x86-64-v4", "x86-64-v3", "x86-64-v2"), ("x86-64-v2",), ("power9",), ())
        ]
        caps = "/opt/glibc-hwcaps/x86-64-v{}/libx.so.1"
        plain = "/opt/libx.so.1"
        if layout == "new":
            assert found == [caps.format(3), caps.format(2), plain, plain]
        else:
            # In the old layout nothing in an entry says that it is for some processors only; in the mixed one the
            # names of the subdirectories are written where ld.so does not look. test_sysroot.py has ld.so say so.
            assert len(set(found)) == 1

    def test_no_byte_can_make_it_fail(self, cache: LoaderCache, layout: str, tmp_path: Path) -> None:
        good = (tmp_path / "etc/ld.so.cache").read_bytes()
        chance = random.Random(7)
        for _ in range(2000):
            data = bytearray(good[: chance.randrange(len(good) + 1)] if chance.random() < 0.3 else good)
            for _ in range(chance.randrange(4)):
                if data:
                    data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            spoiled = LoaderCache(bytes(data), X86_64)
            spoiled.look_up("libx.so.10", ("x86-64-v3",))
            list(spoiled)


def test_what_is_no_cache_is_empty_and_says_why() -> None:
    for data in (b"", b"\0" * 100, b"ld.so-1.7.0", b"glibc-ld.so.cache1.1" + b"\xff" * 100):
        cache = LoaderCache(data, X86_64)
        assert cache.unusable
        assert cache.look_up("libc.so.6") is None


def test_a_cache_of_the_other_byte_order_is_not_used() -> None:
    header = b"glibc-ld.so.cache1.1" + (0).to_bytes(4, "big") + (0).to_bytes(4, "big") + b"\x03" + b"\0" * 19
    assert LoaderCache(header, X86_64).unusable
    assert LoaderCache(header, Target(22, 64, "big")).unusable is None


def test_names_compare_with_numbers_in_them() -> None:
    assert compare_names(b"libx.so.10", b"libx.so.9") > 0
    assert compare_names(b"libx.so.9", b"libx.so.10") < 0
    assert compare_names(b"libx.so.09", b"libx.so.9") == 0
    assert compare_names(b"lib1", b"liba") > 0
    assert compare_names(b"liba", b"lib1") < 0
    assert compare_names(b"lib", b"libx") < 0
    assert compare_names(b"", b"") == 0


def test_conf_includes_comments_and_hwcap_lines(tmp_path: Path) -> None:
    (tmp_path / "etc/ld.so.conf.d").mkdir(parents=True)
    (tmp_path / "etc/ld.so.conf").write_text(
        "# first\n  /one/  # tail\ninclude ld.so.conf.d/*.conf /etc/none.conf\n"
        "hwcap 1 nosegneg\ninclude ld.so.conf\n/last\n"
    )
    (tmp_path / "etc/ld.so.conf.d/b.conf").write_text("/b\n/one\n")
    (tmp_path / "etc/ld.so.conf.d/a.conf").write_text("/a dir\n\ninclude b.conf\n")
    (tmp_path / "etc/ld.so.conf.d/.hidden.conf").write_text("/hidden\n")
    assert read_directories(Files(str(tmp_path))) == ("/one", "/a dir", "/b", "/last")
    assert read_directories(Files(str(tmp_path / "etc"))) == ()
