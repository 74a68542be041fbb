"""Why an archive, or a file inside one, is no file that a command can start from. Unpacks nothing."""

from __future__ import annotations

import os

from linkcheck.errors import ArchiveError, NotAnImageError, UsageProblemError
from linkcheck.inputs.archive_kind import identify_archive


def refuse_member(path: str) -> None:
    """Raise UsageProblemError when `path` is a report's name for a file inside an archive, and no file of its own."""
    archive, mark, _ = path.partition("!/")
    if mark and not os.path.lexists(path) and os.path.isfile(archive):
        raise UsageProblemError(
            f"{path}: a file inside an archive cannot be named alone; `verify` and `scan` take the whole of {archive}, "
            "other commands the file when it is unpacked"
        )


def refuse_archive(path: str) -> None:
    """Raise NotAnImageError, which says which archive it is, when `path` is one."""
    try:
        kind = identify_archive(path)
    except ArchiveError:
        return
    if kind is not None:
        what = "a .deb" if kind.value == "deb" else f"a {kind.value}"
        raise NotAnImageError(path, f"it is {what}; `verify` and `scan` look into it, for this command unpack it")
