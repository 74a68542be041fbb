"""What `verify` adds for ExecuTorch programs: reads them, and looks their backends' ids up in the files of processes.

Only for inputs with such programs. Judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.texts import find_texts
from linkcheck.errors import (
    MalformedElfError,
    MalformedProgramError,
    NotAnImageError,
    NotAProgramError,
    UnreadableFileError,
)
from linkcheck.executorch.block_file import BlockFile
from linkcheck.executorch.container import looks_like_program
from linkcheck.executorch.program import read_program
from linkcheck.model import FileKind, FoundBy
from linkcheck.rules.registration import may_register
from linkcheck.rules.rule import Bundle, Names
from linkcheck.text import one_line, unique
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from linkcheck.executorch.facts import ProgramFile
    from linkcheck.inputs.roots import NamedFile
    from linkcheck.model import LoadSet

#: Where the system's own libraries are found. They register no backend unless they say so by an import.
_SYSTEM = frozenset({FoundBy.CACHE, FoundBy.DEFAULT, FoundBy.INTERPRETER})


class Assembly(Value):
    """A bundle, and for each program that cannot be read the error."""

    bundle: Bundle
    errors: tuple[tuple[str, MalformedProgramError | NotAProgramError | UnreadableFileError], ...]


def is_program(path: str) -> bool:
    """Whether the file at `path` begins like an ExecuTorch program or its data, of any version."""
    try:
        with BlockFile(path) as file:
            return looks_like_program(file)
    except (UnreadableFileError, NotAProgramError):
        return False


def assemble_bundle(
    programs: Sequence[NamedFile], processes: Sequence[LoadSet], paths: Mapping[tuple[int, int], str]
) -> Assembly:
    """Read `programs`, and look for the ids of their backends in the files of `processes`.

    `paths` says where those files are; load sets have the names that users know.
    """
    read: list[ProgramFile] = []
    errors: list[tuple[str, MalformedProgramError | NotAProgramError | UnreadableFileError]] = []
    for program in programs:
        try:
            with BlockFile(program.path) as file:
                read.append(replace(read_program(file), path=one_line(program.path)))
        except (MalformedProgramError, NotAProgramError, UnreadableFileError) as error:
            errors.append((program.path, error))
    ids = unique(backend for program in read for backend in program.backends)
    named = frozenset(one_line(program.path) for program in programs if program.named)
    return Assembly(Bundle(tuple(read), tuple(processes), named, _find_names(processes, paths, ids)), tuple(errors))


def _find_names(
    processes: Sequence[LoadSet], paths: Mapping[tuple[int, int], str], ids: Sequence[str]
) -> dict[tuple[int, int], Names | str]:
    found: dict[tuple[int, int], Names | str] = {}
    for module in (module for process in processes for module in process.modules):
        key = module.image.device, module.image.inode
        if not ids or key in found or key not in paths or module.image.kind is FileKind.STAND_IN:
            continue
        try:
            if module.found_by in _SYSTEM and not may_register(module.image):
                continue
            texts = find_texts(paths[key], ids)
            found[key] = Names(texts.whole, texts.ends)
        except (MalformedElfError, NotAnImageError, UnreadableFileError) as error:
            found[key] = one_line(str(error))
    return found
