"""Counts what a report on one file will list, before it is made. Lists nothing itself.

Decoding a name once bounds what it costs to read; a name that ten thousand entries refer to is still printed for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.executorch.limits import MAX_LISTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.executorch.blob import TensorRTBlob
    from linkcheck.executorch.facts import Argument
    from linkcheck.executorch.flatbuffer import Table

#: Characters of one entry beside its names, about, and of one number: what the JSON of the report takes.
_ENTRY = 160
_NUMBER = 24
#: How often a delegate's name stands in a report: in its list, in that of the engine, and with every rule.
_TOLD = 6


class Listing:
    """What may still be listed of one file."""

    def __init__(self) -> None:
        #: Characters so far, about.
        self.length = 0

    def add_entry(self, table: Table, *names: str) -> None:
        """Count an entry with `names`. Raises MalformedProgramError, with where `table` is, when it is too much."""
        self._add(table, _ENTRY + sum(map(len, names)))

    def add_delegate(self, table: Table, method: str, backend: str) -> None:
        """Count a delegate of `method`. Raises as `add_entry`."""
        self._add(table, _TOLD * (_ENTRY + len(method)) + len(backend))

    def add_blob(self, table: Table, blob: TensorRTBlob, arguments: Sequence[Argument | None]) -> None:
        """Count what the `blob` of the delegate at `table` says, and its `arguments`. Raises as `add_entry`."""
        entries = [len(binding.name) for binding in blob.io_bindings]
        entries += [len(alias.output) + 2 * len(alias.input) for alias in blob.aliased_io]
        numbers = sum(len(argument.shape) for argument in arguments if argument is not None)
        names = len(blob.target_platform) + 2 * len(blob.engine_key or "")
        self._add(table, len(entries) * _ENTRY + sum(entries) + numbers * _NUMBER + names)

    def _add(self, table: Table, characters: int) -> None:
        self.length += characters
        if self.length > MAX_LISTED:
            raise table.malformed(f"with it a report lists more than {MAX_LISTED} characters of one file")
