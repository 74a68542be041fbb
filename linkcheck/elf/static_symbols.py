"""The symbols of an executable without PT_DYNAMIC: none for a loader; `.symtab` may tell more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.deep import list_symtab_names, list_symtab_names_with

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from linkcheck.elf.header import Header
    from linkcheck.model import Demand, Symbol
    from linkcheck.opened_file import FileStamp


class StaticSymbols:
    """A model.SymbolTable for an executable without PT_DYNAMIC: nothing to bind, but `.symtab` may still tell."""

    __slots__ = ("_header", "_open")

    #: See model.SymbolTable.unseen: there is no table to miss anything of.
    unseen: str | None = None

    def __init__(self, path: str, opened_as: str, stamp: FileStamp, header: Header) -> None:
        """Remember where to look: `opened_as` is the absolute form of `path`, which messages show."""
        self._open: Callable[[], BoundedFile] = partial(BoundedFile, path, opened_as=opened_as, expected=stamp)
        self._header = header

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """Nothing."""
        return ()

    def imported(self, name: str) -> Symbol | None:
        """Nothing."""
        return None

    def imports(self) -> Iterator[Symbol]:
        """Nothing."""
        return iter(())

    def count_imports(self) -> int:
        """None."""
        return 0

    def exports(self) -> Iterator[Symbol]:
        """Nothing."""
        return iter(())

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.private."""
        with self._open() as file:
            return list_symtab_names(file, self._header, names)

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """See model.SymbolTable.private_with."""
        with self._open() as file:
            return list_symtab_names_with(file, self._header, parts)

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """Nothing: without a loader there is nobody to copy."""
        return ()

    def copied_as(self, name: str) -> str | None:
        """None: without a loader there is nobody to copy."""
        return None

    def objects_at(self, address: int) -> tuple[str, ...]:
        """Nothing: nothing is exported."""
        return ()

    def copy_demands(self, *, weak: bool) -> tuple[Demand, ...]:
        """None: without a loader there is nobody to copy."""
        return ()

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """None of `names`: nothing is exported."""
        return ()

    def reaches_own_data(self, function: str) -> bool | None:
        """Not told: no other file's definition comes into question."""
        return None

    def reaches_object(self, address: int, size: int) -> bool | None:
        """Not told: nobody has a copy of it."""
        return None

    def demands(self) -> tuple[Demand, ...]:
        """None: nobody binds anything."""
        return ()

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """Nothing."""
        return {}

    def requested(self, names: Collection[str]) -> tuple[str, ...]:
        """None of `names`: nothing is imported."""
        return ()

    def __iter__(self) -> Iterator[Symbol]:
        return iter(())
