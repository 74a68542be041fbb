"""A path -> what the file is and, when it is an image, its facts. Reads nothing itself and judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.elf.kind import identify
from linkcheck.elf.reader import read_image
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.model import IMAGE_KINDS, FileIdentity, FileKind
from linkcheck.value import replace

if TYPE_CHECKING:
    from linkcheck.model import Image


def examine(path: str) -> tuple[FileIdentity, Image | None]:
    """The file's identity, and its facts or None; every path has an answer.

    The reader looks deeper than `identify`: what it finds malformed is MALFORMED_ELF in the identity, too.
    """
    identity = identify(path)
    if identity.kind not in IMAGE_KINDS:
        return identity, None
    try:
        image = read_image(path)
    except (MalformedElfError, UnreadableFileError, NotAnImageError) as error:
        return correct_identity(identity, error), None
    return replace(identity, kind=image.kind), image


def correct_identity(
    identity: FileIdentity, error: MalformedElfError | UnreadableFileError | NotAnImageError
) -> FileIdentity:
    """`identity` as `error` shows it to be: raised by the reader or, later, by the image's symbol table."""
    if isinstance(error, MalformedElfError):
        kind: FileKind | None = FileKind.MALFORMED_ELF
    elif isinstance(error, UnreadableFileError):
        kind = FileKind.UNREADABLE
    else:
        kind = error.kind  # the reader saw more, or the file was replaced in between
    kind = kind or FileKind.DATA
    return replace(identity, kind=kind, detail="" if error.reason == kind.value else error.reason)
