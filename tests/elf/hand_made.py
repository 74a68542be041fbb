"""ELF files written byte by byte, for what no compiler of this machine makes: other machines, classes, byte orders.

What is written is judged by pyelftools in test_hand_made.py. It follows the gABI; there are no section headers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3


@dataclass(frozen=True)
class Shape:
    """Class, byte order and machine."""

    bits: int
    order: str  # "<" or ">"
    machine: int

    @property
    def wide(self) -> bool:
        return self.bits == 64

    def pack(self, layout: str, *values: int) -> bytes:
        return struct.pack(self.order + layout, *values)

    def header(self, kind: int, *, program_offset: int, program_count: int) -> bytes:
        ident = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if self.order == "<" else 2, 1]) + bytes(9)
        header_size, entry_size, section_size = (64, 56, 64) if self.wide else (52, 32, 40)
        layout = "HHIQQQIHHHHHH" if self.wide else "HHIIIIIHHHHHH"
        return ident + self.pack(
            layout,
            *(kind, self.machine, 1, 0, program_offset, 0, 0),
            *(header_size, entry_size, program_count, section_size, 0, 0),
        )

    def segment(self, kind: int, offset: int, size: int, *, flags: int = 5, alignment: int = 0x1000) -> bytes:
        """A program header whose address is its offset."""
        if self.wide:
            return self.pack("IIQQQQQQ", kind, flags, offset, offset, offset, size, size, alignment)
        return self.pack("IIIIIIII", kind, offset, offset, offset, size, size, flags, alignment)


X86_64 = Shape(64, "<", 62)
SHAPES = {
    "x86-64": X86_64,
    "aarch64": Shape(64, "<", 183),
    "i386": Shape(32, "<", 3),
    "arm": Shape(32, "<", 40),
    "riscv64": Shape(64, "<", 243),
    "ppc64le": Shape(64, "<", 21),
    "ppc64": Shape(64, ">", 21),
    "s390x": Shape(64, ">", 22),
    "mips": Shape(32, ">", 8),
}


def write_shared_object(path: Path, shape: Shape, *, soname: str | None, exports: Sequence[str]) -> Path:
    """Write a library without code whose dynamic table, symbol table and DT_HASH are right."""
    strings = bytearray(b"\0")

    def add(text: str) -> int:
        strings.extend(text.encode() + b"\0")
        return len(strings) - len(text.encode()) - 1

    soname_at = add(soname) if soname is not None else 0
    symbols = bytes(24 if shape.wide else 16)
    for index, name in enumerate(exports):
        at = add(name)
        info = 1 << 4 | 2  # STB_GLOBAL, STT_FUNC
        if shape.wide:
            symbols += shape.pack("IBBHQQ", at, info, 0, 1, 0x100 + index, 1)
        else:
            symbols += shape.pack("IIIBBH", at, 0x100 + index, 1, info, 0, 1)
    count = len(exports) + 1
    # One bucket; each symbol's chain entry leads to the next one.
    chain = [0, *range(2, count), 0][:count]
    hash_table = shape.pack(f"II{1 + count}I", 1, count, 1 if exports else 0, *chain)
    if shape.wide and shape.machine == 22:  # s390x has 64-bit hash words
        hash_table = shape.pack(f"QQ{1 + count}Q", 1, count, 1 if exports else 0, *chain)

    start = 0x200
    parts = {"strings": bytes(strings), "symbols": symbols, "hash": hash_table}
    places: dict[str, int] = {}
    body = b""
    for name, data in parts.items():
        body += bytes(-len(body) % 8)
        places[name] = start + len(body)
        body += data
    body += bytes(-len(body) % 8)
    dynamic_at = start + len(body)
    tags = [
        (4, places["hash"]),
        (5, places["strings"]),
        (6, places["symbols"]),
        (10, len(strings)),
        (11, 24 if shape.wide else 16),
    ]
    if soname is not None:
        tags.insert(0, (14, soname_at))
    dynamic = b"".join(shape.pack("QQ" if shape.wide else "II", *tag) for tag in [*tags, (0, 0)])
    size = dynamic_at + len(dynamic)
    header_size = 64 if shape.wide else 52
    head = shape.header(ET_DYN, program_offset=header_size, program_count=2)
    head += shape.segment(PT_LOAD, 0, size)
    head += shape.segment(PT_DYNAMIC, dynamic_at, len(dynamic), flags=6, alignment=8)
    path.write_bytes(head.ljust(start, b"\0") + body + dynamic)
    return path


def write_core(path: Path, shape: Shape) -> Path:
    """Write the beginning of a core dump: the header and one empty note segment."""
    head = shape.header(ET_CORE, program_offset=64 if shape.wide else 52, program_count=1)
    path.write_bytes(head + shape.segment(4, 0, 0, alignment=4))
    return path
