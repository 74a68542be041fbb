"""The machine that load sets are made for: its files, its images, its processor and what its ld.so has built in.

It keeps what several roots share (images by device and inode, the cache, default directories) and decides nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.loader.cache import CACHE_LIMIT, LoaderCache
from linkcheck.loader.defaults import default_directories, interpreter_path, library_token
from linkcheck.loader.files import Files
from linkcheck.loader.interpreter import is_musl_loader, recognise_libc
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkcheck.loader.processor import Processor
    from linkcheck.loader.search import Found, Missing
    from linkcheck.model import Image, Libc, Target

CACHE = "/etc/ld.so.cache"
#: The first processor's lines; the file has as many sets of them as there are processors, and each takes time to make.
_CPUINFO_LIMIT = 8 << 10


class System:
    """One machine, and the environment its programs start in (empty unless given)."""

    def __init__(
        self,
        open_image: Callable[[str], Image],
        files: Files | None = None,
        *,
        library_path: Sequence[str] = (),
        processor: Processor | None = None,
        interpreter: str | None = None,
        inhibit_cache: bool = False,
        libc: Libc | None = None,
    ) -> None:
        """Every argument but `open_image` may be left out.

        `open_image` makes an image of a host path and raises LinkcheckError when it cannot. `library_path` is
        LD_LIBRARY_PATH; an entry may hold several directories with colons between. `processor` is by default this
        host's where the target is this host's machine and `files` are its files, or below a sysroot. `interpreter` is
        the loader for programs that do not name one in PT_INTERP. `libc` is whose loader every process starts with;
        by default each root tells.
        """
        self.files = files if files is not None else Files()
        self.library_path = tuple(library_path)
        #: Search path, $ORIGIN, target and loader -> directories; search.py fills it.
        self.search_paths: dict[tuple[str, str | None, Target, str | None], tuple[str, ...]] = {}
        #: Places -> by name, what a search found, and how many directories it looked into; search.py fills it.
        self.searches: dict[object, dict[str, tuple[Found | Missing, int]]] = {}
        #: Images by identity -> the image itself, and the same with a shorter path; tidy.py fills it.
        self.tidied: dict[int, tuple[Image, Image]] = {}
        self._renamed: dict[tuple[tuple[int, int], str], Image] = {}
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._open_image = open_image
        self._processor = processor
        self._interpreter = interpreter
        self._inhibit_cache = inhibit_cache
        self._libc = libc
        self._images: dict[tuple[int, int], Image] = {}
        self._processors: dict[Target, Processor] = {}
        self._caches: dict[Target, LoaderCache | None] = {}
        self._cache_faults: dict[Target, str] = {}
        self._cached: dict[tuple[str, Target], str | None] = {}
        self._configured: tuple[str, ...] | None = None
        self._defaults: dict[tuple[Target, str | None], tuple[str, ...]] = {}
        #: Target -> the loader of all programs for it that `know_programs` was told of, if they have one in common.
        self._agreed: dict[Target, str | None] = {}
        self._other_machines: dict[tuple[Target, str | None], str] = {}

    def display(self, path: str) -> str:
        """`path` of the machine as the host's user would write it: absolute, and below the sysroot."""
        path = self.files.absolute(path)
        return path if self.files.is_host or self.files.is_mounted(path) else self.files.root + path

    def share(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """`names`, as one tuple in memory however often they are asked for: requests of one file search alike."""
        return self._shared.setdefault(names, names)

    def image(self, path: str, status: os.stat_result | None = None) -> Image:
        """The image of the machine's file `path`: one Image for each file and name, however often it is opened.

        Raises what `open_image` raises, and OSError when `path` cannot be resolved.
        """
        if status is None:
            status = self.files.status(path)
        key = (status.st_dev, status.st_ino)
        host_path = self.files.host_path(path)
        image = self._images.get(key)
        if image is None:
            image = self._images[key] = self._open_image(host_path)
        if image.path == host_path:
            return image
        renamed = self._renamed.get((key, host_path))
        if renamed is None:
            renamed = self._renamed[key, host_path] = replace(image, path=host_path)
        return renamed

    def know(self, image: Image) -> None:
        """Take `image` for the one of its file on this machine, so that the file is not read again."""
        if image.inode:
            self._images.setdefault((image.device, image.inode), image)

    def libc_of(self, root: Image) -> Libc:
        """Whose loader a process of `root` starts with."""
        return self._libc or recognise_libc(root)

    def know_programs(self, images: Iterable[Image]) -> None:
        """Take the programs among `images` for those that may open the libraries which are roots (see `loader_of`)."""
        for image in images:
            loader = _named_loader(image)
            if image.is_executable and loader is not None and self._agreed.setdefault(image.target, loader) != loader:
                self._agreed[image.target] = None  # they disagree, whatever other programs say

    def loader_of(self, root: Image) -> str | None:
        """The path of glibc's loader that a process of `root` starts with; None on a machine that has no usual one.

        A program names it. A library gets the one that all programs for its target name (`know_programs`); without
        programs, or where they disagree, the one that it names itself, as libc.so.6 does, or else the usual one.
        """
        agreed = None if root.is_executable else self._agreed.get(root.target)
        return agreed or _named_loader(root) or self._interpreter or interpreter_path(root.target)

    def other_machine(self, target: Target, loader: str | None) -> str:
        """Why searches here tell nothing of a process for `target` that starts with `loader`; "" when they do."""
        known = self._other_machines.get((target, loader))
        if known is None:
            from linkcheck.loader.other_machine import describe_other_machine  # not for what finds all it needs

            known = self._other_machines[target, loader] = describe_other_machine(self, target, loader)
        return known

    def processor(self, target: Target) -> Processor:
        """The processor as programs for `target` see it."""
        if self._processor is not None:
            return self._processor
        known = self._processors.get(target)
        if known is None:
            # Imported only where a directory or the cache has something for some processors, or a path asks for one.
            from linkcheck.loader.processor import CPUINFO, describe_processor

            try:
                with open(CPUINFO, encoding="utf-8", errors="replace") as stream:
                    cpuinfo = stream.read(_CPUINFO_LIMIT)
            except OSError:
                cpuinfo = ""
            known = self._processors[target] = describe_processor(target, os.uname().machine, cpuinfo)
        return known

    def token_value(self, target: Target, loader: str | None, origin: str | None, name: str) -> str | None:
        """What `loader` takes the token `name` (ORIGIN, LIB, PLATFORM) for, in an image for `target` in `origin`."""
        if name == "ORIGIN":
            return origin
        if name == "PLATFORM":
            return self.processor(target).platform
        return library_token(self.default_directories(target, loader))

    def default_directories(self, target: Target, loader: str | None) -> tuple[str, ...]:
        """The directories built into `loader`, which is one for `target`."""
        known = self._defaults.get((target, loader))
        if known is None:
            known = self._defaults[target, loader] = default_directories(self.files, loader, target)
        return known

    def look_up_cache(self, name: str, target: Target) -> str | None:
        """What ld.so.cache says about `name`, or None."""
        key = (name, target)
        if key not in self._cached:
            cache = self._cache(target)
            hwcaps = self.processor(target).hwcaps if cache is not None and cache.has_hwcaps else ()
            self._cached[key] = cache.look_up(name, hwcaps) if cache is not None else None
        return self._cached[key]

    def cache_fault(self, target: Target) -> str:
        """The path of ld.so.cache and why programs for `target` cannot use it; "" when they can, or there is none."""
        cache = self._cache(target)
        fault = self._cache_faults.get(target) if cache is None else cache.unusable
        return f"{self.display(CACHE)}: {fault}" if fault else ""

    def configured_directories(self, target: Target) -> tuple[str, ...]:
        """The directories of ld.so.conf where a sysroot has no cache yet, and () otherwise: ld.so never reads it."""
        if self.files.is_host or self._inhibit_cache or self._cache(target) is not None:
            return ()
        if self._configured is None:
            from linkcheck.loader.conf import read_directories

            self._configured = read_directories(self.files)
        return self._configured

    def _cache(self, target: Target) -> LoaderCache | None:
        if self._inhibit_cache:
            return None
        if target not in self._caches:
            try:
                self._caches[target] = LoaderCache(self.files.read(CACHE, CACHE_LIMIT), target)
            except (FileNotFoundError, NotADirectoryError):
                self._caches[target] = None
            except OSError as error:
                self._caches[target] = None
                self._cache_faults[target] = f"cannot be read: {error.strerror or error}"
        return self._caches[target]


def _named_loader(image: Image) -> str | None:
    """What PT_INTERP of `image` names, if it is not musl's: that gets here only when `libc` says otherwise."""
    named = image.interpreter
    return None if named is None or is_musl_loader(named) else named
