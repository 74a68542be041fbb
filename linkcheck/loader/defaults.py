"""What is built into one machine's ld.so: its path, its default directories and $LIB; it searches nothing.

glibc compiles the default directories in, and distributions differ (Debian: multiarch triplets; NixOS: a store path).
So they are read out of the interpreter itself, where they stand as adjacent C strings that all end in a slash
(system_dirs in elf/dl-load.c); the table below is for a machine whose interpreter is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.loader.files import Files
    from linkcheck.model import Target

#: ld.so is 200 to 400 KB.
_INTERPRETER_LIMIT = 8 << 20
#: What stands between two of the directories.
_BETWEEN_DIRECTORIES = b"/\0/"
_NAME_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-"
#: Where it is looked for; a real loader has it in a handful of places.
_MOST_PLACES = 1 << 10

#: (e_machine, bits, byte order) -> path of the interpreter, Debian's multiarch triplet, and glibc's own library
#: directory (System V ABI supplements; https://wiki.debian.org/Multiarch/Tuples).
_MACHINES = {
    (62, 64, "little"): ("/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu", "lib64"),
    (62, 32, "little"): ("/libx32/ld-linux-x32.so.2", "x86_64-linux-gnux32", "libx32"),
    (3, 32, "little"): ("/lib/ld-linux.so.2", "i386-linux-gnu", "lib"),
    (183, 64, "little"): ("/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu", "lib64"),
    (40, 32, "little"): ("/lib/ld-linux-armhf.so.3", "arm-linux-gnueabihf", "lib"),
    (243, 64, "little"): ("/lib/ld-linux-riscv64-lp64d.so.1", "riscv64-linux-gnu", "lib64/lp64d"),
    (21, 64, "little"): ("/lib64/ld64.so.2", "powerpc64le-linux-gnu", "lib64"),
    (21, 64, "big"): ("/lib64/ld64.so.1", "powerpc64-linux-gnu", "lib64"),
    (22, 64, "big"): ("/lib/ld64.so.1", "s390x-linux-gnu", "lib64"),
    (258, 64, "little"): ("/lib64/ld-linux-loongarch-lp64d.so.1", "loongarch64-linux-gnu", "lib64"),
}


def interpreter_path(target: Target) -> str | None:
    """Where the loader of `target` is by convention; for images without PT_INTERP."""
    known = _MACHINES.get((target.machine, target.bits, target.byte_order))
    return known[0] if known else None


def default_directories(files: Files, interpreter: str | None, target: Target) -> tuple[str, ...]:
    """The directories that `interpreter` searches last, in order, without trailing slashes."""
    if interpreter is not None:
        try:
            data = files.read(interpreter, _INTERPRETER_LIMIT)
        except OSError:
            data = b""
        if names := _find_adjacent_directories(data):
            return names
    known = _MACHINES.get((target.machine, target.bits, target.byte_order))
    if known is None:
        return ("/lib", "/usr/lib")
    _, triplet, library = known
    if files.is_directory(f"/lib/{triplet}") or files.is_directory(f"/usr/lib/{triplet}"):
        return (f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib", "/usr/lib")
    if library == "lib":
        return ("/lib", "/usr/lib")
    return (f"/{library}", f"/usr/{library}", "/lib", "/usr/lib")


def library_token(directories: tuple[str, ...]) -> str:
    """What $LIB stands for with these default directories: glibc derives both from one setting (slibdir)."""
    return directories[0].removeprefix("/usr").lstrip("/") if directories else "lib"


def _find_adjacent_directories(data: bytes) -> tuple[str, ...]:
    at = -1
    for _ in range(_MOST_PLACES):
        at = data.find(_BETWEEN_DIRECTORIES, at + 1)
        if at < 0:
            break
        before = data.rfind(b"\0", 0, at)
        names = list(_read_directories(data, before + 1)) if before >= 0 else []
        if len(names) > 1:
            return tuple(name.decode("ascii").rstrip("/") for name in names)
    return ()


def _read_directories(data: bytes, start: int) -> Iterator[bytes]:
    """The strings from `start` on that look like library directories, up to the first that does not."""
    while (end := data.find(b"\0", start)) >= 0 and _is_library_directory(name := data[start:end]):
        yield name
        start = end + 1


def _is_library_directory(name: bytes) -> bool:
    """Whether `name` is absolute, ends in a slash, and its last part or the one before begins with "lib"."""
    first, *parts, last = name.split(b"/") if b"/" in name else (b"x", b"x")
    return (
        not first
        and not last
        and all(part and not part.strip(_NAME_CHARACTERS) for part in parts)
        and any(part.startswith(b"lib") for part in parts[-2:])
    )
