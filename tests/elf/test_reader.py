"""What the reader says about files written byte by byte, in both classes and byte orders."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import (
    FileKind,
    Image,
    Symbol,
    SymbolBinding,
    SymbolType,
    SymbolVersion,
    Target,
    ThreadLocalSegment,
    VersionNeed,
    Visibility,
)
from tests.elf.agreement import compare
from tests.elf.builder import BASE, LAYOUTS, Built, Plan, Sym, build

_HASHES = (("gnu",), ("sysv",), ("gnu", "sysv"), ())

_SYMBOLS = (
    Sym("puts", defined=False, value=0, version=2),
    Sym("maybe", defined=False, binding=2, value=0),
    Sym("one", version=3),
    Sym("old", version=0x8004),
    Sym("data", type=1, visibility=3, size=40),
    Sym("unique", binding=10, type=1),
    Sym("chosen", type=10),
    Sym("tls", type=6, value=0),
    Sym("absolute", type=0, value=0, section=0xFFF1),
)
_FULL = Plan(
    symbols=_SYMBOLS,
    needed=("libc.so.6", "libm.so.6"),
    soname="libfull.so.1",
    rpath="/opt/lib",
    runpath="$ORIGIN/../lib",
    flags=0x1A,
    flags_1=0x801,
    needs={"libc.so.6": (("GLIBC_2.0", 2, 0),)},
    definitions=(("libfull.so.1", 1, 1), ("V1", 3, 0), ("V2", 4, 2)),
    build_id=bytes(range(20)),
    tls=(4, 12, 8),
    stack=7,
)


def _write(folder: Path, plan: Plan | Built) -> str:
    path = folder / "built.so"
    path.write_bytes(plan.data if isinstance(plan, Built) else build(plan).data)
    return str(path)


def _plans() -> list[Plan]:
    return [
        replace(_FULL, bits=bits, order=order, machine=machine, hashes=hashes)
        for bits, order, machine in LAYOUTS
        for hashes in _HASHES
    ]


def _name(plan: Plan) -> str:
    return f"{plan.bits}-{plan.order}-{'+'.join(plan.hashes) or 'none'}"


@pytest.fixture(params=_plans(), ids=_name)
def plan(request: pytest.FixtureRequest) -> Plan:
    found: Plan = request.param
    return found


@pytest.fixture(params=LAYOUTS, ids=lambda layout: f"{layout[0]}-{layout[1]}")
def small(request: pytest.FixtureRequest) -> Plan:
    bits, order, machine = request.param
    return Plan(bits, order, machine, symbols=(Sym("wanted", defined=False, value=0), Sym("given")))


# ---------------------------------------------------------------- the whole image


def test_every_other_tool_reads_the_built_file_alike(tmp_path: Path, plan: Plan) -> None:
    path = _write(tmp_path, plan)
    assert compare(path).differences == ()
    readelf = subprocess.run(["readelf", "-WdVsn", path], capture_output=True, text=True, check=True)
    assert readelf.stderr == ""


def test_facts_come_from_the_dynamic_section(tmp_path: Path, plan: Plan) -> None:
    path = _write(tmp_path, plan)
    image = read_image(path)
    status = Path(path).stat()
    assert image == Image(
        path=path,
        kind=FileKind.SHARED_OBJECT,
        target=Target(plan.machine, plan.bits, plan.order),
        soname="libfull.so.1",
        needed=("libc.so.6", "libm.so.6"),
        rpath="/opt/lib",
        runpath="$ORIGIN/../lib",
        flags=0x1A,
        flags_1=0x801,
        symbolic=True,
        tls=ThreadLocalSegment(4, 12, 8),
        executable_stack=True,
        build_id=bytes(range(20)).hex(),
        version_definitions=(
            SymbolVersion("libfull.so.1", base=True),
            SymbolVersion("V1"),
            SymbolVersion("V2", weak=True),
        ),
        version_needs=(VersionNeed("libc.so.6", (SymbolVersion("GLIBC_2.0", library="libc.so.6"),)),),
        symbols=image.symbols,
        device=status.st_dev,
        inode=status.st_ino,
    )


@pytest.mark.parametrize("sections", [True, False], ids=["sections", "no-sections"])
def test_symbols_are_all_seen_with_and_without_hash_tables_and_sections(
    tmp_path: Path, plan: Plan, sections: bool
) -> None:
    table = read_image(_write(tmp_path, replace(plan, sections=sections))).symbols
    assert table.unseen is None
    assert sorted(symbol.name for symbol in table) == sorted(symbol.name for symbol in _SYMBOLS)
    assert [symbol.name for symbol in table.imports()] == ["puts", "maybe"]
    exported = {symbol.name for symbol in _SYMBOLS if symbol.defined} if plan.hashes else set()
    assert {symbol.name for symbol in table.exports()} == exported
    for symbol in _SYMBOLS:
        assert [found.name for found in table.exported(symbol.name)] == [symbol.name] * (symbol.name in exported)
        assert (table.imported(symbol.name) is not None) == (not symbol.defined)


def test_a_symbol_has_its_binding_type_visibility_and_version(tmp_path: Path, plan: Plan) -> None:
    table = read_image(_write(tmp_path, plan)).symbols
    by_name = {symbol.name: symbol for symbol in table}
    assert table.imported("puts") == Symbol(
        "puts",
        SymbolBinding.GLOBAL,
        SymbolType.FUNC,
        Visibility.DEFAULT,
        defined=False,
        value=0,
        size=8,
        version=SymbolVersion("GLIBC_2.0", library="libc.so.6"),
    )
    assert by_name["maybe"].weak
    assert by_name["one"].version == SymbolVersion("V1")
    assert by_name["old"].version == SymbolVersion("V2", hidden=True, weak=True)
    assert by_name["data"].version is None
    assert (by_name["data"].type, by_name["data"].visibility) == (SymbolType.OBJECT, Visibility.PROTECTED)
    assert by_name["unique"].binding is SymbolBinding.GNU_UNIQUE
    assert by_name["chosen"].type is SymbolType.GNU_IFUNC


# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"soname": None}, FileKind.SHARED_OBJECT),
        ({"interpreter": "/lib/ld.so"}, FileKind.PIE),
        ({"interpreter": "/lib/ld.so", "soname": "libc.so.6"}, FileKind.SHARED_OBJECT),
        ({"interpreter": "/lib/ld.so", "soname": "odd", "flags_1": 0x08000000}, FileKind.PIE),
        ({"flags_1": 0x08000000}, FileKind.STATIC_PIE),
        ({"type": 2, "interpreter": "/lib/ld.so"}, FileKind.EXECUTABLE),
    ],
)
def test_et_dyn_is_told_apart_by_df_1_pie_interpreter_and_soname(
    tmp_path: Path, small: Plan, changes: dict[str, object], kind: FileKind
) -> None:
    image = read_image(_write(tmp_path, replace(small, **changes)))  # type: ignore[arg-type]
    assert image.kind is kind
    assert image.interpreter == changes.get("interpreter")


def test_a_static_executable_needs_nothing(tmp_path: Path, small: Plan) -> None:
    image = read_image(_write(tmp_path, replace(small, type=2, dynamic=False, tls=(0, 8, 8))))
    assert (image.kind, image.needed, image.soname, image.symbols.unseen) == (FileKind.EXECUTABLE, (), None, None)
    assert list(image.symbols) == list(image.symbols.imports()) == list(image.symbols.exports()) == []
    assert image.symbols.exported("given") == ()
    assert image.symbols.imported("wanted") is None
    assert image.tls == ThreadLocalSegment(0, 8, 8)


@pytest.mark.parametrize(
    ("type_", "kind"),
    [(1, FileKind.RELOCATABLE), (4, FileKind.CORE), (0, FileKind.OTHER_ELF), (0xFE00, FileKind.OTHER_ELF)],
)
def test_other_elf_types_are_no_images(tmp_path: Path, small: Plan, type_: int, kind: FileKind) -> None:
    with pytest.raises(NotAnImageError) as caught:
        read_image(_write(tmp_path, replace(small, type=type_)))
    assert caught.value.kind is kind


def test_et_dyn_without_dynamic_section_is_malformed(tmp_path: Path, small: Plan) -> None:
    with pytest.raises(MalformedElfError, match="without a PT_DYNAMIC"):
        read_image(_write(tmp_path, replace(small, dynamic=False)))


def test_an_elf_file_that_maps_nothing_is_malformed(tmp_path: Path, small: Plan) -> None:
    built = build(small)
    built.patch(built.find_segment("LOAD"), "I", 0)
    with pytest.raises(MalformedElfError, match="PT_LOAD"):
        read_image(_write(tmp_path, built))


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"!<arch>\n", b"INPUT(libx.so)\n"])
def test_what_is_not_elf_is_no_image_of_unknown_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libfake.so"
    path.write_bytes(content)
    with pytest.raises(NotAnImageError) as caught:
        read_image(str(path))
    assert caught.value.kind is None
    assert str(caught.value).startswith(f"{path}: not an ELF image: ")


# ---------------------------------------------------------------- single facts


def test_absent_and_empty_paths_differ(tmp_path: Path, small: Plan) -> None:
    image = read_image(_write(tmp_path, replace(small, runpath="")))
    assert (image.rpath, image.runpath) == (None, "")


@pytest.mark.parametrize(("flags", "executable"), [(None, None), (6, False), (7, True)])
def test_the_stack_header_is_absent_plain_or_executable(
    tmp_path: Path, small: Plan, flags: int | None, executable: bool | None
) -> None:
    assert read_image(_write(tmp_path, replace(small, stack=flags))).executable_stack is executable


def test_names_that_are_not_utf_8_lose_no_byte(tmp_path: Path, small: Plan) -> None:
    odd = b"caf\xe9\xff".decode("utf-8", "surrogateescape")
    plan = replace(small, symbols=(Sym(odd), Sym(odd + "!", defined=False, value=0)), needed=(odd,))
    image = read_image(_write(tmp_path, plan))
    assert image.needed[0].encode("utf-8", "surrogateescape") == b"caf\xe9\xff"
    assert [symbol.name for symbol in image.symbols.exported(odd)] == [odd]
    assert image.symbols.imported(odd + "!") is not None


@pytest.mark.parametrize("name", ["given\0", "\0", "", "\ud800", "give", "xgiven"])
def test_names_that_no_file_can_hold_or_that_differ_are_not_found(tmp_path: Path, small: Plan, name: str) -> None:
    table = read_image(_write(tmp_path, replace(small, hashes=("gnu", "sysv")))).symbols
    assert table.exported(name) == ()
    assert table.imported(name) is None


def test_the_last_of_repeated_tags_counts(tmp_path: Path, small: Plan) -> None:
    built = build(replace(small, soname="first", rpath="second"))
    word = "Q" if small.bits == 64 else "I"
    built.patch(built.find_dynamic("RPATH") - small.bits // 8, word, 14)  # a second DT_SONAME
    assert read_image(_write(tmp_path, built)).soname == "second"


def test_dt_textrel_and_dt_symbolic_count_as_their_flags(tmp_path: Path, small: Plan) -> None:
    built = build(replace(small, rpath="", runpath=""))
    word = "Q" if small.bits == 64 else "I"
    built.patch(built.find_dynamic("RPATH") - small.bits // 8, word, 22)
    built.patch(built.find_dynamic("RUNPATH") - small.bits // 8, word, 16)
    image = read_image(_write(tmp_path, built))
    assert (image.flags, image.symbolic, image.rpath, image.runpath) == (4, True, None, None)


def test_pn_xnum_is_refused_because_ld_so_does_not_read_the_count(tmp_path: Path, small: Plan) -> None:
    built = build(small)
    wide = small.bits == 64
    (section_at,) = [int.from_bytes(built.data[40:48] if wide else built.data[32:36], small.order)]  # type: ignore[arg-type]
    count_at = 56 if wide else 44
    count = int.from_bytes(built.data[count_at : count_at + 2], small.order)  # type: ignore[arg-type]
    built.patch(count_at, "H", 0xFFFF)
    built.patch(section_at + (44 if wide else 28), "I", count)
    with pytest.raises(MalformedElfError, match="PN_XNUM"):
        read_image(_write(tmp_path, built))


def test_an_undefined_symbol_with_a_value_stays_an_import(tmp_path: Path, small: Plan) -> None:
    plan = replace(small, symbols=(Sym("qsort", defined=False, value=BASE), Sym("given")), hashes=("sysv",))
    table = read_image(_write(tmp_path, plan)).symbols
    found = table.imported("qsort")
    assert found is not None
    assert (found.defined, found.value) == (False, BASE)
    assert table.exported("qsort") == ()


def test_local_undefined_entries_are_no_imports(tmp_path: Path, small: Plan) -> None:
    table = read_image(_write(tmp_path, replace(small, symbols=(Sym("x", defined=False, binding=0),)))).symbols
    assert (table.imported("x"), list(table.imports()), len(list(table))) == (None, [], 1)


@pytest.mark.parametrize(
    "symbol",
    [
        Sym("s", value=0),
        Sym("s", type=3),
        Sym("s", type=4),
        Sym("s", type=13),
        Sym("s", binding=0),
        Sym("s", binding=13),
        Sym("s", visibility=1),
        Sym("s", visibility=2),
    ],
)
def test_definitions_that_ld_so_skips_are_not_exported(tmp_path: Path, small: Plan, symbol: Sym) -> None:
    for hashes in (("gnu",), ("sysv",)):
        table = read_image(_write(tmp_path, replace(small, symbols=(symbol,), hashes=hashes))).symbols
        assert table.exported("s") == ()
        assert list(table.exports()) == []
        assert [found.name for found in table] == ["s"]


def test_versions_without_records_are_ignored(tmp_path: Path, small: Plan) -> None:
    built = build(replace(small, definitions=(("base", 1, 1), ("V", 2, 0)), symbols=(Sym("given", version=2),)))
    word = "Q" if small.bits == 64 else "I"
    built.patch(built.find_dynamic("VERDEF") - small.bits // 8, word, 0x6FFFFFF9)
    (symbol,) = read_image(_write(tmp_path, built)).symbols.exported("given")
    assert symbol.version is None


def test_many_questions_are_answered_like_the_first_ones(tmp_path: Path, small: Plan) -> None:
    symbols = tuple(Sym(f"name{number}") for number in range(60))
    table = read_image(_write(tmp_path, replace(small, symbols=symbols))).symbols
    for _ in range(2):  # the filter moves into memory on the way
        for number in range(120):
            assert len(table.exported(f"name{number}")) == (number < 60)


# ---------------------------------------------------------------- how many symbols there are


def test_an_unbounded_table_says_what_it_cannot_see(tmp_path: Path, small: Plan) -> None:
    junk = b"\xff" * (small.bits // 4 + 40)
    plan = replace(small, hashes=(), sections=False, gap=junk)
    table = read_image(_write(tmp_path, plan)).symbols
    assert table.unseen is not None
    assert "2 look like symbols" not in table.unseen
    assert [symbol.name for symbol in table.imports()] == ["wanted"]


def test_the_gnu_table_of_a_program_that_exports_nothing_hides_no_import(tmp_path: Path, small: Plan) -> None:
    imports = tuple(Sym(f"import{number}", defined=False, value=0) for number in range(5))
    for sections in (True, False):
        table = read_image(_write(tmp_path, replace(small, symbols=imports, sections=sections))).symbols
        assert table.unseen is None
        assert [symbol.name for symbol in table.imports()] == [symbol.name for symbol in imports]


def test_section_headers_that_know_fewer_symbols_than_relocations_are_not_believed(tmp_path: Path, small: Plan) -> None:
    imports = tuple(Sym(f"import{number}", defined=False, value=0) for number in range(5))
    built = build(replace(small, symbols=imports, relocations=(1, 5, 2), hashes=()))
    wide = small.bits == 64
    size = 24 if wide else 16
    names = [name for name in built.at if name not in ("gap", "interp")]
    section_at = int.from_bytes(built.data[40:48] if wide else built.data[32:36], small.order)  # type: ignore[arg-type]
    header_at = section_at + (64 if wide else 40) * (1 + names.index("symtab"))
    built.patch(header_at + (32 if wide else 20), "Q" if wide else "I", 2 * size)
    table = read_image(_write(tmp_path, built)).symbols
    assert table.unseen is None
    assert len(list(table.imports())) == 5


def test_mips_says_the_number_of_symbols_in_a_tag_of_its_own(tmp_path: Path, small: Plan) -> None:
    built = build(replace(small, hashes=(), sections=False, gap=b"\xff" * 64, machine=8, rpath=""))
    word = "Q" if small.bits == 64 else "I"
    built.patch(built.find_dynamic("RPATH") - small.bits // 8, word * 2, 0x70000011, 3)
    table = read_image(_write(tmp_path, built)).symbols
    assert table.unseen is None
    assert len(list(table)) == 2


def test_exports_hashed_the_mips_way_alone_are_unseen(tmp_path: Path, small: Plan) -> None:
    built = build(replace(small, hashes=(), machine=8, rpath=""))
    word = "Q" if small.bits == 64 else "I"
    built.patch(built.find_dynamic("RPATH") - small.bits // 8, word * 2, 0x70000036, BASE)
    assert "DT_MIPS_XHASH" in (read_image(_write(tmp_path, built)).symbols.unseen or "")


def test_s390x_hash_words_have_eight_bytes(tmp_path: Path) -> None:
    # The null bucket and chain words of a 4-byte table read as 8-byte ones cannot fit: that is how we tell.
    path = _write(tmp_path, Plan(64, "big", 22, symbols=(Sym("given"),), hashes=("sysv",)))
    with pytest.raises(MalformedElfError, match="DT_HASH"):
        read_image(path).symbols.exported("given")


# ---------------------------------------------------------------- files that are no regular file, or change


def test_irregular_files_are_never_read(tmp_path: Path) -> None:
    fifo, directory, place = tmp_path / "fifo", tmp_path / "dir", tmp_path / "socket"
    os.mkfifo(fifo)
    directory.mkdir()
    kinds = {str(fifo): FileKind.FIFO, str(directory): FileKind.DIRECTORY, "/dev/zero": FileKind.DEVICE}
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(place))
        kinds[str(place)] = FileKind.SOCKET
        for path, kind in kinds.items():
            with pytest.raises(NotAnImageError) as caught:
                read_image(path)
            assert caught.value.kind is kind


def test_what_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (str(tmp_path / "absent"), str(loop), "nul\0byte", str(tmp_path / ("n" * 300))):
        with pytest.raises(UnreadableFileError) as caught:
            read_image(path)
        assert str(caught.value).startswith(path)


def test_a_file_that_changes_later_is_unreadable_and_not_misread(tmp_path: Path, small: Plan) -> None:
    path = _write(tmp_path, small)
    table = read_image(path).symbols
    assert table.exported("given")
    other = tmp_path / "other"
    other.write_bytes(build(replace(small, symbols=(Sym("other"),))).data)
    other.replace(path)
    assert table.exported("given")  # remembered, and true of the file that was read
    for ask in (lambda: table.imported("wanted"), lambda: list(table)):
        with pytest.raises(UnreadableFileError, match="changed since"):
            ask()


def test_symbols_are_found_after_the_working_directory_changed(
    tmp_path: Path, small: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, small)
    monkeypatch.chdir(tmp_path)
    image = read_image("built.so")
    monkeypatch.chdir("/")
    assert image.path == "built.so"
    assert image.symbols.imported("wanted")


def test_no_descriptor_stays_open(tmp_path: Path, small: Plan) -> None:
    path = _write(tmp_path, small)
    before = len(list(Path("/proc/self/fd").iterdir()))
    images = [read_image(path) for _ in range(50)]
    for image in images:
        next(image.symbols.imports())
        image.symbols.exported("given")
    for content in (b"", bytes(build(small).data[:40])):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises((NotAnImageError, MalformedElfError)):
            read_image(str(tmp_path / "bad"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_facts_and_one_question_cost_a_few_kilobytes(tmp_path: Path) -> None:
    symbols = tuple(Sym(f"a_rather_long_symbol_name_{number}") for number in range(20000))
    path = _write(tmp_path, Plan(symbols=symbols, needed=("libc.so.6",), soname="libbig.so"))
    read_image(path).symbols.exported("warm")

    def count_read_bytes() -> int:
        with open("/proc/self/io") as status:
            return int(status.readline().split()[1])

    def count_for_one_question() -> int:
        before = count_read_bytes()
        assert read_image(path).symbols.exported("a_rather_long_symbol_name_777")
        return count_read_bytes() - before

    idle = -count_read_bytes() + count_read_bytes()
    # The system counts the whole process: a module that something else imports in between is read as well. What the
    # question itself takes it takes every time.
    assert min(count_for_one_question() for _ in range(3)) - idle < 10_000 < Path(path).stat().st_size // 100
