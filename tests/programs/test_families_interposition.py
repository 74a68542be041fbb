"""A file's own calls that end in another file's function: what runs, what linkcheck says, and the build that is right.

Reported by users of TheRock (#4211), zstd-ruby (#102), zlib (#454), Fiona (#1161), spaCy (#938), cuopt (#1213),
iree (#2717) and cugraph (#4098), each on GitHub.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler

ZSTD = "int ZSTD_inner(void) { return %d; } int ZSTD_compress(void) { return ZSTD_inner(); }"
USES = "int ZSTD_compress(void); int probe(void) { return ZSTD_compress(); }"
KEEPS_TO_ITSELF = '[[role]]\nname = "extension"\nfiles = ["ext.so"]\nforbid-export = [%s]\n'


def provider_of(yard: Yard, symbol: str, user: Path, *opened: Opening) -> str:
    """Where `bindings` sees the uses of `symbol` inside `user` end."""
    asked = [part for one in opened for part in (f"--dlopen{'-global' if one.shared else ''}", one.path)]
    found = yard.ask("bindings", yard.host(), "--symbol", symbol, *asked)["bindings"]
    return next(str(one["provider"]) for one in found if one["module"] == str(user))


@pytest.mark.parametrize(
    ("flags", "output", "exported"),
    [((), "1", True), (("-Wl,-Bsymbolic",), "2", True), (("-Wl,--exclude-libs,ALL",), "2", False)],
    ids=["plain", "bsymbolic", "hidden"],
)
def test_a_bundled_library_whose_calls_end_in_the_systems(
    yard: Yard, flags: tuple[str, ...], output: str, exported: bool
) -> None:
    system = Opening(yard.library("libzstd.so.1", ZSTD % 1), shared=True)
    archive = yard.archive("build/libzstd.a", ZSTD % 2)
    extension = yard.library("ext.so", USES, archive, *flags, soname="")
    opened = (system, Opening(extension, shared=True))
    assert yard.open(*opened).output == output
    provider = system.path if output == "1" else extension
    if exported:
        assert provider_of(yard, "ZSTD_inner", extension, *opened) == str(provider)
    verdict = yard.judge(*opened, policy=KEEPS_TO_ITSELF % '"ZSTD_*"')
    if exported:
        (finding,) = verdict.errors
        assert (verdict.status, finding["code"]) == (1, "LC302")
        assert finding["primary"]["path"] == str(extension)
        assert finding["evidence"]["symbols"] == ["ZSTD_compress", "ZSTD_inner"]
    else:
        assert (verdict.status, verdict.findings) == (0, [])
    # Nothing says of these functions that they are a state, so without a policy there is nothing to complain of.
    assert yard.judge(*opened, profile="default").findings == []


PROJ = """#c++
static int contexts;
extern "C" int proj_create() { return contexts; } extern "C" int proj_destroy() { return 0; }
extern "C" int proj_errno() { return 0; } extern "C" int proj_trans() { return 0; }
namespace proj { __attribute__((weak)) void begin() { contexts++; } }
static struct Start { Start() { proj::begin(); } } start;
extern "C" int probe() { return contexts; }
"""


def test_a_constructor_of_a_bundled_library_starts_the_systems(yard: Yard) -> None:
    """Both started: the system's twice, the bundled one never."""
    system = Opening(yard.library("system/libproj.so.22", PROJ, "-Wl,--build-id=0xaaaa"), shared=True)
    bundled = yard.library("fiona/libproj-fe6a4a1b.so.15", PROJ, "-Wl,--build-id=0xbbbb")
    assert yard.open(system, bundled).output == "1 0"
    assert provider_of(yard, "_ZN4proj5beginEv", bundled, system, Opening(bundled, shared=True)) == str(system.path)
    verdict = yard.judge(system, bundled, profile="default")
    (finding,) = verdict.findings
    assert (finding["code"], finding["severity"]) == ("LC403", "warning")
    assert finding["evidence"]["files"] == [str(system.path), str(bundled)]
    policy = KEEPS_TO_ITSELF.replace("ext.so", "fiona/*") % '"proj::*"'
    verdict = yard.judge(system, bundled, policy=policy)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"], finding["primary"]["path"]) == (1, "LC302", str(bundled))

    script = yard.base / "only.map"
    script.write_text("{ global: probe; local: *; };", encoding="utf-8")
    yard.library("fiona/libproj-fe6a4a1b.so.15", PROJ, f"-Wl,--version-script={script}")
    assert yard.open(system, bundled).output == "1 1"
    verdict = yard.judge(system, bundled, policy=policy, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


ALLOCATOR = """
static char heap[4096]; static unsigned long used;
void *malloc(unsigned long size) { void *room = heap + 16 + used; used += (size + 15) & ~15ul; return room; }
"""
ALLOCATES = "void *malloc(unsigned long); void free(void *); int probe(void) { free(malloc(8)); return 1; }"


def test_an_extension_with_half_an_allocator(yard: Yard) -> None:
    """Its malloc is bound to itself, its free to the C library's, which has never seen that memory."""
    flags = ("-fno-builtin", "-Wl,-Bsymbolic")
    extension = yard.library("ext.so", ALLOCATES + ALLOCATOR, *flags, soname="")
    ran = yard.open(extension)
    assert (ran.status, "free(): invalid" in ran.errors) == (-signal.SIGABRT, True)
    assert provider_of(yard, "malloc", extension, Opening(extension)) == str(extension)
    assert provider_of(yard, "free", extension, Opening(extension)).endswith("/libc.so.6")
    policy = KEEPS_TO_ITSELF % '"malloc", "free", "calloc", "realloc"'
    verdict = yard.judge(extension, policy=policy)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC302")
    assert finding["primary"] == {"path": str(extension), "symbol": "malloc"}

    extension = yard.library("ext.so", ALLOCATES, *flags, soname="")
    assert yard.open(extension).output == "1"
    verdict = yard.judge(extension, policy=policy, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


STUB = '#c++\nnamespace %s { inline int version() { return %d; } } extern "C" int probe() { return %s::version(); }'


@pytest.mark.parametrize("namespace", ["google::protobuf", "tbb::detail", "cub"])
def test_a_library_that_exports_what_it_was_built_from(yard: Yard, namespace: str) -> None:
    """Two releases of one header in two libraries: opened for all, the second one runs the first one's code."""
    sources = {name: STUB % (namespace, number, namespace) for number, name in enumerate(("first", "ext"), 1)}
    first = Opening(yard.library("first.so", sources["first"], "-fno-inline", soname=""), shared=True)
    extension = Opening(yard.library("ext.so", sources["ext"], "-fno-inline", soname=""), shared=True)
    assert yard.open(first, extension).output == "1 1"
    policy = KEEPS_TO_ITSELF % f'"{namespace}::*"'
    verdict = yard.judge(first, extension, policy=policy)
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"], finding["primary"]["path"]) == (1, "LC302", str(extension.path))
    assert f"exports {namespace}::version(), which" in finding["message"]

    script = yard.base / "only.map"
    script.write_text("{ global: probe; local: *; };", encoding="utf-8")
    yard.library("ext.so", sources["ext"], "-fno-inline", f"-Wl,--version-script={script}", soname="")
    assert yard.open(first, extension).output == "1 2"
    verdict = yard.judge(first, extension, policy=policy, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


#: Each module registers its own type of one name, in what it takes for its own table.
TYPES = """#c++
#include <set>
#include <string>
namespace pybind { inline std::set<std::string> &types() { static std::set<std::string> all; return all; } }
extern "C" __attribute__((visibility("default"))) int probe() { return pybind::types().insert("Shape").second; }
int of_%s;
"""


@pytest.mark.parametrize("hidden", [False, True])
def test_two_modules_whose_type_tables_are_merged_against_their_will(yard: Yard, hidden: bool) -> None:
    """Here one copy is the fault: ld.so merges the tables (STB_GNU_UNIQUE), and the second type is taken already."""
    flags = ("-fvisibility=hidden",) if hidden else ()
    modules = [yard.library(f"{name}.so", TYPES % name, *flags, soname="") for name in ("one", "two")]
    assert yard.open(*modules).output == ("1 1" if hidden else "1 0")
    policy = KEEPS_TO_ITSELF.replace('"ext.so"', '"one.so", "two.so"') % '"pybind::*"'
    verdict = yard.judge(*modules, policy=policy, profile="default")
    found = [(f["code"], f["primary"]["path"]) for f in verdict.errors]
    assert found == ([] if hidden else [("LC302", str(path)) for path in modules])
    assert verdict.status == (0 if hidden else 1)
