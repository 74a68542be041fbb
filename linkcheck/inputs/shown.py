"""Gives everything known of a process the names that reports use. No I/O.

Paths become those that users know, `file.whl!/member` for what was unpacked; and no name holds a control character, so
that none can forge a line of a message (model.one_line). The loader has searched by the raw names before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.inputs.process import ExaminedFile, Process
from linkcheck.text import one_line
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkcheck.errors import MalformedElfError, UnreadableFileError
    from linkcheck.model import Attempt, FileIdentity, Image, LoadSet, Module, Unresolved

    Show = Callable[[str], str]


def show_process(process: Process, show: Show) -> Process:
    """`process` with every path in it as `show` names it, and every name on one line."""
    return Process(
        show_load_set(process.load_set, show),
        tuple(show_file(file, show) for file in process.opened),
        tuple(show_file(file, show) for file in process.rejected),
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
