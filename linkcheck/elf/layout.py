"""The record formats of ELF for both classes and byte orders, as `struct` formats. It reads nothing.

Source: System V gABI, chapters 4 ("ELF Header", "Sections", "Symbol Table") and 5 ("Program Header", "Dynamic
Section"), and the LSB for the version records; the same numbers stand in <elf.h>.
"""

from __future__ import annotations

import sys
from array import array
from functools import lru_cache
from struct import Struct
from typing import Literal

from linkcheck.value import Value

ByteOrder = Literal["little", "big"]


class Layout(Value):
    """How records look in a file of one class and byte order."""

    bits: int  # 32 or 64
    byte_order: ByteOrder
    header: Struct  # what follows e_ident
    program_header: Struct
    section_header: Struct
    dynamic_entry: Struct
    symbol: Struct
    word: Struct
    half: Struct

    def compile(self, text: str) -> Struct:
        """`text` as a Struct of this byte order, without padding."""
        return _compile(self.byte_order, text)

    @property
    def address_size(self) -> int:
        """Bytes of an address."""
        return self.bits // 8

    def words(self, raw: bytes) -> array[int]:
        """`raw` as 32-bit words."""
        return self._read(raw, "I")

    def halves(self, raw: bytes) -> array[int]:
        """`raw` as 16-bit halves."""
        return self._read(raw, "H")

    def addresses(self, raw: bytes) -> array[int]:
        """`raw` as words as long as an address."""
        return self._read(raw, "Q" if self.bits == 64 else "I")

    def _read(self, raw: bytes, code: Literal["H", "I", "Q"]) -> array[int]:
        values = array(code, raw)
        if self.byte_order != sys.byteorder:
            values.byteswap()
        return values


@lru_cache(maxsize=4)
def find_layout(bits: int, byte_order: ByteOrder) -> Layout:
    """The one Layout of a class and byte order."""
    wide = bits == 64
    return Layout(
        bits,
        byte_order,
        header=_compile(byte_order, "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
        program_header=_compile(byte_order, "IIQQQQQQ" if wide else "IIIIIIII"),
        section_header=_compile(byte_order, "IIQQQQIIQQ" if wide else "IIIIIIIIII"),
        dynamic_entry=_compile(byte_order, "QQ" if wide else "II"),
        symbol=_compile(byte_order, "IBBHQQ" if wide else "IIIBBH"),
        word=_compile(byte_order, "I"),
        half=_compile(byte_order, "H"),
    )


@lru_cache(maxsize=64)
def _compile(byte_order: ByteOrder, text: str) -> Struct:
    return Struct(("<" if byte_order == "little" else ">") + text)
