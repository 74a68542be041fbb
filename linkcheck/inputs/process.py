"""A named file and its declared dlopens become the load set of one process, or what is known of why they cannot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.elf.reader import explain_kind, read_image
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.loader.load import Dlopen, load
from linkcheck.loader.tidy import tidy_paths
from linkcheck.loader.tokens import has_token
from linkcheck.model import IMAGE_KINDS, FileIdentity
from linkcheck.policy.patterns import means_file
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from linkcheck.loader.files import Files
    from linkcheck.loader.system import System
    from linkcheck.model import Image, LoadSet
    from linkcheck.policy.settings import DlopenEdge


class ExaminedFile(Value):
    """What could be learnt about one file: its kind, and its facts when it is an image that can be read."""

    identity: FileIdentity
    image: Image | None


class Process(Value):
    """One process to judge."""

    load_set: LoadSet
    #: Files that were to be preloaded or dlopened, each with what it must run on.
    opened: tuple[ExaminedFile, ...] = ()
    #: Files that ld.so would meet under a needed name, but cannot load.
    rejected: tuple[ExaminedFile, ...] = ()
    #: The policy's dlopens that a file of this process makes.
    made: tuple[DlopenEdge, ...] = ()


class Examiner:
    """Examines files, each once. Reads at most a few kilobytes of a file that is no image."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.known: dict[str, ExaminedFile] = {}

    def examine(self, path: str) -> ExaminedFile:
        """Say what `path` is; raises no error, however broken the file is."""
        examined = self.known.get(path)
        if examined is None:
            try:
                image = read_image(path)
                identity = FileIdentity(path, image.kind, explain_kind(image), target=image.target)
                examined = ExaminedFile(identity, image)
            except (MalformedElfError, NotAnImageError, UnreadableFileError) as error:
                # Imported only for what is no image: a verdict that ends the check, not the hot path.
                from linkcheck.elf.kind import correct_identity, identify

                identity = identify(path)
                if identity.kind in IMAGE_KINDS:  # the file was replaced in between
                    identity = correct_identity(identity, error)
                examined = ExaminedFile(identity, None)
            self.known[path] = examined
        return examined


def start_process(
    root: Image,
    system: System,
    examiner: Examiner,
    *,
    edges: Sequence[DlopenEdge] = (),
    dlopen: Sequence[Dlopen] = (),
    preload: Sequence[str] = (),
    neighbours: Iterable[str] = (),
    named: bool = True,
) -> Process:
    """Load `root` and `preload` with all they need, then what the policy's `edges` say its files open, then `dlopen`.

    Files to preload or dlopen that are no image are examined, not loaded, and unresolved where their turn came: what
    they should have held nobody knows. `neighbours` are directories worth a look when a needed library cannot be found.
    `named` is whether the user named `root` (LoadSet.named).
    """
    callers: dict[DlopenEdge, str | None] = {edge: None for edge in edges if means_file(root, (edge.from_,))}
    preload, dlopen = _find_below(preload, dlopen, system.files)
    while True:
        _, made = _find_below((), [_open_edge(edge, callers[edge]) for edge in edges if edge in callers], system.files)
        requests = [*made, *dlopen]
        names = (*preload, *(one.name for one in requests))
        opened = [examiner.examine(name) for name in names if "/" in name and not has_token(name)]
        broken = {examined.identity.path for examined in opened if examined.image is None}
        load_set = load(root, system, preload=preload, dlopen=requests, broken=broken)
        tidied = tidy_paths(load_set, system)
        # What is loaded may itself open more. An edge that was taken stays taken, so this ends.
        more = _find_callers(load_set, tidied, [edge for edge in edges if edge not in callers])
        if not more:
            break
        callers.update(more)
    if load_set.unresolved and any(has_token(name) for name in names):
        from linkcheck.inputs.token_names import examine_expanded

        tidied, led_to = examine_expanded(load_set, tidied, names, system, examiner)
        opened += led_to
    load_set = replace(_locate_unresolved(tidied, neighbours), named=named)
    given = {system.files.absolute(examined.identity.path): examined.identity.path for examined in opened}
    rejected = (attempt.path for missing in load_set.unresolved for attempt in missing.rejected)
    met = dict.fromkeys(given.get(path, path) for path in rejected)
    return Process(load_set, tuple(opened), tuple(examiner.examine(path) for path in met), tuple(callers))


def read_root(path: str) -> Image:
    """The image of the file at `path`, which gets an absolute path.

    Raises UnreadableFileError, NotAnImageError or MalformedElfError when it cannot be read, and UsageProblemError for a
    file inside an archive.
    """
    try:
        return read_image(_make_absolute(path))
    except (NotAnImageError, UnreadableFileError):
        from linkcheck.inputs.refused import refuse_archive, refuse_member

        refuse_member(path)
        refuse_archive(path)
        raise


def load_process(root: Image, system: System, *, dlopen: Sequence[Dlopen] = (), preload: Sequence[str] = ()) -> LoadSet:
    """The load set of a process of `root`, which `read_root` has read, for showing and not for judging.

    Whatever is wrong with what it loads is part of the load set.
    """
    preload, dlopen = _find_below(preload, dlopen, system.files)
    load_set = load(root, system, preload=preload, dlopen=dlopen)
    return _locate_unresolved(tidy_paths(load_set, system), ())


def _find_below(
    preload: Sequence[str], dlopen: Sequence[Dlopen], files: Files
) -> tuple[Sequence[str], Sequence[Dlopen]]:
    """`preload` and `dlopen` with the paths of this machine for files that may be named as the target sees them.

    A name with a token gets the target's path as far as that is known: the loader knows the rest.
    """
    if files.is_host:
        return preload, dlopen

    def find(name: str) -> str:
        if "/" not in name:
            return name
        return files.find_inside(name) if has_token(name) else files.find_below(name)

    return [find(name) for name in preload], [replace(one, name=find(one.name)) for one in dlopen]


def _locate_unresolved(load_set: LoadSet, directories: Iterable[str]) -> LoadSet:
    if not load_set.unresolved:
        return load_set
    from linkcheck.loader.nearby import locate_unresolved

    return locate_unresolved(load_set, directories)


def _make_absolute(path: str) -> str:
    """`path` from the root directory on; without `.` and `..` where that names the same file."""
    whole = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    short = os.path.normpath(whole)
    try:
        return short if os.path.samefile(short, whole) else whole
    except (OSError, ValueError):
        return whole


def _find_callers(load_set: LoadSet, tidied: LoadSet, edges: Iterable[DlopenEdge]) -> dict[DlopenEdge, str | None]:
    """Those of `edges` that start at a library of `load_set`, and its path; patterns mean the paths of reports."""
    callers: dict[DlopenEdge, str | None] = {}
    for edge in edges:
        for module, shown in zip(load_set.modules, tidied.modules, strict=True):
            if means_file(shown.image, (edge.from_,)):
                callers.setdefault(edge, module.image.path)
    return callers


def _open_edge(edge: DlopenEdge, caller: str | None) -> Dlopen:
    path = edge.path if "/" in edge.path else f"./{edge.path}"  # without a slash dlopen would search for it
    return Dlopen(path, edge.mode == "global", edge.deepbind, caller=caller)


def split_preload(entries: Iterable[str]) -> Iterator[str]:
    """The names in `entries`, each of which may be a whole LD_PRELOAD (glibc elf/rtld.c, handle_preload_list)."""
    for entry in entries:
        yield from (name for name in entry.replace(":", " ").split(" ") if name)


def named_dlopen(name: str, *, global_: bool) -> Dlopen:
    """The dlopen that `--dlopen NAME` means: a file that is there, or else a name that ld.so would search for."""
    if "/" not in name and os.path.exists(name):
        name = f"./{name}"
    return Dlopen(name, global_)
