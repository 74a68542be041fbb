"""Everything a user may name becomes files to judge: a file, a directory, an archive, an installed distribution.

Archives are unpacked into a spool (spool.py), so that whoever judges works on real files; `Inputs.show` gives back the
names that users know. Judges nothing.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from linkcheck.errors import (
    EMPTY_NAME,
    ArchiveError,
    LinkcheckError,
    NothingToCheckError,
    UnreadableFileError,
    UsageProblemError,
)
from linkcheck.inputs.archive_kind import ArchiveKind, identify_archive
from linkcheck.inputs.roots import Listing, NamedFile, list_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.inputs.spool import Spool, Tree

#: Inflated size to expect of an archive, in sizes of itself; only to choose between memory and disk.
_USUAL_RATIO = 4
#: How paths are shown that lie in the directory into which several wheels go, and in none of them.
_SITE_PACKAGES = "site-packages"


class Inputs:
    """What the user named, ready to be judged."""

    def __init__(self) -> None:
        """Nothing yet."""
        #: The files in a stable order, by real path.
        self.files: tuple[NamedFile, ...] = ()
        #: What the user named, or what was found in it, and could not be used; each with the reason.
        self.errors: list[tuple[str, LinkcheckError]] = []
        #: Trees that lie over the machine's root directory: what packages of the system would install.
        self.layers: tuple[str, ...] = ()
        self.spool: Spool | None = None
        self.named_directories: tuple[str, ...] = ()

    def show(self, path: str) -> str:
        """What the user calls the file or directory at the real `path`: `file.whl!/member` inside an archive."""
        return path if self.spool is None else self.spool.show(path)

    def find(self, name: str) -> str:
        """The real path of `name`, which may be `file.whl!/member` of an archive among the inputs."""
        if self.spool is None or "!/" not in name:
            return name
        return self.spool.find(name) or name

    @property
    def directories(self) -> tuple[str, ...]:
        """Directories that were named, or hold what was found: worth a look for what is not found elsewhere."""
        holding = (os.path.dirname(file.path) for file in self.files if not file.named)
        return tuple(dict.fromkeys((*self.named_directories, *holding)))


@contextmanager
def open_inputs(paths: Sequence[str]) -> Iterator[Inputs]:
    """The inputs that `paths` stand for; what was unpacked is removed at the end.

    A path is a file, a directory (a virtual environment is one), a wheel, zip, tar or .deb, or `dist:NAME`. What
    cannot be used is in `Inputs.errors`; nothing is raised for it.
    """
    inputs = Inputs()
    try:
        _collect(paths, inputs)
        yield inputs
    finally:
        if inputs.spool is not None:
            inputs.spool.close()


def _collect(paths: Sequence[str], inputs: Inputs) -> None:
    archives: dict[str, ArchiveKind] = {}
    for path in paths:
        try:
            if not path:
                raise UsageProblemError(EMPTY_NAME)
            if "!/" in path:
                from linkcheck.inputs.refused import refuse_member

                refuse_member(path)
            if (kind := identify_archive(path)) is not None:
                archives[path] = kind
        except LinkcheckError as error:
            inputs.errors.append((path, error))
    refused = {path for path, _ in inputs.errors}
    unpacked = _unpack(archives, inputs)
    files: dict[str, NamedFile] = {}
    for path in paths:
        if path in refused:
            continue
        listing = unpacked.get(path, Listing(())) if path in archives else _list(path)
        for file in listing.files:
            if file.named or file.path not in files:  # named counts, also when its directory is named before
                files[file.path] = file
        for problem in listing.problems:
            subject = problem.path if isinstance(problem, UnreadableFileError) else path
            inputs.errors.append((subject, problem))
    inputs.files = tuple(files.values())
    inputs.named_directories = tuple(path for path in paths if path and os.path.isdir(path))


def _list(path: str) -> Listing:
    if not path.startswith("dist:") or os.path.lexists(path):
        return list_files(path)
    from linkcheck.inputs.distribution import list_distribution

    try:
        return Listing(tuple(NamedFile(found, named=False) for found in list_distribution(path)))
    except LinkcheckError as error:
        return Listing((), (error,))


def _unpack(archives: dict[str, ArchiveKind], inputs: Inputs) -> dict[str, Listing]:
    """The files of each archive; one that cannot be unpacked is an error, and the others go on."""
    if not archives:
        return {}
    from linkcheck.inputs.spool import Spool, hold_signals

    with hold_signals():
        inputs.spool = Spool(_USUAL_RATIO * sum(os.path.getsize(path) for path in archives))
    unpacker = _Unpacker(inputs.spool, archives)
    found = {}
    for path, kind in archives.items():
        try:
            found[path] = Listing(unpacker.unpack(path, kind))
        except OSError as error:
            inputs.errors.append((path, UnreadableFileError(path, error.strerror or str(error))))
        except (ArchiveError, NothingToCheckError) as error:
            inputs.errors.append((path, error))
    unpacker.finish()
    inputs.layers = tuple(unpacker.layers)
    return found


class _Unpacker:
    """Unpacks one archive after the other. Wheels go side by side into one tree, as into one site-packages."""

    def __init__(self, spool: Spool, archives: dict[str, ArchiveKind]) -> None:
        self._spool = spool
        self._several_wheels = list(archives.values()).count(ArchiveKind.WHEEL) > 1
        self._wheels: Tree | None = None
        self.layers: list[str] = []

    def unpack(self, path: str, kind: ArchiveKind) -> tuple[NamedFile, ...]:
        """Unpack the archive at `path`; raises ArchiveError, NothingToCheckError or OSError."""
        if kind is ArchiveKind.WHEEL:
            from linkcheck.inputs.zip_archive import unpack_zip

            tree = unpack_zip(path, lambda places: self._choose_for_wheel(path, places), wheel=True)
        else:
            tree = self._spool.add_tree(f"{path}!")
            self._unpack_alone(path, kind, tree)
        prefix = f"{path}!/"
        found = sorted(file for file, shown in tree.files.items() if shown.startswith(prefix))
        if not found:
            raise NothingToCheckError(f"{path}: nothing to check: no ELF file in this archive")
        return tuple(NamedFile(file, named=False) for file in found)

    def _unpack_alone(self, path: str, kind: ArchiveKind, tree: Tree) -> None:
        if kind is ArchiveKind.ZIP:
            from linkcheck.inputs.zip_archive import unpack_zip

            unpack_zip(path, lambda _: tree, wheel=False)
        elif kind is ArchiveKind.DEB:
            from linkcheck.inputs.deb_archive import unpack_deb

            unpack_deb(path, tree)
            self.layers.append(tree.root)
        else:
            from linkcheck.inputs.tar_archive import unpack_tar

            unpack_tar(path, tree)

    def finish(self) -> None:
        """Make the symbolic links of every tree."""
        for tree in self._spool.trees:
            tree.finish()

    def _choose_for_wheel(self, path: str, places: list[tuple[str, ...]]) -> Tree:
        """The tree of the other wheels, unless one of them has a file of the same place, as another version would."""
        if self._wheels is None:
            self._wheels = self._spool.add_tree(_SITE_PACKAGES if self._several_wheels else f"{path}!")
            return self._wheels
        if any(self._wheels.place(parts) in self._wheels.files for parts in places):
            return self._spool.add_tree(f"{path}!")
        return self._wheels
