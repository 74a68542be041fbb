"""One dynamic symbol, and what can be asked of a table of them (SymbolTable). It holds no table and reads none.

Source: System V gABI ("Symbol Table"), glibc <elf.h> for the GNU extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import IntChoice
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Protocol
else:
    Protocol = object  # while a program runs a Protocol does nothing, and making one takes as long as reading a file


class SymbolBinding(IntChoice):
    """High nibble of st_info (gABI, "Symbol Table"; GNU_UNIQUE from <elf.h>)."""

    LOCAL = 0
    GLOBAL = 1
    WEAK = 2
    GNU_UNIQUE = 10


class SymbolType(IntChoice):
    """Low nibble of st_info (gABI, "Symbol Table"; GNU_IFUNC from <elf.h>)."""

    NOTYPE = 0
    OBJECT = 1
    FUNC = 2
    SECTION = 3
    FILE = 4
    COMMON = 5
    TLS = 6
    GNU_IFUNC = 10


class Visibility(IntChoice):
    """Low two bits of st_other (gABI, "Symbol Visibility")."""

    DEFAULT = 0
    INTERNAL = 1
    HIDDEN = 2
    PROTECTED = 3


class SymbolVersion(Value):
    """The version of one dynamic symbol (LSB "Symbol Versioning"; glibc dl-lookup.c check_match).

    `library` is the vn_file of an import's DT_VERNEED entry and None for a definition. `hidden` is bit 15 of
    DT_VERSYM: a definition that only an import naming this very version may bind to. `weak` is VER_FLG_WEAK.
    """

    name: str
    hidden: bool = False
    library: str | None = None
    weak: bool = False
    #: The version is the library's own base definition (VER_FLG_BASE), which names the file, not a version.
    base: bool = False


class Symbol(Value):
    """One entry of a dynamic symbol table (gABI, "Symbol Table").

    `binding` and `type` are plain integers where the file holds a value that neither enum names.
    """

    name: str
    binding: int
    type: int
    visibility: Visibility
    defined: bool
    value: int
    size: int
    version: SymbolVersion | None = None

    @property
    def weak(self) -> bool:
        """Whether the binding is STB_WEAK."""
        return self.binding == SymbolBinding.WEAK


#: An import that must be defined somewhere: its name, the version it names, and the library (vn_file) that is expected
#: to define that version; a plain tuple, because a process has thousands.
Demand = tuple[str, str | None, str | None]


class SymbolTable(Protocol):
    """The dynamic symbol table of one image, as ld.so would see it; it may read the file only when asked.

    Every method raises MalformedElfError when an entry does not fit the file.
    """

    @property
    def unseen(self) -> str | None:
        """Why part of the table cannot be seen, or None. Rules answer `unknown` instead of trusting an absence."""

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """The definitions called `name` that another image can bind to: defined, not local, not hidden."""

    def imported(self, name: str) -> Symbol | None:
        """The import called `name`, or None when the image does not import it."""

    def imports(self) -> Iterator[Symbol]:
        """Every undefined entry that the loader looks up: of default visibility, and not local."""

    def count_imports(self) -> int:
        """How many `imports` has, without making them."""

    def exports(self) -> Iterator[Symbol]:
        """Every definition that another image can bind to, in table order."""

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of `names` that `.symtab` defines and no other image can bind to; () when there is no `.symtab`.

        Extra evidence only: a stripped file answers (), which says nothing.
        """

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """The names as of `private` that hold every one of `parts`; () for no parts and when there are too many."""

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of `names` that are defined only as room for a copy of another file's object (R_*_COPY).

        Objects at the address of such a room are the same room under another name: linkers make one relocation for all.
        """

    def copied_as(self, name: str) -> str | None:
        """The name that the relocation behind `copied` asks other files for, `name` itself if it can; None: no copy."""

    def objects_at(self, address: int) -> tuple[str, ...]:
        """The names of the objects, not thread-local ones, that `exported` would find at `address`; once each."""

    def copy_demands(self, *, weak: bool) -> tuple[Demand, ...]:
        """What is defined only as room for a copy, once each, as a demand on other files; `weak`: also weak ones."""

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Those of the definitions called `names` that some relocation of the file refers to; None: cannot be told.

        ld.so can lead the file's own uses of a definition to another file's only through a relocation.
        """

    def reaches_own_data(self, function: str) -> bool | None:
        """Whether the code of `function` reaches a variable of this file without asking ld.so; None: cannot be told.

        The functions that it calls are not looked at.
        """

    def reaches_object(self, address: int, size: int) -> bool | None:
        """Whether code or data of this file reaches the `size` bytes at `address` without asking ld.so; None: cannot be
        told.
        """

    def demands(self) -> tuple[Demand, ...] | None:
        """The imports that are not weak, in table order; None when there are too many to keep."""

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """Those of `names` that `exported` would find, each with the versions it is defined in (None: no version)."""

    def requested(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Those of the imports called `names` that some relocation of the file refers to; None: cannot be told.

        ld.so looks up what a relocation refers to and nothing else (glibc elf/do-rel.h).
        """

    def __iter__(self) -> Iterator[Symbol]:
        """Every entry but the null one, in table order."""


def list_versions(found: Mapping[str, tuple[Symbol, ...]]) -> dict[str, tuple[str | None, ...]]:
    """What SymbolTable.offers says of the names in `found`, each with the definitions that `exported` finds."""
    return {
        name: tuple(None if s.version is None or s.version.base else s.version.name for s in symbols)
        for name, symbols in found.items()
        if symbols
    }


def is_exported(symbol: Symbol) -> bool:
    """Whether another image could bind to `symbol` (glibc dl-lookup.c do_lookup_x and gABI visibility)."""
    return (
        symbol.defined
        and symbol.binding != SymbolBinding.LOCAL
        and symbol.visibility in (Visibility.DEFAULT, Visibility.PROTECTED)
    )


def is_object(type_: int, size: int) -> bool:
    """Whether a definition of this st_type and st_size is a variable, and not a mark such as `__bss_start`."""
    return size > 0 and type_ in (SymbolType.OBJECT, SymbolType.COMMON)


def is_imported(symbol: Symbol) -> bool:
    """Whether the loader binds `symbol` to other images' definitions; with another visibility than the default it
    takes it for the image's own (glibc dl-reloc.c and dl-lookup.c).
    """
    return not symbol.defined and symbol.binding != SymbolBinding.LOCAL and symbol.visibility == Visibility.DEFAULT
