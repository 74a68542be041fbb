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
#: How far from an object of more than a word an address is taken for one of its: 8 bytes for each of ASCII.
_BESIDE = 8 * 128
#: LEA, the one instruction that makes an address without a look at what is there, and its size with REX. Two of one
#: address, one behind the other, are crtstuff.c's, which takes the end of .data from itself (__TMC_END__).
_LEA, _LEA_SIZE = b"\x8d", 7
#: Opcodes with a number behind the address: of one byte, of two or four, and of these only with ModRM.reg 0 or 1.
_BYTE = frozenset((0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6))
_NUMBER = frozenset((0x69, 0x81, 0xC7))
_TEST_BYTE, _TEST_NUMBER = 0xF6, 0xF7
#: Second bytes of opcodes that begin with 0F, with a byte behind the address.
_BYTE_AFTER_0F = frozenset((0x70, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6))
#: First bytes of a VEX and an EVEX prefix, and how far before the opcode they are.
_VEX = ((0xC5, 2), (0xC4, 3), (0x62, 4))


def reaches_object(file: BoundedFile, dynamic: DynamicSection, address: int, size: int) -> bool | None:
    """Whether code or data of the file refers to the `size` bytes at `address`; None: cannot be told.

    It cannot for other machines than x86-64, for a program at a fixed address, and with more than MAX_SCANNED_CODE
    bytes of code or MAX_RELOCATION_BYTES of relocations. Nor can it of an object of more than a word where an address
    is made that is beside it, up to its size or _BESIDE bytes away: `table[c - 'a']` may begin at `table - 'a'`, and a
    loop at its end. Raises MalformedElfError when a table does not fit the file.
    """
    header = dynamic.header
    if header.machine != _EM_X86_64 or header.layout.bits != 64 or header.type != _ET_DYN:
        return None
    wanted = range(address, address + max(size, 1))
    relative = _list_relative(file, dynamic)
    if relative is None:
        return None
    if any(value in wanted for _, value in relative):
        return True
    margin = max(size, _BESIDE) if size > _WORD else 0
    beside = range(max(wanted.start - margin, 0), wanted.stop + margin)
    code = [s for s in header.segments if s.type == PT_LOAD and s.flags & PF_X]
    if sum(segment.file_size for segment in code) > MAX_SCANNED_CODE:
        return None
    # __dso_handle of each file holds its own address, and says nothing about others.
    doubtful = margin and any(value in beside for place, value in relative if place != value)
    answer: bool | None = None if doubtful else False
    for segment in code:
        span = header.locate(segment.address, "the code")
        raw = b"" if span is None else span.read(file, 0, span.size)
        made: dict[int, int] = {}
        for at, end in _list_addressed(raw, beside, segment.address):
            if margin and raw[at - 2 : at - 1] == _LEA and end in beside:
                made[at] = end
            places = [end + size in wanted for size in _size_number(raw, at)]
            if all(places):
                return True
            if any(places):
                answer = None
        if any(end not in (made.get(at - _LEA_SIZE), made.get(at + _LEA_SIZE)) for at, end in made.items()):
            answer = None
    return answer


#: A ModRM byte that says so, before four bytes. Zero-width, for such bytes may be in one another's.
_RELATIVE_ADDRESSES = re.compile(rb"(?<=[\x05\x0d\x15\x1d\x25\x2d\x35\x3d])(?=(.{4}))", re.DOTALL)
#: The most bytes that are behind an address.
_LONGEST_NUMBER = 4


def _list_addressed(code: bytes, wanted: range, start: int) -> Iterator[tuple[int, int]]:
    """Where in `code` an address may be that is `wanted`, and which it is without a number behind."""
    first, last = wanted.start - _LONGEST_NUMBER - start - 4, wanted.stop - start - 4
    for match in _RELATIVE_ADDRESSES.finditer(code):
        at = match.start()
        if first <= at + int.from_bytes(match[1], "little", signed=True) < last:
            yield at, start + at + 4 + int.from_bytes(match[1], "little", signed=True)


def _size_number(code: bytes, at: int) -> tuple[int, ...]:
    """How many bytes the instruction with an address at `at` has behind it; several where that cannot be told."""
    before = code[max(at - 6, 0) : at].rjust(6, b"\0")
    opcode, prefix, register = before[-2], before[-3], before[-1] >> 3 & 7
    if prefix == 0x0F:
        return (int(opcode in _BYTE_AFTER_0F),)
    if prefix in (0x38, 0x3A) and before[-4] == 0x0F:
        return (int(prefix == 0x3A),)
    if any(before[-2 - distance] == first for first, distance in _VEX):
        return (0, 1)
    if opcode in _BYTE or (opcode == _TEST_BYTE and register < 2):
        return (1,)
    if opcode in _NUMBER or (opcode == _TEST_NUMBER and register < 2):
        # REX may stand between the prefix for 16 bits and the opcode.
        short = prefix == 0x66 or (prefix & 0xF0 == 0x40 and before[-4] == 0x66)
        return (2,) if short else (4,)
    return (0,)


def _list_relative(file: BoundedFile, dynamic: DynamicSection) -> list[tuple[int, int]] | None:
    """The addresses that relative relocations fill in, behind where, before the file is moved; None when too many."""
    span = dynamic.table(file, DT_RELA, "the relocation table")
    size = 0 if span is None else min(dynamic.values.get(DT_RELASZ, 0), span.size) // (3 * _WORD) * (3 * _WORD)
    if size > MAX_RELOCATION_BYTES:
        return None
    words = dynamic.header.layout.addresses(b"" if span is None else span.read(file, 0, size))
    kinds = words[1::3]
    entries = zip(words[0::3], kinds, words[2::3], strict=True)
    found = [(place, value) for place, kind, value in entries if kind & 0xFFFFFFFF == _RELATIVE]
    span = dynamic.table(file, _DT_RELR, "the relocation table")
    size = 0 if span is None else min(dynamic.values.get(_DT_RELRSZ, 0), span.size) // _WORD * _WORD
    if span is None or not size:
        return found
    if size > MAX_RELOCATION_BYTES // 64:  # one word may stand for 63 places
        return None
    for place in _list_places(dynamic.header.layout.addresses(span.read(file, 0, size))):
        where = dynamic.header.locate(place, "a relocated word")
        if where is not None and where.size >= _WORD:
            found.append((place, int.from_bytes(where.read(file, 0, _WORD), "little")))
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
