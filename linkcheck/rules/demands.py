"""Which role demands that a file imports a symbol, so that a weak import must find a definition, too. No verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.rules.ownership import list_imports, roles_of

if TYPE_CHECKING:
    from linkcheck.model import Binding, LoadSet
    from linkcheck.policy.settings import Role, Settings


def find_demand(binding: Binding, load_set: LoadSet, settings: Settings) -> Role | None:
    """The first role of the file that demands the import that `binding` is about, if any."""
    image = load_set.modules[binding.module].image
    for role in roles_of(binding.module, load_set, settings):
        for spec in role.import_:
            if any(symbol.name == binding.symbol for symbol in list_imports(image, spec)):
                return role
    return None
