"""Which of several files are copies of one library, by SONAME, build ID and exported names. Facts; it judges none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from linkcheck.choice import Choice
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkcheck.model import Image, LoadSet, Target


class Likeness(Choice):
    """What files have in common that look like one library; values are part of the evidence."""

    SAME_FILE = "one file found twice"
    SAME_SONAME = "one SONAME in two files"
    SAME_BUILD = "two SONAMEs of one build"
    SAME_EXPORTS = "two builds of one library under two SONAMEs"
    NAMESAKES = "two libraries of one SONAME"


class Copies(Value):
    """Files that look like one library, and how much of what they export has the same names."""

    images: tuple[Image, ...]
    likeness: Likeness
    #: Exported names that all have, and that any has.
    common: int = 0
    exported: int = 0

    @property
    def one_build(self) -> bool:
        """Whether all have the same build ID."""
        return len({image.build_id for image in self.images}) == 1 and self.images[0].build_id is not None


class ScannedFiles(Value):
    """Everything that several packages hold, for rules that compare what need not be loaded together."""

    images: tuple[Image, ...]
    #: One for each root among them.
    load_sets: tuple[LoadSet, ...]
    #: Path of an image -> bytes in its file.
    sizes: dict[str, int]


#: Parts of all exported names that two files must share to be builds of one library under two SONAMEs, and to be
#: builds of one library under the same SONAME; two versions of one library share nine in ten and more.
_SIMILAR, _RELATED = 0.8, 0.5
#: Exported names below which sharing all of them says nothing.
_FEWEST_NAMES = 4
#: `libgomp-a34b3233.so.1`, `libssl.so.1.1`, `libfoo-1.2.so`: what tools and versions add to a name (auditwheel's hash
#: has eight digits or more).
_ADDED = r"(-[0-9a-f]{6,})?([-.]\d[\d.]*)?$"
#: Names that linkers define in every file.
_MADE_BY_LINKERS = frozenset(
    {"_init", "_fini", "_start", "__bss_start", "_edata", "edata", "_end", "end", "_etext", "etext", "__end__"}
)


def find_copies(images: Sequence[Image], cannot_tell: Callable[[str], None]) -> tuple[Copies, ...]:
    """The groups among `images` that are one file, or look like one library.

    `cannot_tell` is called with the reason when two files of like names cannot be compared. Raises MalformedElfError
    or UnreadableFileError when a symbol table cannot be read.
    """
    files: dict[object, list[Image]] = {}
    for image in images:
        key = (image.device, image.inode) if image.inode else image.path
        if all(other.path != image.path for other in files.setdefault(key, [])):
            files[key].append(image)
    found = [Copies(tuple(same), Likeness.SAME_FILE) for same in files.values() if len(same) > 1]
    comparison = _Comparison([same[0] for same in files.values()], cannot_tell)
    return (*found, *comparison.groups())


class _Comparison:
    """Compares distinct files; exported names are read for those with like names only."""

    def __init__(self, images: Sequence[Image], cannot_tell: Callable[[str], None]) -> None:
        self._images = images
        self._cannot_tell = cannot_tell
        numbers: dict[Target, int] = {}
        #: For each image the number of its target: hashed once, and not for each of three questions.
        self._targets = [numbers.setdefault(image.target, len(numbers)) for image in images]
        self._names: dict[int, frozenset[str]] = {}
        self._group_of = list(range(len(images)))

    def groups(self) -> list[Copies]:
        for same in self._by(lambda image: image.build_id):
            for index in same[1:]:
                self._join(same[0], index)
        namesakes: list[tuple[int, int]] = []
        for same in self._by(lambda image: image.soname):
            for index in same[1:]:
                if self._share(same[0], index, _RELATED):
                    self._join(same[0], index)
                elif self._group(same[0]) != self._group(index):
                    namesakes.append((same[0], index))
        for like in self._by(lambda image: stem_of(image.name)):
            for position, first in enumerate(like):
                for second in like[position + 1 :]:
                    if self._images[first].soname != self._images[second].soname and (
                        self._group(first) != self._group(second) and self._share(first, second, _SIMILAR)
                    ):
                        self._join(first, second)
        members: dict[int, list[int]] = {}
        for index in range(len(self._images)):
            members.setdefault(self._group(index), []).append(index)
        found = [self._describe(group, None) for group in members.values() if len(group) > 1]
        return [*found, *(self._describe([*pair], Likeness.NAMESAKES) for pair in namesakes)]

    def _by(self, key: Callable[[Image], str | None]) -> list[list[int]]:
        """Indices of the images of one target with the same key, where there are several."""
        found: dict[tuple[int, str], list[int]] = {}
        for index, image in enumerate(self._images):
            if (value := key(image)) is not None and not image.is_executable:
                found.setdefault((self._targets[index], value), []).append(index)
        return [same for same in found.values() if len(same) > 1]

    def _share(self, first: int, second: int, part: float) -> bool:
        names, others = self._exported(first), self._exported(second)
        if min(len(names), len(others)) < _FEWEST_NAMES or any(name.startswith("PyInit_") for name in names & others):
            return False  # extension modules of one file name have the function in common that imports call
        return len(names & others) >= part * len(names | others)

    def _exported(self, index: int) -> frozenset[str]:
        if index not in self._names:
            table = self._images[index].symbols
            if reason := table.unseen:
                self._cannot_tell(f"{self._images[index].path}: {reason}")
            self._names[index] = frozenset(s.name for s in table.exports()) - _MADE_BY_LINKERS
        return self._names[index]

    def _group(self, index: int) -> int:
        while self._group_of[index] != index:
            index = self._group_of[index]
        return index

    def _join(self, first: int, second: int) -> None:
        first, second = sorted((self._group(first), self._group(second)))
        self._group_of[second] = first

    def _describe(self, group: Sequence[int], likeness: Likeness | None) -> Copies:
        images = tuple(self._images[index] for index in group)
        names = [self._exported(index) for index in group]
        if likeness is None:
            if len({image.soname for image in images}) == 1 and images[0].soname is not None:
                likeness = Likeness.SAME_SONAME
            elif len({image.build_id for image in images}) == 1:
                likeness = Likeness.SAME_BUILD
            else:
                likeness = Likeness.SAME_EXPORTS
        return Copies(images, likeness, len(frozenset.intersection(*names)), len(frozenset.union(*names)))


@lru_cache(maxsize=1024)
def stem_of(name: str) -> str | None:
    """`libgomp` for libgomp.so.1 and for libgomp-a34b3233.so.1.0.0; None for what is not named like a library."""
    base, mark, _ = name.partition(".so")
    return re.sub(_ADDED, "", base) or base if mark else None
