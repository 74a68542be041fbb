"""What imports and definitions bind to by musl's rules, where these differ from glibc's; it judges no binding.

Source: musl ldso/dynlink.c (find_sym2, gnu_lookup, do_relocs, add_syms, dlopen).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import Finder
from linkcheck.loader.scope import Scope, search_list
from linkcheck.model import BindingKind, FoundBy, SymbolType, Visibility
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from linkcheck.model import Binding, Demand, Image, LoadSet, Symbol

#: Types that a look-up can end at: not STT_GNU_IFUNC, for musl has no such functions.
_TYPES = frozenset({SymbolType.NOTYPE, SymbolType.OBJECT, SymbolType.FUNC, SymbolType.COMMON, SymbolType.TLS})


class MuslFinder(Finder):
    """Looks names up as musl does: in load order, without versions, and STB_GNU_UNIQUE like any other definition."""

    copies_weak = True

    @staticmethod
    def list_scopes(load_set: LoadSet) -> tuple[Scope, ...]:
        """The scope of every module. DT_SYMBOLIC and RTLD_DEEPBIND are nothing to musl."""
        preloads = [index for index, module in enumerate(load_set.modules) if module.found_by is FoundBy.PRELOAD]
        global_scope = search_list(load_set, [0, *preloads])
        scopes = [Scope(index, tuple(global_scope)) for index in global_scope]
        relocated = set(global_scope)
        for opened in load_set.opened:
            local = search_list(load_set, [opened.module])
            modules = tuple(dict.fromkeys((*global_scope, *local)))
            scopes += [Scope(index, modules) for index in local if index not in relocated]
            relocated.update(local)
            if opened.global_:
                global_scope += [index for index in local if index not in global_scope]
        return tuple(scopes)

    @staticmethod
    def match_version(image: Image, candidates: Iterable[Symbol], version: str | None) -> Symbol | None:
        """The definition that every request gets, whatever version it names: the first that is no hidden version."""
        symbol = next((s for s in candidates if s.version is None or not s.version.hidden), None)
        if symbol is None or symbol.type not in _TYPES:
            return None
        return symbol if symbol.value or symbol.type == SymbolType.TLS else None

    @classmethod
    def serve(
        cls, image: Image, demands: Iterable[Demand], offers: Mapping[str, Collection[str | None]]
    ) -> set[Demand]:
        """Those of `demands` that get a definition of `image`; in which versions it has one tells nothing."""
        return {d for d in demands if d[0] in offers and cls.is_served(image, d[0], d[1])}

    @staticmethod
    def other_name(name: str) -> str | None:
        """What the loader looks for in itself when nobody defines `name`, if anything.

        Since 1.2.4 libc.so has no symbols like fopen64, and the loader takes its own fopen for them. It keeps a list of
        them; what libc.so defines without the 64 and somebody imports with it comes to the same.
        """
        return name.replace("64", "") if name.endswith(("64", "64_r")) else None

    def _bind_definition(self, scope: Scope, symbol: Symbol) -> Binding:
        found = super()._bind_definition(scope, symbol)
        image = self._modules[scope.module].image
        if symbol.visibility is Visibility.PROTECTED and image.symbols.referenced((symbol.name,)):
            # musl does not ask for the visibility of what a relocation names: gold leaves one for a protected object.
            found = replace(found, provider=self._look_up(scope, symbol.name, None))
        # No look-up ends at a hidden version. What uses of it there are inside its file were bound by the linker.
        if found.provider is None and found.kind is BindingKind.DEFINITION:
            return replace(found, provider=scope.module)
        return found

    def _bind_copy(self, scope: Scope, symbol: Symbol, version: str | None) -> Binding:
        found = super()._bind_copy(scope, symbol, version)
        # Here a weak object that is nowhere to be copied from ends the start, too.
        return found if symbol.name in self.copies else replace(found, provider=None, weak=False)

    def _match(self, scope: Scope, name: str, version: str | None) -> tuple[int, Symbol] | None:
        found = super()._match(scope, name, version)
        if found is None and (other := self.other_name(name)) is not None:
            loader = [i for i in scope.modules if self._modules[i].found_by is FoundBy.INTERPRETER]
            return super()._match(Scope(scope.module, tuple(loader)), other, version)
        return found

    def _settle(self, asker: int, index: int, symbol: Symbol) -> int:
        return index

    def _lacks_versions(self, symbol: Symbol, index: int) -> bool:
        return False
