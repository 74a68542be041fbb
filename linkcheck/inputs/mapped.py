"""Which ELF files a running process has loaded, and where each can still be read. It works out no order and no scope.

An address is no order: the kernel places mappings where there is room.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.header import PF_W, PF_X, PT_LOAD, read_header
from linkcheck.elf.reader import read_image
from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    from linkcheck.elf.header import Segment
    from linkcheck.inputs.proc import Mapping, ProcessFacts
    from linkcheck.model import Image


class MappedImage(Value):
    """One ELF file that the process has loaded."""

    #: Its path is the name for messages; `opened_as` is where it was read.
    image: Image
    opened_as: str
    #: Its path as the process's own machine names it.
    inside: str
    #: How often: more than once when it is there in several namespaces of the loader (dlmopen, LD_AUDIT).
    times: int
    #: The lowest address of it.
    address: int


class UnseenFile(Value):
    """A file with code that the process has mapped, and why it cannot be read."""

    path: str
    reason: str


class MappedFiles(Value):
    """All that is known of what a process has loaded."""

    images: tuple[MappedImage, ...]
    unseen: tuple[UnseenFile, ...] = ()


def find_images(facts: ProcessFacts) -> MappedFiles:
    """The ELF files of `facts` that are loaded: a file that is only mapped to be read, as data, is none.

    A file that was deleted or replaced since is read through /proc/PID/map_files or /proc/PID/exe where that is
    allowed, and never confused with the one that is at its place now.
    """
    images: list[MappedImage] = []
    unseen: list[UnseenFile] = []
    names: set[str] = set()
    for mappings in _by_file(facts.mappings).values():
        name = _name(mappings[0], names)
        runs_code = any(mapping.is_code and mapping.is_private for mapping in mappings)
        opened_as = _find_readable(facts, mappings[0])
        if opened_as is None:
            if runs_code:
                unseen.append(UnseenFile(name, _why_not(mappings[0])))
            continue
        try:
            times = _count_loads(opened_as, mappings)
            if not times:
                continue
            image = read_image(opened_as)
        except NotAnImageError:
            continue  # mapped with code, but no ELF file: no ld.so has loaded it
        except (MalformedElfError, UnreadableFileError) as error:
            if runs_code:
                unseen.append(UnseenFile(name, error.reason))
            continue
        names.add(name)
        named = replace(image, path=name)
        images.append(MappedImage(named, opened_as, _inside(facts, mappings[0]), times, mappings[0].start))
    return MappedFiles(tuple(images), tuple(unseen))


def _by_file(mappings: Sequence[Mapping]) -> dict[tuple[object, ...], list[Mapping]]:
    """The mappings of each file, in the order of addresses."""
    found: dict[tuple[object, ...], list[Mapping]] = {}
    for mapping in mappings:
        found.setdefault((mapping.device, mapping.inode), []).append(mapping)
    return found


def _name(mapping: Mapping, taken: set[str]) -> str:
    """The path, and whether the file is no longer there: two files may have been there, one after the other."""
    name = f"{mapping.path} (deleted)" if mapping.marked_deleted else mapping.path
    return f"{name} (inode {mapping.inode})" if name in taken else name


def _inside(facts: ProcessFacts, mapping: Mapping) -> str:
    if facts.foreign_mounts or facts.root == "/" or not mapping.path.startswith(f"{facts.root}/"):
        return mapping.path
    return mapping.path[len(facts.root) :]


def _find_readable(facts: ProcessFacts, mapping: Mapping) -> str | None:
    """A path that leads to the very file that is mapped, or None."""
    start = f"{facts.place}/root" if facts.foreign_mounts else ""
    path = f"{start}{mapping.path}"
    # A file whose own name ends like the kernel's mark is found by its whole name.
    candidate = f"{path} (deleted)" if mapping.marked_deleted else path
    if _leads_to(candidate, facts, mapping):
        return candidate
    if (mapping.path, mapping.marked_deleted) == (facts.program, facts.program_deleted):
        return f"{facts.place}/exe"
    through = f"{facts.map_files}/{mapping.start:x}-{mapping.end:x}"
    # Following it takes CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN, also for one's own processes.
    return through if _stat(through) is not None else None


def _leads_to(path: str, facts: ProcessFacts, mapping: Mapping) -> bool:
    """Whether the file at `path` is the one that is mapped.

    While a file is mapped its inode number is not given to another one of its file system; a file system that was
    mounted over it since may have that number, too.
    """
    status = _stat(path)
    if status is None:
        return False
    if mapping.device in facts.renumbered:
        return True
    here = (os.major(status.st_dev), os.minor(status.st_dev))
    return status.st_ino == mapping.inode and (here == mapping.device or not facts.names_device(mapping.device))


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _why_not(mapping: Mapping) -> str:
    what = "it was deleted" if mapping.marked_deleted else "another file, or none, is at its path now"
    return (
        f"{what} since the process mapped it, and only root (CAP_CHECKPOINT_RESTORE) may read it through "
        "/proc/PID/map_files"
    )


def _count_loads(path: str, mappings: Sequence[Mapping]) -> int:
    """How many times the segments of the file at `path` lie in memory as a loader puts them.

    A loader maps each segment by itself, at its distance from the others. Who maps the whole file as one piece, as code
    even, reads it: then what lies where writable data belongs is a part of a mapping that begins before it. (Segments
    that may not be written can be one mapping: with READ_IMPLIES_EXEC of personality(2) they have the same rights.)

    Raises NotAnImageError, MalformedElfError or UnreadableFileError.
    """
    with BoundedFile(path) as file:
        segments = [s for s in read_header(file).segments if s.type == PT_LOAD and s.file_size]
    if not segments:
        return 0
    biases = set(_list_biases(segments[0], mappings))
    executable = [mapping for mapping in mappings if mapping.is_code]
    # Relocations are written, and what may then be made read-only (PT_GNU_RELRO).
    data = [mapping for mapping in mappings if mapping.is_writable or not mapping.is_code]
    separate = [segment for segment in segments if segment.flags & PF_W] or segments
    for segment in segments:
        candidates = executable if segment.flags & PF_X else data if segment.flags & PF_W else mappings
        begins_at = _first_offset(segment, segments) if segment in separate else 0
        biases = _find_fitting(segment, candidates, biases, begins_at)
    return len(biases)


def _first_offset(segment: Segment, segments: Sequence[Segment]) -> int:
    """Where a mapping of `segment` may begin in the file: the kernel joins neighbours with the same rights to one."""
    page = os.sysconf("SC_PAGE_SIZE")
    return min(other.offset for other in segments if other.flags == segment.flags) // page * page


def _list_biases(first: Segment, mappings: Sequence[Mapping]) -> Iterator[int]:
    """The differences between addresses in memory and in the file that the first segment's mappings allow."""
    page = os.sysconf("SC_PAGE_SIZE")
    offset, address = first.offset // page * page, first.address // page * page
    for mapping in mappings:
        if mapping.is_private and 0 <= offset - mapping.offset < mapping.end - mapping.start:
            yield mapping.start + offset - mapping.offset - address


def _find_fitting(segment: Segment, mappings: Sequence[Mapping], biases: Set[int], begins_at: int) -> set[int]:
    """Those of `biases` with which one of `mappings` that begin at `begins_at` of the file, or behind it, holds a part
    of `segment` at its address.

    A mapping allows a segment one bias only, so each is looked at once: a process may map a file thousands of times.
    """
    found = set()
    for mapping in mappings:
        overlaps = (
            begins_at <= mapping.offset < segment.offset + segment.file_size
            and segment.offset < mapping.offset + mapping.end - mapping.start
        )
        bias = mapping.start - mapping.offset + segment.offset - segment.address
        if overlaps and mapping.is_private and bias in biases:
            found.add(bias)
    return found
