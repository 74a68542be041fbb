"""Which file an image is, and where it lies: what $ORIGIN means to it hangs on that. Reads no file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.policy.patterns import RealDirectories

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from linkcheck.model import Image, LoadSet

    #: Device and inode of a file, and the directory that it lies in, without links.
    Place: TypeAlias = "tuple[int, int, str]"


class Origins:
    """The places of images. A hard link in another directory is at another place. A symbolic link has two: its own, and
    that of the file, which may be a mere store that nobody opens it from.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._directories = RealDirectories()
        self._targets: dict[str, str] = {}
        self._loaded: set[Place] = set()
        self._seen = 0

    def place(self, image: Image) -> Place:
        """Where `image` lies, as its path says."""
        return image.device, image.inode, os.path.dirname(self._directories.find(image.path))

    def list_places(self, image: Image) -> tuple[Place, Place]:
        """Where `image` lies, as its path says, and where the file is to which that path leads."""
        target = self._targets.get(image.path)
        if target is None:
            target = self._targets[image.path] = os.path.dirname(os.path.realpath(image.path))
        return self.place(image), (image.device, image.inode, target)

    def holds(self, image: Image, load_sets: Sequence[LoadSet]) -> bool:
        """Whether one of `load_sets`, which begin with those of the last question, loads `image` from its place."""
        for load_set in load_sets[self._seen :]:
            self._loaded.update(place for module in load_set.modules for place in self.list_places(module.image))
        self._seen = len(load_sets)
        return self.place(image) in self._loaded
