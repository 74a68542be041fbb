"""Profiles, the user's policy and the command line -> one Settings. What a key may hold is schema.py's business."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.errors import EMPTY_NAME, UsageProblemError
from linkcheck.policy.schema import PYPROJECT, check_prefix, has_policy, read_policy
from linkcheck.policy.settings import Settings, select_codes
from linkcheck.policy.symbols import make_spec
from linkcheck.policy.table import show
from linkcheck.policy.toml_file import parse_toml, read_bytes, read_profile, read_toml
from linkcheck.value import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.policy.schema import PolicyFile
    from linkcheck.policy.settings import DlopenEdge, Role, State, SymbolSpec
    from linkcheck.policy.toml_file import TomlFile


#: What holds when the user names neither a profile nor a policy, and no policy file is found.
DEFAULT_PROFILE = "executorch-caller-stream"
POLICY_NAME = "linkcheck.toml"

_PROFILES = os.path.join(os.path.dirname(__file__), "profiles")
#: Files that extend each other in a row; above it somebody generates them, and Python's stack would be the bound.
_DEEPEST_EXTENDS = 16


def load_settings(
    *,
    rule_codes: Sequence[str],
    profile: str | None = None,
    policy: str | None = None,
    start_directory: str | None = None,
    discover: bool = True,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    require_needed: tuple[str, ...] = (),
    require_import: tuple[str, ...] = (),
    forbid_needed: tuple[str, ...] = (),
) -> Settings:
    """Everything a run is judged by.

    `profile` names a built-in profile, `policy` a file. Without `policy` the nearest policy file at or above
    `start_directory` (None: the working directory) holds, unless `discover` is false. A policy file starts from what
    its `extends` names and from `profile`; when there is neither file nor profile, DEFAULT_PROFILE holds.

    `rule_codes` are the codes of all rules: policies and `select`/`ignore` may only name these. `select` and `ignore`
    are the command line's and win over the policy's; when one is given, the result's `select` lists the codes that
    run. The other arguments are the command line's one-off demands (see one_off.py).

    Raises PolicyError for a policy file that cannot be used, UsageProblemError for an argument that names nothing.
    """
    if policy == "":
        raise UsageProblemError(f"--policy: {EMPTY_NAME}")
    if policy is not None:
        file: TomlFile | None = read_toml(policy)
    else:
        file = find_policy(start_directory) if discover else None

    layers = _Layers(rule_codes)
    if profile is not None:
        layers.add_profile(profile)
    elif file is None:
        layers.add_profile(DEFAULT_PROFILE)
    if file is not None:
        layers.add_file(file)
        layers.names.append(file.path)
    settings = _merge(layers.files, " + ".join(layers.names), None if file is None else file.path)
    if profile is None and file is None:
        settings = replace(settings, by_default=True)

    if require_needed or require_import or forbid_needed:
        from linkcheck.policy.one_off import make_one_off_roles

        one_off_roles = make_one_off_roles(
            require_needed=require_needed,
            require_import=require_import,
            forbid_needed=forbid_needed,
            mangled_names=settings.mangled_names,
        )
        settings = replace(settings, roles=settings.roles + one_off_roles)
    return _apply_command_line(settings, rule_codes, select, ignore) if select or ignore else settings


def find_policy(start_directory: str | None) -> TomlFile | None:
    """The policy for `start_directory` (None: the working directory), or None when there is none.

    The nearest directory wins, from the start upwards to the root of the repository (the directory with `.git`), or
    to `/` outside of one. Within a directory `linkcheck.toml` wins over a pyproject.toml with `[tool.linkcheck]`.

    Raises PolicyError for a policy file that cannot be read: passing over it could turn a fault into a pass.
    """
    for directory in _directories_upwards(start_directory or ""):
        path = os.path.join(directory, POLICY_NAME)
        if os.path.lexists(path):
            return parse_toml(path, read_bytes(path, only_regular=True))
        path = os.path.join(directory, PYPROJECT)
        if os.path.isfile(path):
            content = read_bytes(path)
            # A project that does not use linkcheck must not suffer from it, even with a broken pyproject.toml; and
            # parsing a long one would take longer than the rest of a check.
            if b"linkcheck" in content and has_policy(file := parse_toml(path, content)):
                return file
        if os.path.lexists(os.path.join(directory, ".git")):
            return None
    return None


def _directories_upwards(start: str) -> Iterator[str]:
    yield start
    try:
        directory = os.path.abspath(start)
    except FileNotFoundError:  # the working directory was removed: nothing is above it
        return
    while (parent := os.path.dirname(directory)) != directory:
        yield parent
        directory = parent


def profile_names() -> tuple[str, ...]:
    """The names of the built-in profiles."""
    return tuple(sorted(name[: -len(".toml")] for name in os.listdir(_PROFILES) if name.endswith(".toml")))


class _Layers:
    """Policy files in the order they are laid on each other: what is extended comes before what extends it."""

    def __init__(self, rule_codes: Sequence[str]) -> None:
        self.files: list[PolicyFile] = []
        #: What reports call the settings: the profiles in force.
        self.names: list[str] = []
        self._rule_codes = rule_codes
        self._done: set[str] = set()
        self._open: list[str] = []

    def add_profile(self, name: str) -> None:
        """Add a built-in profile, once. Raises UsageProblemError for a name that there is none of."""
        path = os.path.join(_PROFILES, f"{name}.toml")
        if not name.replace("-", "").isalnum() or not os.path.isfile(path):  # a name, not a way out of the directory
            raise UsageProblemError(_unknown_profile(name))
        if name not in self.names:
            self.names.append(name)
            self.add_file(read_profile(path))

    def add_file(self, file: TomlFile) -> None:
        """Add what `file` extends, then `file`; each file once. Raises PolicyError for a circle."""
        identity = os.path.realpath(file.path)
        if identity in self._done:
            return
        self._open.append(identity)
        policy = read_policy(file, self._rule_codes)
        for entry, name in enumerate(policy.extends):
            self._add_extended(policy, entry, name)
        self._open.pop()
        self._done.add(identity)
        self.files.append(policy)

    def _add_extended(self, policy: PolicyFile, entry: int, name: str) -> None:
        if "/" not in name and not name.endswith(".toml"):
            try:
                self.add_profile(name)
            except UsageProblemError as error:
                reason = f"{error}; a file's name ends in .toml"
                raise policy.top.error("extends", reason, entry=entry) from None
            return
        path = os.path.join(os.path.dirname(policy.file.path), name)
        if "\0" in path or not os.path.exists(path):
            raise policy.top.error("extends", f"extends {show(name)}, but there is no such file", entry=entry)
        if os.path.realpath(path) in self._open:
            raise policy.top.error("extends", f"extends {show(name)}, which extends this file in turn", entry=entry)
        if len(self._open) >= _DEEPEST_EXTENDS:
            reason = f"extends {show(name)}, more than {_DEEPEST_EXTENDS} files deep"
            raise policy.top.error("extends", reason, entry=entry)
        self.add_file(read_toml(path, only_regular=True))


def _unknown_profile(name: str) -> str:
    from linkcheck.policy.nearest import suggest

    return f"unknown profile {show(name)}; {suggest(name, profile_names())}"


def _merge(files: Sequence[PolicyFile], profile: str, source: str | None) -> Settings:
    """Lay `files` on each other. A later state or role takes the place of an earlier one with its name."""
    mangled: dict[str, tuple[str, ...]] = {}
    for file in files:
        mangled.update(file.mangled_names)

    def compile_all(specs: tuple[SymbolSpec, ...]) -> tuple[SymbolSpec, ...]:
        return tuple(make_spec(spec.text, mangled) for spec in specs)

    states: dict[str, State] = {}
    roles: dict[str, Role] = {}
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    dlopen: list[DlopenEdge] = []
    host_symbols: tuple[str, ...] | None = None
    for file in files:
        own = "" if file.file.path.startswith(f"{_PROFILES}/") else file.file.path
        dlopen += (replace(edge, source=own) for edge in file.dlopen)
        for state in file.states:
            states[state.name] = replace(state, symbols=compile_all(state.symbols), source=own)
        for role in file.roles:
            roles[role.name] = replace(
                role,
                when_import=compile_all(role.when_import),
                import_=compile_all(role.import_),
                forbid_import=compile_all(role.forbid_import),
                export=compile_all(role.export),
                forbid_export=compile_all(role.forbid_export),
                source=own,
            )
        select = select if file.select is None else file.select
        ignore = ignore if file.ignore is None else file.ignore
        if file.host_symbols is not None:
            host_symbols = tuple(dict.fromkeys((*(host_symbols or ()), *file.host_symbols)))
    return Settings(
        profile=profile,
        states=tuple(states.values()),
        roles=tuple(roles.values()),
        dlopen=tuple(dlopen),
        waivers=tuple(waiver for file in files for waiver in file.waivers),
        select=select,
        ignore=ignore,
        external=tuple(dict.fromkeys(pattern for file in files for pattern in file.external)),
        host_symbols=host_symbols,
        source=source,
        mangled_names=mangled,
    )


def _in_capitals(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(prefix.upper() for prefix in prefixes)


def _apply_command_line(
    settings: Settings, rule_codes: Sequence[str], select: tuple[str, ...], ignore: tuple[str, ...]
) -> Settings:
    for option, prefixes in (("--select", select), ("--ignore", ignore)):
        for prefix in prefixes:
            if not prefix or (fault := check_prefix(prefix, rule_codes)):
                raise UsageProblemError(f"{option}: {fault if prefix else 'an empty code selects no rule'}")
    codes = select_codes(
        rule_codes,
        select=settings.select,
        ignore=settings.ignore,
        command_line_select=_in_capitals(select),
        command_line_ignore=_in_capitals(ignore),
    )
    if not codes:
        raise UsageProblemError("--select and --ignore leave no rule to run")
    return replace(settings, select=codes, ignore=())
