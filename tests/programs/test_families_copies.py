"""Several vendored copies of one library in a process: what runs, what linkcheck says, and the build that is right.

Reported by users of pytorch (#98836, #21062, #109923), scikit-learn (#21302), rasterio (#1876), netcdf4-python (#694),
psycopg2 (#543), opencv-python (#736), auditwheel (#231, #196), cugraph (#4465), cuda-quantum (#4236), FBGEMM (#1818)
and oneTBB (#646), each on GitHub.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from tests.inputs.pack import make_zip
from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.verify_command import Verdict
    from tests.programs.yard import Yard

pytestmark = needs_compiler

#: Names that all builds of a library export, so that they can be told for builds of one library.
COMMON = "int lib_open(void) { return 0; } int lib_close(void) { return 0; } int lib_error(void) { return 0; }"


@dataclass(frozen=True)
class Library:
    """A well-known library as far as two modules use it: `probe` of the first writes its state, the second's reads."""

    state: str
    source: str
    writes: str
    reads: str
    #: The names of two copies, one for each module, and of one that both share.
    copies: tuple[str, str]
    shared: str
    #: What the two modules print when they share one, and when each has its own.
    right: str
    doubled: str

    @property
    def imported(self) -> str:
        """The function that the second module calls."""
        return self.reads.partition("int ")[2].partition("(")[0]


TBB = Library(
    "oneTBB scheduler",
    "static int n = 8; int _ZN3tbb6detail2r127global_control_active_valueEi(int p) { if (p) n = p; return n; }"
    "int _ZN3tbb6detail2r115max_concurrencyEPKNS0_2d115task_arena_baseE(void *a) { return n; }",
    "int _ZN3tbb6detail2r127global_control_active_valueEi(int);"
    "int probe(void) { return _ZN3tbb6detail2r127global_control_active_valueEi(2); }",
    "int _ZN3tbb6detail2r115max_concurrencyEPKNS0_2d115task_arena_baseE(void *);"
    "int probe(void) { return _ZN3tbb6detail2r115max_concurrencyEPKNS0_2d115task_arena_baseE(0); }",
    ("libtbb-3a9b6c1d.so.12", "libtbb.so.12"),
    "libtbb.so.12",
    "2 2",
    "2 8",
)
OPENMP = Library(
    "OpenMP runtime",
    "static int n = 4; void omp_set_num_threads(int m) { n = m; } int omp_get_max_threads(void) { return n; }",
    "void omp_set_num_threads(int); int probe(void) { omp_set_num_threads(1); return 0; }",
    "int omp_get_max_threads(void); int probe(void) { return omp_get_max_threads(); }",
    ("libgomp-a34b3233.so.1.0.0", "libgomp-d22c30c5.so.1.0.0"),
    "libgomp.so.1",
    "0 1",
    "0 4",
)
KNOWN = (
    OPENMP,
    replace(OPENMP, copies=("libiomp5.so", "libomp.so"), shared="libiomp5.so"),
    Library(
        "HDF5 state",
        "static int ids; int H5open(void) { return ++ids; } int H5Eset_auto2(int a) { return a; }"
        "int H5Iget_type(int id) { return id <= ids ? 5 : -1; }",
        "int H5open(void); int probe(void) { return H5open(); }",
        "int H5Iget_type(int); int probe(void) { return H5Iget_type(1); }",
        ("libhdf5-49599f4e.so.103", "libhdf5-fb56a9ae.so.200"),
        "libhdf5.so.103",
        "1 5",
        "1 -1",
    ),
    TBB,
)


def two_modules(yard: Yard, library: Library, first: Path | str, second: Path | str) -> tuple[Path, Path]:
    """The module that writes and the one that reads, each of its own package and linked with `first` or `second`."""
    path = "-Wl,-rpath,$ORIGIN:$ORIGIN/../shared"
    sources = [
        f"{part} void PyInit_{name}(void) {{}}"
        for name, part in (("writer", library.writes), ("reader", library.reads))
    ]
    one = yard.library("one/writer.abi3.so", sources[0], first, path, soname="")
    two = yard.library("two/reader.abi3.so", sources[1], second, path, soname="")
    return one, two


def split_of(verdict: Verdict, state: str, copies: list[Path]) -> dict[str, object]:
    """LC401's only error, which names the state and the copies."""
    (finding,) = (f for f in verdict.errors if f["code"] == "LC401")
    assert finding["primary"]["symbol"] == state
    assert sorted(finding["evidence"]["copies"]) == sorted(map(str, copies))
    return finding


@pytest.mark.parametrize("library", KNOWN, ids=lambda one: f"{one.copies[0]}+{one.copies[1]}")
def test_each_package_brings_its_own(yard: Yard, library: Library) -> None:
    copies = [yard.library(f"{d}/{n}", library.source) for d, n in zip(("one", "two"), library.copies, strict=True)]
    modules = two_modules(yard, library, *copies)
    assert yard.open(*modules).output == library.doubled
    verdict = yard.judge(*modules, profile="default")
    assert verdict.status == 1
    split_of(verdict, library.state, copies)
    # They look like extension modules of Python, so that one interpreter is a process that opens both.
    places = [yard.base / name for name in ("one", "two", "shared")]
    document = yard.ask("scan", *places[:2], "--profile", "default")
    errors = [f for f in document["findings"] if f["severity"] == "error"]
    assert [(f["code"], f["primary"]["symbol"]) for f in errors] == [("LC401", library.state)]
    for path in copies:
        path.unlink()

    shared = yard.library(f"shared/{library.shared}", library.source)
    modules = two_modules(yard, library, shared, shared)
    assert yard.open(*modules).output == library.right
    verdict = yard.judge(*modules, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])
    assert yard.ask("scan", *places, "--profile", "default")["findings"] == []


CUDA = Library(
    "CUDA runtime",
    "static int streams, last; int cudaStreamCreateWithFlags(void) { return ++streams; }"
    "int cudaLaunchKernel(int s) { return last = s <= streams ? 0 : 400; } int cudaGetLastError(void) { return last; }",
    "int cudaStreamCreateWithFlags(void); int probe(void) { return cudaStreamCreateWithFlags(); }",
    "int cudaLaunchKernel(int); int probe(void) { return cudaLaunchKernel(1); }",
    ("libcudart.so.12", "libcudart.so.12"),
    "libcudart.so.12",
    "1 0",
    "1 400",
)

#: The reader, which links no runtime and opens one by its path.
BY_PATH = """
#include <dlfcn.h>
int probe(void) {
  void *runtime = dlopen("%s", RTLD_NOW | RTLD_LOCAL);
  return ((int (*)(int))dlsym(runtime, "cudaLaunchKernel"))(1);
}
"""


def test_one_soname_in_two_files_that_are_opened_by_path(yard: Yard) -> None:
    """A stream of one runtime is an invalid handle in the other. Reached by name, the first one serves both."""
    copies = [yard.library(f"{d}/libcudart.so.12", CUDA.source) for d in ("one", "two")]
    modules = two_modules(yard, CUDA, *copies)
    assert yard.open(*modules).output == CUDA.right
    verdict = yard.judge(*modules, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])

    loader = yard.library("two/reader.so", BY_PATH % copies[1], "-ldl", soname="")
    assert yard.open(modules[0], loader).output == CUDA.doubled
    edge = f'[[dlopen]]\nfrom = "reader.so"\npath = "{copies[1]}"\n'
    verdict = yard.judge(modules[0], loader, policy=edge, profile="default")
    assert verdict.status == 1
    split_of(verdict, CUDA.state, copies)
    (duplicate,) = (f for f in verdict.findings if f["code"] == "LC403")
    assert duplicate["evidence"]["sonames"] == ["libcudart.so.12", "libcudart.so.12"]


@pytest.mark.parametrize("hidden", [False, True], ids=["exported", "hidden"])
@pytest.mark.parametrize("library", [CUDA, TBB], ids=lambda one: one.shared)
def test_a_runtime_that_is_linked_statically_beside_the_shared_one(yard: Yard, library: Library, hidden: bool) -> None:
    shared = yard.library(f"one/{library.shared}", library.source)
    flags = ("-fvisibility=hidden",) if hidden else ()
    archive = yard.archive("build/libstatic.a", library.source, *flags)
    modules = two_modules(yard, library, shared, archive)
    assert yard.open(*modules).output == library.doubled
    verdict = yard.judge(*modules, profile="default")
    if hidden and library is CUDA:  # as its compiler links it unless told otherwise
        assert (verdict.status, verdict.findings) == (0, [])
    else:
        assert verdict.status == 1
        split_of(verdict, library.state, [shared, modules[1]])
    if hidden:  # stripped, nothing is left to be seen but the import that is not there
        subprocess.run(["strip", "-s", str(modules[1])], check=True)
        assert yard.open(*modules).output == library.doubled
        assert yard.judge(*modules, profile="default").status == 0
    must = f'[[role]]\nname = "user"\nfiles = ["two/*.so"]\nimport = ["{library.imported}"]\n'
    (missing,) = (f for f in yard.judge(*modules, policy=must, profile="default").errors if f["code"] == "LC301")
    assert missing["primary"]["path"] == str(modules[1])

    modules = two_modules(yard, library, shared, shared)
    assert yard.open(*modules).output == library.right
    verdict = yard.judge(*modules, policy=must, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


NUMBER = """#c++
#include <sstream>
extern "C" __attribute__((visibility("default"))) int probe() { std::ostringstream o; o << 3.5; return o.str().size(); }
"""


@pytest.mark.parametrize("hidden", [False, True], ids=["exported", "hidden"])
def test_a_static_copy_of_the_cxx_library_beside_the_shared_one(yard: Yard, hidden: bool) -> None:
    """Exported, parts of the two are merged and others are not: whoever comes second prints nothing for a number."""
    static = ("-static-libstdc++", "-static-libgcc", *(["-Wl,--exclude-libs,ALL"] if hidden else []))
    with_own = yard.library("own.so", NUMBER, *static, soname="")
    with_shared = yard.library("shared.so", NUMBER, soname="")
    for modules in ((with_own, with_shared), (with_shared, with_own)):
        assert yard.open(*modules).output == ("3 3" if hidden else "3 0")
        verdict = yard.judge(*modules, profile="default")
        if hidden:
            assert (verdict.status, verdict.findings) == (0, [])
        else:
            (finding,) = (f for f in verdict.errors if f["code"] == "LC401")
            assert finding["primary"]["symbol"] == "state of the C++ standard library"
            assert str(with_own) in finding["evidence"]["copies"]
            assert verdict.status == 1


NCCL_OLD = "int ncclGetUniqueId(void) { return 1; } int ncclCommInitRank(void) { return 1; }" + COMMON
NCCL_NEW = NCCL_OLD + "int ncclCommRegister(void) { return 2; }"
USES_OLD = "int ncclGetUniqueId(void); int probe(void) { return ncclGetUniqueId(); }"
USES_NEW = "int ncclCommRegister(void); int probe(void) { return ncclCommRegister(); }"


def test_the_first_of_one_soname_lacks_what_the_second_user_needs(yard: Yard) -> None:
    old = yard.library("old/libnccl.so.2", NCCL_OLD)
    new = yard.library("new/libnccl.so.2", NCCL_NEW)
    user = yard.library("old/torch.so", USES_OLD, old, "-Wl,-rpath,$ORIGIN", soname="")
    newer = yard.library("new/wholegraph.so", USES_NEW, new, "-Wl,-rpath,$ORIGIN", soname="")
    ran = yard.open(user, newer)
    assert (ran.status, "undefined symbol: ncclCommRegister" in ran.output) == (1, True)
    verdict = yard.judge(user, newer, profile="default")
    (finding,) = verdict.errors
    assert (verdict.status, finding["code"]) == (1, "LC304")
    assert finding["primary"]["path"] == str(newer)
    assert finding["evidence"]["symbols"] == ["ncclCommRegister"]

    # In the other order the newer one serves both, as long as that order lasts.
    assert yard.open(newer, user).output == "2 1"
    verdict = yard.judge(newer, user, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


CURL = "int curl_version(void) { return %d; }" + COMMON
GDAL = "int curl_version(void); int of_%s; int probe(void) { return curl_version(); }"
CURL_POLICY = '[[state]]\nname = "%s handles"\nowner = ["%s*"]\nsymbols = ["curl_version"]\n'


@pytest.mark.parametrize(
    "names", [("libcurl-7a1b2c3d.so.4", "libcurl-11aa22bb.so.4"), ("libssl.so.3", "libssl-0fe1d2c3.so.1.1")]
)
def test_a_library_calls_the_copy_of_another_package(yard: Yard, names: tuple[str, str]) -> None:
    """Two packages in one program: the second one's own copy is loaded and never called."""
    copies = [yard.library(f"{d}/{names[n]}", CURL % (n + 1)) for n, d in enumerate(("one", "two"))]
    users = [
        yard.library(f"{c.parent.name}/user.so", GDAL % c.parent.name, c, "-Wl,-rpath,$ORIGIN", soname="")
        for c in copies
    ]
    opened = [Opening(path, shared=True) for path in users]
    assert yard.open(*opened).output == "1 1"
    assert yard.open(*users).output == "1 2"
    # Without a policy, that one library is there twice; with one, that it must not be.
    verdict = yard.judge(*opened, profile="default")
    assert verdict.status == 0
    (duplicate,) = verdict.findings
    assert (duplicate["code"], duplicate["severity"]) == ("LC403", "warning")
    assert duplicate["evidence"]["files"] == [str(path) for path in copies]
    family = names[0][:6]
    verdict = yard.judge(*opened, policy=CURL_POLICY % (family, family))
    assert verdict.status == 1
    split_of(verdict, f"{family} handles", copies)
    asked = [part for path in users for part in ("--dlopen-global", path)]
    document = yard.ask("bindings", yard.host(), "--symbol", "curl_version", *asked)
    providers = {one["module"]: one["provider"] for one in document["bindings"]}
    assert providers[str(users[1])] == str(copies[0])

    one = yard.library("one/libone.so.4", CURL % 1)
    users = [
        yard.library(f"{d}/user.so", GDAL % d, one, "-Wl,-rpath,$ORIGIN/../one", soname="") for d in ("one", "two")
    ]
    assert yard.open(*users).output == "1 1"
    verdict = yard.judge(*users, policy=CURL_POLICY % ("curl", "libone.so"))
    assert (verdict.status, verdict.findings) == (0, [])


QT = "static int app; void qt_set(int a) { app = a; } int qt_app(void) { return app; }" + COMMON
APPLICATION = "void qt_set(int); int probe(void) { qt_set(1); return 0; }"
PLUG_IN = "int qt_app(void); int probe(void) { return qt_app(); }"


def test_a_plug_in_for_the_systems_build_of_a_framework(yard: Yard) -> None:
    """The application object is in the package's build, and the plug-in asks the system's for it."""
    bundled = yard.library("cv2/libQt5Core-39545cc7.so.5.15.0", QT, "-Wl,--build-id=0xaaaa")
    system = yard.library("system/libQt5Core.so.5", QT, "-Wl,--build-id=0xbbbb")
    application = yard.library("cv2/cv2.so", APPLICATION, bundled, "-Wl,-rpath,$ORIGIN", soname="")
    plug_in = yard.library("system/libqxcb.so", PLUG_IN, system, "-Wl,-rpath,$ORIGIN", soname="")
    assert yard.open(application, plug_in).output == "0 0"
    verdict = yard.judge(application, plug_in, profile="default")
    (finding,) = verdict.findings
    assert (verdict.status, finding["code"], finding["severity"]) == (0, "LC403", "warning")
    assert finding["evidence"]["files"] == [str(bundled), str(system)]
    assert "their build IDs differ" in finding["message"]

    plug_in = yard.library("cv2/libqxcb.so", PLUG_IN, bundled, "-Wl,-rpath,$ORIGIN", soname="")
    assert yard.open(application, plug_in).output == "0 1"
    verdict = yard.judge(application, plug_in, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


def test_a_wheel_with_the_library_before_and_after_its_repair(yard: Yard) -> None:
    """The one that was passed over still needs its own dependency by the name that only the builder had."""
    dependency = yard.library("build/libdep.so.1", "int dep(void) { return 3; }")
    renamed = yard.library("pkg/libs/libdep-5678abcd.so.1", "int dep(void) { return 3; }")
    source = "int dep(void); int probe(void) { return dep(); }" + COMMON
    build = "-Wl,--build-id=0xabcdef"
    repaired = yard.library("pkg/libs/libfoo-1234abcd.so.1", source, build, renamed, "-Wl,-rpath,$ORIGIN")
    original = yard.library("pkg/libfoo.so.1", source, build, dependency, "-Wl,-rpath,$ORIGIN/libs")
    dependency.unlink()
    assert yard.open(original).output.startswith("libdep.so.1: cannot open shared object file")
    assert yard.open(repaired).output == "3"
    wheel = make_wheel(yard, "twice-1-py3-none-any.whl", renamed, repaired, original)
    member = f"{wheel}!/pkg/libfoo.so.1"
    (finding,) = yard.ask("scan", wheel)["findings"]
    assert finding["code"] == "LC403"
    assert sorted(finding["evidence"]["files"]) == sorted([f"{wheel}!/pkg/libs/{repaired.name}", member])
    verdict = yard.verify(wheel, "--profile", "default")
    (error,) = verdict.errors
    assert (verdict.status, error["code"]) == (1, "LC202")
    assert error["primary"] == {"path": member, "symbol": "libdep.so.1"}

    wheel = make_wheel(yard, "once-1-py3-none-any.whl", renamed, repaired)
    assert yard.ask("scan", wheel)["findings"] == []
    assert yard.verify(wheel, "--profile", "default").status == 0


def make_wheel(yard: Yard, name: str, *files: Path) -> Path:
    members = [(str(path.relative_to(yard.base)), path.read_bytes()) for path in files]
    return make_zip(yard.base / name, members)
