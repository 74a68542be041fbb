"""Files and directories the user named become the roots to judge. Reads magic numbers, never the ELF itself."""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING

from linkcheck.errors import NothingToCheckError, UnreadableFileError
from linkcheck.inputs.wanted import ELF_MAGIC, PROGRAM_SUFFIX, is_library_name
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
    magic or is named like a shared library or an ExecuTorch program; symbolic links in it are not followed.

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
    pending = [directory]
    while pending:
        parent = pending.pop()
        try:
            descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            problems.append(UnreadableFileError(parent, error.strerror or str(error)))
            continue
        below: list[str] = []
        try:
            yield from _find_in(parent, descriptor, below, problems)
        finally:
            os.close(descriptor)
        pending += reversed(below)


def _find_in(parent: str, descriptor: int, below: list[str], problems: list[LinkcheckError]) -> Iterator[str]:
    """The files of the open directory `parent` itself; its directories are added to `below`.

    Files are opened from the directory on: looking a long path up for each takes a third of the time of a walk.
    """
    try:
        with os.scandir(descriptor) as entries:
            listing = sorted(entries, key=_name)
    except OSError as error:
        problems.append(UnreadableFileError(parent, error.strerror or str(error)))
        return
    for entry in listing:
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                below.append(os.path.join(parent, name))
            elif entry.is_file(follow_symlinks=False):
                if is_library_name(name) or name.endswith(PROGRAM_SUFFIX):
                    yield os.path.join(parent, name)
                    continue
                file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=descriptor)
                try:
                    head = os.read(file, len(ELF_MAGIC))
                finally:
                    os.close(file)
                if head == ELF_MAGIC:
                    yield os.path.join(parent, name)
        except OSError as error:
            path = os.path.join(parent, name)
            problems.append(UnreadableFileError(path, error.strerror or str(error)))


_name = attrgetter("name")
