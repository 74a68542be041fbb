"""Which Python extension modules one interpreter would import, and the image of that interpreter. It judges nothing.

An interpreter opens each module with RTLD_LOCAL (sys.getdlopenflags is RTLD_NOW), and is seldom among the inputs: of a
wheel only the modules are there, and a virtual environment links to a Python elsewhere.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError
from linkcheck.inputs.extension_module import is_extension_module
from linkcheck.loader.interpreter import named_libc, recognise_libc
from linkcheck.loader.load import Dlopen
from linkcheck.model import FileKind, Image, Libc
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkcheck.model import Target


class Interpreter(Value):
    """A process that imports `modules`; `image` is a program of the inputs, or stands for one that is not there."""

    image: Image
    modules: tuple[Image, ...]

    @property
    def known(self) -> bool:
        """Whether the program itself is there."""
        return self.image.is_executable

    def list_opens(self) -> tuple[Dlopen, ...]:
        """The dlopen that each import makes, in order."""
        paths = (module.path if "/" in module.path else f"./{module.path}" for module in self.modules)
        return tuple(Dlopen(path) for path in paths)


class _Place(Value):
    """What modules are built for, and the installation that they lie in: modules of two places never meet."""

    target: Target
    libc: Libc
    installation: str | None


class _Module(Value):
    """An extension module, what its file name says that it is for (or an empty text), and its C library, if it says."""

    image: Image
    tag: str
    libc: Libc | None


#: `/usr/lib/python3/dist-packages/`, `venv/lib/python3.11/site-packages/`: what stands before it is one installation.
_INSTALLATION = r"(.*?)(?:^|/)lib(?:64|32)?/(?:python|pypy)3[^/]*/"

#: Minor versions of CPython 3: the first with `abi3t`, and the first whose debug build imports those of the usual one.
_FIRST_WITH_ABI3T, _FIRST_DEBUG_LIKE_USUAL = 15, 8


def find_interpreters(
    programs: Sequence[Image], libraries: Iterable[Image], show: Callable[[str], str] = str
) -> tuple[Interpreter, ...]:
    """An interpreter for each tag of Python that some of `libraries` are modules for, if it imports two or more.

    There are several where modules are alternatives of one dotted name (alternatives.py): an import finds one of them.

    A module without a version in its name is for every version, one with `abi3` for every one but the free-threaded
    ones, and one with `abi3t` for every one since 3.15 (PEP 803): that is what CPython 3.15 looks for
    (Python/dynload_shlib.c). 3.13 and 3.14 look for `abi3` when they are free-threaded, too, and crash of what they
    find (python/cpython issue 120901), so such a process is not made either. A debug build imports the modules of the
    usual one besides its own (configure.ac, ALT_SOABI; since 3.8).

    One module alone makes no process that is not judged already, unless the interpreter is among `programs`. Modules
    for two C libraries or of two installations never meet; what lies in no installation, as in wheels, is taken
    together. Of several programs that fit, the one of the same installation is taken, and without one another: the
    Python of a virtual environment lies elsewhere. `show` names a path as users know it.
    """
    found: list[Interpreter] = []
    for place, modules in _group(libraries, show).items():
        fitting = [one for one in programs if one.target == place.target and recognise_libc(one) is place.libc]
        general = [module.image for module in modules if not module.tag]
        for tag in dict.fromkeys(module.tag for module in modules if module.tag) or ("",):
            candidates = [one for one in fitting if _interprets(one, tag)]
            image = min(
                candidates,
                key=lambda one: (*_flags(one), _home(show(one.path)) != place.installation),
                default=None,
            )
            tags = (tag, _without_debug(tag)) if tag else ()
            own = (module.image for one in dict.fromkeys(tags) for module in modules if module.tag == one)
            version = _split_version(_version(tag)) if tag or image is None else _version_of(image)
            # What is for one version is found before what is for several, and that before names that say nothing.
            importable = (
                *own,
                *(one for one in sorted(general, key=_says_nothing) if _suits_stable_abi(one, *version)),
            )
            found += [
                Interpreter(image or _stand_in(together, place.libc, show), together)
                for together in _list_processes(importable, show)
                if len(together) > (image is None)
            ]
    return tuple(found)


def _list_processes(importable: Sequence[Image], show: Callable[[str], str]) -> tuple[tuple[Image, ...], ...]:
    """What of `importable` one interpreter imports together."""
    names = {module.path.rpartition("/")[2].partition(".")[0] for module in importable}
    if len(names) == len(importable):
        return (tuple(importable),)
    from linkcheck.inputs.alternatives import list_processes

    return list_processes(importable, show)


def _group(libraries: Iterable[Image], show: Callable[[str], str]) -> dict[_Place, list[_Module]]:
    """The extension modules among `libraries` by place; one that says nothing of a C library is in a place of each."""
    together: dict[tuple[Target, str | None], list[_Module]] = {}
    for library in libraries:
        name = library.path.rpartition("/")[2]
        if not name.startswith("lib") and is_extension_module(library):
            tag = _tag(name)
            module = _Module(library, tag, named_libc(library) or _libc_of_tag(_suffix(name)))
            together.setdefault((library.target, _installation(show(library.path))), []).append(module)
    places = {}
    for (target, installation), modules in together.items():
        libcs = dict.fromkeys(module.libc for module in modules if module.libc is not None) or (Libc.GLIBC,)
        for libc in libcs:
            here = [module for module in modules if module.libc in (None, libc)]
            places[_Place(target, libc, installation)] = here
    return places


def _installation(path: str) -> str | None:
    """The directory in which Python and its packages are installed, if `path` is in one; inside its archive, if any."""
    archive, _, member = path.rpartition("!/")
    match = re.match(_INSTALLATION, member if archive else os.path.abspath(path))
    return None if match is None else match[1]


def _home(program: str) -> str | None:
    """The installation that `program` belongs to: what its directory `bin` lies in."""
    archive, _, member = program.rpartition("!/")
    directory = os.path.dirname(member if archive else os.path.abspath(program))
    return directory.removesuffix("bin").rstrip("/") if os.path.basename(directory) == "bin" else None


def _tag(name: str) -> str:
    """The implementation, version and platform that the file name of a module is for (PEP 3149), or an empty text.

    `cpython-311-x86_64-linux-gnu` of `x.cpython-311-x86_64-linux-gnu.so`: an interpreter imports its own tag only,
    unless it is a debug build.
    """
    tag = _suffix(name)
    return tag if tag.startswith(("cpython-", "pypy", "graalpy")) else ""


def _suffix(name: str) -> str:
    """What stands between the name of the module and `.so`."""
    return name.partition(".")[2].removesuffix(".so")


def _libc_of_tag(tag: str) -> Libc | None:
    """The C library in `tag`: less than what a module needs, for Pythons of musl before 3.11 called themselves gnu."""
    if "-linux-musl" in tag:
        return Libc.MUSL
    return Libc.GLIBC if "-linux-gnu" in tag else None


def _version(tag: str) -> str:
    """The implementation and version in `tag`, without the platform."""
    return "-".join(tag.split("-")[:2]) if tag.startswith("cpython-") else tag


def _split_version(version: str) -> tuple[str, str]:
    """The minor version of CPython 3 and its ABI flags, sorted: 13 and `t` of `cpython-313t`, of `python3.13t`, too.

    `t` is free-threaded, `d` a debug build. `m`, which every usual build up to 3.7 has, is left out: file names of
    programs have it or not. Two empty texts for what is neither.
    """
    match = re.fullmatch(r"(?:cpython-3|python3\.)(\d+)([a-z]*)", version)
    return ("", "") if match is None else (match[1], "".join(sorted(match[2].replace("m", ""))))


def _version_of(program: Image) -> tuple[str, str]:
    return _split_version(program.path.rpartition("/")[2])


def _flags(program: Image) -> tuple[bool, bool]:
    """Whether it is free-threaded, and whether it is a debug build: of several that fit, the usual one is taken."""
    flags = _version_of(program)[1]
    return "t" in flags, "d" in flags


def _without_debug(tag: str) -> str:
    """The tag of the usual build whose modules the debug build of `tag` imports, too; `tag` for any other."""
    version = _version(tag)
    minor, flags = _split_version(version)
    if "d" not in flags or int(minor) < _FIRST_DEBUG_LIKE_USUAL:
        return tag
    return version.removesuffix("d") + tag.removeprefix(version)


def _suits_stable_abi(module: Image, minor: str, flags: str) -> bool:
    """Whether an interpreter of that version and ABI flags, empty for any, imports a `module` without a version.

    The name of the stable ABI may be followed by a platform: `x.abi3-x86_64-linux-gnu.so` (since CPython 3.15).
    """
    abi = _suffix(module.path.rpartition("/")[2]).partition("-")[0]
    if abi == "abi3":
        return "t" not in flags
    return abi != "abi3t" or not minor or int(minor) >= _FIRST_WITH_ABI3T


def _says_nothing(module: Image) -> bool:
    return not _suffix(module.path.rpartition("/")[2]).startswith("abi3")


def _interprets(program: Image, tag: str) -> bool:
    """Whether `program` is the CPython of the version in `tag`, or any for an empty text.

    It is called so, and has the interpreter in it or needs it.
    """
    name = program.path.rpartition("/")[2]
    wanted, own = _split_version(_version(tag)), _split_version(name)
    if own[0] and int(own[0]) >= _FIRST_DEBUG_LIKE_USUAL and "d" not in wanted[1]:
        own = own[0], own[1].replace("d", "")
    if not name.startswith("python3") or (tag and (not wanted[0] or own != wanted)):
        return False
    try:
        return any(need.startswith("libpython3.") for need in program.needed) or bool(
            program.symbols.exported("PyImport_ImportModule")
        )
    except LinkcheckError:
        return False


def _stand_in(modules: Sequence[Image], libc: Libc, show: Callable[[str], str]) -> Image:
    """An image without needs or symbols, called like the directory that holds the modules: a report has to show one.

    Of musl it names the loader, by which all others recognise a process of musl.
    """
    loader = None
    if libc is Libc.MUSL:
        from linkcheck.loader.musl.machine import list_loaders

        loader = next(iter(list_loaders(modules[0].target)), "ld-musl-")
    directory = _name_directory([module.path for module in modules], show)
    return Image(directory or ".", FileKind.STAND_IN, modules[0].target, ListedSymbols(), interpreter=loader)


def _name_directory(paths: Sequence[str], show: Callable[[str], str]) -> str:
    """The directory that holds all `paths`; of those in several archives the one that holds the archives.

    What is unpacked lies below a directory with a random name, which nobody knows.
    """
    shown = [show(path) for path in paths]
    try:
        directory = os.path.commonpath(paths)
        known = show(directory)
        # Where that leads up from an archive, it holds other archives, too, and has no name but a random one.
        return os.path.commonpath(shown) if known != directory and known.endswith("/..") else directory
    except ValueError:  # absolute and relative ones
        return os.path.dirname(shown[0])
