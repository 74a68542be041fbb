"""Which role demands that a file imports a symbol, so that a weak import must find a definition, too. No verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.policy.symbols import matching_imports
from linkcheck.rules.ownership import roles_of

if TYPE_CHECKING:
    from linkcheck.model import Binding, LoadSet
    from linkcheck.policy.settings import Role, Settings


def find_demand(binding: Binding, load_set: LoadSet, settings: Settings) -> Role | None:
    """The first role of the file that demands the import that `binding` is about, if any."""
    table = load_set.modules[binding.module].image.symbols
    for role in roles_of(binding.module, load_set, settings):
        for spec in role.import_:
            if any(symbol.name == binding.symbol for symbol in matching_imports(table, spec)):
                return role
    return None
