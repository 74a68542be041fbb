"""LC903 unused-policy-entry: an entry of the policy is about no file of this run.

## What it checks

Every `[[state]]`, `[[role]]` and `[[dlopen]]` of your own policy files (never those of a built-in profile). One that is
about no file of the run is reported, as a warning, at the policy file:

* a role that no file plays: none is meant by its `files`, is of its `kind`, and meets its `when-…` conditions;
* a state of which no file imports or defines any symbol, or with `only-with-owner` one whose owner is nowhere loaded,
  unless a role that some file plays asks for its symbols: then the rules about the role speak up;
* a state whose `owner` means no file that is loaded or needed, although a library exports its symbols and another file
  imports them, unless a role that some file plays asks for them: then LC303 speaks up;
* a dlopen whose `from` means no file.

## Why it matters

A typing error in a pattern or a symbol turns a gate off, and a gate that is off says PASS. So does a pattern that was
right until somebody renamed the file.

## Bad

```toml
# linkcheck.toml
extends = ["executorch-caller-stream"]

[[role]]
name = "embedded runner"
files = ["runer"]
forbid-need = ["libpython3*"]
```

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Good

```toml
# linkcheck.toml
extends = ["executorch-caller-stream"]

[[role]]
name = "embedded runner"
files = ["runner"]
forbid-need = ["libpython3*"]
```

```console
$ g++ -shared -fPIC caller_stream.cpp -Wl,-soname,libextension_cuda.so -o libextension_cuda.so
$ g++ runner.cpp -L. -lextension_cuda -Wl,-rpath,'$ORIGIN' -o runner
$ linkcheck verify runner
```

## Causes and remedies

* A typing error, or a file that was renamed or moved: correct the entry. Patterns with a slash are compared with the
  path as the report shows it, those without one with the file's name and SONAME.
* The symbol is spelled otherwise than `nm -DC` writes it: copy it from there.
* Several runs share the policy, and this entry is for another one: ignore this rule for the run, `--ignore LC903`, or
  for all of them, and let one run over everything be the one that warns.

## Options

`ignore = ["LC903"]` in the policy, or `--ignore LC903`.

## What it cannot see

Whether each pattern or symbol of an entry is right: one that fits is enough. A file whose symbols cannot be seen or
compared may be about any state, so nothing is said of a state then. Only `verify`
asks: the other commands look at a part of what a policy is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, UndemangledNameError, UnreadableFileError
from linkcheck.model import Finding, Location, Severity
from linkcheck.policy.patterns import matches_any, means_file
from linkcheck.policy.settings import ROOT_OWNER
from linkcheck.policy.symbols import is_pattern
from linkcheck.rules.ownership import (
    defined_symbols,
    imported_symbols,
    list_imports,
    needs_any,
    owner_modules,
    plays,
    private_symbols,
    state_of,
    uses_any,
)
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import counted, listed, name_symbol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.model import Image, LoadSet
    from linkcheck.policy.settings import Role, Settings, State
    from linkcheck.rules.rule import PolicyUse

META = RuleMeta(
    "LC903", "unused-policy-entry", "an entry of the policy is about no file of this run", Severity.WARNING, "0.1"
)
_REMEDY = "Correct the entry if it should be about a file of this run; if it is for other runs, give this one {option}."
_UNOWNED_REMEDY = (
    "Correct `owner` if that file is the owner. If it has a copy, link it to the owner instead (LC302); if copies do "
    "not matter where no owner is loaded, say only-with-owner = true, or give this run {option}."
)


def check_policy(use: PolicyUse, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each entry of the user's own files that is about nothing that `use` tells of."""
    if not use.load_sets:
        return
    for role in settings.roles:
        if role.source and (why := _why_unplayed(role, use)):
            yield _finding("role", role.name, role.source, f"applies to no file of this run: {why}")
    for state in settings.states:
        if not state.source or _is_demanded(state, use, settings):
            continue
        if why := _why_untouched(state, use.load_sets):
            yield _finding("state", state.name, state.source, why)
        elif why := _why_unowned(state, use.load_sets, settings):
            yield _finding("state", state.name, state.source, why, _UNOWNED_REMEDY)
    for source, from_ in dict.fromkeys((edge.source, edge.from_) for edge in use.unmade if edge.source):
        yield _finding("dlopen", from_, source, f"is made by no file of this run: it means none of {_files(use)}")


def _finding(table: str, name: str, source: str, why: str, remedy: str = _REMEDY) -> Finding:
    return META.finding(
        f"the [[{table}]] “{name}” {why}",
        remedy.format(option=f"--ignore {META.code}"),
        Location(source),
        evidence={"table": table, "entry": name},
    )


def _why_unplayed(role: Role, use: PolicyUse) -> str:
    """The first condition of `role` that no file meets; "" when one plays it, or may."""
    try:
        if any(plays(role, index, one) for one in use.load_sets for index in range(len(one.modules))):
            return ""
        return _unmet_condition(role, use)
    except (MalformedElfError, UnreadableFileError, UndemangledNameError):
        return ""


def _unmet_condition(role: Role, use: PolicyUse) -> str:
    images = _images(use.load_sets)
    meant = [image for image in images if means_file(image, role.files)]
    if not meant:
        return f"`files` = {listed(role.files, 'or')} means none of {_files(use)}"
    of_kind = [image for image in meant if role.kind in ("any", "executable" if image.is_executable else "library")]
    those = f"`files` means {counted(len(meant), 'file')}, and none"
    if not of_kind:
        return f"{those} is of the kind {role.kind}"
    if role.when_need and not any(needs_any(image, role.when_need) for image in of_kind):
        return f"{those} needs {listed(role.when_need, 'or')} (when-need)"
    if role.when_import and not any(list_imports(image, spec) for image in of_kind for spec in role.when_import):
        return f"{those} imports {listed([spec.text for spec in role.when_import], 'or')} (when-import)"
    return f"{those} meets both of its conditions"


def _is_demanded(state: State, use: PolicyUse, settings: Settings) -> bool:
    """Whether some file must import or export `state`: when none does, the rules about that speak up (LC301, LC306)."""
    return any(
        not _why_unplayed(role, use)
        for role in settings.roles
        if any(state_of(spec, settings) is state for spec in (*role.import_, *role.export))
    )


def _why_untouched(state: State, load_sets: Sequence[LoadSet]) -> str:
    """What says that no file of the run is about `state`; "" when one is, or may be."""
    if state.only_with_owner and not any(owner_modules(state, one) for one in load_sets):
        return f"is judged only with its owner, and no file of this run is {listed(state.owner, 'or')}"
    seen: set[str] = set()
    for load_set in load_sets:
        for module in load_set.modules:
            if module.image.path in seen:
                continue
            seen.add(module.image.path)
            # Whoever is called like an owner, or needs one, is no proof that the symbols are spelled right.
            try:
                if uses_any(module.image, state) or private_symbols(module, state):
                    return ""
            except (MalformedElfError, UnreadableFileError, UndemangledNameError):
                return ""
            if module.image.symbols.unseen is not None:
                return ""
    why = f"is touched by no file of this run: none imports or defines {listed([s.text for s in state.symbols], 'or')}"
    if any(is_pattern(spec) for spec in state.symbols):
        why += " (a pattern is looked for in .dynsym only, not among the hidden symbols of .symtab)"
    return why


def _why_unowned(state: State, load_sets: Sequence[LoadSet], settings: Settings) -> str:
    """What says that `owner` of `state` is misspelt: no such file anywhere, and a library that exports the symbols.

    "" also where a file needs an owner, which may be missing, external, or called otherwise (LC202, LC104), and where
    programs alone may define the state: one that links everything into itself has no owner beside it. Nor where nobody
    imports it from another file: then all that define it may have linked a copy on purpose, and LC401 counts them.
    """
    if ROOT_OWNER in state.owner:
        return ""
    images = _images(load_sets)
    wanted = (unresolved.needed for one in load_sets for unresolved in one.unresolved)
    if any(owner_modules(state, one) for one in load_sets) or any(needs_any(image, state.owner) for image in images):
        return ""
    if any(matches_any(name.rpartition("/")[2], state.owner) for name in wanted):
        return ""
    try:
        definer = next((one for one in images if not one.is_executable and defined_symbols(one, state)), None)
        if definer is None or not any(
            imported_symbols(one, state) and not defined_symbols(one, state) for one in images
        ):
            return ""
        symbol = name_symbol(defined_symbols(definer, state)[0], settings)
    except (MalformedElfError, UnreadableFileError, UndemangledNameError):
        return ""
    return (
        f"has an owner that no file of this run is or needs, {listed(state.owner, 'or')}, and {definer.path} defines "
        f"{symbol}: is {definer.name} the owner?"
    )


def _images(load_sets: Sequence[LoadSet]) -> tuple[Image, ...]:
    """Every image of the run, once."""
    return tuple({module.image.path: module.image for one in load_sets for module in one.modules}.values())


def _files(use: PolicyUse) -> str:
    return counted(len(_images(use.load_sets)), "file")


RULE = Rule(META, __doc__ or "", check_policy=check_policy)
