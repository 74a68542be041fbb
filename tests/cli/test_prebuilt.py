"""`linkcheck prebuilt` on files made here, kind by kind; the real linker and the real ld.so are the judges."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import linkcheck
from linkcheck.cli.run import run
from tests.elf.hand_made import ET_EXEC, SHAPES, X86_64, write_core, write_shared_object
from tests.elf.workshop import (
    ACCESSOR,
    CONSTRUCTORS,
    DESTRUCTORS,
    LINKERS,
    SONAME,
    Workshop,
    load,
    make,
    make_workshop,
    run_tool,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.compile

HOST = os.uname().machine


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("prebuilt")
    make_workshop(directory)
    return directory


@pytest.fixture
def shop(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.chdir(tmp_path)  # so that no policy file of the checkout is found
    return Workshop(base, tmp_path)


@dataclass(frozen=True)
class Verdict:
    """What the command answered, from its JSON."""

    status: int
    document: dict[str, Any]

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(finding["code"] for finding in self.document["findings"])

    @property
    def text(self) -> str:
        """Every message and remedy, as one text."""
        return "\n".join(f"{finding['message']} {finding['remedy']}" for finding in self.document["findings"])


def judge(path: Path | str, capfd: pytest.CaptureFixture[str], *options: str) -> Verdict:
    status = run(["prebuilt", str(path), "--format", "json", *options])
    output = capfd.readouterr().out
    return Verdict(status, json.loads(output))


def test_the_good_library_may_be_linked(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = judge(shop.good, capfd)
    assert (verdict.status, verdict.codes) == (0, ())
    assert shop.link_program(shop.good).returncode == 0
    assert shop.program_imports_the_state()


# ---------------------------------------------------------------- what may be linked


def _strip(shop: Workshop, *options: str) -> Path:
    shutil.copy(shop.good, shop.target())
    make("strip", *options, shop.target())
    return shop.target()


def _stub(shop: Workshop, *names: str) -> Path:
    """A library that exports just these names, from C."""
    source = shop.here / "stub.c"
    source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in names))
    make("gcc", "-shared", "-fPIC", "-nostdlib", source, f"-Wl,-soname,{SONAME}", "-o", shop.target())
    return shop.target()


def _version_script(shop: Workshop, text: str) -> str:
    script = shop.here / "versions"
    script.write_text(text)
    return f"-Wl,--version-script={script}"


def _other_name(shop: Workshop) -> Path:
    path = shop.here / "whatever.bin"
    shutil.copy(shop.good, path)
    return path


def _link_to_good(shop: Workshop) -> Path:
    shop.target().symlink_to(shop.good)
    return shop.target()


ACCEPTED: dict[str, Callable[[Workshop], Path]] = {
    "stripped": lambda shop: _strip(shop, "-s"),
    "only debug information stripped": lambda shop: _strip(shop, "-g"),
    "through a symbolic link": _link_to_good,
    "under a name that says nothing": _other_name,
    "ExecuTorch's own name": lambda shop: shop.library(soname="libexecutorch_extension_cuda.so"),
    "a version in the SONAME": lambda shop: shop.library(soname="libextension_cuda.so.2"),
    "SysV hash only": lambda shop: shop.library("-Wl,--hash-style=sysv"),
    "GNU hash only": lambda shop: shop.library("-Wl,--hash-style=gnu"),
    "linked by gold": lambda shop: _by_gold(shop),
    "symbols with a version": lambda shop: shop.library(_version_script(shop, "V1 { global: *; };")),
    "protected symbols": lambda shop: shop.library("-fvisibility=protected"),
    "built for size with LTO": lambda shop: shop.library("-flto", "-Os"),
    "only C2 and D2": lambda shop: _stub(shop, ACCESSOR, CONSTRUCTORS[1], DESTRUCTORS[1]),
    "only C1 and D1": lambda shop: _stub(shop, ACCESSOR, CONSTRUCTORS[0], DESTRUCTORS[0]),
    "weak definitions": lambda shop: _weak(shop),
}


def _by_gold(shop: Workshop) -> Path:
    if "gold" not in LINKERS:
        pytest.skip("needs ld.gold, which newer binutils no longer bring")
    return shop.library("-fuse-ld=gold")


def _weak(shop: Workshop) -> Path:
    weak = shop.here / "weak.o"
    make("objcopy", "--weaken", shop.object, weak)
    return shop.library(source=weak)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted_links_and_loads(name: str, shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    path = ACCEPTED[name](shop)
    verdict = judge(path, capfd)
    assert (verdict.status, verdict.codes) == (0, ()), verdict.text
    loaded = load(path)
    assert loaded.returncode == 0, loaded.stderr
    linked = shop.link_program(path)
    assert linked.returncode == 0, linked.stderr
    assert shop.program_imports_the_state()


def test_a_library_without_section_headers_is_accepted_because_it_loads(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(shop.good.read_bytes())
    content[40:48] = bytes(8)  # e_shoff
    content[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    verdict = judge(shop.written(bytes(content)), capfd)
    assert (verdict.status, verdict.codes) == (0, ())
    assert load(shop.target()).returncode == 0


@pytest.mark.parametrize("machine", SHAPES)
def test_a_library_of_any_machine_is_accepted_where_that_machine_is_asked_for(
    machine: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    exports = (ACCESSOR, CONSTRUCTORS[0], DESTRUCTORS[0])
    write_shared_object(shop.target(), SHAPES[machine], soname=SONAME, exports=exports)
    verdict = judge(shop.target(), capfd, "--machine", machine)
    assert (verdict.status, verdict.codes) == (0, ()), verdict.text
    for other in SHAPES:
        if other != machine:
            assert judge(shop.target(), capfd, "--machine", other).codes == ("LC102",)


# ---------------------------------------------------------------- what links quietly and must not


def _archive(shop: Workshop, flags: str = "rcs", member: Path | None = None) -> Path:
    make("ar", flags, shop.target(), member or shop.object)
    return shop.target()


def _lto_object(shop: Workshop, *flags: str) -> Path:
    make("g++", "-flto", *flags, "-c", "-fPIC", shop.source, "-o", shop.target())
    return shop.target()


def _relocatable(shop: Workshop) -> Path:
    make("ld", "-r", shop.object, "-o", shop.target())
    return shop.target()


def _script_for_archive(shop: Workshop) -> Path:
    make("ar", "rcs", shop.here / "libowner.a", shop.object)
    return shop.written(f"INPUT({shop.here}/libowner.a)\n")


QUIET: dict[str, tuple[Callable[[Workshop], Path], tuple[str, ...]]] = {
    "archive renamed to .so": (
        _archive,
        ("a static archive", "1 member: owner.o", "private copy of the caller stream"),
    ),
    "thin archive": (lambda shop: _archive(shop, "rcsT"), ("a thin static archive", "owner.o", "private copy")),
    "archive of LTO objects": (
        lambda shop: _archive(shop, member=_lto_object_beside(shop)),
        ("a static archive", "lto.o", "private copy"),
    ),
    "object file": (
        lambda shop: shop.written(shop.object.read_bytes()),
        ("a relocatable object file", "ET_REL", "private copy"),
    ),
    "ld -r": (_relocatable, ("a relocatable object file", "private copy")),
    "slim LTO object": (
        _lto_object,
        ("link-time-optimisation object", ".gnu.lto_", "no machine code", "private copy"),
    ),
    "fat LTO object": (
        lambda shop: _lto_object(shop, "-ffat-lto-objects"),
        ("link-time-optimisation object", ".gnu.lto_", "beside machine code", "private copy"),
    ),
    "LTO object in LLVM's way": (
        lambda shop: _with_section(shop, ".llvm.lto"),
        ("link-time-optimisation object", ".llvm.lto", "private copy"),
    ),
    "ld script for an archive": (_script_for_archive, ("a GNU ld script", "libowner.a", "Name the library")),
}


def _lto_object_beside(shop: Workshop) -> Path:
    path = shop.here / "lto.o"
    make("g++", "-flto", "-c", "-fPIC", shop.source, "-o", path)
    return path


def _with_section(shop: Workshop, name: str) -> Path:
    (shop.here / "payload").write_bytes(b"BC\xc0\xde")
    make("objcopy", f"--add-section={name}={shop.here}/payload", shop.object, shop.target())
    return shop.target()


@pytest.mark.parametrize("name", QUIET)
def test_what_a_linker_would_copy_without_a_word_is_refused(
    name: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    create, words = QUIET[name]
    path = create(shop)
    verdict = judge(path, capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC101",))
    for word in words:
        assert word in verdict.text
    # The judge: it links without an error, and the program has the state in itself.
    linked = shop.link_program(path)
    assert (linked.returncode, linked.stderr) == (0, "")
    assert not shop.program_imports_the_state()


def test_a_debug_companion_links_and_then_does_not_start(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    make("objcopy", "--only-keep-debug", shop.good, shop.target())
    verdict = judge(shop.target(), capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC101",))
    assert "a debug-only companion file" in verdict.text
    assert shop.link_program(shop.target(), f"-Wl,-rpath,{shop.here}").returncode == 0
    started = run_tool(shop.here / "program")
    assert started.returncode != 0
    assert "object file has no" in started.stderr


# ---------------------------------------------------------------- other kinds


def _program(shop: Workshop, *flags: str) -> Path:
    source = shop.here / "main.cpp"
    source.write_text("int main() { return 0; }\n")
    make("g++", "-rdynamic", source, shop.source, *flags, "-o", shop.target())
    return shop.target()


def _older_pie(shop: Workshop) -> Path:
    """A PIE as binutils before 2.26 made it: without DF_1_PIE."""
    path = _program(shop, "-pie")
    content = bytearray(path.read_bytes())
    start = int.from_bytes(content[32:40], "little")
    for index in range(int.from_bytes(content[56:58], "little")):
        kind, _, offset, _, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", content, start + 56 * index)
        if kind == 2:
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<QQ", content, at)
                if tag == 0x6FFFFFFB:
                    struct.pack_into("<QQ", content, at, tag, value & ~0x08000000)
    return shop.written(bytes(content))


def _directory(shop: Workshop) -> Path:
    shop.target().mkdir()
    return shop.target()


def _loop(shop: Workshop) -> Path:
    (shop.here / "other").symlink_to(shop.target())
    shop.target().symlink_to(shop.here / "other")
    return shop.target()


def _dangling(shop: Workshop) -> Path:
    shop.target().symlink_to("libextension_cuda.so.7")
    return shop.target()


def _fifo(shop: Workshop) -> Path:
    os.mkfifo(shop.target())
    return shop.target()


def _socket(shop: Workshop) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(SONAME)  # relative: a socket's path is at most 107 bytes
    return shop.target()


def _device_link(shop: Workshop) -> Path:
    shop.target().symlink_to("/dev/zero")
    return shop.target()


def _pe(machine: int, flags: int) -> bytes:
    return (
        b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, 0, flags)
    )


def _fat_mach_o(magic: int) -> bytes:
    entry = struct.pack(">IIIII", 0x01000007, 3, 4096, 100, 12)
    other = struct.pack(">IIIII", 0x0100000C, 0, 8192, 100, 14)
    if magic == 0xCAFEBABF:
        entry, other = entry.ljust(32, b"\0"), other.ljust(32, b"\0")
    return struct.pack(">II", magic, 2) + entry + other


def _compressed(shop: Workshop, tool: str) -> Path:
    done = (
        subprocess.run([tool, "-c", str(shop.good)], capture_output=True, check=False) if shutil.which(tool) else None
    )
    if done is None:
        pytest.skip(f"needs {tool}")
    return shop.written(done.stdout)


def _python_compressed(shop: Workshop, module: str) -> Path:
    import importlib

    return shop.written(importlib.import_module(module).compress(shop.good.read_bytes()))


def _zip(shop: Workshop) -> Path:
    import zipfile

    with zipfile.ZipFile(shop.target(), "w") as archive:
        archive.write(shop.good, "torch_tensorrt/lib/libextension_cuda.so")
    return shop.target()


def _tar(shop: Workshop) -> Path:
    import tarfile

    with tarfile.open(shop.target(), "w") as archive:
        archive.add(shop.good, SONAME)
    return shop.target()


def _deb(shop: Workshop) -> Path:
    (shop.here / "debian-binary").write_text("2.0\n")
    make("ar", "rc", shop.target(), shop.here / "debian-binary")
    return shop.target()


LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 123456\n"
)
LIBC_SCRIPT = """/* GNU ld script
   Use the shared library, but some functions are only in
   the static library.  */
OUTPUT_FORMAT(elf64-x86-64)
GROUP ( /lib/libreal.so.6 /usr/lib/libreal_nonshared.a  AS_NEEDED ( /lib64/ld-linux.so.2 ) )
"""

REFUSED: dict[str, tuple[Callable[[Workshop], Path], tuple[str, ...]]] = {
    # programs
    "PIE": (
        lambda shop: _program(shop, "-pie"),
        ("a position-independent executable", "DF_1_PIE", "it is a program", "not a program that uses it"),
    ),
    "PIE without DF_1_PIE": (_older_pie, ("a position-independent executable", "PT_INTERP without DT_SONAME")),
    "PIE with a SONAME": (
        lambda shop: _program(shop, "-pie", f"-Wl,-soname,{SONAME}"),
        ("a position-independent executable", "DF_1_PIE"),
    ),
    "static PIE": (
        lambda shop: _program(shop, "-static-pie"),
        ("a static position-independent executable", "program"),
    ),
    "ET_EXEC": (lambda shop: _program(shop, "-no-pie"), ("fixed address (ET_EXEC)", "dynamically linked")),
    "static ET_EXEC": (lambda shop: _program(shop, "-static"), ("fixed address (ET_EXEC)", "statically linked")),
    "core": (lambda shop: write_core(shop.target(), X86_64), ("a core dump", "ET_CORE")),
    "ELF of another type": (
        lambda shop: shop.patched(16, struct.pack("<H", 0xFE00)),
        ("an ELF file of an unknown type", "0xfe00"),
    ),
    # archives that are no library of objects
    "empty archive": (lambda shop: shop.written("!<arch>\n"), ("a static archive", "without members")),
    "Debian package": (
        _deb,
        (
            "is a Debian package, not a shared object: linkers and ld.so refuse it.",
            "Unpack it",
            "name the library in it",
        ),
    ),
    # linker scripts
    "ld script like libc's": (
        lambda shop: shop.written(LIBC_SCRIPT),
        (
            "a GNU ld script",
            "/lib/libreal.so.6, /usr/lib/libreal_nonshared.a and /lib64/ld-linux.so.2",
            "Name the library",
        ),
    ),
    "short ld script": (lambda shop: shop.written("INPUT(-lfoo)"), ("a GNU ld script", "names: -lfoo.")),
    "ld script, quoted": (
        lambda shop: shop.written('/* x */ /* y */\nGROUP("libwith space.so.1", liby.so)\n'),
        ("a GNU ld script", "libwith space.so.1 and liby.so"),
    ),
    "ld script with sections": (
        lambda shop: shop.written("SECTIONS { . = 0x1000; .text : { *(.text) } }\n"),
        ("a GNU ld script", "it names no library"),
    ),
    # intermediate code and other systems
    "LLVM bitcode": (
        lambda shop: shop.written(b"BC\xc0\xde\x35\x14\0\0"),
        ("LLVM bitcode", "BC C0 DE", "clang -shared"),
    ),
    "wrapped LLVM bitcode": (
        lambda shop: shop.written(struct.pack("<IIIII", 0x0B17C0DE, 0, 20, 8, 7) + b"BC\xc0\xde\x35\x14\0\0"),
        ("LLVM bitcode", "0x0B17C0DE"),
    ),
    "Mach-O library": (
        lambda shop: shop.written(struct.pack("<IIIIIIII", 0xFEEDFACF, 0x0100000C, 0, 6, 0, 0, 0, 0)),
        ("a Mach-O file", "dynamic library for arm64, 64-bit", "macOS"),
    ),
    "Mach-O object, 32-bit big-endian": (
        lambda shop: shop.written(struct.pack(">IIIIIII", 0xFEEDFACE, 18, 0, 1, 0, 0, 0)),
        ("a Mach-O file", "object file for ppc, 32-bit"),
    ),
    "universal Mach-O": (
        lambda shop: shop.written(_fat_mach_o(0xCAFEBABE)),
        ("a Mach-O file", "universal, for x86-64, arm64"),
    ),
    "universal Mach-O, 64-bit": (
        lambda shop: shop.written(_fat_mach_o(0xCAFEBABF)),
        ("a Mach-O file", "universal, for x86-64, arm64"),
    ),
    "Java class": (
        lambda shop: shop.written(struct.pack(">IHH", 0xCAFEBABE, 0, 61) + bytes(100)),
        ("data of an unknown format", "a Java class file, version 61"),
    ),
    "Windows DLL": (
        lambda shop: shop.written(_pe(0x8664, 0x2022)),
        ("a PE (Windows) file", "DLL for x86-64", "Windows"),
    ),
    "Windows program": (lambda shop: shop.written(_pe(0xAA64, 0x0022)), ("a PE (Windows) file", "program for arm64")),
    "MS-DOS program": (lambda shop: shop.written(b"MZ" + bytes(100)), ("data of an unknown format", "MS-DOS")),
    "WebAssembly": (lambda shop: shop.written(b"\0asm\1\0\0\0"), ("a WebAssembly module",)),
    # packed
    "zip": (_zip, ("a zip archive", "first entry is torch_tensorrt/lib/libextension_cuda.so", "Unpack it")),
    "gzip": (lambda shop: _python_compressed(shop, "gzip"), ("gzip-compressed data", "Unpack it")),
    "bzip2": (lambda shop: _python_compressed(shop, "bz2"), ("bzip2-compressed data", "Unpack it")),
    "xz": (lambda shop: _python_compressed(shop, "lzma"), ("xz-compressed data", "Unpack it")),
    "zstd": (
        lambda shop: shop.written(b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00\x99\xe9\xd8\x51"),
        ("zstd-compressed data", "Unpack it"),
    ),
    "tar": (_tar, ("data of an unknown format", "a tar archive")),
    # text
    "Git LFS pointer": (
        lambda shop: shop.written(LFS_POINTER),
        ("a Git LFS pointer", "123456 bytes", "git lfs pull"),
    ),
    "flattened link": (
        lambda shop: shop.written("libextension_cuda.so.1"),
        ("a symbolic link flattened into a text file", "Name the file that it points to, libextension_cuda.so.1"),
    ),
    "flattened link with directories": (
        lambda shop: shop.written("../lib64/libextension_cuda.so.1.2.3\n"),
        ("a symbolic link flattened into a text file", "../lib64/libextension_cuda.so.1.2.3", "core.symlinks"),
    ),
    "Cygwin's link": (
        lambda shop: shop.written(b"!<symlink>\xff\xfe" + "libreal.so\0".encode("utf-16-le")),
        ("a symbolic link flattened", "Cygwin's link to libreal.so"),
    ),
    "HTML": (
        lambda shop: shop.written("<!-- x -->\n<!DOCTYPE html>\n<html><title>Sign in</title></html>"),
        ("an HTML page", "titled “Sign in”", "Download the library again"),
    ),
    "other text": (lambda shop: shop.written("Not Found\n"), ("a text file", "begins with “Not Found”")),
    "shell script": (lambda shop: shop.written("#!/bin/sh\nexec true\n"), ("a text file", "a script", "#!/bin/sh")),
    "libtool library file": (
        lambda shop: shop.written("# libx.la - a libtool library file\ndlname='libx.so.0'\n"),
        ("a text file", "libtool"),
    ),
    "error as JSON": (lambda shop: shop.written('{"error": "no such object"}'), ("a text file", "no such object")),
    "empty": (lambda shop: shop.written(b""), ("an empty file", "Build or download it again")),
    "zeros": (lambda shop: shop.written(bytes(5000)), ("data of an unknown format", "00 00 00 00")),
    # what is no file
    "directory": (_directory, ("a directory", "Name the library in it")),
    "dangling link": (_dangling, ("a symbolic link to nothing", "libextension_cuda.so.7")),
    "looping link": (_loop, ("a symbolic link that loops",)),
    "FIFO": (_fifo, ("a FIFO", "was not opened")),
    "socket": (_socket, ("a socket",)),
    "link to a device": (_device_link, ("a device", "was not opened")),
    "missing": (lambda shop: shop.target(), ("is missing", "no file of that name", "Correct the path")),
    "below a file": (lambda shop: shop.good / "x.so", ("is missing", "a file, not a directory")),
    "a name that is too long": (
        lambda shop: shop.here / ("x" * 300),
        ("is missing", "longer than the system allows"),
    ),
    "a file that cannot be read": (lambda shop: _unreadable(), ("is unreadable", "Input/output error")),
}


def _unreadable() -> Path:
    """Nothing is mapped at address 0, so reading a process's memory there is an I/O error, for root as well."""
    from pathlib import Path

    path = Path("/proc/self/mem")
    if not path.exists():
        pytest.skip("needs /proc")
    return path


#: ld.so would wait at a FIFO, and takes a PIE for a library where DF_1_PIE is missing. It is a program all the same.
NOT_ASKED = ("FIFO", "PIE without DF_1_PIE")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_shared_object_is_refused_and_named(
    name: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    create, words = REFUSED[name]
    path = create(shop)
    started = time.monotonic()
    verdict = judge(path, capfd)
    assert time.monotonic() - started < 5  # nothing waited for a writer
    assert (verdict.status, verdict.codes) == (1, ("LC101",)), verdict.text
    for word in words:
        assert word in verdict.text
    assert str(path) in verdict.document["findings"][0]["message"]
    if name not in NOT_ASKED:
        assert load(path).returncode != 0


@pytest.mark.parametrize("flag", ["-pie", "-no-pie", "-static-pie"])
def test_linkers_refuse_programs_as_libraries(flag: str, shop: Workshop) -> None:
    assert shop.link_program(_program(shop, flag)).returncode != 0


def test_a_link_to_a_fifo_is_not_opened(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(shop.here / "pipe")
    shop.target().symlink_to("pipe")
    verdict = judge(shop.target(), capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC101",))
    assert "a FIFO" in verdict.text


# ---------------------------------------------------------------- damaged ELF files


def _cut_in(segment: int) -> Callable[[Workshop], Path]:
    def cut(shop: Workshop) -> Path:
        _, fields = shop.segment(segment)
        return shop.cut(fields[2] + fields[5] // 2)

    return cut


def _section_table(shop: Workshop) -> int:
    return int.from_bytes(shop.good.read_bytes()[40:48], "little")


def _without_segment(kind: int) -> Callable[[Workshop], Path]:
    def turn_into_null(shop: Workshop) -> Path:
        at, _ = shop.segment(kind)
        return shop.patched(at, bytes(4))

    return turn_into_null


def _misaligned(shop: Workshop) -> Path:
    at, fields = shop.segment(1)
    return shop.patched(at + 16, struct.pack("<Q", fields[3] + 8))


def _too_large_in_the_file(shop: Workshop) -> Path:
    at, fields = shop.segment(1)
    return shop.patched(at + 40, struct.pack("<Q", fields[5] - 1))


DAMAGED: dict[str, tuple[Callable[[Workshop], Path], tuple[str, ...]]] = {
    "only the magic": (lambda shop: shop.cut(4), ("truncated", "4 bytes", "16")),
    "in e_ident": (lambda shop: shop.cut(15), ("truncated", "15 bytes")),
    "in the header": (lambda shop: shop.cut(63), ("truncated", "63 bytes", "the ELF header takes 64")),
    "after the header": (lambda shop: shop.cut(64), ("truncated", "the program header table")),
    "in the program headers": (lambda shop: shop.cut(100), ("truncated", "the program header table")),
    "in the first segment": (_cut_in(1), ("truncated", "PT_LOAD")),
    "in the dynamic section": (_cut_in(2), ("truncated", "PT_LOAD")),
    "before the section headers": (
        lambda shop: shop.cut(_section_table(shop)),
        ("truncated", "the section header table"),
    ),
    "in the section headers": (lambda shop: shop.cut(shop.size - 100), ("truncated", "the section header table")),
    "one byte short": (lambda shop: shop.cut(shop.size - 1), ("truncated", "the section header table")),
    "class 7": (lambda shop: shop.patched(4, b"\7"), ("EI_CLASS is 7",)),
    "byte order 0": (lambda shop: shop.patched(5, b"\0"), ("EI_DATA is 0",)),
    "ident version 9": (lambda shop: shop.patched(6, b"\x09"), ("EI_VERSION is 9",)),
    "version 0": (lambda shop: shop.patched(20, bytes(4)), ("e_version is 0",)),
    "wrong e_phentsize": (lambda shop: shop.patched(54, b"\x20\0"), ("e_phentsize is 32, not 56",)),
    "wrong e_shentsize": (lambda shop: shop.patched(58, b"\x20\0"), ("e_shentsize is 32, not 64",)),
    "no program headers": (lambda shop: shop.patched(56, b"\0\0"), ("no program headers",)),
    "too many program headers": (lambda shop: shop.patched(56, b"\xff\xff"), ("PN_XNUM",)),
    "program headers far away": (
        lambda shop: shop.patched(32, b"\xff" * 7 + b"\x7f"),
        ("truncated", "the program header table"),
    ),
    "section headers far away": (
        lambda shop: shop.patched(40, b"\xff" * 8),
        ("truncated", "the section header table"),
    ),
    "no dynamic section": (_without_segment(2), ("without a PT_DYNAMIC",)),
    "misaligned segment": (_misaligned, ("alignment",)),
    "more bytes in the file than in memory": (_too_large_in_the_file, ("in memory",)),
    "other class than its tables": (lambda shop: shop.patched(4, b"\1"), ("no program headers",)),
    "ET_EXEC, cut": (lambda shop: _cut_program(shop), ("truncated",)),
    "symbol table beyond the segments": (lambda shop: _bad_symbol_table(shop), ("DT_SYMTAB",)),
}


def _cut_program(shop: Workshop) -> Path:
    return shop.written(_program(shop, "-no-pie").read_bytes()[:3000])


def _bad_symbol_table(shop: Workshop) -> Path:
    _, fields = shop.segment(2)
    content = shop.good.read_bytes()
    for at in range(fields[2], fields[2] + fields[5], 16):
        if int.from_bytes(content[at : at + 8], "little") == 6:
            return shop.patched(at + 8, struct.pack("<Q", 0x7FFFFFFF0000))
    raise AssertionError("no DT_SYMTAB")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_library_is_refused_with_what_does_not_fit(
    name: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    create, words = DAMAGED[name]
    path = create(shop)
    verdict = judge(path, capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC103",)), verdict.text
    assert "a malformed ELF file" in verdict.text
    for word in words:
        assert word in verdict.text


@pytest.mark.parametrize(
    "name", [n for n in DAMAGED if not n.startswith(("too many", "more bytes", "ET_EXEC", "other"))]
)
def test_linkers_refuse_the_damaged_files_too(name: str, shop: Workshop) -> None:
    path = DAMAGED[name][0](shop)
    outcomes = [shop.link_program(path, linker=linker).returncode for linker in LINKERS]
    assert any(status != 0 for status in outcomes) or load(path).returncode != 0


@pytest.mark.parametrize("part", range(1, 40))
def test_no_cut_of_the_library_is_accepted(part: int, shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = judge(shop.cut(shop.size * part // 40), capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC103",))


# ---------------------------------------------------------------- another machine


@pytest.mark.parametrize(
    ("offset", "data", "words"),
    [
        pytest.param(18, struct.pack("<H", 183), "aarch64, 64-bit, little-endian", id="e_machine aarch64"),
        pytest.param(18, struct.pack("<H", 21), "ppc64, 64-bit, little-endian", id="e_machine ppc64"),
        pytest.param(18, struct.pack("<H", 0x1234), "machine 0x1234", id="a machine without a name"),
    ],
)
def test_another_machine_is_refused(
    offset: int, data: bytes, words: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = judge(shop.patched(offset, data), capfd, "--machine", "x86-64")
    assert (verdict.status, verdict.codes) == (1, ("LC102",))
    assert words in verdict.text
    assert "x86-64, 64-bit, little-endian is wanted" in verdict.text
    if HOST == "x86_64":
        assert load(shop.target()).returncode != 0
        assert shop.link_program(shop.target()).returncode != 0


def test_a_program_of_another_machine_is_both(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    shape = SHAPES["s390x"]
    head = shape.header(ET_EXEC, program_offset=64, program_count=1)
    verdict = judge(shop.written(head + shape.segment(1, 0, 120)), capfd, "--machine", "x86-64")
    assert (verdict.status, verdict.codes) == (1, ("LC101", "LC102"))


def test_the_x32_class_is_another_machine(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    exports = (ACCESSOR, CONSTRUCTORS[0], DESTRUCTORS[0])
    write_shared_object(shop.target(), SHAPES["i386"], soname=SONAME, exports=exports)
    verdict = judge(shop.target(), capfd, "--machine", "x32")
    assert verdict.codes == ("LC102",)
    assert "i386, 32-bit" in verdict.text
    assert "x86-64, 32-bit" in verdict.text


def test_without_machine_the_host_decides(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    assert judge(shop.good, capfd).status == 0
    exports = (ACCESSOR, CONSTRUCTORS[0], DESTRUCTORS[0])
    write_shared_object(shop.target(), SHAPES["s390x"], soname=SONAME, exports=exports)
    assert judge(shop.target(), capfd).codes == ("LC102",)


# ---------------------------------------------------------------- SONAME and exports


@pytest.mark.parametrize(
    ("soname", "words"),
    [
        pytest.param(None, "has no SONAME", id="none"),
        pytest.param("libmine.so", "SONAME libmine.so", id="another"),
        pytest.param("libextension_cuda-1a2b3c4d.so", "SONAME libextension_cuda-1a2b3c4d.so", id="made unique"),
        pytest.param("libextension_cuda.so.bak", "libextension_cuda.so.bak", id="a suffix that is no version"),
        pytest.param("LIBEXTENSION_CUDA.SO", "LIBEXTENSION_CUDA.SO", id="in capitals"),
    ],
)
def test_a_soname_that_is_not_the_owners_is_refused(
    soname: str | None, words: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = judge(shop.library(soname=soname), capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC104",))
    assert words in verdict.text
    assert "libextension_cuda.so or libexecutorch_extension_cuda.so" in verdict.text
    assert "-Wl,-soname,libextension_cuda.so;" in verdict.text
    # The judge: what links it records another name than the owner's.
    assert shop.link_program(shop.target()).returncode == 0
    recorded = run_tool("readelf", "-dW", shop.here / "program").stdout
    assert "[libextension_cuda.so]" not in recorded
    assert f"[{soname or shop.target()}]" in recorded


def _consumer(shop: Workshop) -> Path:
    source = shop.here / "consumer.cpp"
    source.write_text(f'extern "C" void* {ACCESSOR}(void); void* ask() {{ return {ACCESSOR}(); }}\n')
    make("g++", "-shared", "-fPIC", source, shop.good, f"-Wl,-soname,{SONAME}.1", "-o", shop.target())
    return shop.target()


def _old_version_only(shop: Workshop) -> Path:
    source = shop.here / "versioned.c"
    lines = [f'void *f{i}(void) {{ return 0; }} __asm__(".symver f{i}, {name}@V1");' for i, name in enumerate(_FIRSTS)]
    source.write_text("\n".join(lines))
    script = _version_script(shop, "V1 { local: f*; };")
    make("gcc", "-shared", "-fPIC", "-nostdlib", source, script, f"-Wl,-soname,{SONAME}", "-o", shop.target())
    return shop.target()


_FIRSTS = (ACCESSOR, CONSTRUCTORS[0], DESTRUCTORS[0])

UNEXPORTED: dict[str, tuple[Callable[[Workshop], Path], tuple[str, ...]]] = {
    "hidden visibility": (
        lambda shop: shop.library("-fvisibility=hidden"),
        ("exports none of the 3 symbols", "getCallerStream() (defined, but hidden or local)"),
    ),
    "hidden and stripped": (
        lambda shop: _hidden_and_stripped(shop),
        ("exports none of the 3 symbols", "-fvisibility"),
    ),
    "version script": (
        lambda shop: shop.library(_version_script(shop, f"V1 {{ global: {ACCESSOR}; local: *; }};")),
        ("exports only 1 of the 3 symbols", "CallerStreamGuard::CallerStreamGuard(CUstream_st*)"),
    ),
    "an old build without the guard": (lambda shop: _stub(shop, ACCESSOR), ("exports only 1 of the 3 symbols",)),
    "without the destructor": (
        lambda shop: _stub(shop, ACCESSOR, *CONSTRUCTORS),
        ("exports only 2 of the 3 symbols", "~CallerStreamGuard()"),
    ),
    "a user of the owner": (
        _consumer,
        ("imported, not defined", "It needs libextension_cuda.so itself", "Name libextension_cuda.so"),
    ),
    "definitions of an old version only": (_old_version_only, ("exports none", "only with the version @V1")),
    "nothing at all": (lambda shop: _stub(shop, "unrelated"), ("exports none of the 3 symbols",)),
}


def _hidden_and_stripped(shop: Workshop) -> Path:
    make("strip", "-s", shop.library("-fvisibility=hidden"))
    return shop.target()


@pytest.mark.parametrize("name", UNEXPORTED)
def test_a_library_that_does_not_export_the_state_is_refused(
    name: str, shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    create, words = UNEXPORTED[name]
    verdict = judge(create(shop), capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC306",)), verdict.text
    for word in words:
        assert word in verdict.text
    if verdict.text.count("exports none") and name != "a user of the owner":
        linked = shop.link_program(shop.target())
        assert linked.returncode != 0
        assert "undefined reference" in linked.stderr


def test_a_wrong_name_and_missing_exports_are_two_findings(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = judge(shop.library("-fvisibility=hidden", soname=None), capfd)
    assert (verdict.status, verdict.codes) == (1, ("LC104", "LC306"))


# ---------------------------------------------------------------- policy


POLICY = """
[[state]]
name = "counter"
owner = ["libcounter.so*"]
symbols = ["counter_value", "ns::*"]

[[state]]
name = "flag"
owner = ["libflag.so"]
symbols = ["flag_value"]
"""


def test_a_policy_of_ones_own_decides_owner_and_symbols(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    policy = shop.here / "linkcheck.toml"
    policy.write_text(POLICY)
    source = shop.here / "counter.cpp"
    source.write_text('extern "C" int counter_value; int counter_value; namespace ns { int next() { return 1; } }\n')
    counter = shop.library(soname="libcounter.so.3", source=source)
    assert judge(counter, capfd).codes == ()
    assert judge(counter, capfd, "--state", "flag").codes == ("LC104", "LC306")
    source.write_text('extern "C" int counter_value; int counter_value;\n')
    verdict = judge(shop.library(soname="libcounter.so.3", source=source), capfd)
    assert verdict.codes == ("LC306",)
    assert "ns::*" in verdict.text


def test_no_selection_lets_an_archive_pass(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    (shop.here / "linkcheck.toml").write_text('extends = ["executorch-caller-stream"]\nselect = ["LC301"]\n')
    assert judge(_archive(shop), capfd).codes == ("LC101",)
    assert judge(shop.library(soname="libother.so"), capfd).codes == ()


def test_a_waiver_accepts_a_finding_until_its_day(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    waiver = (
        'extends = ["executorch-caller-stream"]\n[[waiver]]\ncode = "LC104"\npath = "*.so"\n'
        'reason = "built by a vendor"\nowner = "somebody"\nexpires = {}\n'
    )
    (shop.here / "linkcheck.toml").write_text(waiver.format("2999-01-01"))
    library = shop.library(soname="libvendor.so")
    assert judge(library, capfd).status == 0
    (shop.here / "linkcheck.toml").write_text(waiver.format("2001-01-01"))
    assert judge(library, capfd).status == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--machine", "x99"), ("--machine x99", "x86-64", "aarch64", "ppc64le")),
        (("--state", "nothing"), ("--state nothing", "caller stream")),
        (("--profile", "nothing"), ("nothing",)),
        (("--policy", "/nonexistent/linkcheck.toml"), ("/nonexistent/linkcheck.toml",)),
    ],
)
def test_wrong_options_are_status_2_and_name_what_there_is(
    options: tuple[str, ...], words: tuple[str, ...], shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["prebuilt", str(shop.good), *options]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    for word in words:
        assert word in error


# ---------------------------------------------------------------- formats and the whole process


def test_the_format_does_not_change_the_status(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    archive = _archive(shop)
    for name in ("text", "json", "cmake"):
        assert run(["prebuilt", str(shop.good), "--format", name]) == 0
        assert run(["prebuilt", str(archive), "--format", name]) == 1
        assert capfd.readouterr().err == ""


def test_the_text_names_code_file_and_remedy(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    archive = _archive(shop)
    assert run(["prebuilt", str(archive)]) == 1
    output = capfd.readouterr().out
    for word in ("LC101", "not-a-shared-object", str(archive), "a static archive", "Fix: Link the shared library"):
        assert word in output


def test_output_goes_to_a_file(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    report = shop.here / "report.json"
    assert run(["prebuilt", str(shop.good), "--format", "json", "--output", str(report)]) == 0
    assert capfd.readouterr().out == ""
    assert json.loads(report.read_text())["outcome"] == "pass"


@pytest.mark.parametrize(("make_file", "status"), [("good", 0), ("missing", 1), ("hostile", 1)])
def test_the_process_answers_with_its_exit_status(make_file: str, status: int, shop: Workshop) -> None:
    paths: dict[str, str | bytes] = {
        "good": str(shop.good),
        "missing": str(shop.here / "none.so"),
        "hostile": os.fsencode(shop.here) + b"/\xff\x1b[31m\n.so",
    }
    command = [sys.executable, "-m", "linkcheck", "prebuilt", paths[make_file]]
    package = os.path.dirname(os.path.dirname(linkcheck.__file__))
    environment = {**os.environ, "PYTHONPATH": package}
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout
