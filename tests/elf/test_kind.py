"""identify() on what the command tests do not reach: details, names, targets, permissions, and how much is read."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcheck.elf.kind import identify
from linkcheck.elf.link_view import read_link_view
from linkcheck.elf.text_kind import linker_script_libraries
from linkcheck.model import FileKind, Target
from tests.elf.hand_made import SHAPES, write_core, write_shared_object
from tests.elf.workshop import SONAME, Workshop, make, make_workshop, run_tool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("kind")
    make_workshop(directory)
    return directory


@pytest.fixture
def shop(base: Path, tmp_path: Path) -> Workshop:
    return Workshop(base, tmp_path)


def mapped_file(name: str) -> str:
    """The path of a library that this very process has loaded, such as libc.so.6."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if "/" in line}
    except OSError:
        pytest.skip("needs /proc")
    found = [path for path in paths if os.path.basename(path).startswith(name)]
    if not found:
        pytest.skip(f"this process has no {name}")
    return found[0]


# ---------------------------------------------------------------- ELF


@pytest.mark.parametrize("name", ["libc.so.6", "ld-linux"])
def test_libraries_that_can_be_started_are_libraries(name: str) -> None:
    assert identify(mapped_file(name)).kind is FileKind.SHARED_OBJECT


def test_this_python_is_a_program() -> None:
    assert identify("/proc/self/exe").kind in (FileKind.PIE, FileKind.EXECUTABLE, FileKind.STATIC_PIE)


@pytest.mark.parametrize("machine", SHAPES)
def test_the_target_is_read_from_the_header(machine: str, tmp_path: Path) -> None:
    shape = SHAPES[machine]
    path = write_shared_object(tmp_path / "lib.so", shape, soname=None, exports=())
    identity = identify(str(path))
    assert identity.kind is FileKind.SHARED_OBJECT
    order = "little" if shape.order == "<" else "big"
    assert identity.target == Target(shape.machine, shape.bits, order)
    assert identify(str(write_core(tmp_path / "core", shape))).kind is FileKind.CORE


@pytest.mark.compile
def test_a_companion_that_keeps_the_program_headers_is_debug_only(shop: Workshop) -> None:
    """As eu-strip -f writes it: sections are emptied, the program headers still speak of the original's bytes."""
    companion = shop.here / "companion"
    make("objcopy", "--only-keep-debug", shop.good, companion)
    content = bytearray(companion.read_bytes())
    original = shop.good.read_bytes()
    start = int.from_bytes(content[32:40], "little")
    count = int.from_bytes(content[56:58], "little")
    content[start : start + 56 * count] = original[start : start + 56 * count]
    companion.write_bytes(bytes(content))
    assert identify(str(companion)).kind is FileKind.DEBUG_ONLY


@pytest.mark.compile
@pytest.mark.parametrize("flags", [(), ("-s",), ("-g",)])
def test_stripping_changes_no_kind(flags: tuple[str, ...], shop: Workshop) -> None:
    shop.written(shop.good.read_bytes())
    make("strip", *(flags or ("-x",)), shop.target())
    assert identify(str(shop.target())).kind is FileKind.SHARED_OBJECT


@pytest.mark.compile
def test_an_object_with_many_sections_is_still_an_object(shop: Workshop) -> None:
    source = shop.here / "many.c"
    source.write_text("".join(f"void f{i}(void) {{}}\n" for i in range(1500)))
    make("gcc", "-c", "-ffunction-sections", source, "-o", shop.target())
    assert identify(str(shop.target())).kind is FileKind.RELOCATABLE
    make("gcc", "-c", "-flto", source, "-o", shop.target())
    assert identify(str(shop.target())).kind is FileKind.LTO_OBJECT


@pytest.mark.compile
def test_readelf_agrees_about_the_programs_of_this_machine() -> None:
    """Every file of /usr/bin whose type readelf calls EXEC or PIE is a program, and no other one is."""
    judged = 0
    for entry in sorted(os.scandir("/usr/bin"), key=lambda e: e.name)[::7]:
        if not entry.is_file():
            continue
        identity = identify(entry.path)
        header = run_tool("readelf", "-hW", entry.path)
        kind = next((line for line in header.stdout.splitlines() if line.strip().startswith("Type:")), "")
        programs = (FileKind.EXECUTABLE, FileKind.PIE, FileKind.STATIC_PIE)
        assert (identity.kind in programs) == ("EXEC" in kind or "Position-Independent" in kind), entry.path
        judged += 1
    assert judged > 5


# ---------------------------------------------------------------- archives


@pytest.mark.compile
def test_an_archive_names_its_first_members(shop: Workshop) -> None:
    names = ["a_rather_long_member_name_beyond_fifteen.o", "b.o", "c.o"]
    for name in names:
        (shop.here / name).write_bytes(shop.object.read_bytes())
    make("ar", "rcs", SONAME, *names, directory=shop.here)
    identity = identify(str(shop.target()))
    assert identity.kind is FileKind.ARCHIVE
    assert identity.detail == f"3 members: {names[0]}, b.o, …"
    shop.target().unlink()
    make("ar", "rcsT", SONAME, *names, directory=shop.here)
    identity = identify(str(shop.target()))
    assert identity.kind is FileKind.THIN_ARCHIVE
    assert identity.detail == f"3 members: {names[0]}, b.o, …"


@pytest.mark.parametrize(
    "tail",
    [b"", b"x", b"\0" * 60, b" " * 58 + b"`\n", b"a/" + b" " * 46 + b"99999999999" + b"`\n", b"//" + b" " * 200],
)
def test_a_broken_archive_is_still_an_archive(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"!<arch>\n" + tail)
    assert identify(str(path)).kind is FileKind.ARCHIVE


def test_a_bsd_archive_names_its_members(tmp_path: Path) -> None:
    def member(name: bytes, body: bytes) -> bytes:
        header = (
            name.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8) + str(len(body)).encode().ljust(10)
        )
        return header + b"`\n" + body + b"\n" * (len(body) % 2)

    path = tmp_path / "lib.so"
    path.write_bytes(b"!<arch>\n" + member(b"__.SYMDEF", b"xx") + member(b"#1/8", b"long.o\0\0body"))
    assert identify(str(path)).detail == "1 member: long.o"


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("INPUT(libfoo.so.1)", ("libfoo.so.1",)),
        ("INPUT ( libfoo.so.1 -lbar )", ("libfoo.so.1", "-lbar")),
        ("GROUP(a.so,b.so)", ("a.so", "b.so")),
        ("/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( a.so AS_NEEDED ( b.so ) )", ("a.so", "b.so")),
        ('OUTPUT_FORMAT("elf64-x86-64", "elf64-x86-64", "elf64-x86-64")\nINPUT("a b.so")', ("a b.so",)),
        ("INPUT(a.so) INPUT(a.so) GROUP(=/lib/b.so)", ("a.so", "=/lib/b.so")),
        ("SEARCH_DIR(/opt) INPUT(a.so)", ("a.so",)),
        ("INPUT(a.so /* not b.so */ c.so)", ("a.so", "c.so")),
        ("SECTIONS { }", ()),
        ("INCLUDE other.ld", ()),
        ("OUTPUT_ARCH(i386)", ()),
        ("INPUT is what this text speaks about", None),
        ("input(a.so)", None),
        ("/* only a comment */", None),
        ("/* no end INPUT(a.so)", None),
        ("", None),
        ("{ global: *; };", None),
        ("int main(void) { return 0; }", None),
    ],
)
def test_linker_scripts_are_read_as_ld_reads_them(text: str, names: tuple[str, ...] | None) -> None:
    assert linker_script_libraries(text) == names


@pytest.mark.compile
def test_the_linker_takes_the_script_for_what_it_names(shop: Workshop) -> None:
    script = shop.written(f"/* GNU ld script */\nINPUT({shop.good})\n")
    assert identify(str(script)).names == (str(shop.good),)
    assert shop.link_program(script).returncode == 0
    assert shop.program_imports_the_state()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("libfoo.so", FileKind.FLATTENED_SYMLINK),
        ("libfoo.so.1.2\n", FileKind.FLATTENED_SYMLINK),
        ("libfoo.so.1\r\n", FileKind.FLATTENED_SYMLINK),
        ("../x/libfoo.1.dylib", FileKind.FLATTENED_SYMLINK),
        ("/usr/lib/libfoo.so.1", FileKind.FLATTENED_SYMLINK),
        ("libfoo.so.1\nlibbar.so.1\n", FileKind.TEXT),
        ("see libfoo.so.1", FileKind.TEXT),
        ("https://example.org/libfoo.so.1", FileKind.TEXT),
        ("libfoo", FileKind.TEXT),
        ("x" * 5000 + ".so", FileKind.TEXT),
        ("\n\n", FileKind.TEXT),
        ("<!-- <html> -->", FileKind.TEXT),
        ("  \n<HTML>", FileKind.HTML),
        ("<?xml version='1.0'?><Error/>", FileKind.TEXT),
        ("\ufeff<!doctype html>", FileKind.HTML),
        ("<!--" * 20000 + "-->" * 20000, FileKind.TEXT),
        ("caf\u00e9", FileKind.TEXT),
        ("a\0b", FileKind.DATA),
    ],
)
def test_text_is_told_apart(content: str, kind: FileKind, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_text(content, newline="")
    assert identify(str(path)).kind is kind


# ---------------------------------------------------------------- paths


def test_a_relative_link_is_followed_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("text here\n")
    (tmp_path / "link").symlink_to("real")
    assert identify(str(tmp_path / "link")).kind is FileKind.TEXT


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000])
def test_what_cannot_be_a_path_is_missing(path: str) -> None:
    assert identify(path).kind is FileKind.MISSING


def test_a_name_that_is_no_utf8_is_a_name(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.so"
    with open(path, "wb") as file:
        file.write(b"\x7fELF")
    assert identify(os.fsdecode(path)).kind is FileKind.MALFORMED_ELF


def identify_as_nobody(path: Path) -> str:
    """identify() in a child process without root's right to read everything; answers "KIND: detail"."""
    identify(str(path))  # imports what the child could not read
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            identity = identify(str(path))
            os.write(writing, f"{identity.kind.name}: {identity.detail}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    for part in (tmp_path, *tmp_path.parents[:2]):
        part.chmod(0o755)
    secret = tmp_path / "secret.so"
    secret.write_bytes(b"\x7fELF")
    secret.chmod(0)
    assert identify_as_nobody(secret) == "UNREADABLE: Permission denied"


def test_a_file_in_a_closed_directory_is_unreadable(tmp_path: Path) -> None:
    for part in (tmp_path, *tmp_path.parents[:2]):
        part.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "x.so").write_bytes(b"\x7fELF")
    closed.chmod(0)
    try:
        assert identify_as_nobody(closed / "x.so") == "UNREADABLE: Permission denied"
    finally:
        closed.chmod(0o755)


def test_proc_files_that_claim_no_size_are_read(tmp_path: Path) -> None:
    if not os.path.exists("/proc/version"):
        pytest.skip("needs /proc")
    assert os.stat("/proc/version").st_size == 0
    assert identify("/proc/version").kind is FileKind.TEXT


# ---------------------------------------------------------------- bounds


def bytes_read_by(path: Path) -> int:
    """How many bytes the kernel handed out while identify() ran (man 5 proc, io: rchar)."""

    def total() -> int:
        with open("/proc/self/io") as counters:
            return int(counters.readline().split()[1])

    if not os.path.exists("/proc/self/io"):
        pytest.skip("needs /proc/self/io")
    identify(str(path))  # imports happen before the measurement
    before = total()
    identify(str(path))
    return total() - before


@pytest.mark.parametrize(
    ("head", "most"),
    [
        pytest.param(b"\0" * 8, 5_000, id="zeros"),
        pytest.param(b"some text\n" * 10_000, 80_000, id="text"),
        pytest.param(b"!<arch>\n", 5_000, id="archive"),
        pytest.param(b"PK\x03\x04", 5_000, id="zip"),
    ],
)
def test_a_huge_file_costs_a_few_kilobytes(head: bytes, most: int, tmp_path: Path) -> None:
    path = tmp_path / "huge.so"
    path.write_bytes(head)
    os.truncate(path, 1 << 36)  # a hole: it takes no room on the disk
    assert bytes_read_by(path) < most


@pytest.mark.compile
def test_a_library_costs_a_few_kilobytes(shop: Workshop) -> None:
    assert bytes_read_by(shop.good) < 12_000


def test_a_header_that_claims_the_most_is_bounded(tmp_path: Path) -> None:
    """65,534 program headers, all of them PT_NULL, in a file that really has them."""
    shape = SHAPES["x86-64"]
    path = tmp_path / "many.so"
    head = bytearray(shape.header(3, program_offset=64, program_count=65534))
    path.write_bytes(bytes(head))
    os.truncate(path, 64 + 65534 * 56)
    assert bytes_read_by(path) < 4 << 20
    assert identify(str(path)).kind is FileKind.MALFORMED_ELF


GOOD_HEADS = [
    SHAPES[name].header(kind, program_offset=64, program_count=2)
    for name in ("x86-64", "mips")
    for kind in (1, 2, 3, 4)
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from(
        [*GOOD_HEADS, b"!<arch>\n", b"\xca\xfe\xba\xbe", b"MZ", b"PK\x03\x04", b"INPUT(", b"BZh", b""]
    ),
    rest=st.binary(max_size=300),
    patch=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 255)), max_size=6),
)
def test_no_bytes_confuse_it(start: bytes, rest: bytes, patch: list[tuple[int, int]], tmp_path: Path) -> None:
    content = bytearray(start + rest)
    for offset, value in patch:
        if offset < len(content):
            content[offset] = value
    path = tmp_path / "any.so"
    path.write_bytes(bytes(content))
    identity = identify(str(path))
    assert isinstance(identity.kind, FileKind)
    assert (identity.kind is FileKind.EMPTY) == (not content)
    assert identity.kind is not FileKind.UNREADABLE


@pytest.mark.parametrize("offset", [1 << 63, 60])
def test_a_broken_section_table_is_a_linker_s_business(offset: int, tmp_path: Path) -> None:
    """ld.so does not look at it, so the file is the library that its segments say it is."""
    path = write_shared_object(tmp_path / "lib.so", SHAPES["x86-64"], soname=None, exports=())
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, 40, len(content) - offset if offset < len(content) else offset)
    struct.pack_into("<HHH", content, 58, 64, 5, 4)
    path.write_bytes(bytes(content))
    identity = identify(str(path))
    assert (identity.kind, identity.detail) == (FileKind.SHARED_OBJECT, "")
    assert "the section header table" in read_link_view(str(path)).fault


def test_an_object_whose_section_table_is_cut_off_is_malformed(tmp_path: Path) -> None:
    """Nothing but the section table says what an object holds."""
    shape = SHAPES["x86-64"]
    content = bytearray(shape.header(1, program_offset=0, program_count=0))
    struct.pack_into("<Q", content, 40, 64)
    struct.pack_into("<HHH", content, 58, 64, 5, 4)
    path = tmp_path / "cut.o"
    path.write_bytes(bytes(content) + bytes(100))
    identity = identify(str(path))
    assert identity.kind is FileKind.MALFORMED_ELF
    assert "the section header table" in identity.detail
