"""Whether the backends that an ExecuTorch program calls are registered in some process. A part of LC402, and no rule.

A backend registers itself: a static initializer calls register_backend with the backend's id. Of that a file shows that
it imports or defines register_backend, and that the id stands in it. Which of the two files of one process does with
the other is not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import Choice
from linkcheck.errors import MalformedElfError, UnreadableFileError
from linkcheck.executorch.facts import GET_BACKEND_CLASS, REGISTER_BACKEND
from linkcheck.model import Check, Confidence, FileKind, Finding, Location, Outcome, Severity
from linkcheck.rules.ownership import missing_libraries
from linkcheck.rules.rule import Names
from linkcheck.rules.wording import as_evidence, listed, shorten
from linkcheck.text import one_line
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.executorch.facts import ProgramFile
    from linkcheck.model import Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.rule import Bundle, RuleMeta


class _Seen(Choice):
    """What the files of a process show about one backend."""

    REGISTERED = "registered"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class _Answer(Value):
    """`by` is the file that registers the backend, or only has its id; `reason` says why it is not known."""

    seen: _Seen
    by: str = ""
    reason: str = ""


class _Process(Value):
    """One process, and its answer for each backend of one program."""

    load_set: LoadSet
    answers: dict[str, _Answer]

    def having(self, seen: _Seen) -> list[str]:
        """The backends with that answer."""
        return [backend for backend, answer in self.answers.items() if answer.seen is seen]


def may_register(image: Image) -> bool:
    """Whether `image` imports register_backend, or is seen to define it."""
    symbols = image.symbols
    return (
        symbols.imported(REGISTER_BACKEND) is not None
        or bool(symbols.exported(REGISTER_BACKEND))
        or bool(symbols.private((REGISTER_BACKEND,)))
    )


def check_registrations(meta: RuleMeta, bundle: Bundle, settings: Settings) -> Iterator[RuleResult]:
    """Yield one pass for a program that some process can run, and otherwise one result for each missing backend."""
    for program in bundle.programs:
        if program.is_data:
            yield Check(meta.code, program.path, Outcome.NOT_APPLICABLE, "a data file calls no backend")
        elif not program.backends:
            yield Check(meta.code, program.path, Outcome.NOT_APPLICABLE, "the program calls no backend")
        else:
            yield from _judge(meta, program, bundle, settings)


def _judge(meta: RuleMeta, program: ProgramFile, bundle: Bundle, settings: Settings) -> Iterator[RuleResult]:
    named = program.path in bundle.named
    started = [one for one in bundle.processes if one.root.is_executable or one.root.kind is FileKind.STAND_IN]
    # A library alone is the whole of a process only where there is no program that might load it, or might not.
    processes = [
        _Process(load_set, {backend: _look(backend, load_set, bundle, settings) for backend in program.backends})
        for load_set in started or bundle.processes
    ]
    for process in processes:
        if len(process.having(_Seen.REGISTERED)) == len(program.backends):
            by = listed([f"{one_line(backend)} by {answer.by}" for backend, answer in process.answers.items()])
            reason = f"registered in a process of {process.load_set.root.path}: {by}"
            yield Check(meta.code, program.path, Outcome.PASS, reason)
            return
    concerned = [process for process in processes if _may_run_programs(process)]
    unseen = [process for process in concerned if not process.having(_Seen.ABSENT)]
    if unseen and (started or named):
        reasons = dict.fromkeys(unseen[0].answers[backend].reason for backend in unseen[0].having(_Seen.UNKNOWN))
        yield Check(meta.code, program.path, Outcome.UNKNOWN, "; ".join(reasons))
        return
    if not started or not concerned:
        what = "which program opens the libraries here" if processes and not started else "which program runs it"
        reason = f"{what} is not known, so neither is what it registers"
        yield Check(meta.code, program.path, Outcome.UNKNOWN if named else Outcome.NOT_APPLICABLE, reason)
        return
    nearest = min(concerned, key=lambda process: len(process.having(_Seen.ABSENT)))
    for backend in nearest.having(_Seen.ABSENT):
        yield _report(meta, program, backend, nearest, bundle)


def _look(backend: str, load_set: LoadSet, bundle: Bundle, settings: Settings) -> _Answer:
    """What the files of one process show about `backend`."""
    reasons: list[tuple[str, str]] = []
    mentions = ""
    shared = any(module.image.symbols.exported(REGISTER_BACKEND) for module in load_set.modules)
    for module in load_set.modules:
        image = module.image
        names = bundle.names.get((image.device, image.inode), Names())
        try:
            registers = may_register(image)
        except (MalformedElfError, UnreadableFileError) as error:
            reasons.append(("", str(error)))
            continue
        if isinstance(names, str):
            reasons.append(("", names))
        elif backend in names.whole and registers:
            return _Answer(_Seen.REGISTERED, image.path)
        elif backend in names.whole and image.symbols.unseen is not None:
            reasons.append((image.path, f"{image.path} has the id {one_line(backend)}; {image.symbols.unseen}"))
        elif backend in names.whole and not shared:
            # The runtime is part of some file, and of a copy that was hidden and stripped nothing is left to see.
            reason = f"{image.path} has the id {one_line(backend)}, and whether it registers is not to be seen"
            reasons.append((image.path, reason))
        elif backend in names.whole:
            mentions = mentions or image.path
        elif backend in names.ends and registers:
            reason = f"{image.path} has the id {one_line(backend)} only as the end of a longer name"
            reasons.append((image.path, reason))
    if not reasons and (missing := missing_libraries(load_set, settings)):
        absent = listed(sorted({one.needed for one in missing}))
        reasons.append(("", f"{absent} not found, which may register {one_line(backend)}"))
    if reasons:
        by, reason = max(reasons, key=lambda one: bool(one[0]))  # the one that says where the id is, if any
        return _Answer(_Seen.UNKNOWN, by, reason)
    return _Answer(_Seen.ABSENT, mentions)


def _may_run_programs(process: _Process) -> bool:
    """Whether the user named the program, or a file of the process touches the registry or has an id."""
    load_set = process.load_set
    if load_set.named or any(answer.by for answer in process.answers.values()):
        return True
    try:
        return any(
            may_register(image)
            or image.symbols.imported(GET_BACKEND_CLASS) is not None
            or bool(image.symbols.exported(GET_BACKEND_CLASS))
            for image in (module.image for module in load_set.modules)
        )
    except (MalformedElfError, UnreadableFileError):
        return True


def _report(meta: RuleMeta, program: ProgramFile, backend: str, process: _Process, bundle: Bundle) -> Finding:
    root = process.load_set.root.path
    mentions = process.answers[backend].by
    loaded = {(module.image.device, module.image.inode) for module in process.load_set.modules}
    beside = [path for path in _find_registrars(backend, bundle, loaded) if path != root]
    methods = [one_line(name) for name in dict.fromkeys(d.method for d in program.delegates if d.backend == backend)]
    seen = (
        f"{mentions} has that id, and does not import register_backend"
        if mentions
        else "no file that it loads has that id and registers backends"
    )
    remedy = (
        "Load the backend's library with the program. A static archive needs --whole-archive, because nothing refers "
        "to what registers itself:\n"
        "    target_link_libraries(<target> PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,<backend>>)\n"
        "A library that the program opens with dlopen has to be named:\n"
        f"    linkcheck verify {root} {program.path} --dlopen {beside[0] if beside else '<backend library>'}"
    )
    return meta.finding(
        message=(
            f"{program.path} calls the backend {one_line(backend)} (in {listed(shorten(methods))}), which nothing "
            f"registers in a process of {root}: {seen}. Loading such a method fails (NotFound)."
        ),
        remedy=remedy,
        primary=Location(program.path, backend),
        related=tuple(Location(path) for path in (root, *((mentions,) if mentions else ()), *beside[:1])),
        evidence={
            "backend": backend,
            "methods": as_evidence(methods),
            "process": root,
            "registered_beside": as_evidence(beside),
        },
        severity=Severity.ERROR,
        # What is there, and not loaded as far as files say, may well be opened.
        confidence=Confidence.MEDIUM if mentions or beside else Confidence.HIGH,
    )


def _find_registrars(backend: str, bundle: Bundle, loaded: set[tuple[int, int]]) -> list[str]:
    """Files of other processes that register `backend`."""
    found: dict[str, None] = {}
    for image in (module.image for process in bundle.processes for module in process.modules):
        names = bundle.names.get((image.device, image.inode))
        if isinstance(names, Names) and backend in names.whole and (image.device, image.inode) not in loaded:
            try:
                if may_register(image):
                    found[image.path] = None
            except (MalformedElfError, UnreadableFileError):
                continue  # LC103 says it
    return list(found)
