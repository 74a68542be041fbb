"""Who owns, defines and imports a state in one load set: the questions several rules ask. Judges nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, UnreadableFileError
from linkcheck.loader.state import judge_state
from linkcheck.model import FileKind, FoundBy
from linkcheck.policy.patterns import matches_any, means_file
from linkcheck.policy.settings import EVERY_FILE, ROOT_OWNER
from linkcheck.policy.symbols import is_pattern, matches_name, matching_exports, matching_imports, matching_private
from linkcheck.rules.kept import keep_answers, memory_of_run
from linkcheck.text import unique
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from linkcheck.loader.state import Judgement
    from linkcheck.model import Image, LoadSet, Module, Symbol, Unresolved
    from linkcheck.policy.settings import Role, Settings, State, SymbolSpec
    from linkcheck.rules.rule import Candidate


def needs_any(image: Image, patterns: tuple[str, ...]) -> bool:
    """Whether a DT_NEEDED of `image` matches one of `patterns`; of a path, which a library without SONAME leaves, the
    last part counts.
    """
    return any(matches_any(needed.rpartition("/")[2], patterns) for needed in image.needed)


def is_owner(image: Image, state: State, load_set: LoadSet) -> bool:
    """Whether `image` may define `state`: by its SONAME (file name without one), or as the program it starts from.

    A library that is judged on its own is no program, and a copy in it stays a copy.
    """
    if ROOT_OWNER in state.owner and image is load_set.root and image.is_executable:
        return True
    return matches_any(image.name, state.owner)


def owner_in_question(candidate: Candidate) -> tuple[State, Image] | str:
    """The state that `candidate` would own and its facts, or why it is not asked whether it may own one."""
    if candidate.stands_for is None:
        return "the file stands in for no owner library"
    if candidate.image is None or candidate.image.kind is not FileKind.SHARED_OBJECT:
        return "the file is no shared object"
    return candidate.stands_for, candidate.image


@keep_answers
def owner_modules(state: State, load_set: LoadSet) -> tuple[int, ...]:
    """Indices of the load set's modules that may define `state`."""
    return tuple(i for i, m in enumerate(load_set.modules) if is_owner(m.image, state, load_set))


def _list_copies(image: Image, defined: Sequence[str]) -> tuple[str, ...]:
    """Those of the `defined` symbols of `image` that are no definitions, whatever its table shows, but imports.

    A program that uses a library's object by its address makes room for a copy of it (R_*_COPY), which everybody uses
    then.
    """
    return image.symbols.copied(defined) if image.is_executable and defined else ()


def list_definitions(image: Image, spec: SymbolSpec) -> tuple[Symbol, ...]:
    """What `image` defines of `spec` for others to bind to; a program's copy of an object is no definition."""
    found = matching_exports(image.symbols, spec)
    copies = _list_copies(image, [symbol.name for symbol in found])
    return tuple(symbol for symbol in found if symbol.name not in copies) if copies else found


def list_imports(image: Image, spec: SymbolSpec) -> tuple[Symbol, ...]:
    """What `image` imports of `spec`, a program's copies of objects (R_*_COPY) included."""
    found = matching_imports(image.symbols, spec)
    if not image.is_executable:
        return found
    exported = matching_exports(image.symbols, spec)
    copies = _list_copies(image, [symbol.name for symbol in exported])
    return (*found, *(symbol for symbol in exported if symbol.name in copies))


@keep_answers
def defined_symbols(image: Image, state: State) -> tuple[str, ...]:
    """Names of `state`'s symbols that `image` defines for others to bind to."""
    return tuple(s.name for spec in state.symbols for s in list_definitions(image, spec))


@keep_answers
def imported_symbols(image: Image, state: State) -> tuple[str, ...]:
    """Names of `state`'s symbols that `image` imports."""
    return tuple(s.name for spec in state.symbols for s in list_imports(image, spec))


@keep_answers
def uses_any(image: Image, state: State) -> bool:
    """Whether `image` imports, or defines for others, a symbol of `state`."""
    return bool(imported_symbols(image, state) or defined_symbols(image, state))


def private_symbols(module: Module, state: State) -> tuple[str, ...]:
    """Names of `state`'s symbols that `module` defines for itself only, as far as its .symtab tells.

    The system's own libraries are not asked: nobody links a copy into them, and a .symtab can be large.
    """
    return () if module.found_by in _SYSTEM else _hidden_symbols(module.image, state)


_SYSTEM = frozenset({FoundBy.CACHE, FoundBy.DEFAULT, FoundBy.INTERPRETER})


@keep_answers
def _hidden_symbols(image: Image, state: State) -> tuple[str, ...]:
    names = {name for spec in state.symbols for name in spec.mangled}
    found = set(image.symbols.private(names)) if names else set()
    for spec in state.symbols:
        # What a pattern means may be an inline function, of which every user has a hidden one and nobody minds.
        if not spec.mangled and not is_pattern(spec):
            found.update(matching_private(image.symbols, spec))
    return tuple(sorted(found))


def state_names(state: State, load_set: LoadSet) -> tuple[str, ...]:
    """The symbol table names of `state`: those the policy spells out, and those meant otherwise in this load set."""
    names = [name for spec in state.symbols for name in spec.mangled]
    for spec in state.symbols:
        if not spec.mangled:
            for module in load_set.modules:
                names += [name for name in private_symbols(module, state) if matches_name(spec, name)]
                names += [s.name for s in matching_exports(module.image.symbols, spec)]
                names += [s.name for s in matching_imports(module.image.symbols, spec)]
    return unique(names)


def judge_copies(state: State, load_set: LoadSet, settings: Settings) -> Judgement:
    """The loader's judgement on `state` in this load set, made once for all rules that ask.

    What is missing and declared external is taken not to hold the state, so it makes nothing unknown.
    """
    return _judge_copies(state, load_set, settings, everything_global=False)


def judge_copies_if_global(state: State, load_set: LoadSet, settings: Settings) -> Judgement:
    """As `judge_copies`, but with every dlopen taken as RTLD_GLOBAL where nobody has seen with which scope it was made.

    Scopes between the two hold more than those of `judge_copies` and less than these. Where both say the same of a use,
    it is so; where not, it is unknown.
    """
    return _judge_copies(state, load_set, settings, everything_global=load_set.observed)


def _judge_copies(state: State, load_set: LoadSet, settings: Settings, *, everything_global: bool) -> Judgement:
    names = state_names(state, load_set)
    judgements = _answers_about(load_set, settings).judgements
    key = (state.exported_only, everything_global, names)
    known = judgements.get(key)
    if known is None:
        seen = replace(load_set, unresolved=missing_libraries(load_set, settings))
        if everything_global:
            seen = replace(seen, opened=tuple(replace(opened, global_=True) for opened in seen.opened))
        asked = names if _may_bind(load_set, state) else ()
        known = judgements[key] = judge_state(seen, asked, hidden=not state.exported_only)
    return known


def _may_bind(load_set: LoadSet, state: State) -> bool:
    """Whether any use or definition of `state` is there to be bound; most load sets of a directory hold none."""
    try:
        return any(uses_any(m.image, state) or _hidden_symbols(m.image, state) for m in load_set.modules)
    except (MalformedElfError, UnreadableFileError):
        return True  # who binds them says of which file


class _Answers:
    """What was found out about the load set of the moment under some settings; the rules ask one after the other."""

    __slots__ = ("about", "apart", "judgements", "roles")

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, about: tuple[LoadSet, Settings] | None) -> None:
        """Forget what was found out about another load set, or under other settings."""
        self.about = about
        #: Index of a module -> the roles that it plays.
        self.roles: dict[int, tuple[Role, ...]] = {}
        #: Identity of a role -> why the root stands apart.
        self.apart: dict[int, str | None] = {}
        #: By the symbols of a state, whether only exported copies count, and whether every dlopen is RTLD_GLOBAL.
        self.judgements: dict[tuple[bool, bool, tuple[str, ...]], Judgement] = {}


def _answers_about(load_set: LoadSet, settings: Settings) -> _Answers:
    answers = memory_of_run(_Answers)
    about = answers.about
    if about is None or about[0] is not load_set or about[1] is not settings:
        answers.begin((load_set, settings))
    return answers


def definers(load_set: LoadSet, names: Iterable[str]) -> tuple[int, ...]:
    """Indices of the modules that define one of `names` for others to bind to; a program's copies do not count."""
    wanted = tuple(names)
    return tuple(index for index, module in enumerate(load_set.modules) if _defines_any(module.image, wanted))


def _defines_any(image: Image, names: tuple[str, ...]) -> bool:
    defined = [name for name in names if image.symbols.exported(name)]
    return len(defined) > len(_list_copies(image, defined))


def state_of(spec: SymbolSpec, settings: Settings) -> State | None:
    """The state that `spec` is a symbol of, for messages that name what is at stake."""
    for state in settings.states:
        for other in state.symbols:
            if other.text == spec.text or set(other.mangled) & set(spec.mangled):
                return state
    return None


def state_owned_by(patterns: Iterable[str], settings: Settings) -> State | None:
    """The state whose owner a role's `need` list asks for, if any."""
    wanted = set(patterns)
    return next((state for state in settings.states if wanted & set(state.owner)), None)


def missing_libraries(load_set: LoadSet, settings: Settings) -> tuple[Unresolved, ...]:
    """The unresolved NEEDED entries that could hold a definition nobody has seen.

    Libraries the policy declares external are taken not to hold any state.
    """
    return tuple(u for u in load_set.unresolved if not matches_any(u.needed, settings.external))


def is_loader_external(load_set: LoadSet, settings: Settings) -> bool:
    """Whether the policy leaves the loader, which is missing here, to the target machine: by itself, or with libc."""
    if load_set.interpreter is None:
        return False
    wanted = load_set.interpreter.needed
    libc = (unresolved.needed for unresolved in load_set.unresolved if unresolved.needed.startswith("libc."))
    return any(matches_any(name, settings.external) for name in (wanted, wanted.rpartition("/")[2], *libc))


def is_opened(index: int, load_set: LoadSet) -> bool:
    """Whether module `index` is said to be opened; it may have been loaded before, because another file needs it.

    What only dlopen metadata names is a dependency like others, and no plug-in of the program.
    """
    return any(opened.module == index and not opened.noted for opened in load_set.opened)


def roles_of(index: int, load_set: LoadSet, settings: Settings) -> tuple[Role, ...]:
    """The roles that module `index` of the load set plays."""
    roles = _answers_about(load_set, settings).roles
    known = roles.get(index)
    if known is None:
        known = roles[index] = tuple(
            role
            for role in settings.roles
            if plays(role, index, load_set) and not (index == 0 and stands_apart(role, load_set, settings) is not None)
        )
    return known


def stands_apart(role: Role, load_set: LoadSet, settings: Settings) -> str | None:
    """Why the root, a program found in a directory, has nothing to do with what the importing `role` shares, or None.

    Its load set must touch none of the states. Then nobody here may touch them either: a directory of programs that
    are not about the state holds many with thread-local storage (every static glibc program, every Rust program). Or
    it cannot hide a copy: a copy of a thread_local takes a PT_TLS segment, which neither hidden visibility nor strip
    removes. A program that the user names is never let off, nor one that the role's `files` name.
    """
    if load_set.named or not role.import_ or role.files != EVERY_FILE or not plays(role, 0, load_set):
        return None
    apart = _answers_about(load_set, settings).apart
    if id(role) not in apart:
        apart[id(role)] = _find_distance(role, load_set, settings)
    return apart[id(role)]


def _find_distance(role: Role, load_set: LoadSet, settings: Settings) -> str | None:
    if load_set.root.symbols.unseen is not None:
        return None
    found = {state.name: state for spec in role.import_ if (state := state_of(spec, settings)) is not None}
    states = tuple(found.values())
    if not states or any(_touches(m.image, s) or private_symbols(m, s) for s in states for m in load_set.modules):
        return None
    here = [state for state in states if _is_touched_beside(load_set.beside, state)]
    if not here:
        return "nothing it loads touches the state, and no other file here does"
    if load_set.root.tls is None and all(state.thread_local for state in here):
        return "it has no thread-local storage, and nothing it loads touches the state"
    return None


@keep_answers
def _touches(image: Image, state: State) -> bool:
    """Whether `image` imports or defines a symbol of `state`, or is called like an owner or needs one."""
    return any(matches_any(name, state.owner) for name in (image.name, *image.needed)) or uses_any(image, state)


@keep_answers
def _is_touched_beside(images: tuple[Image, ...], state: State) -> bool:
    """Whether one of `images` touches `state`. A file that cannot be read is reported on its own."""
    for image in images:
        with suppress(MalformedElfError, UnreadableFileError):
            if _touches(image, state) or _hidden_symbols(image, state):
                return True
    return False


def plays(role: Role, index: int, load_set: LoadSet) -> bool:
    """Whether module `index` meets every condition of `role`, or may meet them as far as can be seen."""
    if role.roots_only and index != 0 and not is_opened(index, load_set):
        return False
    return _suits(load_set.modules[index].image, role)


@keep_answers
def _suits(image: Image, role: Role) -> bool:
    """Whether `image` is a file that plays `role` wherever it is loaded."""
    if image.kind is FileKind.STAND_IN:
        return False
    if role.kind != "any" and (role.kind == "executable") is not image.is_executable:
        return False
    if not means_file(image, role.files):
        return False
    if role.when_need and not needs_any(image, role.when_need):
        return False
    if not role.when_import or any(list_imports(image, spec) for spec in role.when_import):
        return True
    return image.symbols.unseen is not None  # it may import them; what is asked of it then comes out unknown
