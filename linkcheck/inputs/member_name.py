"""The name of an archive's member as a place below a directory, or the reason to refuse the archive. Text only."""

from __future__ import annotations

from linkcheck.errors import ArchiveError
from linkcheck.inputs.limits import MAX_DEPTH, MAX_NAME


def split_name(archive: str, name: str) -> tuple[str, ...]:
    """The parts of a member's `name`, without `.`; () for the archive's own top.

    Raises ArchiveError, which names the `archive`, for a name that leads out of it (absolute, or with a `..`) or that
    no file can have.
    """
    if len(name) > MAX_NAME:
        raise ArchiveError(archive, f"the name of a member has {len(name):,} characters; the limit is {MAX_NAME:,}")
    if "\0" in name:
        raise ArchiveError(archive, f"the name of a member holds a NUL: {name!r}")
    if name.startswith("/"):
        raise ArchiveError(archive, f"the member {name} has an absolute path")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ArchiveError(archive, f"the path of the member {name} leads through ..")
    if len(parts) > MAX_DEPTH:
        raise ArchiveError(archive, f"a member lies {len(parts):,} directories deep; the limit is {MAX_DEPTH:,}")
    return parts


def relative_target(parts: tuple[str, ...], target: str) -> str | None:
    """The target of the symbolic link at `parts` as a relative path, or None when it leads out of the archive.

    An absolute target starts at the archive's top: that is where the archive will be unpacked, or the root directory.
    """
    depth = len(parts) - 1
    if target.startswith("/"):
        target = "../" * depth + target.lstrip("/")
    for part in target.split("/"):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            return None
    return target or "."
