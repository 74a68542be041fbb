"""Which modules one interpreter would import, on plain values; tests/cli/test_interpreters.py imports real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from linkcheck.inputs.interpreter import find_interpreters
from linkcheck.loader.interpreter import recognise_libc
from linkcheck.model import FileKind, Image, Libc
from tests.unit.rules.worlds import image

if TYPE_CHECKING:
    from pathlib import Path


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
    usual, debug = module("a/one.cpython-313-x86_64-linux-gnu.so"), module("a/two.cpython-313d-x86_64-linux-gnu.so")
    assert processes(python("bin/python3.13d"), python("bin/python3.13"), usual, debug) == [
        ("bin/python3.13", (usual.path,)),
        ("bin/python3.13d", (debug.path, usual.path)),
    ]


GLIBC, MUSL = "libc.so.6", "libc.musl-x86_64.so.1"


def test_modules_of_two_c_libraries_never_meet() -> None:
    paths = [f"{name}/{name}.cpython-311-x86_64-linux-gnu.so" for name in "abcd"]
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


PACKAGES = "x/site-packages"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        # Below a directory that packages are installed into, and inside a wheel, the whole name is known.
        ([f"{PACKAGES}/p/_C.so", f"{PACKAGES}/q/_C.so"], ["01"]),
        (["p.whl!/p/_C.so", "q.whl!/q/_C.so"], ["01"]),
        (["p-1.whl!/p/_C.so", "p-2.whl!/p/_C.so", "q.whl!/q/_C.so"], ["02", "12"]),
        (["p-1.whl!/p-1.data/platlib/p/_C.so", "p-2.whl!/p/_C.so", "q.whl!/q.so"], ["02", "12"]),
        (["build/lib.linux-x86_64-cpython-311/p/_C.so", "p.whl!/p/_C.so", "q.whl!/q/_C.so"], ["02", "12"]),
        # Elsewhere it is not: what may be the same module never meets, and what comes with it comes with it alone.
        (["build/_C.so", "p.whl!/p/_C.so", "q.so"], ["02", "12"]),
        (["t.tar!/stage/p/one.so", "p.whl!/p/one.so", "t.tar!/stage/p/two.so", "p.whl!/p/two.so"], ["02", "13"]),
        (["build/one.so", "stage/one.so", "build/two.so", "stage/two.so"], ["02", "13"]),
        (["build/p/one.so", "stage/p/one.so", "build/p/q/two.so", "stage/p/q/two.so"], ["02", "13"]),
        (["p-1.whl!/p/one.so", "p-2.whl!/p/one.so", "p-2.whl!/p/new.so"], ["12"]),
        (["b1/src/a/_ext.so", "b1/src/b/_ext.so", "b2/src/a/_ext.so", "b2/src/b/_ext.so"], ["01", "23"]),
        # Whatever versions of two packages are installed, they meet.
        (["p-1.whl!/p/a.so", "p-2.whl!/p/a.so", "q-1.whl!/q/b.so", "q-2.whl!/q/b.so"], ["02", "13", "03", "12"]),
        # In one directory the name that says most is found first.
        (["p/one.so", "p/one.abi3.so", "p/two.so"], ["12"]),
        # One name alone is nothing more than what is judged already.
        (["build/one.so", "stage/one.so"], []),
    ],
)
def test_a_dotted_name_is_imported_once(paths: list[str], expected: list[str]) -> None:
    found = {frozenset(together) for _, together in processes(*map(module, paths))}
    assert found == {frozenset(paths[int(index)] for index in indices) for indices in expected}


def test_packages_on_disk_tell_modules_of_one_name_apart(tmp_path: Path) -> None:
    for package in ("p", "q"):
        (tmp_path / "src" / package).mkdir(parents=True)
    one, two = (f"{tmp_path}/src/{package}/_C.so" for package in ("p", "q"))
    assert processes(module(one), module(two)) == []
    for package in ("p", "q"):
        (tmp_path / "src" / package / "__init__.py").touch()
    assert processes(module(one), module(two)) == [("", (one, two))]
    (tmp_path / "src" / "p" / "__init__.py").unlink()
    assert processes(module(one), module(two)) == []
    (tmp_path / "src" / "p-1.dist-info").mkdir()
    assert processes(module(one), module(two)) == [("", (one, two))]


def test_each_of_many_versions_is_in_some_process() -> None:
    paths = [f"{package}-{version}.whl!/{package}/_C.so" for package in "pqr" for version in range(12)]
    found = processes(*map(module, paths))
    assert {path for _, together in found for path in together} == set(paths)
    assert len(found) == 12


def test_a_known_interpreter_imports_each_alternative() -> None:
    one, other = module("build/x.cpython-311-x86_64-linux-gnu.so"), module("stage/x.cpython-311-x86_64-linux-gnu.so")
    assert processes(python("bin/python3.11"), one, other) == [
        ("bin/python3.11", (one.path,)),
        ("bin/python3.11", (other.path,)),
    ]
