"""A symbol table that holds its entries, for images built from plain values. It is not the one of a file.

That is elf/symbols.py's DynamicSymbols, and both answer alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model.symbols import is_exported, is_imported, is_object, list_versions
from linkcheck.text import unique
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from linkcheck.model.symbols import Demand, Symbol


class ListedSymbols(Value):
    """A SymbolTable that holds its entries; for images built from plain values."""

    symbols: tuple[Symbol, ...] = ()
    unseen: str | None = None
    #: Names that only `.symtab` knows.
    local_definitions: frozenset[str] = frozenset()
    #: Names that a copy relocation fills.
    copies: frozenset[str] = frozenset()
    #: Definitions and imports that no relocation refers to; None: cannot be told.
    unreferenced: frozenset[str] | None = frozenset()

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """See SymbolTable.exported."""
        return tuple(s for s in self.exports() if s.name == name)

    def imported(self, name: str) -> Symbol | None:
        """See SymbolTable.imported."""
        return next((s for s in self.imports() if s.name == name), None)

    def imports(self) -> Iterator[Symbol]:
        """See SymbolTable.imports."""
        return (s for s in self.symbols if is_imported(s))

    def count_imports(self) -> int:
        """See SymbolTable.count_imports."""
        return sum(1 for _ in self.imports())

    def exports(self) -> Iterator[Symbol]:
        """See SymbolTable.exports."""
        return (s for s in self.symbols if is_exported(s))

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """See SymbolTable.private."""
        return tuple(sorted(self.local_definitions.intersection(names)))

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """See SymbolTable.private_with."""
        return tuple(sorted(n for n in self.local_definitions if parts and all(part in n for part in parts)))

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """See SymbolTable.copied."""
        return tuple(name for name in names if self.copied_as(name) is not None)

    def copied_as(self, name: str) -> str | None:
        """See SymbolTable.copied_as."""
        if name in self.copies:
            return name
        places = {s.value: s.name for s in self.exports() if s.name in self.copies}
        own = (s.value for s in self.exported(name) if is_object(s.type, s.size))
        return next((places[value] for value in own if value in places), None)

    def objects_at(self, address: int) -> tuple[str, ...]:
        """See SymbolTable.objects_at."""
        return unique(s.name for s in self.exports() if s.value == address and is_object(s.type, s.size))

    def copy_demands(self, *, weak: bool) -> tuple[Demand, ...]:
        """See SymbolTable.copy_demands."""
        return tuple(_demand(s) for s in self.exports() if s.name in self.copies and (weak or not s.weak))

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See SymbolTable.referenced."""
        unreferenced = self.unreferenced
        if unreferenced is None:
            return None
        return tuple(name for name in names if name not in unreferenced and self.exported(name))

    def reaches_own_data(self, function: str) -> bool | None:
        """See SymbolTable.reaches_own_data; there is no code to see it in."""
        return None

    def reaches_object(self, address: int, size: int) -> bool | None:
        """See SymbolTable.reaches_object; there is no code to see it in."""
        return None

    def demands(self) -> tuple[Demand, ...]:
        """See SymbolTable.demands."""
        return tuple(_demand(s) for s in self.imports() if not s.weak)

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """See SymbolTable.offers."""
        return list_versions({name: self.exported(name) for name in names})

    def requested(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See SymbolTable.requested."""
        unreferenced = self.unreferenced
        if unreferenced is None:
            return None
        return tuple(name for name in names if name not in unreferenced)

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)


def _demand(symbol: Symbol) -> Demand:
    version = symbol.version
    if version is None or version.base:
        return symbol.name, None, None
    return symbol.name, version.name, version.library
