"""Makes the runner and its delegate in every way they may be linked, right and wrong; it judges none of them.

Standard library, g++, ar and strip only. The shipped files lie as an installation does, `bin/` and `lib/`; what only
the linker saw stays in `build/`.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

SOURCES = Path(__file__).parent / "src"
OWNER = "libextension_cuda.so"
RENAMED_OWNER = "libexecutorch_extension_cuda.so"
DELEGATE = "libdemo_delegate.so"
STATE = SOURCES / "caller_stream.cpp"
_COMPILE = ("-std=c++17", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror")
#: What leaves no symbol of the copied code behind.
_PRIVATE = ("-fvisibility=hidden", "-Wl,--exclude-libs,ALL")

#: The stream that runner.cpp selects, and the one delegate.cpp falls back to.
SELECTED_STREAM = "0x5eed"
FALLBACK_STREAM = "0x2"


class StateFrom(Enum):
    """Where an image gets the caller-stream code from."""

    OWNER = "the shared owner library"
    ARCHIVE = "a static archive, its symbols exported"
    HIDDEN_ARCHIVE = "a static archive, its symbols hidden"


@dataclass(frozen=True, slots=True)
class Build:
    """One way to link the runner and the delegate, and the truth about it as the running program showed it."""

    name: str
    runner_from: StateFrom
    delegate_from: StateFrom
    #: The delegate is opened by the path on the command line; otherwise it is on the runner's link line.
    dlopened: bool = False
    #: `strip -s` ran on the runner and the delegate.
    stripped: bool = False
    #: On the runner's link line the archive comes after the delegate.
    archive_last: bool = False
    #: What the delegate reports. A broken build may still be saved by interposition, and then shows SELECTED_STREAM.
    observed: str = SELECTED_STREAM
    owner: str = OWNER

    @property
    def broken(self) -> bool:
        """Whether the build is wrong: some image carries a copy of the state, whatever the program prints."""
        return {self.runner_from, self.delegate_from} != {StateFrom.OWNER}

    @property
    def exit_status(self) -> int:
        """What the runner ends with: 0 when the delegate saw the selected stream, 3 when not."""
        return 0 if self.observed == SELECTED_STREAM else 3

    @property
    def output(self) -> str:
        """What the runner prints."""
        return f"runner selected stream {SELECTED_STREAM}\ndelegate observed {self.observed}\n"


_OWNER, _ARCHIVE, _HIDDEN = StateFrom.OWNER, StateFrom.ARCHIVE, StateFrom.HIDDEN_ARCHIVE

GOOD_BUILDS = (
    Build("shared", _OWNER, _OWNER),
    Build("shared-renamed-owner", _OWNER, _OWNER, owner=RENAMED_OWNER),
    Build("shared-dlopened", _OWNER, _OWNER, dlopened=True),
)

#: The six ways to get it wrong. Where the delegate is on the link line ld makes the executable export its copy (the
#: delegate defines the same names) and the delegate's own calls find that copy first: the run looks right, by luck of
#: load order. Nothing saves the other four.
SIX_BROKEN_BUILDS = (
    Build("archive-linked", _ARCHIVE, _ARCHIVE),
    Build("archive-linked-stripped", _ARCHIVE, _ARCHIVE, stripped=True),
    Build("hidden-linked", _HIDDEN, _HIDDEN, observed=FALLBACK_STREAM),
    Build("hidden-linked-stripped", _HIDDEN, _HIDDEN, stripped=True, observed=FALLBACK_STREAM),
    Build("archive-dlopened", _ARCHIVE, _ARCHIVE, dlopened=True, observed=FALLBACK_STREAM),
    Build("archive-dlopened-stripped", _ARCHIVE, _ARCHIVE, dlopened=True, stripped=True, observed=FALLBACK_STREAM),
)

#: With the delegate before the archive, ld takes nothing from the archive: the runner imports accessor and guard, but
#: from the delegate. In the last two the runner is right and only the delegate is wrong.
OTHER_BROKEN_BUILDS = (
    Build("archive-linked-last", _ARCHIVE, _ARCHIVE, archive_last=True),
    Build("hidden-delegate-linked", _OWNER, _HIDDEN, stripped=True, observed=FALLBACK_STREAM),
    Build("hidden-delegate-dlopened", _OWNER, _HIDDEN, dlopened=True, stripped=True, observed=FALLBACK_STREAM),
)

BUILDS = GOOD_BUILDS + SIX_BROKEN_BUILDS + OTHER_BROKEN_BUILDS


def build_named(name: str) -> Build:
    """The build called `name`."""
    return next(build for build in BUILDS if build.name == name)


@dataclass(frozen=True, slots=True)
class Programs:
    """The files of one build. `dlopen` is what the runner is to open; empty when the delegate is linked."""

    build: Build
    runner: Path
    delegate: Path
    #: The owner library that is shipped beside the delegate; None when every image has the code built in.
    owner: Path | None
    dlopen: tuple[Path, ...]

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the runner with an empty environment, so that no LD_LIBRARY_PATH decides what it finds."""
        return subprocess.run(
            [self.runner, *self.dlopen], env={}, capture_output=True, text=True, timeout=60, check=False
        )


def make_programs(build: Build, directory: Path) -> Programs:
    """Compile and link `build` under `directory`, which is made; subprocess.CalledProcessError when a tool fails."""
    runner, delegate = directory / "bin" / "runner", directory / "lib" / DELEGATE
    state = {
        StateFrom.OWNER: directory / "lib" / build.owner,
        StateFrom.ARCHIVE: directory / "build" / "exported" / build.owner,
        StateFrom.HIDDEN_ARCHIVE: directory / "build" / "hidden" / build.owner,
    }
    used = {build.runner_from, build.delegate_from}
    for folder in (runner.parent, delegate.parent):
        folder.mkdir(parents=True)
    for source in used:
        _make_state(source, state[source])

    def link(output: Path, source: StateFrom, *arguments: str | Path) -> None:
        private = _PRIVATE if source is StateFrom.HIDDEN_ARCHIVE else ()
        _call("g++", *_COMPILE, *private, *arguments, "-ldl", "-o", output)

    link(
        delegate,
        build.delegate_from,
        *("-shared", f"-Wl,-soname,{DELEGATE}", "-Wl,-rpath,$ORIGIN"),
        *(SOURCES / "delegate.cpp", state[build.delegate_from]),
    )
    finder = SOURCES / ("dlopened_delegate.cpp" if build.dlopened else "linked_delegate.cpp")
    libraries = [state[build.runner_from], *([] if build.dlopened else [delegate])]
    link(
        runner,
        build.runner_from,
        *("-pie", "-Wl,-rpath,$ORIGIN/../lib", SOURCES / "runner.cpp", finder),
        *(reversed(libraries) if build.archive_last else libraries),
    )
    if build.stripped:
        _call("strip", "-s", runner, delegate)
    owner = state[StateFrom.OWNER] if StateFrom.OWNER in used else None
    return Programs(build, runner, delegate, owner, (delegate,) if build.dlopened else ())


def make_owner(library: Path) -> None:
    """Make the shared owner library at `library`; its SONAME is the file's name."""
    _call("g++", *_COMPILE, "-shared", f"-Wl,-soname,{library.name}", STATE, "-o", library)


def make_archive(archive: Path, *, hidden: bool = False) -> None:
    """Make a static archive of the caller-stream code at `archive`, whatever its name says it is."""
    unit = archive.parent / "caller_stream.o"
    archive.parent.mkdir(parents=True, exist_ok=True)
    _call("g++", *_COMPILE, *(_PRIVATE if hidden else ()), "-c", STATE, "-o", unit)
    _call("ar", "rcs", archive, unit)


def _make_state(source: StateFrom, output: Path) -> None:
    if source is StateFrom.OWNER:
        make_owner(output)
    else:
        make_archive(output, hidden=source is StateFrom.HIDDEN_ARCHIVE)


def _call(*command: str | Path) -> None:
    subprocess.run(command, check=True)
