"""Damaged and malicious files: the reader ends in one of its own errors, soon and in little memory."""

from __future__ import annotations

import random
import re
import signal
import struct
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.errors import LinkcheckError, MalformedElfError
from tests.elf.builder import LAYOUTS, Built, Plan, Sym, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SEED = 20240601
_MUTATIONS = 400  # for each of four small files
_MEMORY_LIMIT = 64 << 20
#: Ten times the promised second, because machines that run tests are busy; a read that never ends is what it is for.
_ALARM_SECONDS = 10

_SYMBOLS = (
    *(Sym(f"import_{number}", defined=False, value=0, version=2) for number in range(6)),
    *(Sym(f"export_{number}", version=3 + number % 2) for number in range(12)),
)
_PLAN = Plan(
    symbols=_SYMBOLS,
    needed=("libc.so.6", "libm.so.6"),
    soname="libvictim.so",
    runpath="$ORIGIN",
    flags=8,
    hashes=("gnu", "sysv"),
    needs={"libc.so.6": (("GLIBC_2.2.5", 2, 0),), "libm.so.6": (("GLIBC_2.3", 5, 2), ("GLIBC_2.4", 6, 0))},
    definitions=(("libvictim.so", 1, 1), ("V1", 3, 0), ("V2", 4, 0)),
    build_id=b"12345678",
    interpreter="/lib/ld.so",
    tls=(0, 8, 8),
    stack=6,
    relocations=(1, 2, 3),
)


def _ask_everything(path: str) -> int:
    """Every question that the reader answers; the number of symbols it spoke of."""
    image = read_image(path)
    table = image.symbols
    count = sum(1 for _ in table) + sum(1 for _ in table.exports()) + sum(1 for _ in table.imports())
    for name in ("export_3", "import_3", "nothing"):
        count += len(table.exported(name)) + (table.imported(name) is not None)
    count += len(table.private(("export_3", "import_3")))
    return count + (table.unseen is not None)


@contextmanager
def _little_time_and_memory() -> Iterator[None]:
    """Fail when the block runs for long or holds more than 64 MiB at once."""

    def stop(*_: object) -> None:
        raise AssertionError(f"not done after {_ALARM_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_ALARM_SECONDS)
    # Not tracemalloc: it makes a million small integers take thirty times as long.
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the largest resident size (man 5 proc)
    resident = _read_status("VmRSS")
    try:
        yield
        assert _read_status("VmHWM") - resident < _MEMORY_LIMIT
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _read_status(field: str) -> int:
    """A size in /proc/self/status, in bytes."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def _write(folder: Path, data: bytes | bytearray) -> str:
    path = folder / "hostile.so"
    path.write_bytes(data)
    return str(path)


# ---------------------------------------------------------------- one number at a time


def _word(built: Built) -> str:
    return "Q" if built.plan.bits == 64 else "I"


def _dynamic(tag: str, value: int) -> Callable[[Built], None]:
    return lambda built: built.patch(built.find_dynamic(tag), _word(built), value)


def _table(name: str, at: int, text: str, *values: int) -> Callable[[Built], None]:
    return lambda built: built.patch(built.at[name] + at, text, *values)


def _segment(name: str, wide_at: int, narrow_at: int, value: int) -> Callable[[Built], None]:
    def damage(built: Built) -> None:
        wide = built.plan.bits == 64
        built.patch(built.find_segment(name) + (wide_at if wide else narrow_at), _word(built), value)

    return damage


def _without_null(built: Built) -> None:
    end = built.at["dynamic"] + built.sizes["dynamic"] - built.plan.bits // 4
    built.patch(end, _word(built), 0x6000_0000)


def _without_nul(built: Built) -> None:
    at = built.at["strtab"]
    size = built.sizes["strtab"]
    built.data[at + 1 : at + size] = built.data[at + 1 : at + size].replace(b"\0", b"x")


def _looping_sysv_chain(built: Built) -> None:
    count = 2 + len(_SYMBOLS) // 2
    built.patch(built.at["hash"] + 8, f"{count - 2}I", *[1] * (count - 2))
    built.patch(built.at["hash"] + 4 * count, f"{len(_SYMBOLS) + 1}I", *[1] * (len(_SYMBOLS) + 1))
    _hide_gnu_hash(built)


def _hide_gnu_hash(built: Built) -> None:
    built.patch(built.find_dynamic("GNU_HASH") - built.plan.bits // 8, _word(built), 0x6FFFFEF0)


def _hide_sysv_hash(built: Built) -> None:
    built.patch(built.find_dynamic("HASH") - built.plan.bits // 8, _word(built), 0x6FFFFEF0)


def _runaway_gnu_chain(built: Built) -> None:
    """Chains without an end run into the tables behind them."""
    _hide_sysv_hash(built)
    chains = built.at["gnu_hash"] + 16 + 2 * built.plan.bits // 8 + 4 * (len(_SYMBOLS) // 2)
    built.data[chains : built.at["hash"]] = bytes(built.at["hash"] - chains)


def _late_gnu_start(built: Built) -> None:
    _hide_sysv_hash(built)
    built.patch(built.at["gnu_hash"] + 4, "I", 0xFFFF)


def _endless_segments(built: Built) -> None:
    """Where e_phnum says to look, section header 0 has the most that its field can hold."""
    wide = built.plan.bits == 64
    section_at = int.from_bytes(built.data[40:48] if wide else built.data[32:36], built.plan.order)  # type: ignore[arg-type]
    built.patch(56 if wide else 44, "H", 0xFFFF)
    built.patch(section_at + (44 if wide else 28), "I", 0xFFFF_FFFF)


_DAMAGE: dict[str, tuple[Callable[[Built], None], str]] = {
    "class": (lambda built: built.patch(4, "B", 3), "EI_CLASS is 3"),
    "byte order": (lambda built: built.patch(5, "B", 0), "EI_DATA is 0"),
    "ident version": (lambda built: built.patch(6, "B", 9), "EI_VERSION is 9"),
    "version": (lambda built: built.patch(20, "I", 7), "e_version is 7"),
    "segment size": (lambda built: built.patch(54 if built.plan.bits == 64 else 42, "H", 1), "e_phentsize is 1"),
    "segment table": (
        lambda built: built.patch(32 if built.plan.bits == 64 else 28, _word(built), 0xFFFF_F000),
        "program headers",
    ),
    "extended count": (_endless_segments, "PN_XNUM"),
    "load past the end": (_segment("LOAD", 32, 16, 0x7FFF_FFFF), "PT_LOAD segment 0 ends at byte 0x7fffffff"),
    "dynamic nowhere": (_segment("DYNAMIC", 16, 8, 0xDEAD_0000), "PT_DYNAMIC is at address 0xdead0000"),
    "dynamic empty": (_segment("DYNAMIC", 32, 16, 0), "PT_DYNAMIC"),
    "no DT_NULL": (_without_null, "no DT_NULL"),
    "interpreter long": (_segment("INTERP", 32, 16, 0x10_0000), "PT_INTERP has 1048576 bytes"),
    "interpreter open": (_segment("INTERP", 32, 16, 3), "PT_INTERP has no terminating NUL"),
    "strings nowhere": (_dynamic("STRTAB", 0x7FFF_0000), r"DT_STRTAB\) is at address 0x7fff0000"),
    "strings long": (_dynamic("STRSZ", 0x7FFF_FFFF), "DT_STRSZ is 0x7fffffff"),
    "needed past": (_dynamic("NEEDED", 0x00FF_FFFF), "DT_NEEDED: offset 0xffffff is past"),
    "no NUL": (_without_nul, "has no terminating NUL"),
    "symbols nowhere": (_dynamic("SYMTAB", 1), r"DT_SYMTAB\) is at address 0x1"),
    "symbol size": (_dynamic("SYMENT", 17), "DT_SYMENT is 17"),
    "symbol name": (_table("symtab", 24 + 24, "I", 0x7FFF_FFFF), "offset"),
    "sysv buckets": (_table("hash", 0, "I", 0xFFFF_FFFF), "DT_HASH has 4294967295 buckets"),
    "sysv chains": (_table("hash", 4, "I", 0xFFFF_FFFF), "DT_HASH has 4294967295 chain words"),
    "sysv chains past": (_table("hash", 4, "I", 0x000F_0000), "more than its segment holds"),
    "sysv loop": (_looping_sysv_chain, "a chain of DT_HASH loops"),
    "gnu buckets": (_table("gnu_hash", 0, "I", 0xFFFF_FFFF), "DT_GNU_HASH has 4294967295 buckets"),
    "gnu filter 0": (_table("gnu_hash", 8, "I", 0), "DT_GNU_HASH has 0 Bloom filter words"),
    "gnu filter odd": (_table("gnu_hash", 8, "I", 3), "DT_GNU_HASH has 3 Bloom filter words"),
    "gnu filter past": (_table("gnu_hash", 8, "I", 0x4000_0000), "DT_GNU_HASH has 0x"),
    "gnu first": (_late_gnu_start, "its first symbol is 65535"),
    "gnu runaway": (_runaway_gnu_chain, "dynamic symbols|DT_GNU_HASH|a symbol's name"),
    "need revision": (_table("verneed", 0, "H", 2), "DT_VERNEED has a record of revision 2"),
    "need loop": (_table("verneed", 12, "I", 1), "DT_VERNEED"),
    "need past": (_table("verneed", 12, "I", 0xFFFF_FFF0), "DT_VERNEED: bytes"),
    "need file": (_table("verneed", 4, "I", 0xFFFF_FFF0), "a file name in DT_VERNEED: offset"),
    "definition past": (_table("verdef", 16, "I", 0xFFFF_FFF0), "DT_VERDEF: bytes"),
    "definition revision": (_table("verdef", 0, "H", 0), "DT_VERDEF has a record of revision 0"),
    "version index": (_table("versym", 2, "H", 99), "symbol 1 version index 99"),
    "version table nowhere": (_dynamic("VERSYM", 3), "DT_VERSYM is at address 0x3"),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout[0]}-{layout[1]}")
@pytest.mark.parametrize("name", _DAMAGE)
def test_one_wrong_number_is_one_clear_error(tmp_path: Path, name: str, layout: tuple[int, str, int]) -> None:
    damage, words = _DAMAGE[name]
    built = build(replace(_PLAN, bits=layout[0], order=layout[1], machine=layout[2]))
    damage(built)
    path = _write(tmp_path, built.data)
    with _little_time_and_memory(), pytest.raises(MalformedElfError) as caught:
        _ask_everything(path)
    assert str(caught.value).startswith(f"{path}: malformed ELF: ")
    assert "\n" not in str(caught.value)
    assert re.search(words, caught.value.reason), caught.value.reason


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout[0]}-{layout[1]}")
def test_a_file_cut_off_anywhere_is_malformed(tmp_path: Path, layout: tuple[int, str, int]) -> None:
    built = build(replace(_PLAN, bits=layout[0], order=layout[1], machine=layout[2], sections=False))
    for length in range(4, len(built.data)):
        path = _write(tmp_path, built.data[:length])
        with pytest.raises(MalformedElfError):
            read_image(path)
    assert _ask_everything(_write(tmp_path, built.data))


# ---------------------------------------------------------------- big lies in sparse files


def _write_sparse(folder: Path, built: Built, size: int) -> str:
    """`built` stretched by zeros to `size` bytes, all of them in its PT_LOAD."""
    wide = built.plan.bits == 64
    built.patch(built.find_segment("LOAD") + (32 if wide else 16), _word(built) * 2, size, size)
    path = Path(_write(folder, built.data))
    with path.open("r+b") as stream:
        stream.truncate(size)
    return str(path)


def test_a_million_undefined_symbols_take_no_memory(tmp_path: Path) -> None:
    built = build(replace(_PLAN, needs={}, definitions=(), sections=False))
    count = (1 << 20) - 1
    place = len(built.data) + (-len(built.data) % 4096)
    built.patch(built.find_dynamic("HASH"), "Q", 0x10000 + place)
    _hide_gnu_hash(built)
    size = place + 8 + 4 + 4 * count + (24 << 20)
    built.patch(built.find_dynamic("SYMTAB"), "Q", 0x10000 + size - 24 * count - 24)
    built.data += bytes(place + 12 - len(built.data))
    built.patch(place, "II", 1, count)
    path = _write_sparse(tmp_path, built, size)
    table = read_image(path).symbols
    with _little_time_and_memory():
        assert table.imported("export_1") is None
        assert list(table.imports()) == []


def _write_many_imports(folder: Path, names: bytes, places: Iterable[int]) -> str:
    """A file whose string table is `names` and that imports what stands at each of `places`."""
    built = build(Plan(symbols=(Sym("a", defined=False, value=0), Sym("b")), hashes=("sysv",), sections=False))
    symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", place, 0x12, 0, 0, 0, 0) for place in places)
    count = len(symbols) // 24
    at = {}
    for tag, table in (
        ("HASH", struct.pack("<III", 1, count, 0) + bytes(4 * count)),
        ("SYMTAB", symbols),
        ("STRTAB", names),
    ):
        built.data += bytes(-len(built.data) % 8)
        at[tag] = len(built.data)
        built.data += table
    for tag, place in at.items():
        built.patch(built.find_dynamic(tag), "Q", 0x10000 + place)
    built.patch(built.find_dynamic("STRSZ"), "Q", len(names))
    built.patch(built.find_segment("LOAD") + 32, "QQ", len(built.data), len(built.data))
    return _write(folder, built.data)


def test_a_million_names_are_not_read_to_find_one(tmp_path: Path) -> None:
    start, count = b"_ZN10executorch9extension4cuda", (1 << 20) - 1
    length = len(start) + 11
    names = b"\0" + b"".join(b"%s%08dEv\0" % (start, number) for number in range(count))
    path = _write_many_imports(tmp_path, names, range(1, 1 + count * length, length))

    def name_of(number: int) -> str:
        return f"{start.decode()}{number:08}Ev"

    table = read_image(path).symbols
    before = time.process_time()
    with _little_time_and_memory():
        for number in (0, count // 2, count - 1):
            assert table.imported(name_of(number)) is not None
        for number in range(count, count + 5):
            assert table.imported(name_of(number)) is None
        assert table.imported(name_of(7)[1:]) is None  # it stands at the end of a name that is imported
        assert table.imported("") is None
    assert time.process_time() - before < 1.0


def test_a_name_that_ends_another_is_found_where_it_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linkers let a name be the end of a longer one; the places are told apart by who leads there."""
    monkeypatch.setattr("linkcheck.elf.import_index.MAX_INDEXED_IMPORTS", 0)
    table = read_image(_write_many_imports(tmp_path, b"\0put_get\0get_put\0", (1, 5))).symbols
    assert [name for name in ("put_get", "get", "get_put", "put", "t") if table.imported(name)] == ["put_get", "get"]


def test_a_name_that_stands_everywhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkcheck.elf.import_index.MAX_INDEXED_IMPORTS", 0)
    path = _write_many_imports(tmp_path, b"\0" + b"wanted\0" * (300 << 10) + b"x\0", (1, 1 + 7 * (300 << 10)))
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="one name stands more than 262144 times"):
        read_image(path).symbols.imported("wanted")


def test_a_string_table_of_a_gigabyte_is_refused(tmp_path: Path) -> None:
    built = build(replace(_PLAN, sections=False))
    built.patch(built.find_dynamic("STRSZ"), "Q", 1 << 29)
    path = _write_sparse(tmp_path, built, 1 << 30)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="more than 268435456 are not read"):
        read_image(path)


def test_a_million_symbols_and_one_more_are_refused(tmp_path: Path) -> None:
    built = build(replace(_PLAN, sections=False))
    _hide_gnu_hash(built)
    built.patch(built.at["hash"] + 4, "I", (1 << 20) + 1)
    path = _write_sparse(tmp_path, built, 1 << 30)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="1048577 chain words"):
        read_image(path).symbols.imported("x")


def test_a_billion_buckets_are_refused(tmp_path: Path) -> None:
    built = build(replace(_PLAN, sections=False, hashes=("gnu",)))
    built.patch(built.at["gnu_hash"], "I", 1 << 28)
    path = _write_sparse(tmp_path, built, 2 << 30)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="more than 4194304 are not read"):
        read_image(path).symbols.imported("x")


def test_a_name_of_megabytes_is_refused(tmp_path: Path) -> None:
    built = build(replace(_PLAN, sections=False))
    place = len(built.data)
    built.data += b"n" * (3 << 20)
    built.patch(built.find_dynamic("STRTAB"), "Q", 0x10000 + place)
    built.patch(built.find_dynamic("STRSZ"), "Q", (3 << 20) + 100)
    path = _write_sparse(tmp_path, built, place + (3 << 20) + 100)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="longer than 1048576 bytes"):
        read_image(path)


def test_names_that_overlap_use_up_a_budget(tmp_path: Path) -> None:
    """A table of n bytes can spell n * n / 2 bytes of names."""
    symbols = tuple(Sym("x", defined=False, value=0) for _ in range(3000))
    built = build(Plan(symbols=symbols, hashes=("sysv",), sections=False))
    place = len(built.data)
    length = 900_000
    built.data += b"n" * length + b"\0"
    for number in range(1, 3001):
        built.patch(built.at["symtab"] + 24 * number, "I", number)
    built.patch(built.find_dynamic("STRTAB"), "Q", 0x10000 + place)
    built.patch(built.find_dynamic("STRSZ"), "Q", length + 1)
    path = _write_sparse(tmp_path, built, len(built.data))
    table = read_image(path).symbols
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="its names take more than"):
        sum(1 for _ in table.imports())
    with _little_time_and_memory():  # one name is found without spelling out the others
        assert table.imported("n" * 20) is None
        assert table.imported("n" * (length + 1 - 2000)) is not None


def test_needed_names_use_up_a_budget(tmp_path: Path) -> None:
    built = build(Plan(needed=tuple(f"lib{number}.so" for number in range(200)), sections=False))
    place = len(built.data)
    built.data += b"n" * 900_000 + b"\0"
    for number in range(200):
        built.patch(built.at["dynamic"] + 16 * number + 8, "Q", number + 1)
    built.patch(built.find_dynamic("STRTAB"), "Q", 0x10000 + place)
    built.patch(built.find_dynamic("STRSZ"), "Q", 900_001)
    path = _write_sparse(tmp_path, built, len(built.data))
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="take more than 1048576 bytes"):
        read_image(path)


def test_a_chain_of_one_hash_is_bounded(tmp_path: Path) -> None:
    """Every entry of a long chain has the wanted hash, so that each costs a look at the symbol."""
    from tests.elf.builder import hash_gnu

    built = build(Plan(symbols=(Sym("given"),), sections=False))
    place = len(built.data) + (-len(built.data) % 8)
    built.data += bytes(place - len(built.data))
    wanted = hash_gnu("wanted") & ~1
    head = (1, 1, 1, 0, 0xFFFF_FFFF, 0xFFFF_FFFF, 1)
    built.data += bytes(28 + 4 * 60_000)
    built.patch(place, "7I", *head)
    built.patch(place + 28, "60000I", *[wanted] * 60_000)
    built.patch(built.find_dynamic("GNU_HASH"), "Q", 0x10000 + place)
    path = _write_sparse(tmp_path, built, len(built.data) + (2 << 20))
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="symbols of one hash"):
        read_image(path).symbols.exported("wanted")
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="DT_GNU_HASH"):
        list(read_image(path).symbols)


def test_version_records_that_step_by_one_byte_are_bounded(tmp_path: Path) -> None:
    """Every byte starts a record: a megabyte of ones would be a million of them."""
    built = build(replace(_PLAN, sections=False))
    place = len(built.data)
    built.data += b"\1\0\0\0" * (1 << 18)
    built.patch(built.find_dynamic("VERNEED"), "Q", 0x10000 + place)
    path = _write_sparse(tmp_path, built, len(built.data) + 4096)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="DT_VERNEED"):
        read_image(path)


def test_a_dynamic_section_of_a_gigabyte_is_bounded(tmp_path: Path) -> None:
    built = build(replace(_PLAN, sections=False))
    place = len(built.data)
    built.data += (b"\x11\x11\0\x60" + bytes(12)) * 40_000
    header = built.find_segment("DYNAMIC")
    built.patch(header + 16, "Q", 0x10000 + place)
    built.patch(header + 32, "Q", 1 << 30)
    path = _write_sparse(tmp_path, built, 1 << 30)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match="no DT_NULL among its first 32768"):
        read_image(path)


@pytest.mark.parametrize(("kept", "words"), [(1, "segments to follow"), (0x1234, "PT_LOAD")])
def test_as_many_program_headers_as_there_can_be_are_bounded(tmp_path: Path, kept: int, words: str) -> None:
    built = build(replace(_PLAN, sections=True))
    place = len(built.data)
    built.data += bytes(56) * 65_534
    for number in range(65_534):
        built.patch(place + 56 * number, "I", kept)
    built.patch(32, "Q", place)
    built.patch(56, "H", 65_534)
    path = _write(tmp_path, built.data)
    with _little_time_and_memory(), pytest.raises(MalformedElfError, match=words):
        read_image(path)


# ---------------------------------------------------------------- many small lies at random


def _mutate(chance: random.Random, data: bytearray) -> None:
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at : at + 4] = chance.choice((b"\xff" * 4, bytes(4), b"\0\0\0\x80", b"\x7f\xff\xff\xff", b"\1\0\0\0"))
        elif kind == 2:
            data[at : at + 8] = chance.choice((b"\xff" * 8, bytes(8), b"\0\0\0\x40" + bytes(4)))
        else:
            other = chance.randrange(len(data))
            data[at : at + 8] = data[other : other + 8]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout[0]}-{layout[1]}")
def test_random_damage_gives_facts_or_our_error(tmp_path: Path, layout: tuple[int, str, int]) -> None:
    plan = replace(_PLAN, bits=layout[0], order=layout[1], machine=layout[2])
    healthy = [build(replace(plan, hashes=hashes)).data for hashes in (("gnu", "sysv"), ("gnu",), ("sysv",), ())]
    chance = random.Random(_SEED)
    refused = 0
    with _little_time_and_memory():
        for _ in range(_MUTATIONS):
            data = bytearray(chance.choice(healthy))
            _mutate(chance, data)
            path = _write(tmp_path, data)
            signal.alarm(_ALARM_SECONDS)
            try:
                _ask_everything(path)
            except LinkcheckError as error:
                refused += 1
                assert str(error).startswith(path)
                assert "\n" not in str(error)
    # Both ways out are taken, or the mutations prove nothing.
    assert _MUTATIONS // 10 < refused < _MUTATIONS * 9 // 10
