"""Questions about many dynamic symbols of one file at once, answered from columns of its tables; it binds nothing.

One question by name (symbols.py) opens the file and makes a Symbol, 15 us. Whether everything that a process imports is
defined takes a thousand questions, so here tables are read whole where they are small, and no Symbol is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.entry import find_imports, is_bindable
from linkcheck.elf.hashes import compute_gnu_hash
from linkcheck.elf.limits import (
    BLOCK_SIZE,
    MAX_CHAIN_LENGTH,
    MAX_HASHES_KEPT,
    MAX_INDEXED_IMPORT_BYTES,
    MAX_INDEXED_IMPORTS,
    MAX_RESIDENT_TABLE,
)
from linkcheck.elf.strings import decode_name
from linkcheck.model import SymbolBinding

if TYPE_CHECKING:
    from collections.abc import Collection

    from linkcheck.elf.bounded_file import BoundedFile, Span
    from linkcheck.elf.hashes import GnuHash
    from linkcheck.elf.layout import Layout
    from linkcheck.elf.strings import Strings
    from linkcheck.elf.versions import Versions
    from linkcheck.model import Demand

#: Asking for one name takes as long as reading this many bytes.
_BYTES_FOR_A_NAME = 1 << 16
#: Name -> its bytes with a NUL, and its hash; the names that one file imports are looked for in many.
_hashes: dict[str, tuple[bytes, int]] = {}


def list_demands(
    file: BoundedFile, layout: Layout, symbols: Span, count: int, strings: Strings, versions: Versions
) -> tuple[Demand, ...] | None:
    """Name, version and library of each import that is not weak, in table order; None when there are too many to keep.

    `count` is the number of entries. Raises MalformedElfError when an entry does not fit the file.
    """
    found: list[Demand] = []
    meanings: dict[int, tuple[str | None, str | None]] = {}
    size = layout.symbol.size
    info = 4 if layout.bits == 64 else 12
    left = MAX_INDEXED_IMPORT_BYTES
    per_block = BLOCK_SIZE // size
    for start in range(1, count, per_block):
        length = min(per_block, count - start)
        raw = symbols.read(file, start * size, length * size)
        places = layout.words(raw)[:: size // 4]  # st_name comes first
        table = versions.table
        values = None if table is None else layout.halves(table.read(file, 2 * start, 2 * length))
        for position in find_imports(layout, raw):
            if raw[position * size + info] >> 4 == SymbolBinding.WEAK:
                continue
            name = strings.find(places[position], "a symbol's name")
            left -= len(name)
            if left < 0 or len(found) >= MAX_INDEXED_IMPORTS:
                return None
            named = None if values is None else meanings.get(values[position])
            if named is None:
                version = None if values is None else versions.meaning(file, values[position], start + position)
                named = (None, None) if version is None or version.base else (version.name, version.library)
                if values is not None:
                    meanings[values[position]] = named
            found.append((decode_name(name), *named))
    return tuple(found)


def find_offers(
    file: BoundedFile,
    layout: Layout,
    symbols: Span,
    count: int,
    strings: Span,
    versions: Versions,
    gnu: GnuHash,
    names: Collection[str],
) -> dict[str, tuple[str | None, ...]] | None:
    """Those of `names` that the file defines for others, each with the versions it defines (None: without one).

    None when the tables are so large that asking for each name reads less. Arguments and errors are those of
    `list_demands`.
    """
    symbol_size = layout.symbol.size
    hash_size = min(gnu.size_with_chains(count), gnu.span.size)
    largest = max(count * symbol_size, hash_size, strings.size)
    if largest > MAX_RESIDENT_TABLE or largest > len(names) * _BYTES_FOR_A_NAME:
        return None
    filter_, buckets, chains = gnu.load(file, hash_size)
    if not buckets:
        return {}
    entries = symbols.read(file, 0, count * symbol_size)
    texts = strings.read(file, 0, strings.size)
    table = versions.table
    version_values = None if table is None else layout.halves(table.read(file, 0, 2 * count))
    first = gnu.first
    bits, mask, shift, bucket_count = layout.bits, gnu.filter_words - 1, gnu.filter_shift, len(buckets)
    known_hash = _hashes.get
    found: dict[str, tuple[str | None, ...]] = {}
    for name in names:
        encoded, value = known_hash(name) or _remember_hash(name)
        # As GnuHash.may_hold_in, without two calls for each name: most names end here.
        word = filter_[value // bits & mask]
        if not (word >> (value % bits)) & (word >> ((value >> shift) % bits)) & 1:
            continue
        index = buckets[value % bucket_count]
        if index == 0:
            continue
        if index < first:
            raise file.malformed(f"a bucket of DT_GNU_HASH holds {index}, but its first symbol is {first}")
        for index in range(index, min(index + MAX_CHAIN_LENGTH, count, first + len(chains))):  # noqa: B020
            word = chains[index - first]
            if (word ^ value) >> 1 == 0:
                fields = layout.symbol.unpack_from(entries, index * symbol_size)
                if bits == 64:
                    place, info, other, section, address, _ = fields
                else:
                    place, address, _, info, other, section = fields
                if is_bindable(info, other, section, address) and texts.startswith(encoded, place):
                    version = None
                    if version_values is not None:
                        version = versions.meaning(file, version_values[index], index)
                    own = None if version is None or version.base else version.name
                    found[name] = (*found[name], own) if name in found else (own,)
            if word & 1:
                break
        else:
            raise file.malformed(f"a chain of DT_GNU_HASH runs past its table at symbol {index}")
    return found


def _remember_hash(name: str) -> tuple[bytes, int]:
    """`name` as it stands in a string table, with its NUL, and its hash. Names come from files, so they encode."""
    encoded = name.encode("utf-8", "surrogateescape")
    known = (encoded + b"\0", compute_gnu_hash(encoded))
    if len(_hashes) < MAX_HASHES_KEPT:
        _hashes[name] = known
    return known
