"""Compares what our reader says about ELF files with what pyelftools and LIEF say; not a judgement of any file.

Run over whole directories: `python -m tests.elf.agreement /usr/lib DIR...` (two processes; exit status 1 when they
disagree). test_agreement.py runs it over a seeded sample.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkcheck.elf.reader import read_image
from linkcheck.errors import LinkcheckError, NotAnImageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from linkcheck.model import Symbol, SymbolVersion

_IMAGE_TYPES = (b"\x02\x00", b"\x03\x00", b"\x00\x02", b"\x00\x03")  # e_type ET_EXEC, ET_DYN in both byte orders


@dataclass(frozen=True, slots=True)
class SymbolFact:
    """One dynamic symbol, as every judge can tell it; version is "NAME", or "" for an unversioned one."""

    name: str
    binding: int
    type: int
    visibility: int
    defined: bool
    version: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What is compared; None where the judge cannot see it."""

    needed: tuple[str, ...]
    soname: str | None
    rpath: str | None
    runpath: str | None
    flags: int
    flags_1: int
    symbols: tuple[SymbolFact, ...] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one file came out: `differences` is empty when everybody agrees."""

    path: str
    symbols: int
    differences: tuple[str, ...]
    refused: bool = False


# ---------------------------------------------------------------- ours


def read_ours(path: str) -> Facts:
    """Our reader's view."""
    image = read_image(path)
    symbols = tuple(image.symbols)
    assert image.symbols.unseen is None, image.symbols.unseen
    return Facts(
        image.needed,
        image.soname,
        image.rpath,
        image.runpath,
        image.flags,
        image.flags_1,
        tuple(_state_ours(symbol) for symbol in symbols),
    )


def _state_ours(symbol: Symbol) -> SymbolFact:
    version = symbol.version
    return SymbolFact(
        symbol.name,
        int(symbol.binding),
        int(symbol.type),
        int(symbol.visibility),
        symbol.defined,
        version.name if version else "",
        version.hidden if version else False,
    )


def find_contradictions(path: str) -> Iterator[str]:
    """Where our reader contradicts itself: what a pass over the table says against what a look-up by name says."""
    table = read_image(path).symbols
    exports: dict[str, list[Symbol]] = {}
    for symbol in table.exports():
        exports.setdefault(symbol.name, []).append(symbol)
    for name, symbols in exports.items():
        if sorted(table.exported(name), key=_order) != sorted(symbols, key=_order):
            yield f"exported({name!r}) is not what exports() lists"
    first: dict[str, Symbol] = {}
    for symbol in table.imports():
        first.setdefault(symbol.name, symbol)
        if symbol.name not in exports and table.exported(symbol.name):
            yield f"exported({symbol.name!r}) finds an import"
    for name, symbol in first.items():
        if table.imported(name) != symbol:
            yield f"imported({name!r}) is not what imports() lists"


def _order(symbol: Symbol) -> tuple[int, str, bool]:
    version: SymbolVersion | None = symbol.version
    return symbol.value, version.name if version else "", version.hidden if version else False


# ---------------------------------------------------------------- pyelftools


def read_with_pyelftools(path: str) -> Facts:
    """The view of pyelftools: tags through PT_DYNAMIC, symbols and versions through section headers."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.enums import ENUM_ST_INFO_BIND, ENUM_ST_INFO_TYPE, ENUM_ST_VISIBILITY

    names: dict[str, list[str]] = {"DT_NEEDED": [], "DT_SONAME": [], "DT_RPATH": [], "DT_RUNPATH": []}
    values: dict[str, int] = {}
    with open(path, "rb") as stream:
        elf: Any = ELFFile(stream)
        for segment in elf.iter_segments("PT_DYNAMIC"):
            for tag in segment.iter_tags():
                kind = tag.entry.d_tag
                if kind in names:
                    names[kind].append(getattr(tag, kind[3:].lower()))
                else:
                    values[kind] = tag.entry.d_val
        sections = {section["sh_type"]: section for section in elf.iter_sections()}
        table = sections.get("SHT_DYNSYM")
        symbols: list[SymbolFact] | None = None
        if table is not None:
            version_names = _list_pyelftools_versions(sections)
            versym = sections.get("SHT_GNU_versym") if version_names else None
            symbols = []
            for index, symbol in enumerate(table.iter_symbols()):
                if index == 0:
                    continue
                word = _number(versym.get_symbol(index)["ndx"]) if versym else 0
                version = version_names.get(word & 0x7FFF, "?") if word & 0x7FFF > 1 else ""
                info = symbol["st_info"]
                symbols.append(
                    SymbolFact(
                        symbol.name,
                        _number(info["bind"], ENUM_ST_INFO_BIND),
                        _number(info["type"], ENUM_ST_INFO_TYPE),
                        _number(symbol["st_other"]["visibility"], ENUM_ST_VISIBILITY),
                        symbol["st_shndx"] != "SHN_UNDEF",
                        version,
                        bool(version and word & 0x8000),
                    )
                )
    return Facts(
        tuple(names["DT_NEEDED"]),
        _last(names["DT_SONAME"]),
        _last(names["DT_RPATH"]),
        _last(names["DT_RUNPATH"]),
        values.get("DT_FLAGS", 0) | (4 if "DT_TEXTREL" in values else 0),
        values.get("DT_FLAGS_1", 0),
        None if symbols is None else tuple(symbols),
    )


def _list_pyelftools_versions(sections: dict[str, Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    if "SHT_GNU_verneed" in sections:
        for _, versions in sections["SHT_GNU_verneed"].iter_versions():
            found.update({version["vna_other"] & 0x7FFF: version.name for version in versions})
    if "SHT_GNU_verdef" in sections:
        for definition, names in sections["SHT_GNU_verdef"].iter_versions():
            found[definition["vd_ndx"] & 0x7FFF] = next(names).name
    return found


def _number(value: int | str, names: Mapping[str, int] | None = None) -> int:
    if isinstance(value, int):
        return value
    return {"VER_NDX_LOCAL": 0, "VER_NDX_GLOBAL": 1}[value] if names is None else names[value]


def _last(values: Sequence[str]) -> str | None:
    return values[-1] if values else None


# ---------------------------------------------------------------- LIEF


def read_with_lief(path: str) -> Facts:
    """The view of LIEF."""
    import lief

    config = lief.ELF.ParserConfig()
    config.parse_relocations = config.parse_symtab_symbols = config.parse_notes = config.parse_overlay = False
    elf: Any = lief.ELF.parse(path, config)
    assert elf is not None, f"{path}: LIEF cannot read it"
    names: dict[str, list[str]] = {"NEEDED": [], "SONAME": [], "RPATH": [], "RUNPATH": []}
    values: dict[str, int] = {}
    for entry in elf.dynamic_entries:
        kind = entry.tag.name
        if kind in names:
            names[kind].append(_text(entry.name if kind in ("NEEDED", "SONAME") else getattr(entry, kind.lower())))
        else:
            values[kind] = entry.value
    return Facts(
        tuple(names["NEEDED"]),
        _last(names["SONAME"]),
        _last(names["RPATH"]),
        _last(names["RUNPATH"]),
        values.get("FLAGS", 0) | (4 if "TEXTREL" in values else 0),
        values.get("FLAGS_1", 0),
        tuple(_state_lief(symbol) for symbol in list(elf.dynamic_symbols)[1:]),
    )


def _state_lief(symbol: Any) -> SymbolFact:
    version, word = "", 0
    if symbol.has_version:
        word = symbol.symbol_version.value
        if word & 0x7FFF > 1:
            known = symbol.symbol_version.has_auxiliary_version
            version = _text(symbol.symbol_version.symbol_version_auxiliary.name) if known else "?"
    return SymbolFact(
        _text(symbol.name),
        symbol.binding.value,
        symbol.type.value,
        symbol.visibility.value,
        symbol.shndx != 0,
        version,
        bool(version and word & 0x8000),
    )


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


# ---------------------------------------------------------------- comparing


def compare(path: str) -> Verdict:
    """Read `path` with all three and say where they differ."""
    try:
        ours = read_ours(path)
    except NotAnImageError:
        return Verdict(path, 0, (), refused=True)
    except LinkcheckError as error:
        return Verdict(path, 0, (f"ours: {error}",))
    differences = [f"pyelftools: {line}" for line in differ(ours, read_with_pyelftools(path))]
    differences += [f"LIEF: {line}" for line in differ(ours, read_with_lief(path))]
    differences += find_contradictions(path)
    return Verdict(path, len(ours.symbols or ()), tuple(differences))


def differ(ours: Facts, theirs: Facts) -> Iterator[str]:
    """One line for each fact that is not the same; symbols only where the judge sees them."""
    for field in fields(Facts):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if other is None and field.name == "symbols":
            continue
        if mine == other:
            continue
        if field.name != "symbols":
            yield f"{field.name}: ours {mine!r}, theirs {other!r}"
        elif len(mine) != len(other):
            yield f"ours has {len(mine)} symbols, theirs {len(other)}"
        else:
            unlike = [pair for pair in zip(mine, other, strict=True) if pair[0] != pair[1]]
            yield f"{len(unlike)} symbols differ, such as ours {unlike[0][0]}, theirs {unlike[0][1]}"


def find_images(directories: Iterable[str]) -> list[str]:
    """Regular files below `directories` whose e_type says ET_EXEC or ET_DYN, each once, sorted."""
    found = set()
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in names:
                path = Path(folder, name)
                if path.is_symlink() or not path.is_file():
                    continue
                try:
                    with path.open("rb") as stream:
                        head = stream.read(18)
                except OSError:
                    continue
                if head[:4] == b"\x7fELF" and head[16:18] in _IMAGE_TYPES:
                    found.add(str(path))
    return sorted(found)


def main(arguments: Sequence[str]) -> int:
    """Compare every image below the directories; print what differs and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.elf.agreement")
    parser.add_argument("directories", nargs="+")
    directories = parser.parse_args(arguments).directories
    started = time.monotonic()
    paths = find_images(directories)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        verdicts = pool.map(compare, paths, chunksize=8)
    for verdict in verdicts:
        for line in verdict.differences:
            print(f"{verdict.path}: {line}")
    unlike = sum(1 for verdict in verdicts if verdict.differences)
    refused = [verdict.path for verdict in verdicts if verdict.refused]
    print(
        f"{len(verdicts)} files, {sum(v.symbols for v in verdicts)} dynamic symbols, {unlike} files differ, "
        f"{len(refused)} are no images, {time.monotonic() - started:.0f} s"
    )
    for path in refused:
        print(f"no image: {path}")
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
