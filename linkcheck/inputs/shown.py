"""Gives everything known of a process the names that users know: `file.whl!/member` for what was unpacked. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.inputs.process import ExaminedFile, Process
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkcheck.errors import MalformedElfError, UnreadableFileError
    from linkcheck.model import Attempt, Image, LoadSet, Module, Unresolved

    Show = Callable[[str], str]


def show_process(process: Process, show: Show) -> Process:
    """`process` with every path in it as `show` names it."""
    return Process(
        show_load_set(process.load_set, show),
        tuple(show_file(file, show) for file in process.opened),
        tuple(show_file(file, show) for file in process.rejected),
    )


def show_load_set(load_set: LoadSet, show: Show) -> LoadSet:
    """`load_set` with every path in it as `show` names it."""
    return replace(
        load_set,
        modules=tuple(_show_module(module, show) for module in load_set.modules),
        unresolved=tuple(_show_unresolved(unresolved, show) for unresolved in load_set.unresolved),
    )


def show_file(file: ExaminedFile, show: Show) -> ExaminedFile:
    """`file` with its path as `show` names it."""
    identity = replace(file.identity, path=show(file.identity.path))
    return ExaminedFile(identity, None if file.image is None else show_image(file.image, show))


def show_image(image: Image, show: Show) -> Image:
    """`image` with its path as `show` names it; the image itself when that is its name."""
    shown = show(image.path)
    return image if shown == image.path else replace(image, path=shown)


def show_error(error: MalformedElfError | UnreadableFileError, show: Show) -> MalformedElfError | UnreadableFileError:
    """The same error about what `show` calls the file."""
    return type(error)(show(error.path), error.reason)


def _show_module(module: Module, show: Show) -> Module:
    return replace(
        module,
        image=show_image(module.image, show),
        requested_as=show(module.requested_as),
        tried=_show_attempts(module.tried, show),
    )


def _show_unresolved(unresolved: Unresolved, show: Show) -> Unresolved:
    return replace(
        unresolved,
        needed=show(unresolved.needed),
        directories=tuple(map(show, unresolved.directories)),
        rejected=_show_attempts(unresolved.rejected, show),
        elsewhere=tuple(map(show, unresolved.elsewhere)),
        similar=tuple(map(show, unresolved.similar)),
    )


def _show_attempts(attempts: tuple[Attempt, ...], show: Show) -> tuple[Attempt, ...]:
    return tuple(replace(attempt, path=show(attempt.path)) for attempt in attempts)
