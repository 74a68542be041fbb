"""Files and directories the user named become the roots to judge. Reads magic numbers, never the ELF itself."""

from __future__ import annotations

import os
import stat
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
    def note(error: OSError) -> None:
        problems.append(UnreadableFileError(str(error.filename), error.strerror or str(error)))

    for parent, directories, names in os.walk(directory, onerror=note):
        directories.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode) and (is_library_name(name) or _has_elf_magic(path)):
                    yield path
            except OSError as error:
                note(error)


def _has_elf_magic(path: str) -> bool:
    with open(path, "rb", buffering=0) as file:
        return file.read(4) == ELF_MAGIC
