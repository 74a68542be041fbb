"""A running process becomes the load set that rules judge: what is mapped, in the order that the files imply.

The link map itself is in the memory of the process, and reading that takes ptrace. So the start is worked out again
from the files, as for a program that does not run yet, with what is mapped as the last word on every search. What is
mapped and nobody needs was dlopened; the order and the scope of those calls leave no trace in /proc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkcheck.elf.reader import read_image
from linkcheck.errors import ProcessError
from linkcheck.inputs.mapped import find_images
from linkcheck.inputs.process import split_preload
from linkcheck.loader.files import Files
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.search import Found, Missing
from linkcheck.loader.system import System
from linkcheck.model import FoundBy, Unresolved
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.inputs.mapped import MappedFiles, MappedImage
    from linkcheck.inputs.proc import ProcessFacts
    from linkcheck.model import Image, LoadSet

#: Libraries that every program of the machine gets first (man 8 ld.so); more than any real one has.
_PRELOAD_FILE, _PRELOAD_LIMIT = "/etc/ld.so.preload", 64 << 10


class LiveProcess(Value):
    """One running process to judge."""

    facts: ProcessFacts
    mapped: MappedFiles
    #: The machine as the process sees it.
    system: System
    load_set: LoadSet

    def show(self, path: str) -> str:
        """The name for messages of the file that was opened as `path`."""
        return next((mapped.image.path for mapped in self.mapped.images if mapped.opened_as == path), path)


def load_live(facts: ProcessFacts) -> LiveProcess:
    """The load set of the process of `facts`; ProcessError when it cannot be told what program it runs."""
    mapped = find_images(facts)
    root = _find_program(facts, mapped)
    loading = _Loading(facts, mapped, root)
    return LiveProcess(facts, mapped, loading.system, loading.load())


def _find_program(facts: ProcessFacts, mapped: MappedFiles) -> MappedImage:
    """What the process started from; not always /proc/PID/exe, which is ld.so when somebody called that by its name."""
    for one in mapped.images:
        if (one.image.device, one.image.inode) == facts.program_file and one.image.is_executable:
            return one
    programs = [one for one in mapped.images if one.image.is_executable]
    if len(programs) == 1:
        return programs[0]
    unseen = next((one for one in mapped.unseen if _is_called(one.path, facts.program)), None)
    reason = f": {unseen.reason}" if unseen else ""
    raise ProcessError(facts.pid, f"its program, {facts.program}, is no ELF executable that can be read{reason}")


def _is_called(name: str, program: str) -> bool:
    """Whether `name`, as messages have it, is that of `program`, deleted or not."""
    return name == program or name.startswith(f"{program} (deleted)")


class _Loading:
    """Loads the process again, from what it has mapped."""

    def __init__(self, facts: ProcessFacts, mapped: MappedFiles, root: MappedImage) -> None:
        self.root = root
        self.mapped = mapped
        files = Files(facts.root, facts.working_directory, namespace=facts.foreign_mounts)
        self.system = System(read_image, files, library_path=[facts.environment.get("LD_LIBRARY_PATH", "")])
        self.preload = [*split_preload((facts.environment.get("LD_PRELOAD", ""),)), *_read_preload_file(files)]
        self.by_file = {(one.image.device, one.image.inode): one for one in mapped.images}
        self.by_path = {files.inside(one.image.path): one for one in mapped.images}
        interpreter = root.image.interpreter or self.system.loader_of(root.image) or ""
        #: Mapped by the kernel, and in no scope as long as nobody needs it.
        self.interpreter = interpreter.rpartition("/")[2]

    def load(self) -> LoadSet:
        """The load set, with everything that is mapped in it."""
        opened: list[Dlopen] = []
        while True:
            load_set = load(self.root.image, self.system, preload=self.preload, dlopen=opened, settle=self.settle)
            loaded = {(m.image.device, m.image.inode) for m in load_set.modules}
            rest = [one.image for file, one in self.by_file.items() if file not in loaded and not self._is_loader(one)]
            known = {one.name for one in opened}
            more = [Dlopen(image.path) for image in _needed_by_none(rest) if image.path not in known]
            if not more:
                break
            opened += more
        # A preload that is not mapped was refused (setuid programs refuse paths), and nobody waits for it.
        missing = [one for one in load_set.unresolved if one.needed not in self.preload]
        unseen = [Unresolved(0, one.path, ()) for one in self.mapped.unseen]
        left = [Unresolved(0, image.path, ()) for image in rest]
        return replace(load_set, unresolved=(*missing, *unseen, *left), observed=True)

    def settle(self, name: str, result: Found | Missing) -> Found | Missing:
        """What is mapped for `name`, whatever a search of today's files says."""
        if isinstance(result, Found):
            known = self.by_file.get((result.image.device, result.image.inode))
            if known is not None:
                return replace(result, image=known.image)
        named = [one for one in self.mapped.images if name in (one.image.soname, one.inside.rpartition("/")[2])]
        exact = self.by_path.get(name)
        candidates = [exact] if exact is not None else named
        if len(candidates) == 1:
            return Found(candidates[0].image, candidates[0].inside, FoundBy.MAPPED, result.tried)
        directories = result.directories if isinstance(result, Missing) else ()
        return Missing(directories, result.tried)

    def _is_loader(self, one: MappedImage) -> bool:
        return one is not self.root and self.interpreter in (one.image.soname, one.inside.rpartition("/")[2])


def _needed_by_none(images: Sequence[Image]) -> list[Image]:
    """Those of `images` that none of the others needs; all of them when they need each other in a ring.

    The highest address first, because the kernel gives addresses from the top: most likely that was opened first.
    """
    needed = {name.rpartition("/")[2] for image in images for name in image.needed}
    free = [image for image in images if not {image.soname, image.path.rpartition("/")[2]} & needed]
    return (free or list(images))[::-1]


def _read_preload_file(files: Files) -> list[str]:
    try:
        text = files.read(_PRELOAD_FILE, _PRELOAD_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    lines = [line.partition("#")[0] for line in text.splitlines()]
    return [name for line in lines for name in re.split(r"[:\s]+", line) if name]
