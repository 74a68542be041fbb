"""Where ld.so would find one NEEDED, and every path it would try before; it knows nothing of load order.

Source: man 8 ld.so and glibc elf/dl-load.c (_dl_map_object, open_path, open_verify, fillin_rpath).
"""

from __future__ import annotations

import errno
import os
import stat
from functools import partial
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError
from linkcheck.loader.os_abi import refusal
from linkcheck.loader.tokens import expand
from linkcheck.model import DF_1_NODEFLIB, DF_1_PIE, Attempt, FileKind, FoundBy
from linkcheck.text import unique
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from linkcheck.loader.system import System
    from linkcheck.model import Image, Target


class _Places(Value):
    """Where one request is searched, whoever makes it."""

    #: The directories of each DT_RPATH; one step each, for an error that ends a step leaves the others.
    rpaths: tuple[tuple[str, ...], ...]
    library_path: tuple[str, ...]
    #: None without a DT_RUNPATH.
    runpath: tuple[str, ...] | None
    #: DF_1_NODEFLIB: neither the cache nor the default directories.
    no_defaults: bool
    target: Target
    #: What has the default directories built in.
    loader: str | None
    #: A dlopen asks, not a NEEDED.
    by_dlopen: bool


class Requester(Value):
    """An image as the origin of a request: what of it decides where its libraries are searched."""

    image: Image
    #: Directory that $ORIGIN stands for, as the machine names it.
    origin: str | None


class Found(Value):
    """The file ld.so would map: `path` as the machine names it, and what it tried before."""

    image: Image
    path: str
    found_by: FoundBy
    tried: tuple[Attempt, ...]


class Missing(Value):
    """No file, or one at which ld.so would give up (`stopped`; the last attempt then says why)."""

    directories: tuple[str, ...]
    tried: tuple[Attempt, ...]
    #: Why the search ended early, or "".
    given_up: str = ""
    #: Why nothing could be looked up in ld.so.cache, or "".
    cache_fault: str = ""
    #: The last attempt met what the loader gives up at, whatever a further directory may hold.
    stopped: bool = False

    @property
    def rejected(self) -> tuple[Attempt, ...]:
        """The attempts that met a file."""
        return tuple(attempt for attempt in self.tried if attempt.reason != ABSENT)


#: What is no regular file ends a search: its type (inode(7)), and what it is called.
SPECIAL_KINDS = {stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFIFO: FileKind.FIFO, stat.S_IFSOCK: FileKind.SOCKET}
#: Reason of an attempt that met no file.
ABSENT = "absent"


class _StopError(Exception):
    """ld.so would end the process here instead of searching on."""


#: Directories that the searches for one load set look into, all together. A thousand libraries that each search a
#: hundred directories stay below half of it; a small file can ask for millions (DT_NEEDED times DT_RUNPATH).
MAX_PROBES = 1 << 18


#: Attempts of a search that is remembered for the next root; more take memory that only a hostile file asks for.
_MOST_KEPT_ATTEMPTS = 1 << 8


class Probes:
    """How many directories the searches for one load set may still look into."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_PROBES) -> None:
        self.left = left


class _GivenUpError(Exception):
    """The probes are used up."""


class _Trail:
    """What one search has looked at so far."""

    __slots__ = ("cache_fault", "directories", "given_up", "stopped", "tried")

    def __init__(self) -> None:
        self.given_up = self.cache_fault = ""
        self.stopped = False
        self.directories: list[str] = []
        self.tried: list[Attempt] = []


class Searcher:
    """Finds what one image asks for; what it found is kept for all that search the same places (System.searches)."""

    __slots__ = ("_by_dlopen", "_known", "_loader", "_places", "_requester", "_system")

    def __init__(
        self,
        system: System,
        chain: Sequence[Requester],
        executable: Requester | None,
        loader: str | None,
        *,
        opened_by_dlopen: bool = False,
    ) -> None:
        """For the requests of chain[0], which was loaded for chain[1], and so on up.

        `executable` is the image the process started from: its DT_RPATH is searched for every request, also for those
        of dlopened images, whose chain does not lead to it. `loader` is the path of what the process starts with.
        `opened_by_dlopen` says that a dlopen asks, not a NEEDED.
        """
        self._system = system
        self._requester = chain[0]
        self._by_dlopen = opened_by_dlopen
        self._loader = loader
        self._places = _find_places(system, chain, executable, loader, opened_by_dlopen)
        # The programs of one directory search the same places for the same libraries.
        self._known = system.searches.setdefault(self._places, {})

    def search(self, name: str, probes: Probes) -> Found | Missing:
        """Find `name`. Each directory takes one of `probes`; when none is left, it is Missing with `given_up`."""
        system = self._system
        expanded = expand(name, _values(system, self._requester, self._loader)) if "$" in name else name
        if not expanded:
            trail = _Trail()
            trail.tried.append(Attempt(name, FoundBy.PATH, "a token in it has no value"))
            trail.stopped = True
            return _settle(system, None, name, FoundBy.PATH, trail)
        if "/" in expanded:
            return _open_path(system, expanded, self._requester, self._by_dlopen)
        result, cost = self._known.get(expanded, (None, 0))
        if result is not None and cost <= probes.left:
            probes.left -= cost
            return result
        before = probes.left
        result = _look_through(system, expanded, self._places, probes)
        given_up = isinstance(result, Missing) and result.given_up
        if not given_up and len(result.tried) <= _MOST_KEPT_ATTEMPTS:
            self._known[expanded] = (result, before - probes.left)
        return result


def _open_path(system: System, path: str, requester: Requester, opened_by_dlopen: bool) -> Found | Missing:
    trail = _Trail()
    try:
        image = _examine(system, path, FoundBy.PATH, trail, requester.image.target, opened_by_dlopen)
    except _StopError:
        image, trail.stopped = None, True
    return _settle(system, image, path, FoundBy.PATH, trail)


def _look_through(system: System, name: str, places: _Places, probes: Probes) -> Found | Missing:
    trail = _Trail()
    try:
        for found_by, candidates in _steps(system, name, places, trail, probes):
            for candidate in candidates:
                image = _examine(system, candidate, found_by, trail, places.target, places.by_dlopen)
                if image is not None:
                    return _settle(system, image, candidate, found_by, trail)
                if trail.tried[-1].reason == LOOP:
                    # An error but "no such file", "no permission", "not a directory" ends the step, not the search.
                    break
    except _StopError:
        trail.stopped = True
    except _GivenUpError:
        trail.given_up = f"the search was given up after {MAX_PROBES} directories looked into for one process"
    return _settle(system, None, name, FoundBy.PATH, trail)


#: Reason of an attempt that met a loop of symbolic links.
LOOP = "a symbolic link that loops"


def _settle(system: System, image: Image | None, path: str, found_by: FoundBy, trail: _Trail) -> Found | Missing:
    tried = tuple(trail.tried)
    if image is None:
        directories = unique(system.display(directory) for directory in trail.directories)
        return Missing(system.share(directories), tried, trail.given_up, trail.cache_fault, trail.stopped)
    return Found(image, path, found_by, tried)


def _find_places(
    system: System, chain: Sequence[Requester], executable: Requester | None, loader: str | None, by_dlopen: bool
) -> _Places:
    """Where what chain[0] asks for is searched before the cache."""
    image = chain[0].image
    rpaths: tuple[tuple[str, ...], ...] = ()
    runpath: tuple[str, ...] | None = None
    if image.runpath is not None:
        runpath = _directories(system, image.runpath, chain[0], loader)
    else:
        holders = list(chain)
        if executable is not None and executable not in holders:
            holders.append(executable)
        rpaths = tuple(
            rpath_directories(system, holder, loader) for holder in holders if holder.image.rpath is not None
        )
    library_path = library_path_directories(system, executable or chain[-1], loader) if system.library_path else ()
    no_defaults = bool(image.flags_1 & DF_1_NODEFLIB)
    return _Places(rpaths, library_path, runpath, no_defaults, image.target, loader, by_dlopen)


def _steps(
    system: System, name: str, places: _Places, trail: _Trail, probes: Probes
) -> Iterator[tuple[FoundBy, Iterator[str]]]:
    """The steps of the search in order, each with the paths it would try; `trail` collects the directories."""
    target = places.target

    def candidates(directories: Iterable[str]) -> Iterator[str]:
        for directory in directories:
            if probes.left <= 0:
                raise _GivenUpError
            probes.left -= 1
            trail.directories.append(directory)
            # An empty element is the current directory, and ld.so then uses the bare name.
            prefix = f"{directory.rstrip('/')}/" if directory else ""
            if not system.files.is_directory(prefix or "."):
                continue
            if system.files.is_directory(f"{prefix}glibc-hwcaps/"):
                for hwcap in system.processor(target).hwcaps:
                    if system.files.is_directory(f"{prefix}glibc-hwcaps/{hwcap}/"):
                        yield f"{prefix}glibc-hwcaps/{hwcap}/{name}"
            yield f"{prefix}{name}"

    for directories in places.rpaths:
        yield FoundBy.RPATH, candidates(directories)
    yield FoundBy.LIBRARY_PATH, candidates(places.library_path)
    if places.runpath is not None:
        yield FoundBy.RUNPATH, candidates(places.runpath)
    cached = system.look_up_cache(name, target)
    if cached and not (places.no_defaults and _below(cached, system.default_directories(target, places.loader))):
        yield FoundBy.CACHE, iter((cached,))
    trail.cache_fault = system.cache_fault(target)
    configured = system.configured_directories(target)
    if configured:
        defaults = system.default_directories(target, places.loader) if places.no_defaults else ()
        yield FoundBy.CACHE, candidates(d for d in configured if d not in defaults)
    if not places.no_defaults:
        yield FoundBy.DEFAULT, candidates(system.default_directories(target, places.loader))


def rpath_directories(system: System, requester: Requester, loader: str | None) -> tuple[str, ...]:
    """The directories of an image's DT_RPATH, tokens expanded; none when a DT_RUNPATH makes ld.so ignore it."""
    image = requester.image
    if image.rpath is None or image.runpath is not None:
        return ()
    return _directories(system, image.rpath, requester, loader)


def library_path_directories(system: System, executable: Requester, loader: str | None) -> tuple[str, ...]:
    """The directories of LD_LIBRARY_PATH; its tokens are those of the executable."""
    values = _values(system, executable, loader)
    return unique(found for entry in system.library_path for found in _elements(entry, ":;", values))


def _directories(system: System, path: str, requester: Requester, loader: str | None) -> tuple[str, ...]:
    """The directories of `path`, a DT_RPATH or DT_RUNPATH of `requester`, worked out once for all its requests."""
    key = (path, requester.origin, requester.image.target, loader)
    known = system.search_paths.get(key)
    if known is None:
        known = system.search_paths[key] = _elements(path, ":", _values(system, requester, loader))
    return known


def _values(system: System, requester: Requester, loader: str | None) -> Callable[[str], str | None]:
    return partial(system.token_value, requester.image.target, loader, requester.origin)


def _elements(path: str, separators: str, values: Callable[[str], str | None]) -> tuple[str, ...]:
    """Elements of a search path, each once; "" stands for the current directory."""
    if not path:
        return ()
    for separator in separators[1:]:
        path = path.replace(separator, separators[0])
    found = []
    for element in path.split(separators[0]):
        if not element:
            found.append("")
        elif expanded := expand(element, values):
            found.append(expanded.rstrip("/") or "/")
    return unique(found)


def _below(path: str, directories: Iterable[str]) -> bool:
    return any(path.startswith(f"{directory}/") for directory in directories)


def _examine(
    system: System, path: str, found_by: FoundBy, trail: _Trail, wanted: Target, opened_by_dlopen: bool
) -> Image | None:
    """The image at `path`; None when the search goes on. Raises _StopError when ld.so would give up here."""

    def passed_over(reason: str) -> None:
        trail.tried.append(Attempt(system.display(path), found_by, reason))

    try:
        status = system.files.status(path)
    except (OSError, ValueError) as error:
        code = error.errno if isinstance(error, OSError) else None
        if code == errno.ELOOP:
            passed_over(LOOP)
        elif code in (errno.ENOENT, errno.ENOTDIR):
            passed_over(ABSENT)
        else:
            passed_over(f"cannot be opened: {error.strerror if isinstance(error, OSError) else error}")
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = SPECIAL_KINDS.get(stat.S_IFMT(status.st_mode), FileKind.DEVICE)
        passed_over(f"not a regular file: {kind.value}")
        raise _StopError
    try:
        image = system.image(path, status)
    except LinkcheckError as error:
        verdict, reason = _judge_header(system, path, wanted)
        passed_over(reason or getattr(error, "reason", "") or str(error))
        if verdict == "skip":
            return None
        raise _StopError from None
    skip, reason = _judge_target(image, wanted)
    if not reason:
        reason = _judge_image(image, opened_by_dlopen)
        skip = False
    if not reason:
        return image
    passed_over(reason)
    if skip:
        return None
    raise _StopError


def _judge_target(image: Image, wanted: Target) -> tuple[bool, str]:
    """Whether ld.so of `wanted` searches on after an ELF file, and why it does not take the file.

    Another class or machine is passed over; another byte order or operating system ends the process, and that is
    looked at before the machine (open_verify).
    """
    target = image.target
    if target.bits != wanted.bits:
        return True, f"wrong class: {target}"
    if target.byte_order != wanted.byte_order:
        return False, f"wrong byte order: {target}"
    if reason := refusal(wanted.machine, image.os_abi, image.abi_version):
        return False, reason
    if target.machine != wanted.machine:
        return True, f"wrong machine: {target}"
    return False, ""


def _judge_image(image: Image, opened_by_dlopen: bool) -> str:
    """Why ld.so would refuse to map a file of the right machine as a library, or ""."""
    if image.kind is FileKind.EXECUTABLE:
        return "cannot be loaded as a library: an executable linked at a fixed address"
    if image.flags_1 & DF_1_PIE:
        return "cannot be loaded as a library: a position-independent executable"
    if opened_by_dlopen and image.flags_1 & _DF_1_NOOPEN:
        return NOT_TO_BE_OPENED
    return ""


_DF_1_NOOPEN = 0x40
#: Why a healthy library is refused: no look at the file alone shows a fault (LC202).
NOT_TO_BE_OPENED = "cannot be dlopened: linked with -z nodlopen"
#: e_ident, e_type and e_machine; ld.so reads a whole header before it looks at any of it.
_HEADER_SIZE = 64


def _judge_header(system: System, path: str, wanted: Target) -> tuple[str, str]:
    """ "skip" or "stop" for a file that gave no image, and the reason when the header alone decides.

    ld.so judges class and machine before anything else that could be wrong with the file.
    """
    try:
        head = system.files.read(path, _HEADER_SIZE)
    except OSError as error:
        denied = error.errno in (errno.EACCES, errno.ENOENT)
        return ("skip" if denied else "stop"), f"cannot be opened: {os.strerror(error.errno or errno.EIO)}"
    if len(head) < (52 if wanted.bits == 32 else 64) or not head.startswith(b"\x7fELF"):
        return "stop", ""
    if head[4] != (1 if wanted.bits == 32 else 2):
        return "skip", f"wrong class: {32 if head[4] == 1 else 64}-bit" if head[4] in (1, 2) else "wrong class"
    byte_order = {1: "little", 2: "big"}.get(head[5])
    if byte_order != wanted.byte_order:
        return "stop", ""
    if reason := refusal(wanted.machine, head[7], head[8]):
        return "stop", reason
    if int.from_bytes(head[18:20], "little" if head[5] == 1 else "big") != wanted.machine:
        return "skip", "wrong machine, and malformed"
    return "stop", ""
