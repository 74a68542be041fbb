"""Puts a finished report where the user wants it: standard output or a file. Decides nothing about its content."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from linkcheck.report.report import DescribedRule, Report

_ELF_MAGIC = b"\x7fELF"


class OutputError(LinkcheckError):
    """The report could not be written, so the run must not look like a success."""


def wants_color() -> bool:
    """Whether text may be coloured: standard output is a terminal and NO_COLOR is unset or empty (no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def print_error(text: str) -> None:
    """Write `text` to standard error as the one line of an error."""
    from linkcheck.report.printable import printable

    if sys.stderr is not None:
        try:
            sys.stderr.write(f"linkcheck: error: {printable(text)}\n")
            sys.stderr.flush()
        except OSError:  # when nobody listens the status still tells
            discard(sys.stderr)


def emit_report(report: Report, format_name: str, output: str | None) -> None:
    """Write `report` in one of report.FORMATS, as `emit` does; with colours on a terminal that has them."""
    from linkcheck.report import render
    from linkcheck.rules import LOAD_SET_RULES

    rules: Sequence[DescribedRule] = LOAD_SET_RULES
    # Text names the rules of the checks that it shows. All others are imported only where something says their names.
    named = {rule.meta.code for rule in rules}
    if format_name != "text" or any(check.code not in named for check in report.checks):
        from linkcheck.rules.link_rules import LINK_RULES

        rules = LINK_RULES
    emit(render(report, format_name, color=output is None and wants_color(), rules=rules), output)


def emit(text: str | Iterable[str], output: str | None) -> None:
    """Write `text`, or its pieces, to the file `output`, or to standard output when it is None.

    A reader that closed the pipe early has what it wanted: that is no error. Every other failure raises OutputError.
    """
    pieces = (text,) if isinstance(text, str) else text
    data = (piece.encode("utf-8", "backslashreplace") for piece in pieces)
    try:
        if output is not None and output != "-":
            _write_file(output, data)
            return
        if sys.stdout is None:  # closed by the caller (`>&-`)
            raise OutputError("standard output: cannot be written: it is closed")
        sys.stdout.flush()
        sys.stdout.buffer.writelines(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        if output is None or output == "-":
            discard(sys.stdout)
        place = "standard output" if output is None else output or "--output"
        raise OutputError(f"{place}: cannot be written: {error.strerror or error}") from error


def discard(stream: TextIO | None) -> None:
    """Let what is still buffered for `stream` go nowhere.

    The interpreter flushes it once more at exit; when that fails it prints a second error and ends with status 120.
    """
    if stream is not None:
        with suppress(OSError, ValueError):  # ValueError: a stream that is no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def refuse_inputs(output: str | None, inputs: Iterable[str]) -> None:
    """Raise OutputError when the report would take the place of one of `inputs`, or of any ELF file.

    The second because a directory or an archive stands for files that have no name on the command line; a report is
    never one. Called before anything is judged, so that nobody waits for a report that nobody gets.
    """
    if output == "":
        raise OutputError("--output: an empty value names no file")
    if output is None or output == "-":
        return
    try:
        status = os.stat(output)
        if not stat.S_ISREG(status.st_mode):
            return
    except (OSError, ValueError):  # not there yet, or not to be written: then writing says why
        return
    for name in inputs:
        with suppress(OSError, ValueError):
            if os.path.samestat(status, os.stat(name.partition("!/")[0])):
                raise OutputError(f"{output}: the report would overwrite {name}, which is to be checked")
    with suppress(OSError), open(output, "rb") as file:
        if file.read(4) == _ELF_MAGIC:
            raise OutputError(f"{output}: the report would overwrite an ELF file; remove it first if that is meant")


def _write_file(path: str, data: Iterable[bytes]) -> None:
    """Replace the content of `path` as a whole, so that a reader never sees half a report; its mode and links stay."""
    if _is_written_in_place(path):
        with open(path, "wb") as file:
            file.writelines(data)
        return
    target = os.path.realpath(path)  # behind symbolic links, or one of them would be replaced
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode) & 0o777
    except FileNotFoundError:
        mode = None
    # In the target's directory, which others may be able to write to: nobody can foresee the name, or have made it.
    partial = f"{target}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.writelines(data)
        os.replace(partial, target)
    except OSError:
        with suppress(OSError):
            os.unlink(partial)
        raise


def _is_written_in_place(path: str) -> bool:
    """Whether `path` is a FIFO or device, or a name for an open file such as /dev/stdout, which must stay that file."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isfile(path)
