"""Which modules one interpreter would import, on plain values; tests/cli/test_interpreters.py imports real ones."""

from __future__ import annotations

import pytest

from linkcheck.inputs.interpreter import find_interpreters
from linkcheck.model import FileKind, Image
from tests.unit.rules.worlds import image


def module(path: str, *needed: str) -> Image:
    name = path.rpartition("/")[2].partition(".")[0]
    return image(path, needed=needed, exports=(f"PyInit_{name}",))


def python(path: str) -> Image:
    return image(path, kind=FileKind.PIE, exports=("PyImport_ImportModule",))


def processes(*images: Image) -> list[tuple[str, tuple[str, ...]]]:
    programs = [one for one in images if one.is_executable]
    libraries = [one for one in images if not one.is_executable]
    found = find_interpreters(programs, libraries)
    return [
        (process.image.path if process.known else "", tuple(module.path for module in process.modules))
        for process in found
    ]


@pytest.mark.parametrize(
    ("program", "tag", "fits"),
    [
        ("python3.13", "cpython-313", True),
        ("python3.13t", "cpython-313t", True),
        ("python3.13d", "cpython-313d", True),
        ("python3.13td", "cpython-313td", True),
        ("python3.6", "cpython-36m", True),
        ("python3.6m", "cpython-36m", True),
        ("python3.13t", "cpython-313", False),
        ("python3.13", "cpython-313t", False),
        ("python3.13d", "cpython-313t", False),
        ("python3.13", "cpython-313d", False),
        ("python3.1", "cpython-313", False),
        ("python3.13", "cpython-31", False),
        ("python3", "cpython-313", False),
        ("python3.11", "pypy311-pp73", False),
    ],
)
def test_a_program_imports_modules_of_its_own_version_and_flags(program: str, tag: str, fits: bool) -> None:
    one = module(f"a/one.{tag}-x86_64-linux-gnu.so")
    assert processes(python(f"bin/{program}"), one) == ([(f"bin/{program}", (one.path,))] if fits else [])


def test_abi3_is_not_for_free_threaded_interpreters() -> None:
    stable, plain = module("a/stable.abi3.so"), module("a/plain.so")
    usual, free = (module(f"a/one.cpython-{version}-x86_64-linux-gnu.so") for version in ("313", "313t"))
    assert processes(stable, plain, usual, free) == [
        ("", (usual.path, stable.path, plain.path)),
        ("", (free.path, plain.path)),
    ]
    assert processes(stable, free) == []
    assert processes(python("bin/python3.13t"), stable) == []
    assert processes(python("bin/python3.13t"), stable, plain) == [("bin/python3.13t", (plain.path,))]
    both = python("bin/python3.13t"), python("bin/python3.13")
    assert processes(*both, stable) == [("bin/python3.13", (stable.path,))]
