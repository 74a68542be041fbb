"""Whether anything in one file reaches an object of it without asking ld.so; who else uses the object is not asked.

Code reaches what the linker has bound by an address relative to its own place, and data by a relocation that adds the
place where the file was loaded to a number. Only x86-64 files that ld.so may put anywhere are understood. Addresses are
picked out of the code by their form, as in direct_data.py.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "RIP-Relative Addressing" (ModRM with
mod 00 and r/m 101); the System V ABI's AMD64 supplement for R_X86_64_RELATIVE; gABI "Relocation" for DT_RELR.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkcheck.elf.direct_data import NUMBER_SIZES
from linkcheck.elf.dynamic import DT_RELA, DT_RELASZ
from linkcheck.elf.header import PF_X, PT_LOAD
from linkcheck.elf.limits import MAX_RELOCATION_BYTES, MAX_SCANNED_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.dynamic import DynamicSection

_EM_X86_64 = 62
_ET_DYN = 3
_RELATIVE = 8
_DT_RELRSZ = 35
_DT_RELR = 36
_WORD = 8
#: What an instruction may have behind the address; some that have a number there are not among the usual ones.
_ANY_NUMBER = (0, 1, 2, 4)


def reaches_object(file: BoundedFile, dynamic: DynamicSection, address: int, size: int) -> bool | None:
    """Whether code or data of the file refers to the `size` bytes at `address`; None: cannot be told.

    It cannot for other machines than x86-64, for a program at a fixed address, and with more than MAX_SCANNED_CODE
    bytes of code or MAX_RELOCATION_BYTES of relocations. Nor can it be told that an object of more than a word is not
    reached: code may compute the address of a part of it from one beside it. Raises MalformedElfError when a table does
    not fit the file.
    """
    header = dynamic.header
    if header.machine != _EM_X86_64 or header.layout.bits != 64 or header.type != _ET_DYN:
        return None
    wanted = range(address, address + max(size, 1))
    values = _list_relative(file, dynamic)
    if values is None:
        return None
    if any(value in wanted for value in values):
        return True
    code = [s for s in header.segments if s.type == PT_LOAD and s.flags & PF_X]
    if sum(segment.file_size for segment in code) > MAX_SCANNED_CODE:
        return None
    answer: bool | None = False if size <= _WORD else None
    for segment in code:
        span = header.locate(segment.address, "the code")
        raw = b"" if span is None else span.read(file, 0, span.size)
        for sizes, end in _list_addressed(raw, segment.address):
            if any(end + number in wanted for number in sizes):
                return True
            if any(end + number in wanted for number in _ANY_NUMBER):
                answer = None
    return answer


#: A ModRM byte that says so, before four bytes. Zero-width, for such bytes may be in one another's.
_RELATIVE_ADDRESSES = re.compile(rb"(?<=[\x05\x0d\x15\x1d\x25\x2d\x35\x3d])(?=(.{4}))", re.DOTALL)


def _list_addressed(code: bytes, start: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """What instructions may address relative to themselves, without the bytes behind, and how many these may be."""
    for match in _RELATIVE_ADDRESSES.finditer(code):
        at = match.start()
        opcode = code[at - 2] if at > 1 else 0
        offset = int.from_bytes(match[1], "little", signed=True)
        yield NUMBER_SIZES.get(opcode, (0,)), start + at + 4 + offset


def _list_relative(file: BoundedFile, dynamic: DynamicSection) -> list[int] | None:
    """The addresses that relative relocations fill in, before the file is moved; None when there are too many."""
    span = dynamic.table(file, DT_RELA, "the relocation table")
    size = 0 if span is None else min(dynamic.values.get(DT_RELASZ, 0), span.size) // (3 * _WORD) * (3 * _WORD)
    if size > MAX_RELOCATION_BYTES:
        return None
    words = dynamic.header.layout.addresses(b"" if span is None else span.read(file, 0, size))
    kinds = words[1::3]
    found = [value for kind, value in zip(kinds, words[2::3], strict=True) if kind & 0xFFFFFFFF == _RELATIVE]
    span = dynamic.table(file, _DT_RELR, "the relocation table")
    size = 0 if span is None else min(dynamic.values.get(_DT_RELRSZ, 0), span.size) // _WORD * _WORD
    if span is None or not size:
        return found
    if size > MAX_RELOCATION_BYTES // 64:  # one word may stand for 63 places
        return None
    for place in _list_places(dynamic.header.layout.addresses(span.read(file, 0, size))):
        where = dynamic.header.locate(place, "a relocated word")
        if where is not None and where.size >= _WORD:
            found.append(int.from_bytes(where.read(file, 0, _WORD), "little"))
    return found


def _list_places(words: Iterable[int]) -> Iterator[int]:
    """The addresses that DT_RELR's words stand for: one each, or by its bits which of the 63 words that follow."""
    place = 0
    for word in words:
        if word & 1:
            yield from (place + _WORD * bit for bit in range(63) if word >> (bit + 1) & 1)
            place += 63 * _WORD
        else:
            yield word
            place = word + _WORD
