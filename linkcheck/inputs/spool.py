"""Holds the ELF members and links of archives as a private tree of files, for as long as they are judged.

Files and not memory: the loader asks the kernel about links, directories and inodes, and what the kernel answers
cannot be wrong. The tree lies in memory all the same (a tmpfs) when there is room. It reads no archive.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from linkcheck.errors import ArchiveError
from linkcheck.inputs.member_name import relative_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import Any

    _Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers

_PREFIX = "linkcheck-spool-"
#: A memory file system, if the system has one (man 7 shm_overview).
_IN_MEMORY = "/dev/shm"  # noqa: S108 - everything goes into a directory that mkdtemp makes there
#: Directories above each tree with nothing else in them, so that `$ORIGIN/../../..` of a member meets no file of this
#: machine: what is above an archive is not known.
_EMPTY_LEVELS = "/".join(["up"] * 12)
#: How others ask a process to end.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Put off what asks this process to end until the block is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Spool:
    """A temporary directory with one tree for each group of archives; a context manager that removes all of it.

    It is gone after a signal, too, that ends the process and can be caught.
    """

    def __init__(self, expected_size: int = 0) -> None:
        """Make the directory; `expected_size` is how many bytes may come.

        Whoever must not lose it to Ctrl-C before it is kept in a variable makes it under `hold_signals`.
        """
        parent = _choose_parent(expected_size)
        for place in dict.fromkeys((parent, _IN_MEMORY, tempfile.gettempdir())):
            _remove_stale(place)
        self.path, self._lock = _make_locked(parent)
        self.trees: list[Tree] = []
        #: What Python makes of the signals of which this object makes more.
        self._usual: dict[int, _Handler] = {}
        for number in _ENDING:
            self._catch(number)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything; a second call does nothing."""
        with hold_signals():
            if self._lock >= 0:
                shutil.rmtree(self.path, ignore_errors=True)
                os.close(self._lock)
                self._lock = -1
            for number, usual in self._usual.items():
                if signal.getsignal(number) == self._end:
                    with suppress(ValueError):  # another thread than the one that made it
                        signal.signal(number, usual)

    def _catch(self, number: signal.Signals) -> None:
        """Remove everything before signal `number` ends the process, unless somebody else minds that signal."""
        usual = signal.getsignal(number)
        if usual is not signal.SIG_DFL and usual is not signal.default_int_handler:
            return
        self._usual[number] = usual  # before the signal can come to `_end`
        try:
            signal.signal(number, self._end)
        except ValueError:  # only the main thread may (signal.signal); then the next run removes what is left
            del self._usual[number]

    def _end(self, number: int, _: FrameType | None) -> None:
        self.close()
        signal.signal(number, self._usual[number])
        os.kill(os.getpid(), number)

    def add_tree(self, label: str) -> Tree:
        """A new empty tree; `label` is how paths in it are shown that are no member's."""
        root = f"{self.path}/{len(self.trees)}/{_EMPTY_LEVELS}/top"
        os.makedirs(root)
        self.trees.append(Tree(root, label))
        return self.trees[-1]

    def show(self, path: str) -> str:
        """What users call `path`: `file.whl!/member` for what is in the spool, and itself for everything else."""
        if not path.startswith(self.path):
            return path
        for tree in self.trees:
            if (shown := tree.show(path)) is not None:
                return shown
        if self.trees and (path == self.path or path.startswith(f"{self.path}/")):
            return f"{self.trees[0].label}/{os.path.relpath(path, self.trees[0].root)}"  # above all: its name is random
        return path

    def find(self, shown: str) -> str | None:
        """The spool's path of what users call `shown`, or None."""
        for tree in self.trees:
            if (path := tree.find(shown)) is not None:
                return path
        return None


class Tree:
    """The unpacked members of one archive, or of several that are installed into one directory.

    No symbolic link is made before `finish`, so that no member can be written through one.
    """

    def __init__(self, root: str, label: str) -> None:
        """`root` is an empty directory of the spool."""
        self.root = root
        self.label = label
        #: Path of each file -> what users call it, in the archive's order.
        self.files: dict[str, str] = {}
        self._links: dict[tuple[str, ...], str] = {}

    def show(self, path: str) -> str | None:
        """What users call `path`, or None when it is neither in this tree nor above it."""
        if (shown := self.files.get(path)) is not None:
            return shown
        if path == self.root:
            return self.label
        if path.startswith(f"{self.root}/"):
            return f"{self.label}/{path[len(self.root) + 1 :]}"
        if path.startswith(self.root.removesuffix(f"/{_EMPTY_LEVELS}/top") + "/"):
            return f"{self.label}/{os.path.relpath(path, self.root)}"
        return None

    def find(self, shown: str) -> str | None:
        """The path of what users call `shown`, or None."""
        for path, name in self.files.items():
            if name == shown:
                return path
        if shown.startswith(f"{self.label}/"):
            return f"{self.root}/{shown[len(self.label) + 1 :]}"
        return None

    def place(self, parts: Iterable[str]) -> str:
        """Where the member at `parts` is, or would be."""
        return "/".join((self.root, *parts))

    def write(self, archive: str, parts: tuple[str, ...], blocks: Iterable[bytes]) -> None:
        """Write a member of `archive`. A later member of the same name takes the place of an earlier one.

        Raises ArchiveError when the file cannot be made.
        """
        path = self.place(parts)
        self._links.pop(parts, None)
        try:
            descriptor = self._create(path)
            try:
                for block in blocks:
                    view = memoryview(block)
                    while view:
                        view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _describe_failure(archive, parts, path, error) from error
        except ValueError as error:  # a name that this system's encoding cannot express
            raise ArchiveError(archive, f"the member {'/'.join(parts)}: {error}") from error
        self.files[path] = f"{archive}!/{'/'.join(parts)}"

    def _create(self, path: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        except FileExistsError:
            os.unlink(path)
        return os.open(path, flags, 0o600)

    def link_hard(self, archive: str, parts: tuple[str, ...], target: tuple[str, ...]) -> None:
        """A second name for a member written before; nothing when that one was not kept."""
        source, path = self.place(target), self.place(parts)
        if source not in self.files or source == path:
            return
        self._links.pop(parts, None)
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with suppress(FileNotFoundError):
                os.unlink(path)
            os.link(source, path)
        except OSError as error:
            raise _describe_failure(archive, parts, path, error) from error
        self.files[path] = f"{archive}!/{'/'.join(parts)}"

    def link(self, parts: tuple[str, ...], target: str) -> None:
        """Remember a symbolic link; one that leads out of the archive points to nothing, and is not made."""
        path = self.place(parts)
        if path in self.files:
            os.unlink(path)
            del self.files[path]
        relative = relative_target(parts, target)
        if relative is None:
            self._links.pop(parts, None)
        else:
            self._links[parts] = relative

    def finish(self) -> None:
        """Make the symbolic links, now that everything else is written."""
        made = []
        for parts, target in self._links.items():
            path = self.place(parts)
            # Where a directory of the name came to be, or a parent is a link or a file, the archive is at odds with
            # itself; the link is then left out, as if it led nowhere.
            with suppress(OSError, ValueError):
                self._make_directories(parts[:-1])
                os.symlink(target, path)
                made.append(path)
        # One by one each stays inside, but a `..` behind another link may not: what does not, is taken away.
        for path in made:
            resolved = os.path.realpath(path)
            if resolved != self.root and not resolved.startswith(f"{self.root}/"):
                os.unlink(path)
        self._links.clear()

    def _make_directories(self, parts: tuple[str, ...]) -> None:
        path = self.root
        for part in parts:
            path = f"{path}/{part}"
            if os.path.islink(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)


def _describe_failure(archive: str, parts: tuple[str, ...], path: str, error: OSError) -> ArchiveError:
    name = "/".join(parts)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ArchiveError(
            archive, f"no space is left for the member {name} below {_parent_of(path)}; TMPDIR names another place"
        )
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EPERM):
        return ArchiveError(archive, f"the member {name} is a file and a directory at once")
    return ArchiveError(archive, f"the member {name}: {error.strerror or error}")


def _parent_of(path: str) -> str:
    return path.partition(f"/{_PREFIX}")[0]


def _choose_parent(expected_size: int) -> str:
    """Memory when four times the expected size is free there and in the machine, else TMPDIR (by default /tmp)."""
    try:
        status = os.statvfs(_IN_MEMORY)
        free = min(status.f_bavail * status.f_frsize, _available_memory())
        if free >= 4 * expected_size and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
            return _IN_MEMORY
    except OSError:
        pass  # no such file system here
    return tempfile.gettempdir()


def _available_memory() -> int:
    """Bytes (man 5 proc, MemAvailable); 0 when that is not told."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def _make_locked(parent: str) -> tuple[str, int]:
    """A new directory in `parent`, and the descriptor that locks it.

    Another process may take it for a stale one, and remove it, before it is locked; then it has no name any more.
    """
    while True:
        path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(path):
            return path, lock
        os.close(lock)


def _remove_stale(parent: str) -> None:
    """Remove the spools that nobody locks, of processes that were killed: in memory they would stay until the machine
    stops.
    """
    try:
        entries = [entry for entry in os.scandir(parent) if entry.name.startswith(_PREFIX)]
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                continue
            descriptor = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(descriptor)
