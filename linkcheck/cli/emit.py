"""Puts a finished report where the user wants it: standard output or a file. Decides nothing about its content."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError

if TYPE_CHECKING:
    from typing import TextIO


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


def emit(text: str, output: str | None) -> None:
    """Write `text` to the file `output`, or to standard output when it is None.

    A reader that closed the pipe early has what it wanted: that is no error. Every other failure raises OutputError.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if output is not None and output != "-":
            _write_file(output, data)
            return
        if sys.stdout is None:  # closed by the caller (`>&-`)
            raise OutputError("standard output: cannot be written: it is closed")
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
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


def _write_file(path: str, data: bytes) -> None:
    """Replace `path` as a whole, so that a reader never sees half a report."""
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/stdout, a FIFO: written in place
        with open(path, "wb") as file:
            file.write(data)
        return
    partial = f"{path}.{os.getpid()}.tmp"
    try:
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except OSError:
        with suppress(OSError):
            os.unlink(partial)
        raise
