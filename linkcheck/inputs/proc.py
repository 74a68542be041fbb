"""What the kernel says about one running process without ptrace: /proc/PID, as facts. It opens no mapped file.

Source: man 5 proc (proc_pid_maps, proc_pid_stat, proc_pid_environ, proc_pid_root). All of it needs what man 2 ptrace
calls read access: the same user, or CAP_SYS_PTRACE. Nothing needs the right to attach.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.errors import ProcessError
from linkcheck.value import Value

if TYPE_CHECKING:
    from typing import NoReturn

#: PF_KTHREAD in the ninth field of /proc/PID/stat (<linux/sched.h>).
_KERNEL_THREAD = 0x00200000
#: States in the third field: zombie, dead.
_DEAD = "ZXx"
_DELETED = " (deleted)"
_ENDED = "ended while it was read"


class Mapping(Value):
    """One line of /proc/PID/maps that has a file. Addresses and `offset` in bytes."""

    start: int
    end: int
    permissions: str
    offset: int
    device: tuple[int, int]
    inode: int
    #: As the kernel writes it, seen from the reader's root directory, without the mark of a deleted file.
    path: str
    #: The kernel's mark: no directory entry leads to the file any more. A file may be called so, too.
    marked_deleted: bool

    @property
    def is_private(self) -> bool:
        """MAP_PRIVATE, as ld.so maps."""
        return self.permissions[3:4] == "p"

    @property
    def is_code(self) -> bool:
        """PROT_EXEC."""
        return self.permissions[2:3] == "x"


class ProcessFacts(Value):
    """One process at one moment."""

    pid: int
    mappings: tuple[Mapping, ...]
    #: /proc/PID/exe: as `Mapping.path`, and the marks of the file that it leads to.
    program: str
    program_deleted: bool
    program_file: tuple[int, int]
    #: Its root directory as a path of ours, "/" when it has ours; /proc/PID/root when its mounts are not ours.
    root: str
    #: Its mount namespace is not ours: paths of its mappings are paths there.
    foreign_mounts: bool
    working_directory: str
    #: What the process was started with: ld.so has read no other. Empty when the process has overwritten it.
    environment: dict[str, str]
    #: Clock ticks after boot (field 22 of /proc/PID/stat): with the number, what tells a process from its successor.
    start_time: int

    @property
    def renumbered(self) -> frozenset[tuple[int, int]]:
        """Devices on which stat(2) has other inode numbers than /proc/PID/maps: overlayfs before Linux 6.8.

        The program shows it, which both name. There a path is believed unless it is marked as deleted.
        """
        return frozenset(
            mapping.device
            for mapping in self.mappings
            if mapping.path == self.program
            and not (mapping.marked_deleted or self.program_deleted)
            and mapping.inode != self.program_file[1]
        )

    def names_device(self, device: tuple[int, int]) -> bool:
        """Whether stat(2) calls the file system that /proc/PID/maps calls `device` the same, so that they compare.

        The program shows whether they agree at all: on overlayfs and btrfs they may not. Numbers without a block device
        (major 0), as btrfs has, are believed of the program's own file system only.
        """
        number = self.program_file[0]
        own = (os.major(number), os.minor(number))
        agree = any(mapping.path == self.program and mapping.device == own for mapping in self.mappings)
        return agree and (device == own or device[0] != 0)

    @property
    def place(self) -> str:
        """Its directory in /proc."""
        return f"/proc/{self.pid}"


def read_process(pid: int) -> ProcessFacts:
    """The facts of process `pid`.

    Raises ProcessError when there is no such process, when it has no memory of its own, or when it may not be read.
    """
    place = f"/proc/{pid}"
    state, flags, start_time = _read_stat(pid)
    if flags & _KERNEL_THREAD:
        raise ProcessError(pid, "is a thread of the kernel, which maps no files")
    if state in _DEAD:
        raise ProcessError(pid, "has ended (a zombie: its parent has not asked for its status), so it maps no files")
    try:
        with open(f"{place}/maps", "rb") as stream:
            mappings = tuple(parse_maps(stream.read()))
        program = os.readlink(f"{place}/exe")
        status = os.stat(f"{place}/exe")
        with open(f"{place}/environ", "rb") as stream:
            environment = parse_environment(stream.read())
        foreign_mounts = os.readlink(f"{place}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        root = _find_root(place, foreign_mounts)
        working_directory = os.readlink(f"{place}/cwd")
    except OSError as error:
        _explain(pid, error, start_time)
    if not mappings:
        _explain(pid, ProcessLookupError(), start_time)
    return ProcessFacts(
        pid,
        mappings,
        program.removesuffix(_DELETED),
        program.endswith(_DELETED),
        (status.st_dev, status.st_ino),
        root,
        foreign_mounts,
        working_directory,
        environment,
        start_time,
    )


def check_unchanged(facts: ProcessFacts) -> None:
    """Raise ProcessError unless the process still runs the same program: what was read since would be another's."""
    try:
        state, _, start_time = _read_stat(facts.pid)
        status = os.stat(f"{facts.place}/exe")
    except (ProcessError, OSError):
        raise ProcessError(facts.pid, _ENDED) from None
    if start_time != facts.start_time or state in _DEAD:
        raise ProcessError(facts.pid, _ENDED)
    if (status.st_dev, status.st_ino) != facts.program_file:
        raise ProcessError(facts.pid, "started another program (exec) while it was read")


def parse_maps(data: bytes) -> list[Mapping]:
    """The mappings of regular files in the text of /proc/PID/maps."""
    found = []
    for line in data.split(b"\n"):
        # At most five separators: the path may hold blanks. "\012" is a line feed in it, and nothing else is escaped.
        parts = line.split(None, 5)
        if len(parts) < 6 or not parts[5].startswith(b"/"):
            continue
        low, _, high = parts[0].partition(b"-")
        major, _, minor = parts[3].partition(b":")
        path = os.fsdecode(parts[5].replace(b"\\012", b"\n"))
        found.append(
            Mapping(
                int(low, 16),
                int(high, 16),
                parts[1].decode("ascii"),
                int(parts[2], 16),
                (int(major, 16), int(minor, 16)),
                int(parts[4]),
                path.removesuffix(_DELETED),
                path.endswith(_DELETED),
            )
        )
    return found


def parse_environment(data: bytes) -> dict[str, str]:
    """The variables in /proc/PID/environ; of two with one name the first, which is the one that ld.so takes."""
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        name, sign, value = entry.partition(b"=")
        if sign:
            found.setdefault(os.fsdecode(name), os.fsdecode(value))
    return found


def _read_stat(pid: int) -> tuple[str, int, int]:
    """State, flags and start time of the process; ProcessError when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name of the program stands in parentheses and may hold blanks and parentheses.
            fields = stream.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessError(pid, "there is no such process, or /proc hides it") from None
    except OSError as error:
        raise ProcessError(pid, f"cannot be read: {error.strerror or error}") from error
    return fields[0].decode("ascii"), int(fields[6]), int(fields[19])


def _find_root(place: str, foreign_mounts: bool) -> str:
    """See ProcessFacts.root."""
    if foreign_mounts:
        return f"{place}/root"
    if os.path.samestat(os.stat(f"{place}/root"), os.stat("/")):
        return "/"
    return os.readlink(f"{place}/root")


def _explain(pid: int, error: OSError, start_time: int) -> NoReturn:
    """Raise the ProcessError that says why something in /proc/PID cannot be read."""
    if isinstance(error, PermissionError):
        reason = (
            "its memory map may not be read: it belongs to another user, or is protected (setuid, PR_SET_DUMPABLE); "
            "that takes the same user or root (CAP_SYS_PTRACE)"
        )
        raise ProcessError(pid, reason) from error
    if isinstance(error, (FileNotFoundError, ProcessLookupError)):
        state, _, now = _read_stat(pid)
        if now != start_time or state in _DEAD:
            raise ProcessError(pid, _ENDED) from error
        raise ProcessError(pid, "has no program in memory (it is just being started, or ends)") from error
    raise ProcessError(pid, f"cannot be read: {error.strerror or error}") from error
