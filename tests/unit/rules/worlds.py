"""Load sets made of plain values, for tests of rules: no file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import (
    FileKind,
    FoundBy,
    Image,
    LoadSet,
    Module,
    Opened,
    Outcome,
    RuleResult,
    Symbol,
    SymbolBinding,
    SymbolType,
    Target,
    ThreadLocalSegment,
    Unresolved,
    Visibility,
)
from linkcheck.model import Finding as Finding
from linkcheck.model.listed_symbols import ListedSymbols
from linkcheck.policy.load import load_settings
from linkcheck.policy.settings import Role, Settings, State, SymbolSpec
from linkcheck.rules import ALL_CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

X86_64 = Target(62, 64, "little")
OWNER = "libextension_cuda.so"
ACCESSOR = "_ZN10executorch9extension4cuda15getCallerStreamEv"
GUARD = "_ZN10executorch9extension4cuda17CallerStreamGuardC1EP11CUstream_st"
GUARD_BASE = "_ZN10executorch9extension4cuda17CallerStreamGuardC2EP11CUstream_st"
GUARD_END = "_ZN10executorch9extension4cuda17CallerStreamGuardD1Ev"
GUARD_END_BASE = "_ZN10executorch9extension4cuda17CallerStreamGuardD2Ev"
CONSUMER_SYMBOLS = (ACCESSOR, GUARD, GUARD_END)
OWNER_SYMBOLS = (ACCESSOR, GUARD, GUARD_BASE, GUARD_END, GUARD_END_BASE)
REGISTER_BACKEND = "_ZN10executorch7runtime16register_backendERKNS0_7BackendE"
GET_BACKEND = "_ZN10executorch7runtime17get_backend_classEPKc"
STREAM = "caller stream"

#: What users are judged by when they say nothing.
PROFILE = load_settings(rule_codes=ALL_CODES, profile="executorch-caller-stream", discover=False)

#: A state for small policies.
TABLE = State(
    "table",
    owner=("libtable.so*",),
    symbols=(SymbolSpec("table_get", ("table_get",)), SymbolSpec("table_set", ("table_set",))),
    thread_local=True,
    consequence="entries are lost",
    cmake_target="acme::table",
    link_flag="-ltable",
)


def symbol(name: str, *, defined: bool) -> Symbol:
    return Symbol(name, SymbolBinding.GLOBAL, SymbolType.FUNC, Visibility.DEFAULT, defined, int(defined) * 64, 8)


def image(
    path: str,
    *,
    kind: FileKind = FileKind.SHARED_OBJECT,
    soname: str | None = None,
    needed: Sequence[str] = (),
    imports: Iterable[str] = (),
    exports: Iterable[str] = (),
    private: Iterable[str] = (),
    unreferenced: Iterable[str] = (),
    filters: Sequence[str] = (),
    unseen: str | None = None,
    tls: int = 0,
) -> Image:
    listed = tuple(symbol(n, defined=False) for n in imports) + tuple(symbol(n, defined=True) for n in exports)
    return Image(
        path,
        kind,
        X86_64,
        soname=soname,
        needed=tuple(needed),
        tls=ThreadLocalSegment(0, tls, 8) if tls else None,
        filters=tuple(filters),
        symbols=ListedSymbols(listed, unseen, frozenset(private), unreferenced=frozenset(unreferenced)),
    )


def runner(path: str = "bin/runner", **facts: object) -> Image:
    defaults: dict[str, object] = {"kind": FileKind.PIE, "needed": (OWNER,), "imports": CONSUMER_SYMBOLS}
    return image(path, **{**defaults, **facts})  # type: ignore[arg-type]


def owner(path: str = "lib/libextension_cuda.so", **facts: object) -> Image:
    defaults: dict[str, object] = {"soname": OWNER, "exports": OWNER_SYMBOLS, "tls": 16}
    return image(path, **{**defaults, **facts})  # type: ignore[arg-type]


def load_set(
    root: Image,
    *others: Image,
    missing: Sequence[str] = (),
    dlopened: Sequence[Image] = (),
    opened_global: Sequence[Image] = (),
    system: Sequence[Image] = (),
    unresolved: Sequence[Unresolved] = (),
) -> LoadSet:
    """`others` and `system` are resolved by SONAME from whoever needs them; what nobody needs hangs below the root.

    `dlopened` are opened with RTLD_LOCAL, then `opened_global` with RTLD_GLOBAL; an image that is also in `others` was
    loaded before. The root needs each of `missing`, and nothing of that name is anywhere.
    """
    new = [one for one in (*dlopened, *opened_global) if all(one is not other for other in others)]
    images = [root, *others, *system, *new]
    by_name = {other.name: index for index, other in enumerate(images) if index}
    position = {id(one): index for index, one in enumerate(images)}
    modules = []
    for index, this in enumerate(images):
        needing = [i for i, other in enumerate(images) if this.name in other.needed and i != index]
        opened = any(this is one for one in new)
        found = FoundBy.DEFAULT if any(this is one for one in system) else FoundBy.RUNPATH
        modules.append(
            Module(
                this,
                needed_by=None if index == 0 or opened else (needing[0] if needing else 0),
                requested_as=this.name,
                found_by=FoundBy.ROOT if index == 0 else FoundBy.DLOPEN if opened else found,
                scope="local" if any(this is one for one in dlopened) else "global",
                loaded_for=index if opened else 0,
                dependencies=tuple(by_name.get(needed) for needed in this.needed),
            )
        )
    absent = tuple(Unresolved(0, name, ("lib", "/usr/lib")) for name in missing)
    requests = [(one, False) for one in dlopened] + [(one, True) for one in opened_global]
    return LoadSet(
        tuple(modules),
        (*absent, *unresolved),
        tuple(Opened(position[id(one)], global_=is_global) for one, is_global in requests),
    )


def role(**demands: object) -> Role:
    """A role called "part" of every file, with these demands."""
    return Role("part", **demands)  # type: ignore[arg-type]


def small_policy(*roles: Role, states: Sequence[State] = (), external: Sequence[str] = ()) -> Settings:
    return Settings(profile="test", states=tuple(states), roles=roles, external=tuple(external))


def spec(name: str) -> SymbolSpec:
    return SymbolSpec(name, (name,))


def only(results: Iterable[RuleResult]) -> RuleResult:
    (result,) = results
    return result


def only_finding(results: Iterable[RuleResult]) -> Finding:
    """The one finding among `results`; they may hold checks as well."""
    (finding,) = findings(results)
    return finding


def checks(results: Iterable[RuleResult], outcome: Outcome | None = None) -> list[tuple[str, Outcome, str]]:
    """Subject, outcome and reason of each check, or of those with `outcome`."""
    return [
        (r.subject, r.outcome, r.reason) for r in results if not isinstance(r, Finding) and outcome in (None, r.outcome)
    ]


def findings(results: Iterable[RuleResult]) -> list[Finding]:
    return [r for r in results if isinstance(r, Finding)]


def outcomes(results: Iterable[RuleResult]) -> list[Outcome]:
    return [Outcome.FINDING if isinstance(r, Finding) else r.outcome for r in results]
