"""The files of one machine as its loader would see them, below `/` or below a sysroot; it knows no ELF."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Links followed in one path before it counts as a loop (Linux: MAXSYMLINKS).
MAX_LINKS = 40

#: What stands for a working directory that was removed: a name below which there is nothing.
_REMOVED = "/proc/self/cwd"


def _find_working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # removed: no relative path leads anywhere, and absolute ones still do
        return _REMOVED


class Files:
    """Access to the files of the machine whose root directory is `root`, for paths as that machine writes them.

    With a `root` other than "/", absolute paths and absolute links stay below it and `..` stops at it, as after
    chroot(2). Every method raises OSError as the system call would, ELOOP after MAX_LINKS links included.
    """

    def __init__(
        self,
        root: str = "/",
        working_directory: str | None = None,
        *,
        layers: Sequence[str] = (),
        mounted: str | None = None,
        namespace: bool = False,
    ) -> None:
        """`working_directory` is where relative paths start: a path of the machine, by default the current one.

        `layers` are host directories that lie over the machine's root directory, the first on top, as if their files
        were installed; no link in them leads out of them. `mounted` is a host directory that the machine sees under
        the same name, whatever its root. `namespace` says that `root` is a /proc/PID/root that leads into another mount
        namespace: the text of that link is a path there, and means something else here.
        """
        self._layers = tuple(layers)
        self._mounted = f"{mounted}/" if mounted is not None else None
        self._is_namespace = namespace
        self.root = root if namespace else os.path.realpath(root)
        self.is_host = self.root == "/"
        if working_directory is None:
            here = _find_working_directory()
            working_directory = here if self.is_host else self.inside(here)
        self.working_directory = working_directory
        self._directories: dict[str, str] = {}
        self._existing: dict[str, bool] = {}

    def absolute(self, path: str) -> str:
        """`path` seen from the working directory; nothing else in it is changed."""
        return path if path.startswith("/") else f"{self.working_directory.rstrip('/')}/{path}"

    def is_mounted(self, path: str) -> bool:
        """Whether `path` is in the host directory that is seen under the same name."""
        return self._mounted is not None and path.startswith(self._mounted)

    def inside(self, host_path: str) -> str:
        """The machine's name for a file that the host calls `host_path`; outside the sysroot, `host_path` itself."""
        for layer in self._layers:
            if host_path.startswith(f"{layer}/"):
                return host_path[len(layer) :]
        # The last part stays: $ORIGIN and names are taken from the link, not from what it points to.
        if self.is_host:
            return self.absolute(host_path)
        if self._is_namespace:
            return host_path[len(self.root) :] if host_path.startswith(f"{self.root}/") else host_path
        head, name = os.path.split(host_path)
        head = os.path.realpath(head)
        if not self._is_below(head):
            return f"{head.rstrip('/')}/{name}"
        return f"{head[len(self.root) :]}/{name}"

    def find_below(self, name: str) -> str:
        """The host's path of the file or directory that a user calls `name`, by its path here or on the machine.

        A path of the host that leads below the sysroot is taken for that, any other absolute one for the machine's.
        """
        whole = os.path.join(_find_working_directory(), name)
        if (
            not name.startswith("/")
            or self.is_host
            or self.is_mounted(whole)
            or self._is_below(os.path.realpath(os.path.dirname(whole)))
        ):
            return whole
        return self.root + name

    def find_inside(self, name: str) -> str:
        """The machine's name of what a user calls `name`, as in `find_below`; nothing is changed from a `$` on.

        What stands there may be a token, and then only the loader knows where `..` behind it leads.
        """
        directory, slash, start = name.partition("$")[0].rpartition("/")
        if not slash:
            return name
        inside = self.inside(self.find_below(f"{directory}/"))
        return f"{inside.rstrip('/')}/{start}{name[len(directory) + len(start) + 1 :]}"

    def _is_below(self, directory: str) -> bool:
        """Whether the host's `directory`, a path without links, is the sysroot, or below it."""
        return directory == self.root or directory.startswith(self.root + "/")

    def host_path(self, path: str) -> str:
        """The host's name for `path`: links resolved inside the sysroot; on the host itself, `path` made absolute.

        The last part need not exist.
        """
        path = self.absolute(path)
        if self.is_mounted(path):
            return path
        for layer in self._layers:
            if os.path.exists(layer + path):
                return layer + path
        if self.is_host:
            return path
        head, _, name = path.rpartition("/")
        directory = self._directories.get(head)
        if directory is None:
            directory = self._directories[head] = self._resolve(head)
        return self._resolve(name, directory)

    def canonical(self, path: str) -> str:
        """The machine's name for `path` without links (realpath(3)); for $ORIGIN of an executable."""
        host_path = self.host_path(path)
        for layer in self._layers:
            if host_path.startswith(f"{layer}/"):
                return os.path.realpath(host_path)[len(layer) :]
        if self.is_host or self.is_mounted(host_path):
            return os.path.realpath(host_path)
        return host_path[len(self.root) :] or "/"

    def status(self, path: str) -> os.stat_result:
        """What stat(2) says about `path`."""
        return os.stat(self.host_path(path))

    def is_directory(self, path: str) -> bool:
        """Whether `path` is a directory; the answer is kept, as ld.so keeps it."""
        known = self._existing.get(path)
        if known is None:
            try:
                known = stat.S_ISDIR(self.status(path).st_mode)
            except (OSError, ValueError):
                known = False
            self._existing[path] = known
        return known

    def read(self, path: str, limit: int) -> bytes:
        """The first `limit` bytes of the regular file `path`; OSError for what is no regular file."""
        descriptor = os.open(self.host_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            parts = []
            while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
                parts.append(part)
                limit -= len(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def matching(self, pattern: str) -> list[str]:
        """Paths that match the absolute `pattern` (glob(7)), sorted; wildcards may stand in any part."""
        import fnmatch

        found = ["/"]
        for part in (part for part in pattern.split("/") if part):
            if not any(sign in part for sign in "*?["):
                found = [f"{path.rstrip('/')}/{part}" for path in found]
                continue
            matches = []
            for path in found:
                try:
                    names = os.listdir(self.host_path(path))
                except OSError:
                    continue
                matches += [
                    f"{path.rstrip('/')}/{name}"
                    for name in names
                    if fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
                ]
            found = matches
        return sorted(path for path in found if self._exists(path))

    def _exists(self, path: str) -> bool:
        try:
            self.status(path)
        except OSError:
            return False
        return True

    def _resolve(self, path: str, directory: str | None = None) -> str:
        """The host's name for `path`, which starts at the host's `directory` (by default at the sysroot)."""
        here = self.root if directory is None else directory
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                here = here if here == self.root else here.rpartition("/")[0]
                continue
            step = f"{here}/{part}"
            try:
                target = os.readlink(step)
            except OSError as error:
                # EINVAL: there, and no link. What is missing is reported by the call that uses the path.
                if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                    raise
                here = step
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                here = self.root
            pending += target.split("/")[::-1]
        return here
