"""Says of a name that it is surely not among many others, in little memory (a Bloom filter); it finds no name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class NameFilter:
    """One bit for each hash of a name, in a table of a fixed size."""

    __slots__ = ("_bits", "_mask")

    def __init__(self, bits: int, names: Iterable[bytes]) -> None:
        """A table of `bits` bits, a power of two, filled with `names`."""
        self._mask = mask = bits - 1
        self._bits = table = bytearray(bits // 8)
        for name in names:
            at = hash(name) & mask
            table[at >> 3] |= 1 << (at & 7)

    def may_hold(self, name: bytes) -> bool:
        """False when `name` is none of the names; True says nothing."""
        at = hash(name) & self._mask
        return bool(self._bits[at >> 3] & 1 << (at & 7))
