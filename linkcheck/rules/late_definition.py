"""What lazy binding may change of an import without a definition: a file opened later with RTLD_GLOBAL. No verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.lookup import finder_of
from linkcheck.rules.wording import listed

if TYPE_CHECKING:
    from collections.abc import Collection

    from linkcheck.model import Image, LoadSet

#: <elf.h>: in DT_FLAGS and DT_FLAGS_1.
_DF_BIND_NOW = 8
_DF_1_NOW = 1


def tell_late_definition(load_set: LoadSet, index: int, names: Collection[str]) -> str:
    """A sentence, after a space, if all of `names` are defined where ld.so looks only after it has relocated `index`.

    "" otherwise. Calls of functions that are bound lazily are looked up when they are made (glibc elf/dl-runtime.c;
    musl does it again after each dlopen). Raises what SymbolTable.exported raises.
    """
    if not any(opened.global_ for opened in load_set.opened) or _binds_at_once(load_set.modules[index].image):
        return ""
    scope = next((one.modules for one in finder_of(load_set).list_scopes(load_set) if one.module == index), ())
    late = [m.image for other, m in enumerate(load_set.modules) if m.scope == "global" and other not in scope]
    definers = {name: next((image for image in late if image.symbols.exported(name)), None) for name in names}
    paths = [image.path for image in definers.values() if image is not None]
    if len(paths) < len(definers):
        return ""
    which = listed(tuple(dict.fromkeys(paths)))
    return (
        f" {which}, opened with RTLD_GLOBAL after it, has a definition: a function that is bound lazily (RTLD_LAZY, "
        "not linked with -z now) and called only then gets that."
    )


def _binds_at_once(image: Image) -> bool:
    return bool(image.flags & _DF_BIND_NOW or image.flags_1 & _DF_1_NOW)
