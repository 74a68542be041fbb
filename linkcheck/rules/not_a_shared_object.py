"""LC101 not-a-shared-object: a file that is to be linked or loaded as a library is something else.

## What it checks

That a file which is to be linked as a library, or opened with dlopen, is an ELF shared object. The content decides,
not the name: ELF type ET_DYN and no position-independent executable (DF_1_PIE, or PT_INTERP without DT_SONAME).

`linkcheck prebuilt` asks it of the file that it judges. `linkcheck verify` asks it of files that are to be opened with
dlopen, of files that bear the name of a needed library but cannot be loaded, of named files that are neither a program
nor a shared object, and of such files in a named directory when they are called like a shared library.

## Why it matters

A linker reads the content too, and several wrong kinds pass without a word. A static archive, an object file or an
LTO object called `libextension_cuda.so` is copied into every program and library on whose link line it stands. Each
copy has its own state: the runner sets the caller's stream in one, the delegate reads another, and nothing crashes. A
debug-only companion links as well and fails when the program starts. Other kinds fail to link, with an error that
rarely says what the file is.

## Bad

```console
$ g++ -c -fPIC caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ cp libextension_cuda.a libextension_cuda.so
$ g++ runner.cpp libextension_cuda.so -o runner    # links quietly; the runner has its own copy of the state
$ linkcheck prebuilt libextension_cuda.so
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ linkcheck prebuilt libextension_cuda.so
```

## Causes and remedies

* An archive, thin archive or object file was renamed, or `add_library(... STATIC)` was told to be called `.so`: build
  the library SHARED.
* `-flto` made objects of intermediate code: link them into a shared library first.
* A linker script stands where the library is expected: name the library that it names.
* A Git LFS pointer or a flattened symbolic link came from a checkout: `git lfs pull`, or a checkout with
  `core.symlinks=true`.
* A download saved an error page: fetch the file again and look at the status.
* A wheel, `.zip` or `.tar.gz` was given: unpack it and name the library inside.
* The file is a program: name the library that the program was linked with.

## Options

None. `linkcheck prebuilt --machine` and `--state` change other rules.

## What it cannot see

Whether every linker can read the file: a shared object without section headers loads, but GNU ld 2.40 and gold find
no symbol in it. What is inside an archive or behind a link is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, FileKind, Location, Outcome, Severity
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import consequence, listed, owner_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.model import RuleResult
    from linkcheck.policy.settings import Settings, State
    from linkcheck.rules.rule import Candidate

META = RuleMeta(
    "LC101",
    "not-a-shared-object",
    "a file that is to be linked or loaded as a library is something else",
    Severity.ERROR,
    "0.1",
)

#: Kinds that a linker copies into its output without a word, so that each output has its own state.
COPIED_KINDS = frozenset(
    {
        FileKind.ARCHIVE,
        FileKind.THIN_ARCHIVE,
        FileKind.RELOCATABLE,
        FileKind.LTO_OBJECT,
        FileKind.LLVM_BITCODE,
    }
)

_PROGRAM = "it is a program with a state of its own, and no library that others can share"
#: Kind -> what happens to who uses the file as a library. Where nothing is said, the file fails to link and to load.
CONSEQUENCES = {
    FileKind.ARCHIVE: "a linker accepts an archive under any name and copies its members into every file it links",
    FileKind.THIN_ARCHIVE: (
        "a linker accepts it under any name and copies the objects that it points to into every file it links"
    ),
    FileKind.RELOCATABLE: "a linker accepts an object file under any name and copies it into every file it links",
    FileKind.LTO_OBJECT: (
        "a linker accepts it under any name, compiles it at link time and puts a copy into every file it links"
    ),
    FileKind.LLVM_BITCODE: (
        "a linker without LLVM's plugin refuses it, and one with the plugin compiles it at link time and puts a copy "
        "into every file it links"
    ),
    FileKind.DEBUG_ONLY: "a linker accepts it, but it holds no code and the program does not start",
    FileKind.LD_SCRIPT: (
        "a linker follows it to other files, but ld.so cannot load it, and what it names is not judged here"
    ),
    FileKind.PIE: _PROGRAM,
    FileKind.STATIC_PIE: _PROGRAM,
    FileKind.EXECUTABLE: _PROGRAM,
    FileKind.CORE: "it is the memory of a process that crashed, not code that can be linked",
    FileKind.MACH_O: "it was built for macOS or another Apple system; Linux linkers and ld.so refuse it",
    FileKind.PE: "it was built for Windows; Linux linkers and ld.so refuse it",
    FileKind.DIRECTORY: "a directory cannot be linked, and ld.so stops at it",
    FileKind.FIFO: ("reading it would wait for somebody to write, so it was not opened; linkers and ld.so wait"),
    FileKind.DEVICE: "reading it may block or act, so it was not opened",
    FileKind.SOCKET: "it cannot be opened as a file",
    FileKind.MISSING: "nothing can be linked",
    FileKind.UNREADABLE: "nothing can be said about it",
    FileKind.DANGLING_LINK: "nothing can be linked",
    FileKind.LOOPING_LINK: "it leads to itself, so nothing can be linked",
}
CANNOT_LINK = "linkers and ld.so refuse it"

_BUILD_SHARED = "Link {library} instead; build it with `-shared` (CMake: `add_library(<name> SHARED <sources>)`)."
_UNPACK = "Unpack it and name the library inside."
_OTHER_PLATFORM = "Get the build for Linux."
_NAME_LIBRARY = "Name the shared library itself."
#: Kind -> what to do. `{library}` is the shared library that is wanted, `{names}` what the file itself points to.
REMEDIES = {
    FileKind.ARCHIVE: _BUILD_SHARED,
    FileKind.THIN_ARCHIVE: _BUILD_SHARED,
    FileKind.RELOCATABLE: "Link {library}; make it from the object with `-shared`.",
    FileKind.LTO_OBJECT: "Link {library}; make it from the object with `-shared -flto`.",
    FileKind.LLVM_BITCODE: "Link {library}; make it from the bitcode with `clang -shared`.",
    FileKind.DEBUG_ONLY: "Name the library that it was split from (the file without `.debug`).",
    FileKind.LD_SCRIPT: "Name the library that the script names: {names}.",
    FileKind.PIE: "Name {library}, not a program that uses it.",
    FileKind.STATIC_PIE: "Name {library}, not a program that contains it.",
    FileKind.EXECUTABLE: "Name {library}, not a program that uses it.",
    FileKind.MACH_O: _OTHER_PLATFORM,
    FileKind.PE: _OTHER_PLATFORM,
    FileKind.WASM: _OTHER_PLATFORM,
    FileKind.DEBIAN_PACKAGE: "Unpack it (`dpkg-deb -x`) and name the library in it.",
    FileKind.ZIP: _UNPACK,
    FileKind.GZIP: _UNPACK,
    FileKind.BZIP2: _UNPACK,
    FileKind.XZ: _UNPACK,
    FileKind.ZSTD: _UNPACK,
    FileKind.LFS_POINTER: "Run `git lfs pull` in the checkout that it comes from.",
    FileKind.FLATTENED_SYMLINK: (
        "Name the file that it points to, {names}, or check out or unpack again with a tool that makes links "
        "(git: `core.symlinks=true`)."
    ),
    FileKind.HTML: "Download the library again: a server sent a page instead of the file.",
    FileKind.EMPTY: "Build or download it again: a step stopped before it wrote anything.",
    FileKind.DIRECTORY: "Name the library in it; where the library itself is looked for, remove the directory.",
    FileKind.FIFO: "Name the shared library itself; where the library is looked for, remove the FIFO.",
    FileKind.DANGLING_LINK: "Provide the link's target, {names}, or name the library itself.",
    FileKind.LOOPING_LINK: "Remove the loop, or name the library itself.",
    FileKind.MISSING: "Correct the path, or build the library first.",
    FileKind.UNREADABLE: "Make it readable for the user who runs the check.",
}


def check_file(candidate: Candidate, settings: Settings) -> Iterator[RuleResult]:
    """Yield a finding unless the candidate is a shared object; `settings` do not matter."""
    identity = candidate.identity
    if identity.kind is FileKind.SHARED_OBJECT:
        yield Check(META.code, identity.path, Outcome.PASS, identity.detail)
        return
    if identity.kind is FileKind.MALFORMED_ELF:
        yield Check(META.code, identity.path, Outcome.NOT_APPLICABLE, "the file is malformed (LC103)")
        return
    yield META.finding(
        message=_describe(candidate),
        remedy=_advise(candidate),
        primary=Location(identity.path),
        evidence={"kind": identity.kind.name.lower().replace("_", "-"), "names": list(identity.names)},
    )


def _describe(candidate: Candidate) -> str:
    identity = candidate.identity
    what = f"{identity.path} is {identity.kind.value}"
    if identity.detail:
        what += f" ({identity.detail})"
    if identity.kind not in (FileKind.MISSING, FileKind.UNREADABLE):
        what += ", not a shared object"
    message = f"{what}: {CONSEQUENCES.get(identity.kind, CANNOT_LINK)}"
    state = candidate.stands_for
    if state is None or identity.kind not in COPIED_KINDS:
        return message + "."
    return f"{message}, so each has a private copy of the {state.name}.{consequence(state)}"


def _advise(candidate: Candidate) -> str:
    identity = candidate.identity
    if identity.kind is FileKind.TEXT and identity.detail.startswith("a script") and candidate.stands_for is None:
        return "Name the program that it starts, or the library, not the script."
    names = listed(identity.names) or "whatever it leads to"
    remedy = REMEDIES.get(identity.kind, _NAME_LIBRARY).format(
        library=_wanted_library(candidate.stands_for), names=names
    )
    target = candidate.stands_for.cmake_target if candidate.stands_for is not None else ""
    if target and identity.kind in COPIED_KINDS:
        remedy += f" Its CMake target is {target}."
    return remedy


def _wanted_library(state: State | None) -> str:
    names = owner_names(state) if state is not None else ()
    return f"the shared library {names[0]}" if names else "the shared library"


RULE = Rule(META, __doc__ or "", check_file=check_file)
