"""Judges named files and directories, each as the root of a process of its own. Reads no policy, prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, UndemangledNameError, UnreadableFileError
from linkcheck.inputs.process import Examiner, start_process
from linkcheck.inputs.shown import GivenNames, show_error, show_file, show_image, show_process
from linkcheck.inputs.wanted import PROGRAM_SUFFIX, is_library_name
from linkcheck.model import Check, FileIdentity, FileKind, Finding, Outcome
from linkcheck.policy.patterns import matches_any
from linkcheck.rules import (
    KIND_CODE,
    LOAD_SET_RULES,
    MALFORMED_CODE,
    duplicate_library,
    split_state,
    undefined_symbol,
    unreachable_needed,
    unresolved_needed,
    unsatisfied_version,
    wrong_provider,
)
from linkcheck.rules.rule import Candidate
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.inputs.origins import Origins
    from linkcheck.inputs.process import ExaminedFile, Process
    from linkcheck.inputs.roots import NamedFile
    from linkcheck.inputs.sources import Inputs
    from linkcheck.loader.load import Dlopen
    from linkcheck.loader.system import System
    from linkcheck.model import Image, LoadSet, RuleResult, Target
    from linkcheck.policy.settings import DlopenEdge, Settings
    from linkcheck.rules.rule import Rule

#: Kinds that leave nothing to judge: the input could not be checked (exit status 2), it is not a finding.
_NOTHING_TO_JUDGE = frozenset(
    {
        FileKind.MISSING,
        FileKind.UNREADABLE,
        FileKind.DANGLING_LINK,
        FileKind.LOOPING_LINK,
        FileKind.DIRECTORY,
        FileKind.FIFO,
        FileKind.DEVICE,
        FileKind.SOCKET,
    }
)
#: Those of them that need no look inside: in place of a library, ld.so cannot read the one and waits at the other.
_ENDS_A_SEARCH = frozenset({FileKind.DIRECTORY, FileKind.FIFO})
#: What is asked of the process of an interpreter that is not among the inputs, and in addition when it is. Everything
#: else is asked of each of its modules, as the root of a process.
_OF_INTERPRETERS = frozenset({wrong_provider.META.code, split_state.META.code, duplicate_library.META.code})
_OF_KNOWN_INTERPRETERS = _OF_INTERPRETERS | {undefined_symbol.META.code, unsatisfied_version.META.code}
#: The rules that say whether a process finds what it needs.
_OF_SEARCHES = frozenset({unresolved_needed.META.code, unreachable_needed.META.code})


class Verification:
    """One run of `verify`: what it judges by, and what it has found so far."""

    def __init__(
        self,
        settings: Settings,
        inputs: Inputs,
        system: System,
        codes: frozenset[str],
        dlopen: Sequence[Dlopen] = (),
        preload: Sequence[str] = (),
        rules: Sequence[Rule] | None = None,
    ) -> None:
        """Judge `inputs` by `settings` and the rules with `codes`, of `rules` (None: all about what a process loads).

        Every process starts with `preload` in LD_PRELOAD, and makes the calls of `dlopen`.
        """
        self.settings = settings
        self.inputs = inputs
        self.system = system
        self.codes = codes
        self.dlopen = dlopen
        self.preload = preload
        self.rules = LOAD_SET_RULES if rules is None else rules
        self.edges = tuple(replace(edge, path=inputs.find(edge.path)) for edge in settings.dlopen)
        self.examiner = Examiner()
        self.results: list[RuleResult] = []
        #: Those of load_sets that were judged whole, with the paths that the loader knows.
        self._unnamed: list[LoadSet] = []
        #: What they load, and from where; None until somebody asks.
        self._origins: Origins | None = None
        #: Every image that was named or found, and the load set of every root, with the paths that users know.
        self.images: list[Image] = []
        self.load_sets: list[LoadSet] = []
        #: The policy's dlopens that no file has made so far.
        self.unmade: dict[DlopenEdge, None] = dict.fromkeys(self.edges)
        #: ExecuTorch programs among the inputs, and where each file is that a process loads.
        self.programs: list[NamedFile] = []
        self._places: dict[tuple[int, int], str] = {}
        self._given = GivenNames(file.path for file in inputs.files)
        self._beside: tuple[Image, ...] = ()
        self._neighbours = inputs.directories
        self._seen: set[tuple[object, ...]] = set()
        self._said: set[tuple[object, ...]] = set()

    def judge_inputs(self) -> None:
        """Judge everything the user named; what cannot be judged becomes an unknown check, never an exception."""
        for subject, error in self.inputs.errors:
            self._note(Check(KIND_CODE, subject, Outcome.UNKNOWN, str(error)))
        images: list[tuple[NamedFile, Image]] = []
        for file in self.inputs.files:
            examined = self.examiner.examine(file.path)
            if examined.image is not None:
                images.append((file, examined.image))
                self.system.know(examined.image)
                self.images.append(show_image(examined.image, self.inputs.show))
            elif self._is_program(file, examined.identity):
                self.programs.append(file)
            elif file.named or _stands_for_a_library(examined.identity):
                self._judge_file(examined, None)
            # What else is found in a directory and is no image (object files, debug companions) is nobody's root.
        self._beside = tuple(self.images)
        self.system.know_programs(image for _, image in images)
        # Programs first: a library in a directory that some program there loads is judged as a part of it.
        programs = [(file, image) for file, image in images if image.is_executable]
        libraries = [(file, image) for file, image in images if not image.is_executable]
        for file, image in programs:
            self._judge_process(file, image, self.dlopen)
        for file, image in _nobody_needs_first(libraries):
            if file.named or not self._is_judged_with_others(image):
                self._judge_process(file, image, () if programs else self.dlopen)
        self._judge_interpreters([image for _, image in programs], [image for _, image in libraries])
        if self.programs:
            self._judge_bundle()

    def note_nothing(self, paths: Sequence[str]) -> None:
        """Say of `paths` that there was nothing to check, if that is so."""
        if self.results:
            return
        code, what = KIND_CODE, "no program, no shared library"
        if self.images:
            code = min(self.codes, default=KIND_CODE)
            what = f"of the rules that run ({', '.join(sorted(self.codes))}) none applies to what is here"
        for path in paths:
            self._note(Check(code, path, Outcome.UNKNOWN, f"nothing to check: {what}"))

    def _judge_process(self, file: NamedFile, root: Image, dlopen: Sequence[Dlopen]) -> None:
        process = start_process(
            root,
            self.system,
            self.examiner,
            edges=self.edges,
            dlopen=dlopen,
            preload=self.preload,
            neighbours=self._neighbours,
            named=file.named,
        )
        if program := self._find_program_of(process):
            reason = f"alone it does not find all it needs, and {program} loads it and finds that: judged there"
            for code in sorted(_OF_SEARCHES & self.codes):
                self._note(Check(code, self.inputs.show(root.path), Outcome.NOT_APPLICABLE, reason))
            return
        process = replace(process, load_set=replace(process.load_set, beside=self._beside))
        self._note_places(process.load_set)
        self._unnamed.append(process.load_set)
        process = show_process(process, self.inputs.show, self._given)
        self.load_sets.append(process.load_set)
        for edge in process.made:
            self.unmade.pop(edge, None)
        rejected = [
            examined
            for examined in process.rejected
            if not matches_any(examined.identity.path.rpartition("/")[2], self.settings.external)
        ]
        for examined in process.opened:
            self._judge_file(examined, root.target)
        for examined in rejected:
            self._judge_file(examined, root.target, met=True)
        self.judge_load_set(process.load_set)

    def _find_program_of(self, process: Process) -> str:
        """The program that a library is judged in, instead of in `process`, its own; or "".

        One that finds there what it lacks alone, if nothing else is to be told of it alone. What the command line
        demands of each path is asked of it all the same.
        """
        library = process.load_set.root
        if (
            not process.load_set.unresolved
            or library.is_executable
            or process.rejected
            or not self.unmade.keys().isdisjoint(process.made)
            or any(role.roots_only for role in self.settings.roles)
        ):
            return ""
        from linkcheck.part_of_program import find_program_of

        return self.inputs.show(find_program_of(library, self._unnamed, self._ask_origins(), self.settings))

    def _is_judged_with_others(self, image: Image) -> bool:
        """Whether some root loads `image`; an extension module is opened by an interpreter all the same."""
        from linkcheck.inputs.extension_module import is_extension_module

        return not is_extension_module(image) and self._ask_origins().holds(image, self._unnamed)

    def _ask_origins(self) -> Origins:
        from linkcheck.inputs.origins import Origins  # of no use to a program alone

        if self._origins is None:
            self._origins = Origins()
        return self._origins

    def _judge_interpreters(self, programs: Sequence[Image], libraries: Sequence[Image]) -> None:
        """Judge the process of each interpreter that would import several of the modules among `libraries`."""
        if not libraries or not (self.codes & _OF_KNOWN_INTERPRETERS or self.programs):
            return
        from linkcheck.inputs.interpreter import find_interpreters

        for interpreter in find_interpreters(programs, libraries, self.inputs.show):
            opens = (*interpreter.list_opens(), *(() if programs else self.dlopen))
            process = start_process(
                interpreter.image,
                self.system,
                self.examiner,
                edges=self.edges,
                dlopen=opens,
                preload=self.preload,
                neighbours=self.inputs.directories,
                named=False,
            )
            self._note_places(process.load_set)
            process = show_process(process, self.inputs.show, self._given)
            load_set = replace(process.load_set, beside=self._beside)
            self.load_sets.append(load_set)
            asked = _OF_KNOWN_INTERPRETERS if interpreter.known else _OF_INTERPRETERS
            note = (
                f"The process is a Python interpreter that imports {len(interpreter.modules)} extension modules here."
            )
            for rule in self.rules:
                if rule.meta.code in self.codes & asked:
                    self._apply(rule, load_set, note)

    def _is_program(self, file: NamedFile, identity: FileIdentity) -> bool:
        """Whether `file`, which is no image, is an ExecuTorch program; of those in directories only a .pte may be."""
        if identity.kind is not FileKind.DATA or not (file.named or file.path.endswith(PROGRAM_SUFFIX)):
            return False
        from linkcheck.bundle import is_program

        return is_program(file.path)

    def _note_places(self, load_set: LoadSet) -> None:
        """Remember where the files of `load_set` are, before they get the names that users know."""
        if self.programs:
            self._places.update(((m.image.device, m.image.inode), m.image.path) for m in load_set.modules)

    def _judge_bundle(self) -> None:
        """Judge the programs together with the processes that may run them."""
        rules = [rule for rule in self.rules if rule.check_bundle is not None and rule.meta.code in self.codes]
        if not rules:
            return
        from linkcheck.bundle import assemble_bundle

        assembly = assemble_bundle(self.programs, self.load_sets, self._places)
        for rule in rules:
            for path, error in assembly.errors:
                self._note(Check(rule.meta.code, path, Outcome.UNKNOWN, str(error)))
            if rule.check_bundle is not None:
                for result in rule.check_bundle(assembly.bundle, self.settings):
                    self._note(result)

    def _judge_file(self, examined: ExaminedFile, wanted: Target | None, *, met: bool = False) -> None:
        """Judge a file by itself; `met` is whether ld.so meets it in place of a library that it searches for."""
        examined = show_file(examined, self.inputs.show)
        identity = examined.identity
        if identity.kind in _NOTHING_TO_JUDGE and not (met and identity.kind in _ENDS_A_SEARCH):
            reason = f"{identity.kind.value}: {identity.detail}" if identity.detail else identity.kind.value
            self._note(Check(KIND_CODE, identity.path, Outcome.UNKNOWN, reason))
            return
        from linkcheck.rules.link_rules import LINK_RULES  # not for a healthy program, which is judged as a process

        candidate = Candidate(identity, examined.image, wanted)
        for rule in LINK_RULES:
            if rule.check_file is not None and rule.meta.code in self.codes:
                for result in rule.check_file(candidate, self.settings):
                    self._note(result)

    def judge_load_set(self, load_set: LoadSet) -> None:
        """Apply every rule that looks at what one process loads."""
        for rule in self.rules:
            if rule.meta.code in self.codes:
                self._apply(rule, load_set)

    def _apply(self, rule: Rule, load_set: LoadSet, note: str = "") -> None:
        """Apply one rule; a file that turns out to be broken only now is a finding, and what was asked is unknown.

        `note` says in each finding what kind of process it is, where that is not plain.
        """
        if rule.check_load_set is None:
            return
        try:
            for result in rule.check_load_set(load_set, self.settings):
                if note and isinstance(result, Finding):
                    if self._is_said_of_another(result, load_set):
                        continue
                    result = replace(result, message=f"{result.message}\n{note}")
                self._note(result)
        except UndemangledNameError as unnamed:
            self._note(Check(rule.meta.code, load_set.root.path, Outcome.UNKNOWN, str(unnamed)))
        except (MalformedElfError, UnreadableFileError) as met:
            error = show_error(met, self.inputs.show)
            self._note(Check(rule.meta.code, load_set.root.path, Outcome.UNKNOWN, str(error)))
            if isinstance(error, UnreadableFileError) or MALFORMED_CODE not in self.codes:
                return
            from linkcheck.rules import malformed_elf

            broken = Candidate(FileIdentity(error.path, FileKind.MALFORMED_ELF, error.reason), None)
            for result in malformed_elf.check_file(broken, self.settings):
                self._note(result)

    def _is_said_of_another(self, finding: Finding, load_set: LoadSet) -> bool:
        """Whether an interpreter that is not there was told to have the same fault: where modules are alternatives,
        there are several that differ in other modules.
        """
        if load_set.root.kind is not FileKind.STAND_IN:
            return False
        key = (finding.code, finding.primary.symbol, finding.related, finding.message)
        if key in self._said:
            return True
        self._said.add(key)
        return False

    def _note(self, result: RuleResult) -> None:
        """Keep `result`, once: several roots may share the file that it is about."""
        if isinstance(result, Check):
            key: tuple[object, ...] = (result.code, result.subject, result.outcome, result.reason)
        else:
            key = (result.code, result.primary, result.message)
        if key not in self._seen:
            self._seen.add(key)
            self.results.append(result)


def _nobody_needs_first(libraries: Sequence[tuple[NamedFile, Image]]) -> list[tuple[NamedFile, Image]]:
    """`libraries` with those first that none of the others needs by name: they load the others, which are no roots."""
    needed = {name.rpartition("/")[2] for _, image in libraries for name in image.needed}

    def is_needed(named: tuple[NamedFile, Image]) -> bool:
        file, image = named
        return image.name in needed or file.path.rpartition("/")[2] in needed

    return sorted(libraries, key=is_needed)


def _stands_for_a_library(identity: FileIdentity) -> bool:
    """Whether a file that was found in a directory, and is no image, is a fault: what development packages put beside
    their libraries, a linker script called `libx.so` or the debug companion `.debug/libx.so`, is none.
    """
    if identity.kind is FileKind.MALFORMED_ELF:
        return True
    return is_library_name(identity.path) and identity.kind not in (FileKind.LD_SCRIPT, FileKind.DEBUG_ONLY)
