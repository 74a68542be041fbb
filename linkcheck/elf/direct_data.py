"""Whether the code of one function reaches variables of its own file without asking ld.so; it follows no call.

What a function leaves to ld.so it finds in slots that relocations with a symbol fill. What the linker has bound it
addresses relative to its own place, and then each file with such a function has a variable of its own. Only x86-64 code
is understood, and only as far as that: addresses are picked out by their form and the bytes around are not decoded, so
that other bytes may be taken for an address, seldom, and never an address for other bytes.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "RIP-Relative Addressing" (ModRM with
mod 00 and r/m 101); the System V ABI's AMD64 supplement for the relocation types and "Procedure Linkage Table"; its TLS
supplement for R_X86_64_DTPMOD64 without a symbol, which stands for the file itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.dynamic import DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_SYMTAB
from linkcheck.elf.header import PF_W, PF_X, PT_GNU_RELRO, PT_LOAD
from linkcheck.elf.limits import MAX_FUNCTION_SIZE, MAX_RELOCATION_BYTES
from linkcheck.model import SymbolBinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from linkcheck.elf.bounded_file import BoundedFile
    from linkcheck.elf.dynamic import DynamicSection
    from linkcheck.model import Symbol

_EM_X86_64 = 62
_ET_DYN = 3
_RELATIVE = 8
#: Slots that ld.so fills by a look-up: GLOB_DAT, JUMP_SLOT, and the three kinds of slots for thread-local variables.
_LOOKED_UP = frozenset({6, 7, 16, 18, 36})
#: Opcode (its last byte) of the usual instructions with a number behind the address -> the bytes it may have.
_NUMBER_SIZES = {
    **dict.fromkeys((0x6B, 0x70, 0x80, 0x83, 0xA4, 0xAC, 0xBA, 0xC0, 0xC1, 0xC2, 0xC4, 0xC5, 0xC6, 0xF6), (0, 1)),
    **dict.fromkeys((0x69, 0x81, 0xC7, 0xF7), (0, 2, 4)),
}
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
_INDIRECT_JUMPS = (b"\xff\x25", b"\xf2\xff\x25")
_STUB_SIZE = 16
_WORD = 8
#: Where st_info is in an entry of the symbol table.
_INFO_AT = 4


def reaches_own_data(file: BoundedFile, dynamic: DynamicSection, functions: Iterable[Symbol]) -> bool | None:
    """Whether the code of one of `functions` addresses writable data of the file itself; None: cannot be told.

    It cannot for other machines than x86-64, for a program at a fixed address, for a function without a size or with
    more than MAX_FUNCTION_SIZE bytes, where the code goes on at another place in the file, and with more than
    MAX_RELOCATION_BYTES of relocations. Raises MalformedElfError when a table does not fit the file.
    """
    header = dynamic.header
    if header.machine != _EM_X86_64 or header.layout.bits != 64 or header.type != _ET_DYN:
        return None
    memory = _Memory(file, dynamic)
    if not memory.whole:
        return None
    answer: bool | None = False
    for function in functions:
        span = header.locate(function.value, "the code of a function")
        if span is None or not 0 < function.size <= min(span.size, MAX_FUNCTION_SIZE):
            return None
        code = span.read(file, 0, function.size)
        if any(map(memory.is_own_data, _list_addressed(code, function.value))):
            return True
        if any(map(memory.is_other_code, _list_targets(code, function.value))):
            answer = None
    return answer


def _list_addressed(code: bytes, start: int) -> Iterator[int]:
    """What the instructions address relative to themselves."""
    for at in range(2, len(code) - 3):
        if code[at - 1] & 0xC7 == 0x05:
            address = start + at + 4 + int.from_bytes(code[at : at + 4], "little", signed=True)
            yield from (address + number for number in _NUMBER_SIZES.get(code[at - 2], (0,)))


def _list_targets(code: bytes, start: int) -> Iterator[int]:
    """Where calls and jumps lead outside of the function."""
    for at in range(1, len(code) - 3):
        if code[at - 1] in (0xE8, 0xE9) or (at > 1 and code[at - 2] == 0x0F and code[at - 1] & 0xF0 == 0x80):
            target = start + at + 4 + int.from_bytes(code[at : at + 4], "little", signed=True)
            if not start <= target < start + len(code):
                yield target


class _Memory:
    """What lies where, once the file is loaded."""

    def __init__(self, file: BoundedFile, dynamic: DynamicSection) -> None:
        self._file = file
        self._header = dynamic.header
        self._symbols = dynamic.values.get(DT_SYMTAB, 0)
        loaded = [s for s in dynamic.header.segments if s.type == PT_LOAD]
        self._writable = [range(s.address, s.address + s.memory_size) for s in loaded if s.flags & PF_W]
        self._code = [range(s.address, s.address + s.memory_size) for s in loaded if s.flags & PF_X]
        relro = dynamic.header.last(PT_GNU_RELRO)
        self._constant = range(0) if relro is None else range(relro.address, relro.address + relro.memory_size)
        #: Whether all relocations are known.
        self.whole = True
        raw = b""
        for tag, size_tag in ((DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)):
            span = dynamic.table(file, tag, "the relocation table")
            size = 0 if span is None else min(dynamic.values.get(size_tag, 0), span.size) // (3 * _WORD) * (3 * _WORD)
            self.whole = self.whole and size <= MAX_RELOCATION_BYTES
            raw += b"" if span is None or not self.whole else span.read(file, 0, size)
        self._relocations = dynamic.header.layout.addresses(raw)
        self._places = self._relocations[::3]

    def is_own_data(self, address: int) -> bool:
        """Whether a variable of the file is at `address`, or a slot there that leads to one."""
        if not any(address in writable for writable in self._writable):
            return False
        kind, symbol, value = self._find_relocation(address)
        if kind in _LOOKED_UP:
            return self._is_local(symbol)
        if value == address:
            return False  # __dso_handle, which says to __cxa_atexit whose destructor this is
        if address in self._constant:
            return value not in self._constant and any(value in writable for writable in self._writable)
        return True

    def is_other_code(self, address: int) -> bool:
        """Whether code of the file is at `address` that is no stub to what ld.so has looked up."""
        if not any(address in code for code in self._code):
            return False
        span = self._header.locate(address, "the code of a function")
        stub = b"" if span is None else span.read(self._file, 0, min(_STUB_SIZE, span.size))
        return not stub.removeprefix(_ENDBR64).startswith(_INDIRECT_JUMPS)

    def _is_local(self, symbol: int) -> bool:
        """Whether a relocation with this symbol means the file itself: with none, or with one that is STB_LOCAL."""
        address = self._symbols + symbol * self._header.layout.symbol.size
        span = self._header.locate(address, "the dynamic symbol table")
        return (
            symbol == 0 or span is None or span.read(self._file, 0, _INFO_AT + 1)[_INFO_AT] >> 4 == SymbolBinding.LOCAL
        )

    def _find_relocation(self, address: int) -> tuple[int, int, int]:
        """Type, symbol and value of what is filled in at `address`; without a relocation 0, 0 and what is there."""
        try:
            at = 3 * self._places.index(address)
        except ValueError:
            span = self._header.locate(address, "a variable")
            raw = b"" if span is None or span.size < _WORD else span.read(self._file, 0, _WORD)
            return 0, 0, int.from_bytes(raw, "little")
        info = self._relocations[at + 1]
        kind = info & 0xFFFFFFFF
        return kind, info >> 32, self._relocations[at + 2] if kind == _RELATIVE else 0
