"""One file a command: options, printing, exit status; nothing else. Here: the entry point."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which is imported after main has turned the search for cycles off
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process with its exit status.

    0 clean, 1 findings, 2 could not check (usage, nothing to check, unreadable input, internal error). Ctrl-C ends
    the process by SIGINT, as a shell expects.
    """
    # What a run makes is kept to its end or freed by counting: looking for cycles finds none and takes 3 ms.
    gc.disable()
    try:
        from linkcheck.cli.run import run  # imported here so that Ctrl-C during the imports is quiet, too

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        status = 130
    _end(status)


def _end(status: int) -> NoReturn:
    """End the process without taking the interpreter apart, which takes 4 ms; nothing of it is needed any more."""
    from contextlib import suppress

    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed when we started
        with suppress(OSError, ValueError):  # closed by whoever started us; emit.py has told of what was not written
            stream.flush()
    os._exit(status)
