"""Gives everything known of a process the names that reports use. Reads no file.

Paths become those that users know: `file.whl!/member` for what was unpacked, and what they wrote themselves for a file
that the loader comes to by another name of its directory. No name holds a control character, so that none can forge a
line of a message (model.one_line). The loader has searched by the raw names before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.inputs.process import ExaminedFile, Process
from linkcheck.policy.patterns import RealDirectories
from linkcheck.text import one_line
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from linkcheck.errors import MalformedElfError, UnreadableFileError
    from linkcheck.model import Attempt, FileIdentity, Image, LoadSet, Module, Unresolved

    Show = Callable[[str], str]


class GivenNames:
    """How the user wrote the paths of files. A link, symbolic or hard, is another file than the one it leads to; only
    the directory that both lie in may have several names.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        """Know `paths`; of several for one file the first."""
        self._by_path: dict[str, str] = {}
        self._directories = RealDirectories()
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Know `path`, too."""
        self._by_path.setdefault(self._directories.find(path), path)

    def find(self, path: str) -> str:
        """What the user calls the file at `path`; `path` where nothing else is known."""
        return self._by_path.get(self._directories.find(path), path) if self._by_path else path


def show_process(process: Process, show: Show, given: GivenNames) -> Process:
    """`process` with every path in it as `show` names it or the user has `given` it, and every name on one line."""
    opened = tuple(show_file(file, show) for file in process.opened)
    for file in opened:
        given.add(file.identity.path)
    return Process(
        _name_as_given(show_load_set(process.load_set, show), given),
        opened,
        tuple(_name_file(show_file(file, show), given) for file in process.rejected),
        process.made,
    )


def show_load_set(load_set: LoadSet, show: Show) -> LoadSet:
    """`load_set` with every path in it as `show` names it, and every name on one line."""
    return replace(
        load_set,
        modules=tuple(_show_module(module, show) for module in load_set.modules),
        unresolved=tuple(_show_unresolved(unresolved, show) for unresolved in load_set.unresolved),
        interpreter=None if load_set.interpreter is None else _show_unresolved(load_set.interpreter, show),
    )


def _name_as_given(load_set: LoadSet, given: GivenNames) -> LoadSet:
    return replace(
        load_set,
        modules=tuple(_name_module(module, given) for module in load_set.modules),
        unresolved=tuple(
            replace(
                missing,
                elsewhere=tuple(map(given.find, missing.elsewhere)),
                similar=tuple(map(given.find, missing.similar)),
            )
            for missing in load_set.unresolved
        ),
    )


def _name_module(module: Module, given: GivenNames) -> Module:
    path = given.find(module.image.path)
    return module if path == module.image.path else replace(module, image=replace(module.image, path=path))


def _name_file(file: ExaminedFile, given: GivenNames) -> ExaminedFile:
    path = given.find(file.identity.path)
    if path == file.identity.path:
        return file
    image = None if file.image is None else replace(file.image, path=path)
    return ExaminedFile(replace(file.identity, path=path), image)


def show_file(file: ExaminedFile, show: Show) -> ExaminedFile:
    """`file` with its path as `show` names it, and every name on one line."""
    return ExaminedFile(
        show_identity(file.identity, show), None if file.image is None else show_image(file.image, show)
    )


def show_identity(identity: FileIdentity, show: Show) -> FileIdentity:
    """`identity` with its path as `show` names it, and what was read in the file on one line."""
    return replace(
        identity,
        path=one_line(show(identity.path)),
        detail=one_line(identity.detail),
        names=tuple(map(one_line, identity.names)),
    )


def show_image(image: Image, show: Show) -> Image:
    """`image` with its path as `show` names it, and every name on one line; the image itself when nothing changes."""
    path = one_line(show(image.path))
    names = (image.soname, image.rpath, image.runpath, image.interpreter)
    noted = (text for note in image.dlopen_notes for text in (*note.sonames, note.feature, note.description))
    if path == image.path and "".join((*filter(None, names), *image.needed, *image.filters, *noted)).isprintable():
        return image
    soname, rpath, runpath, interpreter = (None if name is None else one_line(name) for name in names)
    return replace(
        image,
        path=path,
        soname=soname,
        needed=tuple(map(one_line, image.needed)),
        filters=tuple(map(one_line, image.filters)),
        rpath=rpath,
        runpath=runpath,
        interpreter=interpreter,
        dlopen_notes=tuple(
            replace(
                note,
                sonames=tuple(map(one_line, note.sonames)),
                feature=one_line(note.feature),
                description=one_line(note.description),
            )
            for note in image.dlopen_notes
        ),
    )


def show_error(error: MalformedElfError | UnreadableFileError, show: Show) -> MalformedElfError | UnreadableFileError:
    """The same error about what `show` calls the file, on one line."""
    return type(error)(one_line(show(error.path)), one_line(error.reason))


def _show_module(module: Module, show: Show) -> Module:
    image = show_image(module.image, show)
    requested_as = one_line(show(module.requested_as))
    tried = _show_attempts(module.tried, show)
    if image is module.image and requested_as == module.requested_as and tried == module.tried:
        return module
    return replace(module, image=image, requested_as=requested_as, tried=tried)


def _show_unresolved(unresolved: Unresolved, show: Show) -> Unresolved:
    def show_all(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one_line(show(path)) for path in paths)

    return replace(
        unresolved,
        needed=one_line(show(unresolved.needed)),
        directories=show_all(unresolved.directories),
        rejected=_show_attempts(unresolved.rejected, show),
        elsewhere=show_all(unresolved.elsewhere),
        similar=show_all(unresolved.similar),
        cache_fault=one_line(unresolved.cache_fault),
    )


def _show_attempts(attempts: tuple[Attempt, ...], show: Show) -> tuple[Attempt, ...]:
    """`attempts` with every path as `show` names it."""
    return tuple(_show_attempt(attempt, show) for attempt in attempts)


def _show_attempt(attempt: Attempt, show: Show) -> Attempt:
    path, reason = one_line(show(attempt.path)), one_line(attempt.reason)
    return attempt if (path, reason) == (attempt.path, attempt.reason) else replace(attempt, path=path, reason=reason)
