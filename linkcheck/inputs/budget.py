"""What unpacking one archive may cost, counted while it is spent: members, bytes, ratio. Unpacks nothing."""

from __future__ import annotations

from linkcheck.errors import ArchiveError
from linkcheck.inputs.limits import MAX_INFLATED, MAX_MEMBERS, MAX_RATIO, RATIO_FREE_OF_CHARGE


class Budget:
    """The allowance of one archive. What a header declares is never believed: only what comes out counts."""

    __slots__ = ("_allowed", "_by_ratio", "_inflated", "_members", "path")

    def __init__(self, path: str, packed_size: int) -> None:
        """`path` is the archive's, for messages; `packed_size` its size in bytes."""
        self.path = path
        by_ratio = max(RATIO_FREE_OF_CHARGE, MAX_RATIO * packed_size)
        self._by_ratio = by_ratio <= MAX_INFLATED
        self._allowed = min(by_ratio, MAX_INFLATED)
        self._inflated = 0
        self._members = 0

    def count_member(self) -> None:
        """One more member; raises ArchiveError when there are too many."""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise ArchiveError(self.path, f"it has more than {MAX_MEMBERS:,} members, the limit")

    def spend(self, size: int) -> None:
        """`size` more bytes came out; raises ArchiveError when they are too many."""
        self._inflated += size
        if self._inflated <= self._allowed:
            return
        if self._by_ratio:
            raise ArchiveError(
                self.path,
                f"it inflates to more than {self._allowed:,} bytes; the limit is {MAX_RATIO} times its own size",
            )
        raise ArchiveError(self.path, f"it inflates to more than {MAX_INFLATED:,} bytes, the limit")
