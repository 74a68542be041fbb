"""Reads ExecuTorch files that belong together; finds where their engines are and who uses them. Gives no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import MalformedProgramError, NotAProgramError, UnreadableFileError
from linkcheck.executorch.block_file import BlockFile
from linkcheck.executorch.facts import Engine, NamedDataIndex, ProgramSet
from linkcheck.executorch.limits import SAMPLE_SIZE
from linkcheck.executorch.plan import describe_plan
from linkcheck.executorch.program import read_program
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from linkcheck.executorch.facts import Delegate, Place, ProgramFile
    from linkcheck.opened_file import FileStamp

    ProgramError = MalformedProgramError | NotAProgramError | UnreadableFileError


class Survey(Value):
    """What was read, and for each path that could not be read the error; the paths are `programs.unread`, too."""

    programs: ProgramSet
    errors: tuple[tuple[str, ProgramError], ...]


def survey_programs(paths: Sequence[str], *, hashed: bool = True) -> Survey:
    """Read the files at `paths`, and their engines as far as `hashed` or their first bytes ask for it.

    A file that is named twice, or has two names, is read once.
    """
    files: list[ProgramFile] = []
    errors: list[tuple[str, ProgramError]] = []
    stamps: dict[str, FileStamp] = {}
    for path in paths:
        try:
            with BlockFile(path) as file:
                if file.stamp in stamps.values():
                    continue
                files.append(read_program(file))
                stamps[path] = file.stamp
        except (MalformedProgramError, NotAProgramError, UnreadableFileError) as error:
            errors.append((path, error))
    engines: list[Engine] = []
    found = _find_engines(files)
    for path, stamp in stamps.items():
        here = [place for place in found if place.path == path]
        try:
            with BlockFile(path, stamp) as file:
                engines += [_examine(file, place, *found[place], hashed=hashed) for place in here]
        except (NotAProgramError, UnreadableFileError) as error:  # what was read of it holds no longer
            errors.append((path, error))
    unread = tuple([path for path, _ in errors])
    files = [file for file in files if file.path not in unread]
    return Survey(ProgramSet(tuple(files), tuple(engines), hashed, unread), tuple(errors))


def _find_engines(files: Sequence[ProgramFile]) -> dict[Place, tuple[dict[str, None], list[Delegate]]]:
    """Each place that holds an engine, with the keys that lead there and the delegates that use it."""
    engines: dict[Place, tuple[dict[str, None], list[Delegate]]] = {}
    named_data = NamedDataIndex(files)
    for file in files:
        for entry in file.named_data:
            if entry.is_engine:
                engines.setdefault(entry.place, ({}, []))[0][entry.key] = None
        for delegate in file.tensorrt_delegates:
            if delegate.blob is None:
                continue
            if delegate.blob.inline is not None:
                engines.setdefault(delegate.blob.inline, ({}, []))[1].append(delegate)
            key = delegate.blob.metadata.engine_key
            found = None if key is None else named_data.find(key, file.path)
            if found is not None:
                keys, users = engines.setdefault(found.place, ({}, []))
                keys[found.key] = None
                users.append(delegate)
    return engines


def _examine(file: BlockFile, place: Place, keys: Iterable[str], users: list[Delegate], *, hashed: bool) -> Engine:
    head = file.peek(place.offset, min(place.size, SAMPLE_SIZE))
    return Engine(
        place,
        tuple(keys),
        tuple(users),
        plan=describe_plan(head),
        sample="" if hashed else _sample(file, place),
        digest=file.digest(place.offset, place.size) if hashed else None,
    )


def _sample(file: BlockFile, place: Place) -> str:
    """A digest of the size and of five stretches, by which most engines are told apart without reading them whole."""
    import hashlib

    digest = hashlib.sha256(str(place.size).encode())
    last = max(place.size - SAMPLE_SIZE, 0)
    for quarter in range(5):
        digest.update(file.peek(place.offset + last * quarter // 4, min(place.size, SAMPLE_SIZE)))
    return digest.hexdigest()
