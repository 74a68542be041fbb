"""What the kernel says about one running process without ptrace: /proc/PID, as facts. It opens no mapped file.

Source: man 5 proc (proc_pid_maps, proc_pid_stat, proc_pid_environ, proc_pid_root). All of it needs what man 2 ptrace
calls read access: the same user, or CAP_SYS_PTRACE. Nothing needs the right to attach.
"""

from __future__ import annotations

import os
from contextlib import suppress
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
    def is_writable(self) -> bool:
        """PROT_WRITE."""
        return self.permissions[1:2] == "w"

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
    #: Where all this was read: /proc/PID, or /proc/PID/task/TID when the first thread has ended and others live.
    place: str
    #: Devices on which stat(2) has other inode numbers than /proc/PID/maps: overlayfs before Linux 6.8. The program
    #: shows it, which both name. There a path is believed unless it is marked as deleted.
    renumbered: frozenset[tuple[int, int]]
    #: stat(2) and /proc/PID/maps call the program's file system the same: on overlayfs and btrfs they may not.
    agrees_on_devices: bool

    def names_device(self, device: tuple[int, int]) -> bool:
        """Whether stat(2) calls the file system that /proc/PID/maps calls `device` the same, so that they compare.

        Numbers without a block device (major 0), as btrfs has, are believed of the program's own file system only.
        """
        return self.agrees_on_devices and (device == _split_number(self.program_file[0]) or device[0] != 0)

    @property
    def map_files(self) -> str:
        """The directory with a link to each mapped file: task/TID has none; /proc/TID, of the same memory, has it."""
        return f"/proc/{self.place.rpartition('/')[2]}/map_files"


def read_process(pid: int) -> ProcessFacts:
    """The facts of process `pid`.

    Raises ProcessError when there is no such process, when it has no memory of its own, or when it may not be read.
    """
    _, flags, start_time = _read_stat(pid)
    if flags & _KERNEL_THREAD:
        raise ProcessError(pid, "is a thread of the kernel, which maps no files")
    place = _find_living(pid)
    if place is None:
        raise ProcessError(pid, "has ended (a zombie: its parent has not asked for its status), so it maps no files")
    try:
        with open(f"{place}/maps", "rb") as stream:
            mappings = tuple(parse_maps(stream.read()))
        link = os.readlink(f"{place}/exe")
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
    program_deleted = link.endswith(_DELETED)
    program = link.removesuffix(_DELETED)
    return ProcessFacts(
        pid,
        mappings,
        program,
        program_deleted,
        (status.st_dev, status.st_ino),
        root,
        foreign_mounts,
        working_directory,
        environment,
        start_time,
        place,
        frozenset() if program_deleted else _find_renumbered(mappings, program, status.st_ino),
        any(m.path == program and m.device == _split_number(status.st_dev) for m in mappings),
    )


def check_unchanged(facts: ProcessFacts) -> None:
    """Raise ProcessError unless the process still runs the same program: what was read since would be another's."""
    try:
        start_time = _read_stat(facts.pid)[2]
        # Not where it was read: that thread may have ended since, and others live on.
        status = os.stat(f"{_find_living(facts.pid)}/exe")
    except (ProcessError, OSError):
        raise ProcessError(facts.pid, _ENDED) from None
    if start_time != facts.start_time:
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
        return _parse_stat(f"/proc/{pid}")
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessError(pid, "there is no such process, or /proc hides it") from None
    except OSError as error:
        raise ProcessError(pid, f"cannot be read: {error.strerror or error}") from error


def _parse_stat(place: str) -> tuple[str, int, int]:
    with open(f"{place}/stat", "rb") as stream:
        # The name of the program stands in parentheses and may hold blanks and parentheses.
        fields = stream.read().rpartition(b")")[2].split()
    return fields[0].decode("ascii"), int(fields[6]), int(fields[19])


def _find_living(pid: int) -> str | None:
    """The directory in /proc that shows the memory of the process: its own, or of a thread that outlives the first.

    A first thread that has called pthread_exit is a zombie until all others end, and shows no memory (man 3
    pthread_exit; kernel/exit.c delay_group_leader). None when no thread lives, or no process is there.
    """
    place = f"/proc/{pid}"
    with suppress(OSError):
        if _parse_stat(place)[0] not in _DEAD:
            return place
        for thread in sorted(map(int, os.listdir(f"{place}/task"))):  # an old thread is the last to end
            with suppress(OSError):
                if _parse_stat(f"{place}/task/{thread}")[0] not in _DEAD:
                    return f"{place}/task/{thread}"
    return None


def _find_renumbered(mappings: tuple[Mapping, ...], program: str, inode: int) -> frozenset[tuple[int, int]]:
    """See ProcessFacts.renumbered; `inode` is what stat(2) says of `program`."""
    own = (mapping for mapping in mappings if mapping.path == program and not mapping.marked_deleted)
    return frozenset(mapping.device for mapping in own if mapping.inode != inode)


def _split_number(device: int) -> tuple[int, int]:
    return os.major(device), os.minor(device)


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
        if _read_stat(pid)[2] != start_time or _find_living(pid) is None:
            raise ProcessError(pid, _ENDED) from error
        raise ProcessError(pid, "has no program in memory (it is just being started, or ends)") from error
    raise ProcessError(pid, f"cannot be read: {error.strerror or error}") from error
