"""LC402 absent-state: files of one program import a state that none of them defines.

## What it checks

For every state of the policy, in the process of a program: each import of the state's symbols, in the scope in which
ld.so would look it up. Where there is no definition in that scope the state is absent for the file that imports it.
A weak import may stay without one: the file can ask for its address, which is 0 then, and go on. It counts where a
`[[role]]` demands that import of the file, and where a program has an address of its own for it, so that it cannot ask.

Where ExecuTorch programs (.pte) are among the inputs: that some process there registers every backend that a program
calls. A backend registers itself, by a static initializer that calls `register_backend` with the backend's id. So some
file of the process must import or define `register_backend`, and have the id among the bytes that are mapped.

## Why it matters

Zero copies hurt as much as two: the program does not start, or the library cannot be opened, with "undefined symbol".
Or nothing is said at all: a file that imports weakly does without the state that it is there to share.
A backend that nobody registers is not missed by any linker: a method that calls it fails to load on the device.

## Bad

```console
$ g++ -shared -fPIC delegate.cpp -o libdelegate.so          # uses the caller stream and links nothing that has it
$ echo 'int main() {}' | g++ -x c++ - -o runner
$ linkcheck verify runner --dlopen libdelegate.so --select LC402
```

## Good

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ -shared -fPIC delegate.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o libdelegate.so
$ echo 'int main() {}' | g++ -x c++ - -o runner
$ linkcheck verify runner --dlopen libdelegate.so --select LC402
```

## Causes and remedies

* The library was linked without the owner (shared libraries may have undefined symbols; `-Wl,-z,defs` forbids it): link
  it.
* The owner is loaded, but only for another dlopened library (RTLD_LOCAL): link it to each library that uses it.
* The import is weak, so that neither the linker nor ld.so misses the owner: declare it without
  `__attribute__((weak))`, or link the owner all the same.
* The backend is in a static archive, and the linker took nothing of it because nothing refers to it: link it with
  `--whole-archive`.
* The backend's library is not linked because nothing refers to it (`--as-needed`), or the program opens it: link it
  with `--no-as-needed`, or name it with `--dlopen`.

## Options

`[[state]]` in the policy; `import` of a `[[role]]` for weak imports; `--dlopen-global PATH` where the program opens the
owner with RTLD_GLOBAL; `--dlopen PATH` for a backend's library.

## What it cannot see

Binding is taken as with RTLD_NOW, `-z now` or LD_BIND_NOW: all that a dlopen brings is bound when it ends. A function
that is bound lazily is looked up at its first call, and may then find what was opened with RTLD_GLOBAL in between; the
finding says so, with confidence medium.

A library that is judged on its own, without its program: what the program provides is not known there. What an
unresolved library would define, for the files whose search it would be in, or a library behind a filter (DT_FILTER,
DT_AUXILIARY), or a file whose symbol table cannot be seen: then the answer is `unknown`. So it is where only a library
that a running process has opened defines the symbols, perhaps with RTLD_GLOBAL (`linkcheck live`).

Whether a file that can register backends, and has an id in it, registers that one: a mere mention of the id counts as
registered. Ids that are put together at run time. What a file with a copy of the runtime registers that was hidden and
stripped: `unknown` where the id is in it. Which of several programs runs a .pte: one that registers all its backends is
enough. Where only libraries are among the inputs, or no program that has to do with ExecuTorch, what is not registered
is `unknown`, and `not-applicable` for a .pte that was found in a directory. Programs inside of archives are not looked
at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import BindingKind, Check, Confidence, Location, Outcome, Severity, Verdict
from linkcheck.rules.ownership import (
    judge_copies,
    judge_copies_if_global,
    missing_libraries,
    owner_modules,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    SCOPE_OF_OPENED,
    chain_text,
    demanded_by,
    link_remedy,
    not_found,
    shown,
)
from linkcheck.text import unique
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from linkcheck.loader.state import Judgement
    from linkcheck.model import Binding, LoadSet, RuleResult, Unresolved
    from linkcheck.policy.settings import Role, Settings, State
    from linkcheck.rules.rule import Bundle

META = RuleMeta("LC402", "absent-state", "files of a program import a state that none defines", Severity.ERROR, "0.1")


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield one result for each state that something in the process of a program imports."""
    if not load_set.root.is_executable:
        return
    for state in settings.states:
        if not state.only_with_owner or owner_modules(state, load_set):
            yield from _judge(load_set, state, settings)


class _Needs:
    """Which imports a definition must be there for."""

    def __init__(self, load_set: LoadSet, settings: Settings) -> None:
        self._load_set = load_set
        self._settings = settings

    def list_imports(self, judgement: Judgement) -> list[Binding]:
        """Those that must not stay unbound."""
        return [b for b in judgement.bindings if b.kind is BindingKind.IMPORT and self._must_be_bound(b)]

    def list_unbound(self, judgement: Judgement) -> list[Binding]:
        return [b for b in self.list_imports(judgement) if b.provider is None]

    def find_role(self, binding: Binding) -> Role | None:
        """The role that demands the import of its file, if any."""
        from linkcheck.rules.demands import find_demand  # only weak imports are asked about

        return find_demand(binding, self._load_set, self._settings)

    def _must_be_bound(self, binding: Binding) -> bool:
        if binding.slot or not binding.weak:
            return True
        return binding.provider is None and self.find_role(binding) is not None


def _judge(load_set: LoadSet, state: State, settings: Settings) -> Iterator[RuleResult]:
    judgement = judge_copies(state, load_set, settings)
    needs = _Needs(load_set, settings)
    imports = needs.list_imports(judgement)
    unbound = needs.list_unbound(judgement)
    subject = load_set.root.path
    if not imports:
        return
    if not unbound:
        if judgement.verdict is Verdict.ONE:
            yield Check(META.code, subject, Outcome.PASS, f"every import of the {state.name} finds a definition")
        return
    missing = missing_libraries(load_set, settings)
    rivals: Mapping[int, tuple[Unresolved, ...]] = {}
    if missing:
        from linkcheck.loader.missing import find_rivals

        rivals = find_rivals(replace(load_set, unresolved=missing), unbound)
    if rivals:
        names = sorted({u.needed for some in rivals.values() for u in some})
        yield Check(META.code, subject, Outcome.UNKNOWN, f"{not_found(names)} may define the {state.name}")
    if judgement.verdict is Verdict.UNKNOWN and not judgement.incomplete:
        if not rivals:
            yield Check(META.code, subject, Outcome.UNKNOWN, judgement.reason)
        return
    from linkcheck.rules.late_definition import tell_late_definition  # only a finding needs it

    unbound = [b for b in unbound if b.module not in rivals]
    widest = needs.list_unbound(judge_copies_if_global(state, load_set, settings))
    certain = {(b.module, b.symbol) for b in widest}
    for index in dict.fromkeys(b.module for b in unbound):
        path = load_set.modules[index].image.path
        absent = [b for b in unbound if b.module == index and (index, b.symbol) in certain]
        if not absent:
            what = shown([b.symbol for b in unbound if b.module == index], settings)
            reason = f"it imports {what}; whether a definition in a file that was opened serves, hangs on "
            yield Check(META.code, path, Outcome.UNKNOWN, reason + SCOPE_OF_OPENED)
            continue
        # ld.so ends at the first that is not weak; what is said of the others would never come about.
        absent = [b for b in absent if not b.weak] or absent
        symbols = [b.symbol for b in absent]
        # Whoever declares it weak asks for its address, which is bound at once.
        late = "" if absent[0].weak else tell_late_definition(load_set, index, unique(symbols))
        yield META.finding(
            f"{path} imports {shown(symbols, settings)} of the {state.name}, and no file that ld.so would look into "
            f"for it defines that (loaded as {chain_text(load_set, index)}): {_tell_end(absent, needs)}.{late}",
            link_remedy(state),
            Location(path, symbols[0]),
            evidence={"state": state.name, "symbols": list(symbols)},
            confidence=Confidence.MEDIUM if late else Confidence.HIGH,
        )


def _tell_end(absent: list[Binding], needs: _Needs) -> str:
    """What comes of `absent`, imports of one file that are all weak or all not."""
    if not absent[0].weak:
        return "it ends in an undefined symbol"
    if all(b.slot for b in absent):
        return "a call of it ends at address 0, and no test sees that, for the program has an address of its own for it"
    role = next((role for b in absent if not b.slot and (role := needs.find_role(b)) is not None), None)
    demand = "" if role is None else f", {demanded_by(role)}"
    return (
        f"the import is weak, so ld.so says nothing and its address is 0, but the file has to share the state{demand}"
    )


def check_bundle(bundle: Bundle, settings: Settings) -> Iterator[RuleResult]:
    """Yield a pass for each program whose backends some process registers, and a finding for each that none does."""
    from linkcheck.rules.registration import check_registrations

    yield from check_registrations(META, bundle, settings)


RULE = Rule(META, __doc__ or "", check_load_set=check, check_bundle=check_bundle)
