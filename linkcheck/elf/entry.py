"""One entry of a symbol table: its fields, what the loader makes of them, and the Symbol it becomes; no I/O.

Which definitions another file can bind to follows glibc's elf/dl-lookup.c (do_lookup_x, check_match): an entry
that is undefined, or has value 0 without being absolute or thread-local, or has a type or a binding of no use to
others, is skipped, and so is a hidden or internal one. An undefined entry of another visibility than
the default is no import either: the loader takes it for the file's own (dl_symbol_visibility_binds_local_p in
dl-reloc.c; _dl_lookup_symbol_x for a protected one).
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from linkcheck.elf.strings import decode_name
from linkcheck.model import Symbol, SymbolBinding, SymbolType, Visibility
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.elf.layout import Layout
    from linkcheck.model import SymbolVersion

_STB_LOCAL = 0
_SHN_UNDEF = 0
_SHN_ABS = 0xFFF1
_BINDINGS: dict[int, int] = {int(binding): binding for binding in SymbolBinding}
_TYPES: dict[int, int] = {int(type_): type_ for type_ in SymbolType}
_VISIBILITIES = tuple(Visibility)
#: By st_info, with the binding in its upper half: whether the loader looks up what is undefined, and must find it.
_LOOKED_UP = b"".join(16 * (b"\0" if binding == _STB_LOCAL else b"\1") for binding in range(16))
_MUST_BE_FOUND = _LOOKED_UP[: 16 * SymbolBinding.WEAK] + bytes(16) + _LOOKED_UP[16 * SymbolBinding.WEAK + 16 :]
_EXPORTED_BINDINGS = frozenset({SymbolBinding.GLOBAL, SymbolBinding.WEAK, SymbolBinding.GNU_UNIQUE})
_EXPORTED_TYPES = frozenset(set(SymbolType) - {SymbolType.SECTION, SymbolType.FILE})
#: By st_info, and by the two bits of st_other.
_EXPORTED_KINDS = b"".join(
    bytes(type_ in _EXPORTED_TYPES for type_ in range(16)) if binding in _EXPORTED_BINDINGS else bytes(16)
    for binding in range(16)
)
_EXPORTED_VISIBILITIES = bytes(visibility in (Visibility.DEFAULT, Visibility.PROTECTED) for visibility in range(4))


class Entry(Value):
    """The fields of one entry, in the order that 64-bit files have them."""

    name: int  # an offset into the string table
    info: int
    other: int
    section: int
    value: int
    size: int


def unpack_entry(layout: Layout, raw: bytes, at: int = 0) -> Entry:
    """The entry at `at` of `raw`."""
    fields = layout.symbol.unpack_from(raw, at)
    if layout.bits == 64:
        return Entry(*fields)
    name, value, size, info, other, section = fields
    return Entry(name, info, other, section, value, size)


def can_be_bound(entry: Entry) -> bool:
    """Whether another file can bind to the entry."""
    return is_bindable(entry.info, entry.other, entry.section, entry.value)


def is_bindable(info: int, other: int, section: int, value: int) -> bool:
    """The same of an entry's fields, for those who look at many."""
    return bool(
        section != _SHN_UNDEF
        and _EXPORTED_KINDS[info]
        and _EXPORTED_VISIBILITIES[other & 3]
        and (value != 0 or section == _SHN_ABS or info & 0xF == SymbolType.TLS)
    )


def make_symbol(entry: Entry, name: bytes, version: SymbolVersion | None = None) -> Symbol:
    """The entry as the model has it."""
    binding, type_ = entry.info >> 4, entry.info & 0xF
    return Symbol(
        name=decode_name(name),
        binding=_BINDINGS.get(binding, binding),
        type=_TYPES.get(type_, type_),
        visibility=_VISIBILITIES[entry.other & 3],
        defined=entry.section != _SHN_UNDEF,
        value=entry.value,
        size=entry.size,
        version=version,
    )


def find_imports(layout: Layout, raw: bytes, *, weak: bool = True) -> Iterator[int]:
    """Positions of the entries in `raw` that are imports: st_shndx is 0, and neither binding nor visibility is local.

    Without `weak` those that must be found.

    Searched as bytes, because 0 looks the same in both byte orders and decoding 75,000 entries takes thirty times as
    long.
    """
    first, step, info = (3, 12, 4) if layout.bits == 64 else (7, 8, 12)
    size = layout.symbol.size
    column = memoryview(raw).cast("H")[first::step].tobytes()
    # Linkers put all imports at the beginning, since no hash table lists them.
    leading = (len(column) - len(column.lstrip(b"\0"))) // 2
    infos, others = raw[info : leading * size : size], raw[info + 1 : leading * size : size]  # st_other comes next
    kinds = _LOOKED_UP if weak else _MUST_BE_FOUND
    if others.strip(b"\0"):
        yield from (
            p for p, (kind, other) in enumerate(zip(infos, others, strict=True)) if kinds[kind] and not other & 3
        )
    else:
        yield from compress(range(leading), infos.translate(kinds))
    at = column.find(b"\0\0", 2 * leading)
    while at >= 0:
        if at % 2:  # the second half of one number and the first half of the next
            at = column.find(b"\0\0", at + 1)
        else:
            place = at // 2 * size + info
            if kinds[raw[place]] and not raw[place + 1] & 3:
                yield at // 2
            at = column.find(b"\0\0", at + 2)
