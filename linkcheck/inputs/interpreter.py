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
from linkcheck.loader.load import Dlopen
from linkcheck.model import FileKind, Image
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


#: What a module is built for, and the installation that it lies in.
_Place = tuple["Target", "str | None"]
#: `/usr/lib/python3/dist-packages/`, `venv/lib/python3.11/site-packages/`: what stands before it is one installation.
_INSTALLATION = r"(.*?)(?:^|/)lib(?:64|32)?/(?:python|pypy)3[^/]*/"


def find_interpreters(
    programs: Sequence[Image], libraries: Iterable[Image], show: Callable[[str], str] = str
) -> tuple[Interpreter, ...]:
    """One interpreter for each version of Python that some of `libraries` are modules for, if it imports two or more.

    A module without a version in its name is for every version, and one with `abi3` for every one but the free-threaded
    ones (PEP 703; Python/dynload_shlib.c). One module alone makes no process that is not judged already, unless the
    interpreter is among `programs`. Modules of two installations never meet; what lies in none, as in wheels, is taken
    together. `show` names a path as users know it.
    """
    modules: dict[_Place, dict[str, list[Image]]] = {}
    for library in libraries:
        name = library.path.rpartition("/")[2]
        if name.startswith("lib") or not is_extension_module(library):
            continue
        place = (library.target, _installation(show(library.path)))
        modules.setdefault(place, {}).setdefault(_version(name), []).append(library)
    found = []
    for (target, _), versions in modules.items():
        general = versions.pop("", [])
        for version, members in (versions or {"": []}).items():
            candidates = [one for one in programs if one.target == target and _interprets(one, version)]
            image = min(candidates, key=_is_free_threaded, default=None)
            importable = (*members, *general)
            if "t" in _split_version(version)[1] or (image is not None and _is_free_threaded(image)):
                importable = tuple(one for one in importable if not one.path.endswith(".abi3.so"))
            if importable and (image is not None or len(importable) > 1):
                found.append(Interpreter(image or _stand_in(importable), importable))
    return tuple(found)


def _installation(path: str) -> str | None:
    """The directory in which Python and its packages are installed, if `path` is in one; inside its archive, if any."""
    archive, _, member = path.rpartition("!/")
    match = re.match(_INSTALLATION, member if archive else os.path.abspath(path))
    return None if match is None else match[1]


def _version(name: str) -> str:
    """The implementation and version that the file name of a module is for (PEP 3149), or an empty text.

    `cpython-311` of `x.cpython-311-x86_64-linux-gnu.so`, `pypy39` of `x.pypy39-pp73-x86_64-linux-gnu.so`.
    """
    tag = name.split(".", 1)[1] if "." in name else ""
    if tag.startswith("cpython-"):
        return "-".join(tag.split("-")[:2]).removesuffix(".so")
    return tag.split("-")[0] if tag.startswith(("pypy", "graalpy")) else ""


def _split_version(version: str) -> tuple[str, str]:
    """The minor version of CPython 3 and its ABI flags, sorted: 13 and `t` of `cpython-313t`, of `python3.13t`, too.

    `t` is free-threaded, `d` a debug build. `m`, which every usual build up to 3.7 has, is left out: file names of
    programs have it or not. Two empty texts for what is neither.
    """
    match = re.fullmatch(r"(?:cpython-3|python3\.)(\d+)([a-z]*)", version)
    return ("", "") if match is None else (match[1], "".join(sorted(match[2].replace("m", ""))))


def _is_free_threaded(program: Image) -> bool:
    return "t" in _split_version(program.path.rpartition("/")[2])[1]


def _interprets(program: Image, version: str) -> bool:
    """Whether `program` is the CPython of `version`: it is called so, and has the interpreter in it or needs it."""
    name = program.path.rpartition("/")[2]
    wanted = _split_version(version)
    if not name.startswith("python3") or (version and (not wanted[0] or _split_version(name) != wanted)):
        return False
    try:
        return any(need.startswith("libpython3.") for need in program.needed) or bool(
            program.symbols.exported("PyImport_ImportModule")
        )
    except LinkcheckError:
        return False


def _stand_in(modules: Sequence[Image]) -> Image:
    """An image without needs or symbols, called like the directory that holds the modules: a report has to show one."""
    paths = [module.path for module in modules]
    try:
        directory = os.path.commonpath(paths)
    except ValueError:  # absolute and relative ones
        directory = os.path.dirname(paths[0])
    return Image(directory or ".", FileKind.DIRECTORY, modules[0].target)
