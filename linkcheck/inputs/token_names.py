"""What a name with a token ($ORIGIN, $LIB, $PLATFORM) led to when nothing could be loaded by it. It searches nothing.

Imported only where something was not found: which file is meant, the loader decides.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from linkcheck.loader.tidy import tidy_path
from linkcheck.loader.tokens import expand, has_token
from linkcheck.model import Libc
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.inputs.process import ExaminedFile, Examiner
    from linkcheck.loader.system import System
    from linkcheck.model import LoadSet


def examine_expanded(
    load_set: LoadSet, tidied: LoadSet, names: Sequence[str], system: System, examiner: Examiner
) -> tuple[LoadSet, list[ExaminedFile]]:
    """`tidied` with what was not found of those `names` that have a token: as if its path had been given (`examined`).

    And the files to which they lead, where these are no images: of an image the search has said why it was not taken.
    `tidied` is `load_set` with shorter paths; `names` are what is to be preloaded or dlopened.
    """
    unresolved = list(tidied.unresolved)
    opened = []
    for index, missing in enumerate(load_set.unresolved):
        if missing.special is None or missing.needed not in names or not has_token(missing.needed):
            continue
        path = _expand(missing.needed, load_set, missing.module, system)
        examined = examiner.examine(path) if path is not None and "/" in path else None
        if examined is not None and examined.image is None:
            opened.append(examined)
            unresolved[index] = replace(unresolved[index], rejected=(), given_up="", examined=True)
    return replace(tidied, unresolved=tuple(unresolved)), opened


def _expand(name: str, load_set: LoadSet, module: int, system: System) -> str | None:
    """The path on this machine to which `name`, opened by that module, leads; None when a token has no value."""
    image, files = load_set.modules[module].image, system.files
    if load_set.libc is Libc.GLIBC:
        path = files.inside(image.path)
        if image.is_executable:
            with suppress(OSError):
                path = files.canonical(path)
        origin = files.absolute(path).rpartition("/")[0] or "/"
        loader = system.loader_of(load_set.root)
        expanded = expand(name, partial(system.token_value, image.target, loader, origin))
        if expanded is None:
            return None
        name = expanded
    directory, _, last = files.absolute(name).rpartition("/")
    try:
        # The last part stays: a link to nothing is called so.
        return tidy_path(f"{files.host_path(directory or '/').rstrip('/')}/{last}")
    except OSError:  # a loop of links, which whoever opens it meets again
        return system.display(name)
