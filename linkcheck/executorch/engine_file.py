"""Brings an engine into a file and says its key, with a megabyte in memory whatever its size. Knows no ExecuTorch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from linkcheck.executorch.blob import KEY_PREFIX
from linkcheck.executorch.limits import HASH_BLOCK_SIZE
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


class EngineFile(Value):
    """A file that holds an engine and nothing else. `is_copy`: it was made here, and its owner removes it."""

    path: str
    size: int
    sha256: bytes
    is_copy: bool

    @property
    def key(self) -> str:
        """What the engine is called in named data."""
        return KEY_PREFIX + self.sha256.hex()


def stage_engine(source: Any, directory: str | None = None) -> EngineFile:
    """The engine of `source` as a file.

    `source` is the path of a plan file, which is used as it is and has to stay, or an object whose buffer is the plan
    (bytes, a memoryview, TensorRT's IHostMemory), which becomes a new file in `directory` (None: where temporary files
    go). It is hashed as it is read. Raises OSError for a file that cannot be read or written, TypeError for an object
    without a buffer, and ValueError for an engine without bytes.
    """
    import hashlib

    digest = hashlib.sha256()
    if isinstance(source, (str, os.PathLike)):
        size = 0
        for block in _read(os.fspath(source)):
            digest.update(block)
            size += len(block)
        engine = EngineFile(os.fspath(source), size, digest.digest(), is_copy=False)
    else:
        view = memoryview(source).cast("B")
        digest.update(view)
        path = _write(view, directory) if len(view) else ""
        engine = EngineFile(path, len(view), digest.digest(), is_copy=True)
    if not engine.size:
        raise ValueError(f"{engine.path or 'the engine'}: an engine without bytes")
    return engine


def _read(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(HASH_BLOCK_SIZE):
            yield block


def _write(view: memoryview, directory: str | None) -> str:
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="linkcheck-", suffix=".plan", dir=directory)
    try:
        with open(descriptor, "wb") as file:
            file.write(view)
    except BaseException:
        os.unlink(path)
        raise
    return path
