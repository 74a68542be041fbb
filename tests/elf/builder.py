"""Writes tiny ELF files of either class and byte order, table by table, for tests; it is no linker.

Independent of the reader on purpose: its formats and hashes are its own, and readelf, pyelftools and LIEF judge what
it writes (test_reader.py). `Built.at` tells where each table went, so that a test can damage exactly one number.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

BASE = 0x10000  # addresses are file offsets plus this, so that mixing them up shows

_PT = {"LOAD": 1, "DYNAMIC": 2, "INTERP": 3, "NOTE": 4, "TLS": 7, "GNU_STACK": 0x6474E551}
_DT = {
    "NEEDED": 1,
    "HASH": 4,
    "STRTAB": 5,
    "SYMTAB": 6,
    "RELA": 7,
    "RELASZ": 8,
    "RELAENT": 9,
    "STRSZ": 10,
    "SYMENT": 11,
    "SONAME": 14,
    "RPATH": 15,
    "RUNPATH": 29,
    "FLAGS": 30,
    "GNU_HASH": 0x6FFFFEF5,
    "VERSYM": 0x6FFFFFF0,
    "FLAGS_1": 0x6FFFFFFB,
    "VERDEF": 0x6FFFFFFC,
    "VERDEFNUM": 0x6FFFFFFD,
    "VERNEED": 0x6FFFFFFE,
    "VERNEEDNUM": 0x6FFFFFFF,
}
#: Section type and entry size of the tables that get a section header.
_SHT = {
    "note": 7,
    "gnu_hash": 0x6FFFFFF6,
    "hash": 5,
    "symtab": 11,
    "strtab": 3,
    "versym": 0x6FFFFFFF,
    "verneed": 0x6FFFFFFE,
    "verdef": 0x6FFFFFFD,
    "rela": 4,
    "dynamic": 6,
}


@dataclass(frozen=True)
class Sym:
    """One dynamic symbol; `version` is its DT_VERSYM half-word."""

    name: str
    defined: bool = True
    binding: int = 1
    type: int = 2
    visibility: int = 0
    value: int = 0x11000
    size: int = 8
    version: int = 1
    section: int = 5

    @property
    def index(self) -> int:
        return self.section if self.defined else 0


@dataclass(frozen=True)
class Plan:
    """What to write. Undefined symbols go first; defined ones are put in the order that DT_GNU_HASH wants."""

    bits: int = 64
    order: str = "little"
    machine: int = 62
    type: int = 3
    symbols: tuple[Sym, ...] = ()
    needed: tuple[str, ...] = ()
    soname: str | None = None
    rpath: str | None = None
    runpath: str | None = None
    flags: int | None = None
    flags_1: int | None = None
    hashes: tuple[str, ...] = ("gnu",)  # "gnu", "sysv", both or none
    #: library -> (version name, index, flags)
    needs: dict[str, tuple[tuple[str, int, int], ...]] = field(default_factory=dict)
    #: (version name, index, flags)
    definitions: tuple[tuple[str, int, int], ...] = ()
    interpreter: str | None = None
    build_id: bytes | None = None
    tls: tuple[int, int, int] | None = None
    stack: int | None = None
    #: Symbol indices that relocations name.
    relocations: tuple[int, ...] = ()
    sections: bool = True
    dynamic: bool = True
    #: Bytes between the symbol table and what follows it.
    gap: bytes = b""


@dataclass
class Built:
    """The file, and the offset of each of its tables."""

    data: bytearray
    at: dict[str, int]
    sizes: dict[str, int]
    plan: Plan

    def patch(self, where: int, text: str, *values: int) -> None:
        """Overwrite numbers at `where`."""
        struct.pack_into(_prefix(self.plan) + text, self.data, where, *values)

    def find_dynamic(self, tag: str) -> int:
        """Offset of the value of a dynamic entry."""
        step = self.plan.bits // 8
        word = "Q" if step == 8 else "I"
        at = self.at["dynamic"]
        while True:
            number, _ = struct.unpack_from(_prefix(self.plan) + word * 2, self.data, at)
            if number == _DT[tag]:
                return at + step
            assert number, f"no DT_{tag}"
            at += 2 * step

    def find_segment(self, name: str) -> int:
        """Offset of a program header."""
        size = 56 if self.plan.bits == 64 else 32
        at = 64 if self.plan.bits == 64 else 52
        while struct.unpack_from(_prefix(self.plan) + "I", self.data, at)[0] != _PT[name]:
            at += size
        return at


def _prefix(plan: Plan) -> str:
    return "<" if plan.order == "little" else ">"


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        raw = text.encode("utf-8", "surrogateescape") + b"\0"
        at = self.data.find(b"\0" + raw)
        if at < 0:
            self.data += raw
            return len(self.data) - len(raw)
        return at + 1


def build(plan: Plan) -> Built:
    """Write the file of `plan`."""
    pack = _Packer(plan)
    strings = _Strings()
    symbols = _sort_for_gnu_hash(plan)
    tables: dict[str, bytes] = {}
    if plan.interpreter is not None:
        tables["interp"] = plan.interpreter.encode() + b"\0"
    if plan.build_id is not None:
        tables["note"] = pack("III", 4, len(plan.build_id), 3) + b"GNU\0" + plan.build_id
    entries: list[tuple[str, int | str]] = []
    if plan.dynamic:
        for tag, names in (("NEEDED", plan.needed), ("SONAME", (plan.soname,))):
            entries += [(tag, strings.add(name)) for name in names if name is not None]
        for tag, name in (("RPATH", plan.rpath), ("RUNPATH", plan.runpath)):
            if name is not None:
                entries.append((tag, strings.add(name)))
        for tag, value in (("FLAGS", plan.flags), ("FLAGS_1", plan.flags_1)):
            if value is not None:
                entries.append((tag, value))
        raw_symbols = [pack.symbol(Sym("", False, 0, 0, 0, 0, 0), 0)]
        raw_symbols += [pack.symbol(symbol, strings.add(symbol.name)) for symbol in symbols]
        if "gnu" in plan.hashes:
            tables["gnu_hash"] = pack.gnu_hash(symbols)
            entries.append(("GNU_HASH", "gnu_hash"))
        if "sysv" in plan.hashes:
            tables["hash"] = pack.sysv_hash(symbols)
            entries.append(("HASH", "hash"))
        tables["symtab"] = b"".join(raw_symbols)
        if plan.gap:
            tables["gap"] = plan.gap
        tables["strtab"] = b""  # filled below, when every name is known
        if plan.needs or plan.definitions:
            tables["versym"] = pack(f"{len(symbols) + 1}H", 0, *[symbol.version for symbol in symbols])
            entries.append(("VERSYM", "versym"))
        if plan.needs:
            tables["verneed"] = pack.needs(strings)
            entries += [("VERNEED", "verneed"), ("VERNEEDNUM", len(plan.needs))]
        if plan.definitions:
            tables["verdef"] = pack.definitions(strings)
            entries += [("VERDEF", "verdef"), ("VERDEFNUM", len(plan.definitions))]
        if plan.relocations:
            tables["rela"] = b"".join(pack.relocation(index) for index in plan.relocations)
            entries += [("RELA", "rela"), ("RELASZ", len(tables["rela"])), ("RELAENT", 24 if plan.bits == 64 else 12)]
        tables["strtab"] = bytes(strings.data)
        entries += [("SYMTAB", "symtab"), ("SYMENT", 24 if plan.bits == 64 else 16)]
        entries += [("STRTAB", "strtab"), ("STRSZ", len(strings.data))]
        tables["dynamic"] = bytes((len(entries) + 1) * plan.bits // 4)
    return _assemble(plan, pack, tables, entries)


def _assemble(plan: Plan, pack: _Packer, tables: dict[str, bytes], entries: list[tuple[str, int | str]]) -> Built:
    segments = ["LOAD"] + ["DYNAMIC"] * plan.dynamic + ["INTERP"] * (plan.interpreter is not None)
    segments += ["NOTE"] * (plan.build_id is not None) + ["TLS"] * (plan.tls is not None)
    segments += ["GNU_STACK"] * (plan.stack is not None)
    header_size, segment_size = (64, 56) if plan.bits == 64 else (52, 32)
    data = bytearray(header_size + segment_size * len(segments))
    at: dict[str, int] = {}
    for name, raw in tables.items():
        # Every table on a multiple of 8, but the string table right behind the symbols, as ld puts it.
        data += bytes(-len(data) % (1 if name in ("strtab", "gap") else 8))
        at[name] = len(data)
        data += raw
    sizes = {name: len(raw) for name, raw in tables.items()}
    word = "Q" if plan.bits == 64 else "I"
    if plan.dynamic:
        place = at["dynamic"]
        for tag, value in entries:
            number = BASE + at[value] if isinstance(value, str) else value
            data[place : place + plan.bits // 4] = pack(word * 2, _DT[tag], number)
            place += plan.bits // 4
    covered = len(data)
    for number, name in enumerate(segments):
        place = header_size + segment_size * number
        data[place : place + segment_size] = pack.segment(name, at, sizes, covered)
    section_at = 0
    if plan.sections:
        data += bytes(-len(data) % 8)
        section_at = len(data)
        data += pack.sections(at, sizes, section_at)
    count = 2 + sum(name in _SHT for name in at) if plan.sections else 0
    data[:header_size] = pack.header(len(segments), section_at, count)
    return Built(data, at, sizes, plan)


class _Packer:
    """Packs the records of one class and byte order."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.wide = plan.bits == 64

    def __call__(self, text: str, *values: int) -> bytes:
        return struct.pack(_prefix(self.plan) + text, *values)

    def header(self, segment_count: int, section_at: int, section_count: int) -> bytes:
        ident = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if self.plan.order == "little" else 2, 1]) + bytes(9)
        size, segment_size, section_size = (64, 56, 64) if self.wide else (52, 32, 40)
        numbers = (self.plan.type, self.plan.machine, 1, BASE, size, section_at, 0)
        counts = (size, segment_size, segment_count, section_size, section_count, max(section_count - 1, 0))
        return ident + self("HHIQQQI6H" if self.wide else "HHIIIII6H", *numbers, *counts)

    def segment(self, name: str, at: dict[str, int], sizes: dict[str, int], covered: int) -> bytes:
        offset, size, memory, flags, alignment = 0, 0, 0, 6, 8
        if name == "LOAD":
            size, memory, flags, alignment = covered, covered + 0x2000, 7, 0x1000
        elif name == "TLS":
            assert self.plan.tls is not None
            size, memory, alignment = self.plan.tls
        elif name == "GNU_STACK":
            flags = self.plan.stack or 0
        else:
            table = {"DYNAMIC": "dynamic", "INTERP": "interp", "NOTE": "note"}[name]
            offset, size = at[table], sizes[table]
            memory, alignment = size, 4 if name == "NOTE" else 8
        address = BASE + offset
        if self.wide:
            return self("IIQQQQQQ", _PT[name], flags, offset, address, address, size, memory, alignment)
        return self("IIIIIIII", _PT[name], offset, address, address, size, memory, flags, alignment)

    def sections(self, at: dict[str, int], sizes: dict[str, int], here: int) -> bytes:
        """The section headers for file offset `here`, with the names of the sections behind them."""
        names = [name for name in at if name in _SHT]
        strings = _Strings()
        place_of = {name: number for number, name in enumerate(names, 1)}
        text = "IIQQQQIIQQ" if self.wide else "I" * 10
        entry_sizes = (
            {"symtab": 24, "dynamic": 16, "rela": 24} if self.wide else {"symtab": 16, "dynamic": 8, "rela": 12}
        )
        entry_sizes.update({"versym": 2, "hash": 4})
        links = {"symtab": "strtab", "dynamic": "strtab", "verneed": "strtab", "verdef": "strtab"}
        links.update({"versym": "symtab", "hash": "symtab", "gnu_hash": "symtab", "rela": "symtab"})
        infos = {"verneed": len(self.plan.needs), "verdef": len(self.plan.definitions), "symtab": 1}
        raw = self(text, *[0] * 10)
        for name in names:
            link = place_of.get(links.get(name, ""), 0)
            raw += self(
                text,
                *(strings.add("." + name), _SHT[name], 2, BASE + at[name], at[name], sizes[name]),
                *(link, infos.get(name, 0), 4 if name == "note" else 8, entry_sizes.get(name, 0)),
            )
        name_at = strings.add(".shstrtab")
        here += len(raw) + (64 if self.wide else 40)
        raw += self(text, name_at, 3, 0, 0, here, len(strings.data), 0, 0, 1, 0)
        return raw + bytes(strings.data)

    def symbol(self, symbol: Sym, name: int) -> bytes:
        info = symbol.binding << 4 | symbol.type
        value = symbol.value
        if self.wide:
            return self("IBBHQQ", name, info, symbol.visibility, symbol.index, value, symbol.size)
        return self("IIIBBH", name, value, symbol.size, info, symbol.visibility, symbol.index)

    def relocation(self, symbol: int) -> bytes:
        if self.wide:
            return self("QQq", BASE, symbol << 32 | 6, 0)
        return self("IIi", BASE, symbol << 8 | 6, 0)

    def gnu_hash(self, symbols: list[Sym]) -> bytes:
        hashed = [symbol for symbol in symbols if symbol.defined]
        first = len(symbols) - len(hashed) + 1 if hashed else 1
        count = _count_buckets(symbols)
        bits, shift, words = self.plan.bits, 6, 2
        filter_ = [0] * words
        buckets = [0] * count
        chains = []
        for number, symbol in enumerate(hashed, first):
            value = hash_gnu(symbol.name)
            filter_[value // bits % words] |= 1 << value % bits | 1 << (value >> shift) % bits
            buckets[value % count] = buckets[value % count] or number
            following = hashed[number - first + 1] if number - first + 1 < len(hashed) else None
            ends = following is None or hash_gnu(following.name) % count != value % count
            chains.append(value & ~1 | ends)
        raw = self("IIII", count, first, words, shift) + self(f"{words}{'Q' if self.wide else 'I'}", *filter_)
        return raw + self(f"{count}I", *buckets) + self(f"{len(chains)}I", *chains)

    def sysv_hash(self, symbols: list[Sym]) -> bytes:
        count = _count_buckets(symbols)
        buckets, chains = [0] * count, [0] * (len(symbols) + 1)
        for number, symbol in enumerate(symbols, 1):
            slot = hash_sysv(symbol.name) % count
            chains[number], buckets[slot] = buckets[slot], number
        return self("II", count, len(chains)) + self(f"{count}I", *buckets) + self(f"{len(chains)}I", *chains)

    def needs(self, strings: _Strings) -> bytes:
        raw = b""
        for number, (library, versions) in enumerate(self.plan.needs.items(), 1):
            following = 0 if number == len(self.plan.needs) else 16 + 16 * len(versions)
            raw += self("HHIII", 1, len(versions), strings.add(library), 16, following)
            for place, (name, index, flags) in enumerate(versions, 1):
                step = 0 if place == len(versions) else 16
                raw += self("IHHII", hash_sysv(name), flags, index, strings.add(name), step)
        return raw

    def definitions(self, strings: _Strings) -> bytes:
        raw = b""
        for number, (name, index, flags) in enumerate(self.plan.definitions, 1):
            following = 0 if number == len(self.plan.definitions) else 28
            raw += self("HHHHIII", 1, flags, index, 1, hash_sysv(name), 20, following)
            raw += self("II", strings.add(name), 0)
        return raw


def _count_buckets(symbols: list[Sym]) -> int:
    return max(1, len(symbols) // 2)


def _sort_for_gnu_hash(plan: Plan) -> list[Sym]:
    """Undefined symbols, then the defined ones by bucket."""
    count = _count_buckets(list(plan.symbols))
    return sorted(plan.symbols, key=lambda s: (s.defined, hash_gnu(s.name) % count if s.defined else 0))


def hash_gnu(name: str) -> int:
    """Bernstein's hash, modulo 2 ** 32."""
    value = 5381
    for byte in name.encode("utf-8", "surrogateescape"):
        value = ((value << 5) + value + byte) % 2**32
    return value


def hash_sysv(name: str) -> int:
    """The hash of the gABI, as its text spells it."""
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = ((value << 4) + byte) % 2**32
        high = value & 0xF0000000
        if high:
            value ^= high >> 24
        value &= ~high
    return value


#: Every class and byte order, with machines that are built that way.
LAYOUTS = ((64, "little", 62), (64, "big", 21), (32, "little", 40), (32, "big", 20))
