"""LC401 split-state: one process would hold several copies of state that must exist once.

## What it checks

For every state of the policy: which definition each use of its symbols would be bound to, in every file of the load
set (the root, everything it needs, and the `--dlopen` roots with what they need), by ld.so's own rules. Uses that end
up in two different files are a split. So is a definition that no relocation of its file refers to, beside another
file's: ld.so cannot lead the uses inside that file (if there are any: confidence medium) to the other one. Two owner
libraries in one process, and uses that are bound to another file's copy beside the owner's, are a split whatever
ld.so makes of them today, also where their functions are weak (as NCCL's and MPI's are): data that only its own file
knows stays with each. Several definitions that all uses can be led to one of are one copy: that is information, also
where it is not the owner's, if all are what a header puts into every file: weak or STB_GNU_UNIQUE variables (inline
variables, static members of templates), and C++ functions with such variables in them. A C++ inline function that
several files define, each for itself, is one copy where ld.so merges the static variables inside it (STB_GNU_UNIQUE)
and its code reaches no other variable of its file (else `unknown`; other code than x86-64's is not read). ld.so does
not merge with `-fno-gnu-unique`, hidden or protected visibility, with the `-Bsymbolic` of gold and lld, nor with musl.

A weak import that finds no definition is no use of any copy. Where a role demands it, LC402 reports it, and LC401 does
not apply to what the others share.

An object of the owner that the program has a copy of (R_*_COPY, what compilers make by default of a variable of a
library) is one with that copy, under all names that it has in both, where everybody uses the copy. It is not where
somebody uses it by a name that the program does not export, or the owner's linker has bound the owner's uses
(`--dynamic-list`, `-Bsymbolic`, a hidden alias): its code is searched for these where no relocation refers to the
object, and the state is `unknown` where that does not tell (other code than x86-64's, and a larger object beside which
the owner makes addresses).

Uses that reach several versions of one file's symbols (`name@V1`, `name@@V2`, at different addresses) are `unknown`:
the tables do not tell whether these share one variable. So are weak C++ functions without a variable in sight, where
the uses are bound to another file's beside the owner's: they may be a header's inline functions, or have data of their
own. So is everything in a process with a filter (DT_FILTER, DT_AUXILIARY), for linkcheck does not follow it.

## Why it matters

Each copy keeps its own value. Nothing crashes: one part of the program writes one copy, another part reads the other.

## Bad

```console
$ g++ -c -fPIC caller_stream.cpp && ar rcs libextension_cuda.a caller_stream.o
$ g++ runner.cpp libextension_cuda.a -o runner                           # a copy in the program
$ g++ -shared -fPIC delegate.cpp libextension_cuda.a -o libdelegate.so    # and one in the library that it opens
$ linkcheck verify runner --dlopen libdelegate.so
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ g++ -shared -fPIC delegate.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o libdelegate.so
$ linkcheck verify runner --dlopen libdelegate.so
```

## Causes and remedies

* A static archive in two files: link the shared owner in both.
* Two builds of the owner under two names: ship one.
* A definition in a header: only declare it there, and define it in one source file of the owner.
* An exported copy in a library linked with `-Bsymbolic-functions`, or compiled with `-fno-semantic-interposition` or
  with link-time optimisation: link the shared owner instead.

## Options

`[[state]]` in the policy; `--dlopen PATH`, `[[dlopen]]` for libraries that no DT_NEEDED names.

## What it cannot see

Hidden copies in stripped files (LC301 and LC404 look for the missing import; beside what LC301 finds a copy is only
called the only one in sight), and what an unresolved library brings:
while one is missing, a single copy is `unknown`, not a pass. Several are `unknown`, too, where that library may lead
all uses to one: it may define the symbols itself, or need one of the copies, and come before what the uses are bound to
now. They are an error where it cannot: a hidden copy, with glibc a protected one, one that is linked with `-Bsymbolic`,
or a search in which it comes later. It counts as a file of its own unless its name says otherwise, and as none that
brings another file under the name of one that is loaded. A file that exports a copy and leaves only some of its uses to
ld.so: one relocation for one of the symbols is taken as the sign that all of its uses can be led elsewhere.
That an inline function reaches an inline variable or a static member of a template, which ld.so merges, too, and inline
functions that the compiler has put into their callers: name the variable in `symbols`, not the function (a static one
inside of it is `get()::value`). What exported functions that an inline function calls hand out. Constructors: two files
that register the same thing with one registry do so twice, whatever their symbols are bound to (`forbid-import`,
`forbid-export` of a `[[role]]`: LC204, LC302). RTLD_DEEPBIND counts where a `[[dlopen]]` says `deepbind`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.scope import describe_filters
from linkcheck.model import (
    BindingKind,
    Check,
    Confidence,
    Finding,
    Location,
    Outcome,
    Severity,
    Verdict,
)
from linkcheck.rules.ownership import (
    definers,
    is_owner,
    judge_copies,
    judge_copies_if_global,
    missing_libraries,
    owner_modules,
    roles_of,
    state_names,
    state_of,
    uses_any,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    SCOPE_OF_OPENED,
    chain_text,
    consequence,
    counted,
    link_remedy,
    listed,
    not_found,
    shown,
)
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.loader.state import Judgement
    from linkcheck.model import Binding, LoadSet, RuleResult, Unresolved
    from linkcheck.policy.settings import Settings, State
    from linkcheck.rules.header_code import Definitions

META = RuleMeta("LC401", "split-state", "one process would hold several copies of one state", Severity.ERROR, "0.1")


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield one result for each state."""
    for state in settings.states:
        if state.only_with_owner and not owner_modules(state, load_set) and not describe_filters(load_set):
            reason = f"no owner of the {state.name} is loaded"
            yield Check(META.code, load_set.root.path, Outcome.NOT_APPLICABLE, reason)
        else:
            yield _judge(load_set, state, settings)


def _judge(load_set: LoadSet, state: State, settings: Settings) -> RuleResult:
    subject = load_set.root.path
    names = state_names(state, load_set)
    judgement = judge_copies(state, load_set, settings)
    if judgement.verdict in (Verdict.SPLIT, Verdict.SPLIT_UNLESS_GLOBAL):
        return _split(load_set, state, judgement, names, missing_libraries(load_set, settings))
    if describe_filters(load_set):
        return Check(META.code, subject, Outcome.UNKNOWN, judgement.reason)
    missing = missing_libraries(load_set, settings)
    if not judgement.touching and judgement.verdict is not Verdict.UNKNOWN:
        return Check(META.code, subject, Outcome.NOT_APPLICABLE, f"nothing loaded touches the {state.name}")
    unseen = next((m.image for m in load_set.modules if m.image.symbols.unseen is not None), None)
    if unseen is not None:
        return Check(META.code, subject, Outcome.UNKNOWN, f"{unseen.path}: {unseen.symbols.unseen}")
    if missing:
        return _judge_incomplete(load_set, state, judgement, names, missing)
    if not judgement.providers:
        return Check(META.code, subject, Outcome.NOT_APPLICABLE, f"no loaded file defines the {state.name}")
    if judgement.verdict is Verdict.ABSENT:
        return _absent(load_set, state)
    # An object that the program only makes room for (R_*_COPY) still belongs to the library it is copied from.
    holder = next((b.copy_of for b in judgement.bindings if b.copy_of is not None), judgement.providers[0])
    others = [index for index in definers(load_set, names) if index != holder]
    if others:
        return _several(load_set, state, judgement, names, (holder, *others))
    if judgement.doubt:
        return Check(META.code, subject, Outcome.UNKNOWN, judgement.doubt)
    hiding = _list_hiding(load_set, state, settings)
    is_sure = is_owner(load_set.modules[holder].image, state, load_set) and not hiding
    copy = f"{'one copy' if is_sure else 'the only copy in sight'} of the {state.name}: {_path(load_set, holder)}"
    if hiding:
        copy += f"; {_paths(load_set, hiding)} must import it and {'does' if len(hiding) == 1 else 'do'} not (LC301)"
    unbound = [b for b in judgement.bindings if b.provider is None]  # weak ones, or the verdict would be another
    if unbound:
        return _judge_unbound(load_set, state, settings, unbound, copy)
    return Check(META.code, subject, Outcome.PASS, copy)


def _list_hiding(load_set: LoadSet, state: State, settings: Settings) -> list[int]:
    """The modules of which LC301 says that they may hide a copy: a role demands an import, and there is none."""
    demanding = {id(r) for r in settings.roles if any(state_of(spec, settings) is state for spec in r.import_)}
    return [
        index
        for index, module in enumerate(load_set.modules)
        if any(id(role) in demanding for role in roles_of(index, load_set, settings))
        and not uses_any(module.image, state)
        and not is_owner(module.image, state, load_set)
    ]


def _judge_incomplete(
    load_set: LoadSet, state: State, judgement: Judgement, names: Sequence[str], missing: Sequence[Unresolved]
) -> RuleResult:
    """The result while `missing` may still change how many copies there are."""
    copies = definers(load_set, names)
    if len(_owners_among(load_set, state, copies)) > 1:
        return _several(load_set, state, judgement, names, copies)  # whatever the missing ones bring
    if judgement.mergers:
        used = listed([_path(load_set, index) for index in judgement.providers])
        brings = "it defines or brings" if len(judgement.mergers) == 1 else "they define or bring"
        reason = (
            f"{listed(judgement.mergers)} not found, and what {brings} may lead all uses of the "
            f"{state.name} to one copy: without it they end up in {used}"
        )
    else:
        reason = f"{not_found(sorted({u.needed for u in missing}))} may hold another copy of the {state.name}"
    return Check(META.code, load_set.root.path, Outcome.UNKNOWN, reason)


def _judge_unbound(
    load_set: LoadSet, state: State, settings: Settings, unbound: Sequence[Binding], copy: str
) -> RuleResult:
    """The result where all uses end up in one `copy` but those of `unbound`, which are weak and find no definition."""
    from linkcheck.rules.demands import find_demand

    subject = load_set.root.path
    widest = judge_copies_if_global(state, load_set, settings).bindings
    never = {(b.module, b.symbol) for b in widest if b.provider is None}
    certain = [b for b in unbound if (b.module, b.symbol) in never]
    if any(find_demand(b, load_set, settings) for b in certain):
        return _absent(load_set, state)
    if any(find_demand(b, load_set, settings) for b in unbound):
        reason = f"whether every file that must use the {state.name} finds a definition of it hangs on "
        return Check(META.code, subject, Outcome.UNKNOWN, reason + SCOPE_OF_OPENED)
    if certain:
        symbols = shown(unique(b.symbol for b in certain), settings)
        users = _paths(load_set, tuple(dict.fromkeys(b.module for b in certain)))
        copy += f"; no definition is found for the weak import of {symbols} in {users}"
    return Check(META.code, subject, Outcome.PASS, copy)


def _absent(load_set: LoadSet, state: State) -> RuleResult:
    reason = f"not every file that uses the {state.name} finds a definition of it"
    # What the program of a library on its own would define is not known, and LC402 does not ask.
    reason += " (LC402)" if load_set.root.is_executable else ""
    return Check(META.code, load_set.root.path, Outcome.NOT_APPLICABLE, reason)


def _several(
    load_set: LoadSet, state: State, judgement: Judgement, names: Sequence[str], copies: Sequence[int]
) -> RuleResult:
    """The result where each of `copies` has definitions, and all uses end up in the first."""
    from linkcheck.rules.header_code import describe_definitions

    holder = copies[0]
    definitions = describe_definitions(load_set, copies, names)
    owners = _owners_among(load_set, state, copies)
    problem = _owner_problem(load_set, owners, holder)
    if problem and len(owners) == 1 and definitions.from_header is None:
        return Check(META.code, load_set.root.path, Outcome.UNKNOWN, _unknown_origin(load_set, state, copies))
    if len(owners) == 1 and definitions.from_header:
        problem = ""  # every file that includes the header has it, so that the owner's is not the one is no fault
    if problem:
        lines = [f"    {chain_text(load_set, index)}" for index in copies]
        message = "\n".join([f"Several files of one process define the {state.name}:", *lines, problem])
        return _finding(load_set, state, copies, message + consequence(state), link_remedy(state), judgement)
    if judgement.doubt:
        return Check(META.code, load_set.root.path, Outcome.UNKNOWN, judgement.doubt)
    all_bound = all(b.provider is not None for b in judgement.bindings)
    return _merged(load_set, state, copies, definitions, all_bound=all_bound)


def _owners_among(load_set: LoadSet, state: State, copies: Sequence[int]) -> list[int]:
    return [index for index in copies if is_owner(load_set.modules[index].image, state, load_set)]


def _owner_problem(load_set: LoadSet, owners: Sequence[int], holder: int | None) -> str:
    """What is wrong with the `owners` among the files that define a state, whatever ld.so makes of it; or nothing.

    `holder` is the file that all uses end up in, None when they end up in several.
    """
    paths = _paths(load_set, owners)
    if len(owners) > 1:
        return f"{paths} are {len(owners)} owner libraries in one process: only one may be there."
    if owners and holder is not None and holder not in owners:
        return f"The uses are bound to the copy in {_path(load_set, holder)}, beside the owner's in {paths}."
    return ""


def _unknown_origin(load_set: LoadSet, state: State, copies: Sequence[int]) -> str:
    return (
        f"{_paths(load_set, copies)} define the {state.name} by weak functions, and the uses are not bound to the "
        "owner's: whether these are inline functions of a header, and which variable they reach, cannot be seen (name "
        "the variable in `symbols`)"
    )


def _split(
    load_set: LoadSet, state: State, judgement: Judgement, names: Sequence[str], missing: Sequence[Unresolved]
) -> Finding:
    from linkcheck.rules.header_code import describe_definitions, header_remedy

    copies = judgement.providers
    sure = {
        b.provider
        for b in judgement.bindings
        if b.kind is not BindingKind.DEFINITION or b.provider != b.module or b.module not in judgement.fixed
    }
    doubtful = [index for index in copies if index not in sure]
    only = [index for index in copies if index not in doubtful]
    owners = _owners_among(load_set, state, copies)
    problem = _owner_problem(load_set, owners, only[0] if len(only) == 1 else None)
    users = {copy: [b.module for b in judgement.bindings if b.provider == copy and b.module != copy] for copy in copies}
    lines = []
    for copy in copies:
        used = listed([_path(load_set, index) for index in dict.fromkeys(users[copy])])
        note = f" (used by {used})" if used else ""
        if copy in doubtful:
            note = " (no relocation refers to it: what uses it inside this file cannot be bound to another)"
        lines.append(f"    {chain_text(load_set, copy)}{note}")
    message = f"One process would hold {counted(len(copies), 'separate copy', 'separate copies')} of the {state.name}"
    if judgement.verdict is Verdict.SPLIT_UNLESS_GLOBAL:
        message += " (one only if everything were opened with RTLD_GLOBAL)"
    after = f"{problem}{consequence(state)}".strip()
    stay = [f"Whatever {listed(sorted({u.needed for u in missing}))} may bring (not found), they do not become one."]
    message = "\n".join([f"{message}:", *lines, *(stay if missing else []), *([after] if after else [])])
    confidence = Confidence.MEDIUM if doubtful and len(only) < 2 and not problem else Confidence.HIGH
    definitions = describe_definitions(load_set, copies, names)
    remedy = header_remedy(state, definitions) if definitions.from_header and len(owners) < 2 else link_remedy(state)
    return _finding(load_set, state, copies, message, remedy, judgement, confidence)


def _merged(
    load_set: LoadSet, state: State, copies: Sequence[int], definitions: Definitions, *, all_bound: bool
) -> Finding:
    from linkcheck.rules.header_code import header_remedy

    holder, *others = copies
    paths = _paths(load_set, others)
    verb = "defines" if len(others) == 1 else "define"
    found = "" if all_bound else " that finds a definition"
    message = (
        f"{paths} also {verb} the {state.name}, but every use in this process{found} is bound to the copy in "
        f"{_path(load_set, holder)}. "
    )
    message += (
        "ld.so merges them in every load order and scope (STB_GNU_UNIQUE)."
        if definitions.merged
        else "That holds only for this load order and scope."
    )
    remedy = header_remedy(state, definitions) if definitions.from_header else link_remedy(state)
    # Nothing has to change where no load order can part them.
    remedy = "" if definitions.from_header and definitions.merged else remedy
    return _finding(load_set, state, copies, message, remedy, None)


def _finding(
    load_set: LoadSet,
    state: State,
    copies: Sequence[int],
    message: str,
    remedy: str,
    judgement: Judgement | None,
    confidence: Confidence = Confidence.HIGH,
) -> Finding:
    paths = [_path(load_set, index) for index in copies]
    verdict = judgement.verdict if judgement else Verdict.ONE
    return META.finding(
        message,
        remedy,
        Location(load_set.root.path, state.name),
        related=tuple(Location(path) for path in paths),
        evidence={"state": state.name, "verdict": verdict.value, "copies": list(paths), "owner": list(state.owner)},
        severity=META.severity if judgement else Severity.INFO,
        confidence=confidence,
    )


def _path(load_set: LoadSet, index: int) -> str:
    return load_set.modules[index].image.path


def _paths(load_set: LoadSet, indices: Sequence[int]) -> str:
    return listed([_path(load_set, index) for index in indices])


RULE = Rule(META, __doc__ or "", check_load_set=check)
