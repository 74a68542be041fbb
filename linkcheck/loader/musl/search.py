"""Where musl's loader would find one NEEDED, and every path it would try before; it knows nothing of load order.

Source: musl ldso/dynlink.c (load_library, path_open, fixup_rpath, map_library).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError
from linkcheck.loader.musl.machine import split_path
from linkcheck.loader.search import ABSENT, MAX_PROBES, SPECIAL_KINDS, Found, Missing
from linkcheck.model import Attempt, FileKind, FoundBy
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.loader.search import Probes, Requester
    from linkcheck.loader.system import System
    from linkcheck.model import Image, Target

#: Errors of open(2) after which the next directory is tried; any other ends the whole search.
_GO_ON = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENAMETOOLONG})
#: Longest file name (Linux: NAME_MAX), in bytes.
_NAME_MAX = 255


def search(
    system: System,
    name: str,
    chain: Sequence[Requester],
    wanted: Target,
    last_directories: Sequence[str],
    probes: Probes,
) -> Found | Missing:
    """Find `name`, asked for by chain[0], which was loaded for chain[1], and so on up; the chain of a preload is empty.

    The file must be for `wanted`. `last_directories` are searched last. Each directory takes one of `probes`; when
    none is left, the result is Missing with `given_up`.
    """
    tried: list[Attempt] = []
    directories: list[str] = []

    def missing(given_up: str = "", *, stopped: bool = False) -> Missing:
        searched = unique(system.display(directory) for directory in directories)
        return Missing(system.share(searched), tuple(tried), given_up, stopped=stopped)

    if "/" not in name and len(name.encode("utf-8", "surrogateescape")) > _NAME_MAX:
        tried.append(Attempt(name, FoundBy.PATH, "its name is too long"))
        return missing(stopped=True)
    for found_by, directory in _list_steps(system, name, chain, last_directories):
        if directory is not None:
            if probes.left <= 0:
                return missing(f"the search was given up after {MAX_PROBES} directories looked into for one process")
            probes.left -= 1
            directories.append(directory)
        path = name if directory is None else f"{directory}/{name}"
        image, reason, goes_on = _open(system, path, wanted)
        if image is not None:
            return Found(image, path, found_by, tuple(tried))
        tried.append(Attempt(system.display(path), found_by, reason))
        if not goes_on:
            return missing(stopped=True)
    return missing()


def _list_steps(
    system: System, name: str, chain: Sequence[Requester], last_directories: Sequence[str]
) -> Iterator[tuple[FoundBy, str | None]]:
    """Each directory to look into, in order; None for a name with a slash, which is a path and no more."""
    if "/" in name:
        yield FoundBy.PATH, None
        return
    for entry in system.library_path:
        for directory in split_path(entry):
            yield FoundBy.LIBRARY_PATH, directory
    for holder in chain:
        # DT_RUNPATH replaces DT_RPATH, and is inherited just the same.
        image = holder.image
        tag = FoundBy.RPATH if image.runpath is None else FoundBy.RUNPATH
        path = image.rpath if image.runpath is None else image.runpath
        for directory in split_path(expand_origin(path or "", holder.origin)):
            yield tag, directory
    for directory in last_directories:
        yield FoundBy.DEFAULT, directory


def expand_origin(path: str, origin: str | None) -> str:
    """`path`, a DT_RPATH or DT_RUNPATH, with $ORIGIN and ${ORIGIN} replaced.

    Empty when it has another dollar sign, or when the origin is unknown: musl then ignores the whole tag.
    """
    before, *pieces = path.split("$")
    expanded = [before]
    for piece in pieces:
        token = next((token for token in ("ORIGIN", "{ORIGIN}") if piece.startswith(token)), None)
        if token is None or origin is None:
            return ""
        expanded += [origin, piece[len(token) :]]
    return "".join(expanded)


def _open(system: System, path: str, wanted: Target) -> tuple[Image | None, str, bool]:
    """The image at `path`, or why there is none, and whether the search then goes on.

    musl takes the first file that it can open, and fails when that is none it can map.
    """
    try:
        status = system.files.status(path)
    except (OSError, ValueError) as error:
        code = error.errno if isinstance(error, OSError) else None
        if code in (errno.ENOENT, errno.ENOTDIR):
            return None, ABSENT, True
        text = error.strerror if isinstance(error, OSError) else str(error)
        return None, f"cannot be opened: {text}", code in _GO_ON
    if not stat.S_ISREG(status.st_mode):
        kind = SPECIAL_KINDS.get(stat.S_IFMT(status.st_mode), FileKind.DEVICE)
        return None, f"not a regular file: {kind.value}", False
    try:
        image = system.image(path, status)
    except LinkcheckError as error:
        readable = os.access(system.files.host_path(path), os.R_OK)
        return None, getattr(error, "reason", "") or str(error), not readable
    reason = _judge(image, wanted)
    return (None, reason, False) if reason else (image, "", True)


def _judge(image: Image, wanted: Target) -> str:
    """Why a process could not use `image`, or "". musl itself does not look: it maps what is for another machine."""
    target = image.target
    if target.bits != wanted.bits:
        return f"wrong class: {target}"
    if target != wanted:
        return f"wrong machine: {target}"
    if image.kind is FileKind.EXECUTABLE:
        return "cannot be loaded as a library: an executable linked at a fixed address"
    return ""
