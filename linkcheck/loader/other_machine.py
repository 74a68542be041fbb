"""Whether a search on this machine tells anything of the machine that a file is for; it searches nothing itself.

On x86-64 a file for aarch64 is not looked for where its own machine would have it: the directories and ld.so.cache are
those of x86-64. Imported only when something was not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError
from linkcheck.model import FoundBy
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.loader.search import Missing
    from linkcheck.loader.system import System
    from linkcheck.model import Target

#: What this process runs on is what its own program was built for: uname(2) says nothing of a 32-bit one.
_OWN_PROGRAM = "/proc/self/exe"
#: Steps of the search that lead into directories which nobody chose for the file.
_OF_THE_MACHINE = frozenset({FoundBy.CACHE, FoundBy.DEFAULT})
#: Steps that the file's own tags lead through.
_OF_THE_FILE = frozenset({FoundBy.RPATH, FoundBy.RUNPATH})


def describe_other_machine(system: System, target: Target, loader: str | None) -> str:
    """Why this machine's directories say nothing of what a process for `target` finds; "" when they do.

    They do below a sysroot, on a machine of that kind, and where `loader`, which such a process starts with, is there:
    whoever installed a second architecture has its libraries, too.
    """
    if not system.files.is_host or (loader is not None and _find_target(system, loader) == target):
        return ""
    try:
        own = system.image(_OWN_PROGRAM).target
    except (LinkcheckError, OSError):  # no /proc, or no ELF at all, as on macOS
        here, wanted = "its own programs", target.machine_name
    else:
        if own == target:
            return ""
        same_name = own.machine_name == target.machine_name
        here, wanted = (str(own), str(target)) if same_name else (own.machine_name, target.machine_name)
    return (
        f"the file is for {wanted}, and this machine's default directories and ld.so.cache are for {here} "
        f"(--root takes the root directory of a system for {wanted}, and verify --external what such a system provides)"
    )


def leave_out_this_machine(missing: Missing, name: str, origins: Iterable[str], reason: str, *, named: bool) -> Missing:
    """What of `missing`, a search for `name` for another machine, tells something of that machine; else `reason`.

    A file that was met in this machine's own directories is none that a process there would meet. What lies beside
    the files in question (`origins` are the directories that $ORIGIN stands for), in --library-path, or where the user
    says (`named`), is. Nothing is left open for a path that leads to such a place, and where one ends the search.
    """
    if "/" in name:
        is_elsewhere = name.startswith("/") and not named
        return replace(missing, tried=(), given_up=reason) if is_elsewhere else missing
    homes = tuple(f"{origin.rstrip('/')}/" for origin in origins)
    kept = tuple(
        attempt
        for attempt in missing.tried
        if attempt.found_by not in _OF_THE_MACHINE
        and (attempt.found_by not in _OF_THE_FILE or attempt.path.startswith(homes))
    )
    if missing.stopped and kept and kept[-1] is missing.tried[-1]:
        return replace(missing, tried=kept)  # the search ends there
    looked_into = {attempt.path.rpartition("/")[0] or "/" for attempt in kept}
    directories = tuple(one for one in missing.directories if one in looked_into)
    return replace(missing, directories=directories, tried=kept, given_up=reason)


def _find_target(system: System, path: str) -> Target | None:
    try:
        return system.image(path).target
    except (LinkcheckError, OSError, ValueError):
        return None
