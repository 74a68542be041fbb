"""What ExecuTorch files say about their TensorRT engines, as frozen values that the rules judge. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import Choice
from linkcheck.executorch.blob import ENGINE_ALIGNMENT, KEY_PREFIX
from linkcheck.text import unique
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.executorch.blob import TensorRTBlob

#: The id under which the delegate's backend is registered, here and in torch_tensorrt.
TENSORRT_BACKEND = "TensorRTBackend"

#: `executorch::runtime::register_backend(const Backend&)`, which a backend's static initializer calls with its id, and
#: `get_backend_class(const char*)`, which finds it again (runtime/backend/interface.h of ExecuTorch 1.5.1).
REGISTER_BACKEND = "_ZN10executorch7runtime16register_backendERKNS0_7BackendE"
GET_BACKEND_CLASS = "_ZN10executorch7runtime17get_backend_classEPKc"


class ProgramKind(Choice):
    """What an ExecuTorch file is."""

    PROGRAM = "program"
    DATA = "data"


class Place(Value):
    """A stretch of a file, in bytes from the file's start."""

    path: str
    offset: int
    size: int

    @property
    def alignment(self) -> int:
        """The largest power of two that divides the offset, at most 4096."""
        return min(self.offset & -self.offset, 4096) or 4096

    def __str__(self) -> str:
        return f"{self.size} byte{'' if self.size == 1 else 's'} at {self.offset:#x}"


class Argument(Value):
    """A tensor that a method gives to a delegate. A dimension is the largest possible one when `dynamic`."""

    dtype: str
    shape: tuple[int, ...]
    dynamic: bool = False
    device: str = "cpu"


class Blob(Value):
    """What a TensorRT delegate's blob says, and the place of the engine in it, if any."""

    metadata: TensorRTBlob
    inline: Place | None


class Fault(Value):
    """Why a blob cannot be read: the `field`, its `offset` in the blob, the `reason`. `unseen`: larger than we read."""

    field: str
    offset: int
    reason: str
    unseen: bool = False


class Delegate(Value):
    """One delegate of one method. For a TensorRT one either `blob` or `fault` is there, for others neither."""

    path: str
    method: str
    index: int
    backend: str
    #: Its processed bytes.
    place: Place
    blob: Blob | None = None
    fault: Fault | None = None
    #: Of its first call, inputs before outputs; None for what is no tensor. Empty when no call was seen.
    arguments: tuple[Argument | None, ...] = ()

    @property
    def name(self) -> str:
        """Such as "forward.delegates[0]"."""
        return f"{self.method}.delegates[{self.index}]"

    @property
    def is_tensorrt(self) -> bool:
        """Whether TensorRT's backend runs it."""
        return self.backend == TENSORRT_BACKEND


class NamedData(Value):
    """An entry of a file's named data."""

    key: str
    place: Place

    @property
    def is_engine(self) -> bool:
        """Whether the key is one that engines have."""
        return self.key.startswith(KEY_PREFIX)


class ProgramFile(Value):
    """One .pte or .ptd file."""

    path: str
    kind: ProgramKind
    size: int
    methods: tuple[str, ...] = ()
    delegates: tuple[Delegate, ...] = ()
    named_data: tuple[NamedData, ...] = ()

    @property
    def is_data(self) -> bool:
        """Whether it is a .ptd, which holds named data and no method."""
        return self.kind is ProgramKind.DATA

    @property
    def backends(self) -> tuple[str, ...]:
        """The ids of the backends that its methods call, each once."""
        return unique(delegate.backend for delegate in self.delegates)

    @property
    def tensorrt_delegates(self) -> tuple[Delegate, ...]:
        """The delegates that have engines."""
        return tuple(delegate for delegate in self.delegates if delegate.is_tensorrt)


class Engine(Value):
    """One place that holds an engine's bytes."""

    place: Place
    #: The keys that lead here; none for an engine in a blob.
    keys: tuple[str, ...]
    #: The delegates that run it.
    users: tuple[Delegate, ...]
    #: Its first bytes in words, such as "TensorRT 10.16.0.31 plan"; empty when they say nothing we know.
    plan: str = ""
    #: A digest of its size and of some of its bytes: engines that differ in it are different.
    sample: str = ""
    #: SHA-256 of all its bytes in hexadecimal digits; None when it was not asked for.
    digest: str | None = None

    @property
    def is_aligned(self) -> bool:
        """Whether it begins where the delegate wants it."""
        return self.place.alignment >= ENGINE_ALIGNMENT

    @property
    def name(self) -> str:
        """Its key, or whose blob it is in."""
        return self.keys[0] if self.keys else f"the engine of {self.users[0].name}" if self.users else str(self.place)


class ProgramSet(Value):
    """Files that are judged together: the named data of the .ptd files serves every program."""

    files: tuple[ProgramFile, ...]
    engines: tuple[Engine, ...]
    #: Whether engines were hashed.
    hashed: bool
    #: Paths that were given and could not be read. Which of the two kinds each is, only its name says.
    unread: tuple[str, ...] = ()

    @property
    def unread_programs(self) -> tuple[str, ...]:
        """The unread files that may be programs: none knows which engines those name, and which are in them."""
        return tuple(path for path in self.unread if not path.endswith(".ptd"))

    @property
    def unread_data(self) -> tuple[str, ...]:
        """The unread files that may be data files: what a program does not find elsewhere may be in one."""
        return tuple(path for path in self.unread if not path.endswith(".pte"))


class NamedDataIndex:
    """Looks keys up as a program does that is loaded with all data files: their named data first, then its own.

    So does ExecuTorch 1.5 (runtime/executor/method.cpp and merged_data_map.h), which does not notice that both have a
    key. Two data files that have one are refused (extension/named_data_map); which entry is found here does not matter.
    """

    def __init__(self, files: Iterable[ProgramFile]) -> None:
        self._own: dict[str, dict[str, NamedData]] = {}
        self._shared: dict[str, NamedData] = {}
        for file in files:
            entries = self._shared if file.is_data else self._own.setdefault(file.path, {})
            for entry in file.named_data:
                entries.setdefault(entry.key, entry)

    def find(self, key: str, path: str) -> NamedData | None:
        """The entry that the program at `path` gets for `key`."""
        return self._shared.get(key) or self._own.get(path, {}).get(key)
