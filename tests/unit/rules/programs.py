"""ExecuTorch files made of plain values, for tests of the rules about engines."""

from __future__ import annotations

from linkcheck.executorch.blob import TensorRTBlob
from linkcheck.executorch.facts import (
    TENSORRT_BACKEND,
    Blob,
    Delegate,
    Engine,
    Fault,
    NamedData,
    Place,
    ProgramFile,
    ProgramKind,
    ProgramSet,
)

PATH = "model.pte"
DATA_PATH = "engines.ptd"
KEY = "tensorrt_engine_" + 32 * "ab"


def place(offset: int = 0x1000, size: int = 64, path: str = PATH) -> Place:
    return Place(path, offset, size)


def delegate(
    method: str = "forward", *, inline: Place | None = None, key: str | None = None, path: str = PATH
) -> Delegate:
    """A TensorRT delegate whose blob holds an engine at `inline`, or names `key`, or both or neither."""
    blob = Blob(TensorRTBlob(engine_key=key), inline)
    return Delegate(path, method, 0, TENSORRT_BACKEND, place(0x400, 256, path), blob)


def broken(reason: str = "unknown magic", *, unseen: bool = False) -> Delegate:
    return Delegate(PATH, "broken", 0, TENSORRT_BACKEND, place(0x400, 256), fault=Fault("magic", 0, reason, unseen))


def other_backend() -> Delegate:
    return Delegate(PATH, "forward", 0, "XnnpackBackend", place(0x400, 256))


def program(*delegates: Delegate, named: dict[str, Place] | None = None, path: str = PATH) -> ProgramFile:
    entries = tuple(NamedData(key, at) for key, at in (named or {}).items())
    methods = tuple(delegate.method for delegate in delegates)
    return ProgramFile(path, ProgramKind.PROGRAM, 1 << 20, methods, delegates, entries)


def data(named: dict[str, Place]) -> ProgramFile:
    entries = tuple(NamedData(key, at) for key, at in named.items())
    return ProgramFile(DATA_PATH, ProgramKind.DATA, 1 << 20, named_data=entries)


def engine(
    at: Place | None = None,
    *users: Delegate,
    keys: tuple[str, ...] = (),
    digest: str | None = 32 * "ab",
    sample: str = "s",
) -> Engine:
    return Engine(at or place(), keys, users, sample=sample, digest=digest)


def together(
    *files: ProgramFile, engines: tuple[Engine, ...] = (), hashed: bool = True, unread: tuple[str, ...] = ()
) -> ProgramSet:
    """Files given together; `unread` are the paths of those that could not be read."""
    return ProgramSet(files, engines, hashed, unread)
