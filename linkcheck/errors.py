"""What can stop a check before it has a verdict: one base, one class a cause, the exit status on the class.

Not findings: a finding is a verdict about a file; an error says that no verdict could be given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkcheck.model import FileKind


#: Why "" is refused: it is a variable that nothing set, and would be taken for the working directory.
EMPTY_NAME = "an empty name names no file"


class LinkcheckError(Exception):
    """Base of every error a user can meet; its text is one line that names the file or option at fault."""

    #: What the command line exits with when this error reaches it.
    exit_status = 2


class UnreadableFileError(LinkcheckError):
    """A file or directory could not be opened or read (permission, I/O error, vanished)."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep `path` (as the user gave it, or as it was found) and the system's `reason`."""
        super().__init__(f"{path}: cannot be read: {reason}")
        self.path = path
        self.reason = reason


class MalformedElfError(LinkcheckError):
    """An ELF file whose own numbers do not fit the file, so nothing it says can be trusted."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep `path` and `reason`: what was read and which bound it breaks."""
        super().__init__(f"{path}: malformed ELF: {reason}")
        self.path = path
        self.reason = reason


class NotAnImageError(LinkcheckError):
    """A file that no process could map, so it has no facts: not ELF, or an ELF file of another purpose.

    `kind` says which, as far as the reader looked; None means "no ELF file", and `elf.kind.identify` knows more.
    """

    def __init__(self, path: str, reason: str, kind: FileKind | None = None) -> None:
        """Keep `path`, the `reason` (what was read, one clause) and the `kind`."""
        super().__init__(f"{path}: not an ELF image: {reason}")
        self.path = path
        self.reason = reason
        self.kind = kind


class ArchiveError(LinkcheckError):
    """An archive that is broken, that would write outside of its target, or that passes a limit; nothing was judged."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep `path`, the archive, and the `reason`, which names the member or the limit."""
        super().__init__(f"{path}: cannot be unpacked: {reason}")
        self.path = path
        self.reason = reason


class MalformedBlobError(LinkcheckError):
    """A TensorRT delegate's blob that its format does not allow; also what cannot be made one."""

    def __init__(self, offset: int, field: str, reason: str) -> None:
        """Keep `offset` (bytes from the blob's start), the `field` at fault and the `reason`, one clause."""
        super().__init__(f"blob: {field} at offset {offset:#x}: {reason}")
        self.offset = offset
        self.field = field
        self.reason = reason


class MalformedProgramError(LinkcheckError):
    """An ExecuTorch program or data file whose own numbers do not fit the file, so nothing it says can be trusted."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep `path` and `reason`: what was read and which bound it breaks."""
        super().__init__(f"{path}: malformed ExecuTorch file: {reason}")
        self.path = path
        self.reason = reason


class NotAProgramError(LinkcheckError):
    """A file that is neither an ExecuTorch program (.pte) nor its external data (.ptd)."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep `path` and the `reason`: what was read, one clause."""
        super().__init__(f"{path}: neither an ExecuTorch program nor its data: {reason}")
        self.path = path
        self.reason = reason


class ProcessError(LinkcheckError):
    """A running process whose memory map cannot be read, or that did not stay what it was while it was read."""

    def __init__(self, pid: int, reason: str) -> None:
        """Keep the number `pid` of the process and the `reason`."""
        super().__init__(f"process {pid}: {reason}")
        self.pid = pid
        self.reason = reason


class ModelError(LinkcheckError):
    """A model of which no program could be built: what it is made from, or what a builder said of it."""

    def __init__(self, model: str, reason: str) -> None:
        """Keep `model`, as the user named it, and the `reason`, which becomes one line."""
        reason = " ".join(reason.split())
        super().__init__(f"{model}: {reason}")
        self.model = model
        self.reason = reason


class MissingPackageError(LinkcheckError):
    """A Python package that only one command needs cannot be imported."""

    def __init__(self, package: str, extra: str, reason: str) -> None:
        """Keep the `package` (as it is imported), the `extra` that brings it, and what the import said."""
        reason = " ".join(reason.split())
        super().__init__(f"{package} cannot be imported ({reason}): pip install 'linkcheck-elf[{extra}]'")
        self.package = package


class NothingToCheckError(LinkcheckError):
    """The inputs hold no ELF file, so a clean result would be a lie."""


class UnplacedLibraryError(LinkcheckError):
    """A library that a file needs is in none of the directories that were proposed for LD_LIBRARY_PATH."""

    def __init__(self, path: str, needed: str, places: int) -> None:
        """Keep `path`, the file that needs it, the name `needed`, and how many `places` were proposed."""
        where = "not in the one directory" if places == 1 else f"in none of the {places} directories"
        super().__init__(f"{path} needs {needed}, which is {where}")
        self.path = path
        self.needed = needed
        self.places = places


class ReplacedLibraryError(LinkcheckError):
    """A complete LD_LIBRARY_PATH would give a program another file than the one it loads without it."""

    def __init__(self, path: str, before: str, after: str) -> None:
        """Keep `path`, the program, the library's file `before` and the one that it would be `after`."""
        super().__init__(
            f"{path} loads {before}, and with the directories that it lacks in LD_LIBRARY_PATH it would load {after} "
            "instead"
        )
        self.path = path
        self.before = before
        self.after = after


class UsageProblemError(LinkcheckError):
    """An option or argument that names nothing known; the text lists the allowed values."""


class PolicyError(LinkcheckError):
    """A policy or profile file that cannot be used as it is."""

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        """Keep `path`, the 1-based `line` at fault (None when no line is to blame) and the `reason`."""
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class UndemangledNameError(LinkcheckError):
    """A C++ name that a policy speaks of cannot be compared with a file's mangled names."""
