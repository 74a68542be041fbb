"""Files and directories the user named become the roots to judge. Reads magic numbers, never the ELF itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.errors import NothingToCheckError, UnreadableFileError
from linkcheck.inputs.wanted import ELF_MAGIC, is_library_name
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.errors import LinkcheckError


class NamedFile(Value):
    """A file to judge. `named` tells a file the user named from one that was found in a named directory."""

    path: str
    named: bool


class Listing(Value):
    """What one named path stands for, and what of it could not be looked at: one error never costs the rest."""

    files: tuple[NamedFile, ...]
    problems: tuple[LinkcheckError, ...] = ()


def list_files(path: str) -> Listing:
    """The files that `path` stands for, in a stable order.

    A file stands for itself, whatever it is. A directory stands for every file below it that begins with the ELF
    magic or is named like a shared library; symbolic links in it are not followed.

    The problems are an UnreadableFileError for each directory and file that cannot be read, and a NothingToCheckError
    for a directory without such a file.
    """
    if not os.path.isdir(path):
        return Listing((NamedFile(path, named=True),))
    problems: list[LinkcheckError] = []
    files = tuple(NamedFile(name, named=False) for name in _walk(path, problems))
    if not files and not problems:
        problems.append(NothingToCheckError(f"{path}: nothing to check: no ELF file in this directory"))
    return Listing(files, tuple(problems))


def _walk(directory: str, problems: list[LinkcheckError]) -> Iterator[str]:
    """The files worth judging, a directory's own before those below it, by name.

    An unpacked wheel has ten thousand headers and scripts beside its libraries, so this does no more than it must:
    what kind of entry it is comes with the listing, and a descriptor is opened, asked for four bytes, and closed.
    It does not recurse, as os.walk does before Python 3.12: a directory a thousand levels deep would end the run.
    """

    def note(path: str, error: OSError) -> None:
        problems.append(UnreadableFileError(path, error.strerror or str(error)))

    pending = [directory]
    while pending:
        parent = pending.pop()
        try:
            with os.scandir(parent) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            note(parent, error)
            continue
        below = []
        for entry in listing:
            try:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and (is_library_name(entry.name) or _is_elf(entry.path)):
                    yield entry.path
            except OSError as error:
                note(entry.path, error)
        pending += reversed(below)


def _is_elf(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, len(ELF_MAGIC)) == ELF_MAGIC
    finally:
        os.close(descriptor)
