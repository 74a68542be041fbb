"""Which file an image is, and where it lies: what $ORIGIN means to it hangs on that. Reads no file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from linkcheck.model import Image, LoadSet

    #: Device and inode of a file, and the directory that it lies in, without links.
    Place: TypeAlias = "tuple[int, int, str]"


class Origins:
    """The places of images. Another name in the same directory is the same place; a link in another one is not."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._directories: dict[str, str] = {}
        self._loaded: set[Place] = set()
        self._seen = 0

    def place(self, image: Image) -> Place:
        """Where `image` lies, as its path says."""
        directory = os.path.dirname(image.path)
        real = self._directories.get(directory)
        if real is None:
            real = self._directories[directory] = os.path.realpath(directory)
        return image.device, image.inode, real

    def holds(self, image: Image, load_sets: Sequence[LoadSet]) -> bool:
        """Whether one of `load_sets`, which begin with those of the last question, loads `image` from its place."""
        for load_set in load_sets[self._seen :]:
            self._loaded.update(self.place(module.image) for module in load_set.modules)
        self._seen = len(load_sets)
        return self.place(image) in self._loaded
