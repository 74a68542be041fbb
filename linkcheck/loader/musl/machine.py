"""Where one machine has musl's loader, and which directories that searches last; it searches nothing.

Source: musl ldso/dynlink.c (load_library: sys_path) and arch/*/reloc.h (LDSO_ARCH).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.interpreter import is_musl_loader

if TYPE_CHECKING:
    from linkcheck.loader.files import Files
    from linkcheck.model import Image, Target

#: (e_machine, bits, byte order) -> musl's name of the machine in the name of its loader. Some have a second name for
#: another floating-point ABI, which a library does not show here.
_MACHINES = {
    (62, 64, "little"): ("x86_64",),
    (62, 32, "little"): ("x32",),
    (3, 32, "little"): ("i386",),
    (183, 64, "little"): ("aarch64",),
    (183, 64, "big"): ("aarch64_be",),
    (40, 32, "little"): ("armhf", "arm"),
    (243, 64, "little"): ("riscv64",),
    (243, 32, "little"): ("riscv32",),
    (20, 32, "big"): ("powerpc",),
    (21, 64, "little"): ("powerpc64le",),
    (21, 64, "big"): ("powerpc64",),
    (22, 64, "big"): ("s390x",),
    (258, 64, "little"): ("loongarch64",),
}
_DEFAULT_DIRECTORIES = ("/lib", "/usr/local/lib", "/usr/lib")
#: A list of directories of more than this is no list of directories.
_PATH_FILE_LIMIT = 1 << 20


def find_loader(files: Files, root: Image) -> str | None:
    """The path of the loader that a process of `root` starts with; None for a machine that musl is not known on."""
    if root.interpreter is not None and is_musl_loader(root.interpreter):
        return root.interpreter
    paths = list_loaders(root.target)
    for path in paths:
        try:
            files.status(path)
        except OSError:
            continue
        return path
    return paths[0] if paths else None


def list_loaders(target: Target) -> tuple[str, ...]:
    """The paths that musl's loader for `target` may have; none for a machine that musl is not known on."""
    return tuple(f"/lib/ld-musl-{name}.so.1" for name in _name_machine(target))


def system_directories(files: Files, loader: str | None) -> tuple[str, ...]:
    """The directories that `loader` searches last: those of /etc/ld-musl-ARCH.path, or the ones built into it.

    The file is looked for beside the directory that holds the loader; a file that cannot be read stands for none.
    """
    if loader is None:
        return _DEFAULT_DIRECTORIES
    directory, _, name = loader.rpartition("/")
    machine = name.partition("-")[2].partition("-")[2].partition(".so")[0]
    prefix = directory.rpartition("/")[0] if loader.startswith("/") else ""
    try:
        text = files.read(f"{prefix}/etc/ld-musl-{machine}.path", _PATH_FILE_LIMIT)
    except FileNotFoundError:
        return _DEFAULT_DIRECTORIES
    except OSError:
        return ()
    return split_path(text.partition(b"\0")[0].decode("utf-8", "surrogateescape"))


def split_path(path: str) -> tuple[str, ...]:
    """The directories of a search path; unlike glibc, musl passes over an empty element."""
    return tuple(element for element in path.replace("\n", ":").split(":") if element)


def _name_machine(target: Target) -> tuple[str, ...]:
    return _MACHINES.get((target.machine, target.bits, target.byte_order), ())
