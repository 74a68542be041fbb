"""What every import and every definition of a load set binds to; it judges no binding.

`Finder` follows glibc; what musl does otherwise is in musl/lookup.py.
Source: glibc elf/dl-lookup.c (check_match, do_lookup_x, do_lookup_unique, _dl_lookup_symbol_x).

A STB_GNU_UNIQUE definition becomes the process-wide one when a look-up ends at it, and ld.so looks up only what a
relocation refers to: of such names the relocations are asked. What else the symbol tables do not tell is not here
(state.py): a library linked with -Bsymbolic-functions or compiled with -fno-semantic-interposition calls its own
definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.scope import list_scopes
from linkcheck.model import Binding, BindingKind, Libc, SymbolBinding, Visibility
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from linkcheck.loader.scope import Scope
    from linkcheck.model import Demand, Image, LoadSet, Module, Symbol

#: Version indices below this name no version of their own: local, global, and the first one a library defines, which
#: ld.so takes to be the oldest.
_FIRST_NEWER_VERSION = 3

#: With more symbols than this, whole tables are read: measured on 48 files, one look-up takes 15 us, and reading all
#: 30,000 definitions 0.1 s.
_WHOLE_TABLES_ABOVE = 200


def bindings(load_set: LoadSet, symbols: Collection[str] | None = None, *, private: bool = True) -> tuple[Binding, ...]:
    """One Binding for each module that imports or defines one of `symbols` (None: every import of every module).

    In load order, and within a module in the order of `symbols`. Without `private` the definitions that only their own
    file can use are left out; they are looked for in `.symtab`, which takes long for many names. Raises
    MalformedElfError or UnreadableFileError when a symbol table cannot be read.
    """
    if symbols is not None and not symbols:
        return ()
    finder = finder_of(load_set)(load_set, whole=symbols is None or len(symbols) > _WHOLE_TABLES_ABOVE)
    found: dict[int, list[Binding]] = {}
    for scope in finder.list_scopes(load_set):
        image = load_set.modules[scope.module].image
        if symbols is None:
            finder.settle_unique(scope)
            found[scope.module] = [finder.bind_import(scope, symbol) for symbol in image.symbols.imports()]
        else:
            found[scope.module] = [binding for name in symbols for binding in finder.bind(scope, name)]
            if private:
                found[scope.module] += _private(scope.module, image, symbols)
    return tuple(
        replace(binding, copy_of=finder.copies.get(binding.symbol))
        if binding.provider == 0 and finder.copies
        else binding
        for index in sorted(found)
        for binding in found[index]
    )


def _private(index: int, image: Image, symbols: Collection[str]) -> list[Binding]:
    return [Binding(index, name, None, BindingKind.HIDDEN, index) for name in image.symbols.private(symbols)]


def pick_definition(load_set: LoadSet, provider: int, name: str, version: str | None) -> Symbol | None:
    """The definition of `name` in the module at `provider` that a request for `version` gets, or None."""
    image = load_set.modules[provider].image
    return finder_of(load_set).match_version(image, image.symbols.exported(name), version)


def finder_of(load_set: LoadSet) -> type[Finder]:
    """What looks names up by the rules of the load set's C library."""
    if load_set.libc is Libc.MUSL:
        from linkcheck.loader.musl.lookup import MuslFinder

        return MuslFinder
    return Finder


class Finder:
    """Looks names up in the scopes of one load set and remembers what became process-wide."""

    #: Whether a weak object that a program has room for must be copied from somewhere, too.
    copies_weak = False

    @staticmethod
    def list_scopes(load_set: LoadSet) -> tuple[Scope, ...]:
        """The scope of every module, in the order in which they are relocated."""
        return list_scopes(load_set)

    @staticmethod
    def match_version(image: Image, candidates: Iterable[Symbol], version: str | None) -> Symbol | None:
        """The one of `candidates` (definitions of one name in `image`) that a request for `version` gets, or None."""
        return match_version(image, candidates, version)

    @classmethod
    def serve(
        cls, image: Image, demands: Iterable[Demand], offers: Mapping[str, Collection[str | None]]
    ) -> set[Demand]:
        """Those of `demands` that get a definition of `image`, whose `offers` (SymbolTable.offers) these are."""
        # Most name a version that the symbol has, which takes no look at the symbol.
        return {
            demand
            for demand in demands
            if (versions := offers.get(demand[0]))
            and (demand[1] in versions or cls.is_served(image, demand[0], demand[1]))
        }

    @classmethod
    def is_served(cls, image: Image, name: str, version: str | None) -> bool:
        """Whether a request for `name` in `version` gets a definition of `image`."""
        return cls.match_version(image, image.symbols.exported(name), version) is not None

    @staticmethod
    def other_name(_: str) -> str | None:
        """What the loader looks for in itself when nobody defines a name, if anything."""
        return None

    def __init__(self, load_set: LoadSet, *, whole: bool) -> None:
        """`whole`: read whole tables once instead of asking them for each name."""
        self._load_set = load_set
        self._modules = load_set.modules
        self._names: list[set[str]] | None = None
        self._exported: dict[tuple[int, str], tuple[Symbol, ...]] = {}
        self._tables: list[dict[str, list[Symbol]]] | None = (
            [self._read_exports(m) for m in self._modules] if whole else None
        )
        self._imported = [self._read_imports(m) for m in self._modules] if whole else None
        #: Name of a STB_GNU_UNIQUE symbol -> the module whose definition all get whose look-up ends at a unique one.
        self._unique: dict[str, int] = {}
        #: The names among which the first look-up decides (_list_contested), once whole tables were gone through.
        self._contested: frozenset[str] | None = None
        #: Module, and the names that were asked about -> those that its relocations refer to; None: cannot be told.
        self._referred: dict[tuple[int, frozenset[str]], frozenset[str] | None] = {}
        #: Name of an object that the executable holds as a copy -> the module it is copied from.
        self.copies: dict[str, int] = {}

    def bind(self, scope: Scope, name: str) -> list[Binding]:
        """The bindings of one module that have to do with `name`."""
        if self._imported is not None:
            imported = self._imported[scope.module].get(name)
        else:
            imported = self._modules[scope.module].image.symbols.imported(name)
        found = [self.bind_import(scope, imported)] if imported is not None else []
        return found + [self._bind_definition(scope, symbol) for symbol in self._definitions(scope.module, name)]

    def settle_unique(self, scope: Scope) -> None:
        """Let the module's own STB_GNU_UNIQUE definitions become, or give way to, the process-wide ones."""
        if self._tables is not None:
            for definitions in self._tables[scope.module].values():
                for symbol in definitions:
                    if symbol.binding == SymbolBinding.GNU_UNIQUE:
                        self._bind_definition(scope, symbol)

    def bind_import(self, scope: Scope, symbol: Symbol) -> Binding:
        """Where an undefined entry of the module's table leads."""
        version = version_name(symbol)
        match = self._match(scope, symbol.name, version)
        provider, unversioned = None, False
        if match is not None:
            provider = self._settle(scope.module, *match)
            unversioned = self._lacks_versions(symbol, match[0])
        return Binding(
            scope.module,
            symbol.name,
            version,
            BindingKind.IMPORT,
            provider,
            symbol.weak,
            unversioned=unversioned,
            slot=provider is None and symbol.weak and symbol.value != 0,
        )

    def _lacks_versions(self, symbol: Symbol, index: int) -> bool:
        """Whether the module at `index` is the library that `symbol` wants a version of, and has no versions."""
        library = symbol.version.library if symbol.version is not None else None
        image = self._modules[index].image
        if library is None or image.version_definitions or image.version_needs:
            return False
        if self._names is None:
            from linkcheck.loader.versions import list_names

            self._names = list_names(self._load_set)
        return library in self._names[index]

    def _bind_definition(self, scope: Scope, symbol: Symbol) -> Binding:
        version = version_name(symbol)
        image = self._modules[scope.module].image
        if image.is_executable and image.symbols.copied((symbol.name,)):
            return self._bind_copy(scope, symbol, version)
        if symbol.binding == SymbolBinding.GNU_UNIQUE:
            # Which linkers leave the choice to the loader, and when, is seen from what they left: GNU ld does in
            # libraries, also with -Bsymbolic, and gold and lld do not with -Bsymbolic.
            asks = self._refers(scope.module, symbol.name)
        else:
            # In an executable, and in a library linked with -Bsymbolic, the linker has bound its own uses for good, and
            # not even RTLD_DEEPBIND changes them.
            asks = not (image.is_executable or image.symbolic)
        found = self._look_up(scope, symbol.name, version) if asks else scope.module
        # A protected definition is never given away, whatever its look-up ends at.
        provider = scope.module if symbol.visibility is Visibility.PROTECTED else found
        return Binding(scope.module, symbol.name, version, BindingKind.DEFINITION, provider)

    def _bind_copy(self, scope: Scope, symbol: Symbol, version: str | None) -> Binding:
        """An executable's use of an object it makes room for: an import, though its table shows a definition."""
        others = replace(scope, modules=tuple(index for index in scope.modules if index != scope.module))
        # What ld.so looks up is the name in the relocation, which may be another one of the same object.
        name = self._modules[scope.module].image.symbols.copied_as(symbol.name) or symbol.name
        asked = symbol if name == symbol.name else next(iter(self._definitions(scope.module, name)), symbol)
        source = self._match(others, asked.name, version_name(asked))
        # A weak one may lack what it would be a copy of, and is then used as it is, all zeros.
        provider, unversioned = scope.module if asked.weak else None, False
        if source is not None:
            self.copies[symbol.name], found = source
            provider = scope.module
            unversioned = self._lacks_versions(asked, source[0])
            if found.binding == SymbolBinding.GNU_UNIQUE:
                self._unique.setdefault(symbol.name, scope.module)
        return Binding(
            scope.module, symbol.name, version, BindingKind.IMPORT, provider, asked.weak, unversioned=unversioned
        )

    def _look_up(self, scope: Scope, name: str, version: str | None) -> int | None:
        match = self._match(scope, name, version)
        return None if match is None else self._settle(scope.module, *match)

    def _settle(self, asker: int, index: int, symbol: Symbol) -> int:
        """The module whose definition is used where the look-up of module `asker` ends at `symbol` of module `index`.

        Without a relocation `asker` makes none, and later look-ups are as free as before.
        """
        if symbol.binding != SymbolBinding.GNU_UNIQUE:
            return index
        if self._refers(asker, symbol.name):
            return self._unique.setdefault(symbol.name, index)
        return self._unique.get(symbol.name, index)

    def _refers(self, index: int, name: str) -> bool:
        """Whether a relocation of the module refers to `name`; also true where that cannot be told or decides nothing.

        It decides something for names as of _list_contested only.
        """
        if self._tables is None:
            names = frozenset((name,)) if self._is_contested(name) else frozenset()
        else:
            if self._contested is None:
                self._contested = self._list_contested(self._tables)
            names = self._contested
        if name not in names:
            return True
        key = (index, names)
        if key not in self._referred:
            table = self._modules[index].image.symbols
            defined = [one for one in names if self._definitions(index, one)]
            own = table.referenced(defined) if defined else ()
            others = table.requested(names.difference(defined)) if len(defined) < len(names) else ()
            self._referred[key] = None if own is None or others is None else frozenset((*own, *others))
        found = self._referred[key]
        return found is None or name in found

    def _is_contested(self, name: str) -> bool:
        definitions = [found for index in range(len(self._modules)) if (found := self._definitions(index, name))]
        return len(definitions) > 1 and any(
            s.binding == SymbolBinding.GNU_UNIQUE for found in definitions for s in found
        )

    @staticmethod
    def _list_contested(tables: Sequence[Mapping[str, Sequence[Symbol]]]) -> frozenset[str]:
        """The names that several modules define, and one of them at least as STB_GNU_UNIQUE."""
        unique = {
            name
            for table in tables
            for name, found in table.items()
            if any(symbol.binding == SymbolBinding.GNU_UNIQUE for symbol in found)
        }
        once: set[str] = set()
        several: set[str] = set()
        for table in tables:
            defined = unique.intersection(table)
            several |= defined & once
            once |= defined
        return frozenset(several)

    def _match(self, scope: Scope, name: str, version: str | None) -> tuple[int, Symbol] | None:
        for index in scope.modules:
            candidates = self._definitions(index, name)
            if not candidates:
                continue
            symbol = self.match_version(self._modules[index].image, candidates, version)
            if symbol is not None:
                return index, symbol
        return None

    @staticmethod
    def _read_imports(module: Module) -> dict[str, Symbol]:
        table: dict[str, Symbol] = {}
        for symbol in module.image.symbols.imports():
            table.setdefault(symbol.name, symbol)
        return table

    @staticmethod
    def _read_exports(module: Module) -> dict[str, list[Symbol]]:
        table: dict[str, list[Symbol]] = {}
        for symbol in module.image.symbols.exports():
            table.setdefault(symbol.name, []).append(symbol)
        return table

    def _definitions(self, index: int, name: str) -> Sequence[Symbol]:
        if self._tables is not None:
            return self._tables[index].get(name, ())
        key = (index, name)
        known = self._exported.get(key)
        if known is None:
            known = self._exported[key] = self._modules[index].image.symbols.exported(name)
        return known


def version_name(symbol: Symbol) -> str | None:
    """The version that a request has to name to get `symbol`; None for an unversioned one and a base version."""
    version = symbol.version
    return None if version is None or version.base else version.name


def match_version(image: Image, candidates: Iterable[Symbol], version: str | None) -> Symbol | None:
    """The one of `candidates` (definitions of one name in `image`) that a request for `version` gets, or None.

    With a version: that very version, else a definition without one. Without: a definition without a version or of
    the image's oldest version, else the default version if there is only one.
    """
    defaults = []
    if version is not None:
        for symbol in candidates:
            own = version_name(symbol)
            if own == version:
                return symbol
            if own is None and not (symbol.version is not None and symbol.version.hidden):
                defaults.append(symbol)
    else:
        for symbol in candidates:
            if _version_index(image, symbol) < _FIRST_NEWER_VERSION:
                return symbol
            if symbol.version is not None and not symbol.version.hidden:
                defaults.append(symbol)
    return defaults[0] if len(defaults) == 1 else None


def _version_index(image: Image, symbol: Symbol) -> int:
    """The version index of a definition; linkers number the versions from 2 on in the order they list them."""
    name = version_name(symbol)
    if name is None:
        return 1
    named = [definition.name for definition in image.version_definitions if not definition.base]
    return named.index(name) + 2 if name in named else len(named) + 2
