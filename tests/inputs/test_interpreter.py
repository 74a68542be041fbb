"""Which modules one interpreter would import, on plain values; tests/cli/test_interpreters.py imports real ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkcheck.inputs.interpreter import find_interpreters
from linkcheck.loader.interpreter import recognise_libc
from linkcheck.model import FileKind, Image, Libc
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
        ("python3.13d", "cpython-313", True),
        ("python3.13td", "cpython-313t", True),
        ("python3.13td", "cpython-313", False),
        ("python3.7d", "cpython-37m", False),
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


def test_abi3_with_a_platform_is_abi3() -> None:
    stable = module("a/stable.abi3-x86_64-linux-gnu.so")
    assert processes(python("bin/python3.15t"), stable) == []
    assert processes(python("bin/python3.15"), stable) == [("bin/python3.15", (stable.path,))]
    other = module("a/other.abi3-x86_64-linux-musl.so")
    assert processes(python("bin/python3.15"), stable, other) == [("bin/python3.15", (stable.path,))]


def test_abi3t_is_for_every_interpreter_since_3_15() -> None:
    for name in ("stable.abi3t.so", "stable.abi3t-x86_64-linux-gnu.so"):
        stable = module(f"a/{name}")
        for program, fits in (("3.15", True), ("3.15t", True), ("3.14t", False), ("3.14", False)):
            found = processes(python(f"bin/python{program}"), stable)
            assert found == ([(f"bin/python{program}", (stable.path,))] if fits else [])


def test_a_debug_build_imports_the_modules_of_the_usual_build_too() -> None:
    usual, debug = (module(f"a/one.cpython-{version}-x86_64-linux-gnu.so") for version in ("313", "313d"))
    assert processes(python("bin/python3.13d"), python("bin/python3.13"), usual, debug) == [
        ("bin/python3.13", (usual.path,)),
        ("bin/python3.13d", (debug.path, usual.path)),
    ]


GLIBC, MUSL = "libc.so.6", "libc.musl-x86_64.so.1"


def test_modules_of_two_c_libraries_never_meet() -> None:
    paths = [f"{directory}/x.cpython-311-x86_64-linux-gnu.so" for directory in "abcd"]
    first, second, third, fourth = (module(path, libc) for path, libc in zip(paths, (GLIBC, MUSL) * 2, strict=True))
    assert processes(first, second) == []
    assert processes(first, second, third, fourth) == [("", (paths[0], paths[2])), ("", (paths[1], paths[3]))]
    of_tag = module("e/x.cpython-311-x86_64-linux-musl.so"), module("f/x.cpython-311-x86_64-linux-gnu.so")
    assert processes(*of_tag) == []
    unsaid = module("g/y.so")
    assert processes(first, second, unsaid) == [("", (paths[0], unsaid.path)), ("", (paths[1], unsaid.path))]


def test_tags_of_two_platforms_never_meet() -> None:
    hard, soft = (module(f"a/x.cpython-311-arm-linux-{abi}.so") for abi in ("gnueabihf", "gnueabi"))
    assert processes(hard, soft) == []


def test_a_program_of_the_other_c_library_does_not_import_them() -> None:
    program = replace(python("bin/python3.11"), interpreter="/lib/ld-musl-x86_64.so.1")
    of_glibc, of_musl = (module(f"a/x.cpython-311-x86_64-linux-{libc}.so") for libc in ("gnu", "musl"))
    assert processes(program, of_glibc) == []
    assert processes(program, of_musl) == [("bin/python3.11", (of_musl.path,))]


@pytest.mark.parametrize(("libc", "name"), [(MUSL, Libc.MUSL), ("libc.so", Libc.MUSL), (GLIBC, Libc.GLIBC)])
def test_what_stands_for_the_interpreter_has_the_c_library_of_its_modules(libc: str, name: Libc) -> None:
    (process,) = find_interpreters([], [module("a/x.so", libc), module("b/y.so")])
    assert recognise_libc(process.image) is name


def test_the_program_of_the_same_installation_is_taken_before_others() -> None:
    one = module("env/lib/python3.11/site-packages/one.so")
    other, own = python("other/bin/python3.11"), python("env/bin/python3.11")
    assert processes(other, own, one) == [("env/bin/python3.11", (one.path,))]
    assert processes(other, one) == [("other/bin/python3.11", (one.path,))]
