"""`linkcheck cmake-dir`: prints where the CMake modules are. What they do is in the modules themselves."""

from __future__ import annotations

import click

from linkcheck.cli.command import Command
from linkcheck.errors import LinkcheckError


class ModulesMissingError(LinkcheckError):
    """This copy of linkcheck came without its CMake modules, so a build must not go on without them."""


@click.command(name="cmake-dir", cls=Command)
def command() -> int:
    """Print the folder of linkcheck's CMake modules.

    For find_package(linkcheck): -Dlinkcheck_DIR="$(linkcheck cmake-dir)". For include(): append it to
    CMAKE_MODULE_PATH.
    """
    from linkcheck.cli.emit import emit

    emit(f"{find_modules()}\n", None)
    return 0


def find_modules() -> str:
    """The absolute path of the folder, without symbolic links: an editable install answers with the checkout's own.

    Raises ModulesMissingError when it is not there.
    """
    import os

    import linkcheck

    package = os.path.dirname(os.path.realpath(linkcheck.__file__))
    folder = os.path.realpath(os.path.join(package, "share", "cmake"))
    if not os.path.isfile(os.path.join(folder, "linkcheckConfig.cmake")):
        raise ModulesMissingError(f"{folder}: the CMake modules are not there; install linkcheck-elf again")
    return folder
