"""What the commands and other programs call: files in, a Report out. Prints nothing and knows no option."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from linkcheck.value import Value, replace

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Iterator, Sequence

    from linkcheck.errors import LinkcheckError
    from linkcheck.executorch.facts import ProgramSet
    from linkcheck.inputs.sources import Inputs
    from linkcheck.loader.files import Files
    from linkcheck.loader.system import System
    from linkcheck.model import Binding, FileIdentity, Image, Libc, LoadSet, Target
    from linkcheck.policy.settings import Settings, State
    from linkcheck.report.report import Report
    from linkcheck.rules.rule import Rule
    from linkcheck.verification import Verification


def load_settings(
    *,
    profile: str | None = None,
    policy: str | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    require_needed: tuple[str, ...] = (),
    require_import: tuple[str, ...] = (),
    forbid_needed: tuple[str, ...] = (),
    external: tuple[str, ...] = (),
) -> Settings:
    """What `verify`, `scan` and `check_prebuilt` judge by: a built-in `profile`, a `policy` file, or both.

    Without either the nearest policy file at or above the working directory holds, or else the default profile.
    `select` and `ignore` are code prefixes. The other arguments are demands on each path that is judged: SONAME
    patterns it must need, symbols it must import, SONAME patterns it must not load; and `external`, SONAME patterns of
    libraries that the target machine provides, besides those of the policy. Raises PolicyError for a policy
    that cannot be used and UsageProblemError for a name that is none.
    """
    from linkcheck.policy.load import load_settings as load
    from linkcheck.rules import ALL_CODES

    settings = load(
        rule_codes=ALL_CODES,
        profile=profile,
        policy=policy,
        select=select,
        ignore=ignore,
        require_needed=require_needed,
        require_import=require_import,
        forbid_needed=forbid_needed,
    )
    return replace(settings, external=(*settings.external, *external)) if external else settings


class PrebuiltVerdict(Value):
    """What `judge_prebuilt` found: the report, and the facts that a build may want to know besides."""

    report: Report
    identity: FileIdentity
    #: Its facts; None when it is no ELF image, or a malformed one.
    image: Image | None


class ProgramVerdict(Value):
    """What `check_programs` found: the report, and what the files hold."""

    report: Report
    programs: ProgramSet


class ProcessBindings(Value):
    """One process, and what its imports and definitions bind to."""

    load_set: LoadSet
    bindings: tuple[Binding, ...]


def verify(
    paths: Sequence[str],
    *,
    settings: Settings,
    dlopen: Sequence[str] = (),
    dlopen_global: Sequence[str] = (),
    preload: Sequence[str] = (),
    library_path: Sequence[str] = (),
    sysroot: str | None = None,
    libc: Libc | None = None,
    today: datetime.date | None = None,
) -> Report:
    """Judge how the files at `paths` were linked; each is the root of a process of its own.

    A directory stands for every ELF file below it, and so do a wheel, zip, tar or .deb and `dist:NAME` (an installed
    Python distribution); a file inside an archive is called `file.whl!/member`. Every program among them also opens
    `dlopen` (RTLD_LOCAL) and then `dlopen_global` (RTLD_GLOBAL); when there is no program, every library does.
    Each process starts with `preload` in LD_PRELOAD: paths, or names to search for.
    `library_path` is LD_LIBRARY_PATH; no other environment counts. `sysroot` is the directory that stands
    for `/`. `libc` is whose loader every process starts with (None: each root tells, by PT_INTERP or the libc that it
    needs). Waivers are judged as of `today` (None: now).

    Whatever is wrong with a file becomes a part of the report. Raises UnreadableFileError when `sysroot` is no
    directory, and UndemangledNameError when a C++ name of the policy cannot be compared with a file's.
    """
    from linkcheck.policy.settings import select_codes
    from linkcheck.reporting import make_report
    from linkcheck.rules import ALL_CODES
    from linkcheck.rules.rule import PolicyUse

    _refuse_text(paths)
    codes = frozenset(select_codes(ALL_CODES, select=settings.select, ignore=settings.ignore))
    with _open_verification(
        paths, settings, codes, dlopen, dlopen_global, preload, library_path, sysroot, libc
    ) as verification:
        verification.judge_inputs()
        verification.note_nothing(paths)
        use = PolicyUse(load_sets=tuple(verification.load_sets), unmade=tuple(verification.unmade))
        return make_report("verify", paths, verification.results, settings, codes, today, use)


def scan(
    paths: Sequence[str],
    *,
    settings: Settings,
    dlopen: Sequence[str] = (),
    dlopen_global: Sequence[str] = (),
    preload: Sequence[str] = (),
    library_path: Sequence[str] = (),
    sysroot: str | None = None,
    libc: Libc | None = None,
    today: datetime.date | None = None,
) -> Report:
    """Compare everything that `paths` hold: libraries, and states of `settings`, that are there more than once.

    What one process would hold twice is a finding as in `verify`; what no root among `paths` loads together is
    information. What could not be seen is unknown where the files that were seen may then be together in a process with
    two copies. Arguments and errors are those of `verify`.
    """
    from linkcheck.policy.settings import select_codes
    from linkcheck.reporting import make_report
    from linkcheck.scanning import CODES, compare_files, list_rules

    _refuse_text(paths)
    codes = frozenset(select_codes(CODES, select=settings.select, ignore=settings.ignore))
    with _open_verification(
        paths, settings, codes, dlopen, dlopen_global, preload, library_path, sysroot, libc, list_rules()
    ) as verification:
        verification.judge_inputs()
        verification.note_nothing(paths)
        results = list(compare_files(verification))
    return make_report("scan", paths, results, settings, codes, today)


def live(pid: int, *, settings: Settings, today: datetime.date | None = None) -> Report:
    """Judge the running process `pid`: how many copies of each state it has mapped, and who uses which.

    It is read through /proc and not stopped; nothing is read from its memory. In which order it opened libraries, and
    with which scope, cannot be seen: what hangs on that is `split-unless-global` or unknown.

    Raises ProcessError when there is no such process, when it may not be read, has no memory of its own (a zombie
    without a living thread, a thread of the kernel), or ends meanwhile.
    """
    from linkcheck.inputs.live import load_live
    from linkcheck.inputs.proc import check_unchanged, read_process
    from linkcheck.policy.settings import select_codes
    from linkcheck.reporting import make_report
    from linkcheck.rules.kept import remember_answers
    from linkcheck.running import CODES, judge_running

    codes = frozenset(select_codes(CODES, select=settings.select, ignore=settings.ignore))
    facts = read_process(pid)
    try:
        with remember_answers():
            results = judge_running(load_live(facts), settings, codes)
    finally:
        check_unchanged(facts)  # also when something could not be read: because the process had ended, most likely
    return make_report("live", [str(pid)], results, settings, codes, today)


def _refuse_text(paths: Sequence[str]) -> None:
    """One path instead of several would be taken for its characters."""
    if isinstance(paths, str):
        raise TypeError("paths is a sequence of paths; for one path give [path]")


def _refuse_empty(paths: Sequence[str]) -> None:
    if "" in paths:
        from linkcheck.errors import EMPTY_NAME, UsageProblemError

        raise UsageProblemError(EMPTY_NAME)


@contextmanager
def _open_verification(
    paths: Sequence[str],
    settings: Settings,
    codes: frozenset[str],
    dlopen: Sequence[str],
    dlopen_global: Sequence[str],
    preload: Sequence[str],
    library_path: Sequence[str],
    sysroot: str | None,
    libc: Libc | None,
    rules: Sequence[Rule] | None = None,
) -> Iterator[Verification]:
    """A Verification of what `paths` stand for, whose files, and what rules remember, are there until the end."""
    from linkcheck.inputs.process import named_dlopen, split_preload
    from linkcheck.inputs.sources import open_inputs
    from linkcheck.rules.kept import remember_answers
    from linkcheck.verification import Verification

    with open_inputs(paths) as inputs, remember_answers():
        system = _make_system(sysroot, [inputs.find(directory) for directory in library_path], libc, inputs)
        local = tuple(named_dlopen(inputs.find(name), global_=False) for name in dlopen)
        opened = (*local, *(named_dlopen(inputs.find(name), global_=True) for name in dlopen_global))
        preloaded = tuple(inputs.find(name) for name in split_preload(preload))
        yield Verification(settings, inputs, system, codes, opened, preloaded, rules)


def bindings(
    root: str,
    *,
    symbols: Sequence[str] = (),
    dlopen: Sequence[str] = (),
    dlopen_global: Sequence[str] = (),
    preload: Sequence[str] = (),
    library_path: Sequence[str] = (),
    sysroot: str | None = None,
    libc: Libc | None = None,
) -> ProcessBindings:
    """Load a process of the file `root` and say which definition each of its imports binds to.

    `symbols` are mangled or C++ names, `*` allowed: then only those, and also the definitions of them. The other
    arguments are as in `verify`. Paths in the result are absolute.

    Raises UnreadableFileError, NotAnImageError or MalformedElfError when `root`, or the symbol table of a file it
    loads, cannot be read, UsageProblemError for a name that can match no symbol, and UndemangledNameError.
    """
    from linkcheck.errors import UsageProblemError
    from linkcheck.loader.lookup import bindings as bind
    from linkcheck.policy.settings import State
    from linkcheck.policy.symbols import find_fault, make_spec, matching_private
    from linkcheck.rules.ownership import state_names
    from linkcheck.text import unique

    for symbol in symbols:
        if fault := find_fault(symbol):
            raise UsageProblemError(f"--symbol {symbol}: {fault}")
    (load_set,) = load_trees(
        [root],
        dlopen=dlopen,
        dlopen_global=dlopen_global,
        preload=preload,
        library_path=library_path,
        sysroot=sysroot,
        libc=libc,
    )
    names = None
    if symbols:
        wanted = State("", (), tuple(make_spec(symbol, {}) for symbol in symbols))
        hidden = (
            name
            for spec in wanted.symbols
            if not spec.mangled
            for module in load_set.modules
            for name in matching_private(module.image.symbols, spec)
        )
        names = unique((*state_names(wanted, load_set), *hidden))
    return ProcessBindings(load_set, bind(load_set, names))


def load_trees(
    roots: Sequence[str],
    *,
    dlopen: Sequence[str] = (),
    dlopen_global: Sequence[str] = (),
    preload: Sequence[str] = (),
    library_path: Sequence[str] = (),
    sysroot: str | None = None,
    libc: Libc | None = None,
    pass_over: Callable[[LinkcheckError], object] | None = None,
) -> tuple[LoadSet, ...]:
    """The load set of a process of each of `roots`, in order; paths in it are absolute.

    Arguments are as in `bindings`. What a process would not find is part of its load set. Raises UnreadableFileError,
    NotAnImageError or MalformedElfError when a root cannot be read, and UsageProblemError for an empty name; with
    `pass_over`, which is then called with the error, the other roots are loaded all the same.
    """
    from linkcheck.errors import MalformedElfError, NotAnImageError, UnreadableFileError, UsageProblemError
    from linkcheck.inputs.process import load_process, named_dlopen, read_root, split_preload

    system = _make_system(sysroot, library_path, libc)
    opened = (
        *(named_dlopen(p, global_=False) for p in dlopen),
        *(named_dlopen(p, global_=True) for p in dlopen_global),
    )
    preloaded = tuple(split_preload(preload))
    images = []
    for path in roots:
        try:
            _refuse_empty([path])
            images.append(read_root(path))
        except (MalformedElfError, NotAnImageError, UnreadableFileError, UsageProblemError) as error:
            if pass_over is None:
                raise
            pass_over(error)
    system.know_programs(images)
    return tuple(load_process(image, system, dlopen=opened, preload=preloaded) for image in images)


def complete_library_path(paths: Sequence[str], *, places: Sequence[str]) -> tuple[str, ...]:
    """Those of the directories `places` that LD_LIBRARY_PATH lacks so that the files at `paths` find all they need.

    Object files among `paths` need nothing. Raises UnplacedLibraryError when a library is in none of `places`,
    ReplacedLibraryError when a program that found a library without them would get another file, NotAnImageError for a
    path that is neither program, library nor object file, UnreadableFileError or MalformedElfError for a file that
    cannot be read, also in a place, and UsageProblemError for an empty name.
    """
    from linkcheck.library_path import complete_library_path as complete

    _refuse_text(paths)
    _refuse_text(places)
    _refuse_empty(paths)
    _refuse_empty(places)
    return complete(paths, places)


def _make_system(
    sysroot: str | None, library_path: Sequence[str], libc: Libc | None, inputs: Inputs | None = None
) -> System:
    import os

    from linkcheck.elf.reader import read_image
    from linkcheck.errors import UnreadableFileError, UsageProblemError
    from linkcheck.loader.files import Files
    from linkcheck.loader.system import System

    if sysroot == "":
        raise UsageProblemError("--root: an empty name names no directory")
    if sysroot is not None and not os.path.isdir(sysroot):
        raise UnreadableFileError(sysroot, "--root takes a directory")
    if inputs is None or inputs.spool is None:
        files = Files(sysroot or "/")
    else:
        files = Files(sysroot or "/", layers=inputs.layers, mounted=inputs.spool.path)
    if not files.is_host:
        library_path = [_find_inside(entry, files) for entry in library_path]
    return System(read_image, files, library_path=library_path, libc=libc)


def _find_inside(library_path: str, files: Files) -> str:
    """`library_path`, an LD_LIBRARY_PATH, with the directories as the machine with `files` names them."""
    from linkcheck.loader.tokens import has_token

    return ":".join(
        one and (files.find_inside(one) if has_token(one) else files.inside(files.find_below(one)))
        for one in library_path.split(":")
    )


def check_programs(
    paths: Sequence[str],
    *,
    settings: Settings,
    hashed: bool = True,
    today: datetime.date | None = None,
) -> ProgramVerdict:
    """Judge the TensorRT engines of the ExecuTorch programs (.pte) and data files (.ptd) at `paths`.

    The data files serve every program among them. Engines are read whole only when `hashed`. Waivers are judged as of
    `today` (None: now). A file that cannot be read, or that is none of the two, is an unknown check of the report.
    """
    from linkcheck.policy.settings import select_codes
    from linkcheck.programs import CODES, judge_programs
    from linkcheck.reporting import make_report

    _refuse_text(paths)
    codes = frozenset(select_codes(CODES, select=settings.select, ignore=settings.ignore))
    judged = judge_programs(paths, settings, codes, hashed=hashed)
    return ProgramVerdict(make_report("pte", paths, judged.results, settings, codes, today), judged.programs)


def build_program(
    models: Sequence[str],
    output: str,
    *,
    builder: str = "tensorrt-rtx",
    shapes: Sequence[str] = (),
    weight_streaming_budget: int | None = None,
    device: int = 0,
    progress: Callable[[str, int, int], None] = lambda what, done, steps: None,
) -> None:
    """Build an ExecuTorch program whose methods are TensorRT engines, and write it to `output`.

    A model is `[METHOD=]FILE.onnx` or `[METHOD=]FILE.py:FUNCTION`, and a shape `[METHOD:]INPUT=MIN:OPT:MAX`. The budget
    is in bytes of device memory, `device` a CUDA ordinal. `progress` is told what is done, steps done and steps in all.

    Raises ModelError for a model that cannot be built and for an output that cannot be written, MissingPackageError,
    which names the extra to install, and UsageProblemError.
    """
    from linkcheck.errors import ModelError
    from linkcheck.executorch.build import build_program as build

    _refuse_text(models)
    try:
        build(
            models,
            output,
            builder=builder,
            shapes=shapes,
            weight_streaming_budget=weight_streaming_budget,
            device=device,
            progress=progress,
        )
    except OSError as error:
        raise ModelError(output, f"cannot be written: {error.strerror or error}") from error


def check_prebuilt(path: str, *, settings: Settings, state: str | None = None, wanted: Target | None = None) -> Report:
    """Judge whether the file at `path` may be linked as the library that owns the state called `state`.

    It may when the report's outcome is PASS. None for `state` means the first one that a library may own. `wanted` is
    what the file must be built for; None asks for no machine. Every path gets a report, also one that is missing,
    unreadable or malformed. Raises UsageProblemError when there is no such state.
    """
    return judge_prebuilt(path, settings=settings, state=choose_state(settings, state), wanted=wanted).report


def choose_state(settings: Settings, name: str | None) -> State:
    """The state called `name`, or the first one that a library may own.

    Raises UsageProblemError, which lists the names, when there is none.
    """
    from linkcheck.prebuilt import choose_state as choose

    return choose(settings, name)


def judge_prebuilt(path: str, *, settings: Settings, state: State, wanted: Target | None) -> PrebuiltVerdict:
    """As `check_prebuilt`, with the file's identity and image.

    Raises UsageProblemError for the name of a file inside an archive.
    """
    from linkcheck.prebuilt import judge_file
    from linkcheck.reporting import make_report

    _refuse_empty([path])
    judged = judge_file(path, settings, state, wanted)
    report = make_report("prebuilt", [path], judged.results, settings)
    return PrebuiltVerdict(report, judged.identity, judged.image)
