"""The keys of a policy file and what each may hold: one TOML file -> its own entries, nothing merged or looked up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from linkcheck.policy.settings import DlopenEdge, Role, State, SymbolSpec, Waiver
from linkcheck.policy.symbols import find_fault
from linkcheck.policy.table import Table, show
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from linkcheck.policy.toml_file import TomlFile

TOP_LISTS = ("extends", "select", "ignore", "external", "host-symbols")
TOP_KEYS = (*TOP_LISTS, "state", "role", "dlopen", "waiver", "mangled")
STATE_KEYS = (
    "name",
    "owner",
    "symbols",
    "thread-local",
    "only-with-owner",
    "exported-only",
    "consequence",
    "cmake-target",
    "link-flag",
)
#: A role without any of these would check nothing.
ROLE_DEMANDS = ("need", "forbid-need", "import", "forbid-import", "export", "forbid-export")
ROLE_KEYS = ("name", "files", "kind", "when-need", "when-import", *ROLE_DEMANDS)
ROLE_KINDS = ("executable", "library", "any")
DLOPEN_KEYS = ("from", "path", "mode", "deepbind")
DLOPEN_MODES = ("local", "global")
WAIVER_REQUIRED_KEYS = ("code", "path", "reason", "owner", "expires")
WAIVER_KEYS = (*WAIVER_REQUIRED_KEYS, "symbol")

#: `LC4`: a family of rules. Anything shorter accepts every rule there is, and every one to come.
_SHORTEST_WAIVER_CODE = 3

PYPROJECT = "pyproject.toml"


class PolicyFile(Value):
    """What one file says. Symbols are not compiled yet: `SymbolSpec.mangled` is empty. None: the key is absent."""

    file: TomlFile
    top: Table
    extends: tuple[str, ...]
    select: tuple[str, ...] | None
    ignore: tuple[str, ...] | None
    external: tuple[str, ...]
    host_symbols: tuple[str, ...] | None
    states: tuple[State, ...]
    roles: tuple[Role, ...]
    dlopen: tuple[DlopenEdge, ...]
    waivers: tuple[Waiver, ...]
    mangled_names: dict[str, tuple[str, ...]]


def has_policy(file: TomlFile) -> bool:
    """Whether `file` holds a policy: a pyproject.toml does only with a `tool.linkcheck`."""
    if os.path.basename(file.path) != PYPROJECT:
        return True
    tool = file.data.get("tool")
    return isinstance(tool, dict) and "linkcheck" in tool


def read_policy(file: TomlFile, rule_codes: Sequence[str]) -> PolicyFile:
    """What `file` says. Raises PolicyError for whatever the schema does not allow."""
    top = _top_table(file)
    return PolicyFile(
        file=file,
        top=top,
        extends=top.texts("extends", may_be_empty=True),
        select=_prefixes(top, "select", rule_codes) if top.has("select") else None,
        ignore=_prefixes(top, "ignore", rule_codes) if top.has("ignore") else None,
        external=top.texts("external", may_be_empty=True),
        host_symbols=top.texts("host-symbols", may_be_empty=True) if top.has("host-symbols") else None,
        states=_unique(top, "state", map(_read_state, tables := top.tables("state", STATE_KEYS)), tables),
        roles=_unique(top, "role", map(_read_role, tables := top.tables("role", ROLE_KEYS)), tables),
        dlopen=tuple(map(_read_dlopen, top.tables("dlopen", DLOPEN_KEYS))),
        waivers=_read_waivers(top, rule_codes),
        mangled_names=_read_mangled_names(top.dictionary("mangled")),
    )


def check_prefix(prefix: str, rule_codes: Sequence[str]) -> str | None:
    """Why `prefix` selects no rule, or None when it selects one."""
    if any(code.startswith(prefix.upper()) for code in rule_codes):
        return None
    # One digit makes another rule, so only another spelling of a code is a hint, never a code that looks like it.
    number = "".join(character for character in prefix.upper().replace("O", "0") if character.isdigit())
    meant = f"LC{number}"
    hint = f'did you mean "{meant}"? ' if meant in rule_codes else ""
    if "-" in prefix and not any(character.isdigit() for character in prefix):
        hint = "rules are selected by code, not by name (`linkcheck rules` lists both); "
    return f"unknown rule code {show(prefix)}; {hint}allowed: {', '.join(rule_codes)}, or a prefix of these"


def _top_table(file: TomlFile) -> Table:
    if os.path.basename(file.path) != PYPROJECT:
        return Table(file, (), file.data, name="the policy", keys=TOP_KEYS, before=TOP_LISTS)
    if not has_policy(file):
        raise file.error((), "has no [tool.linkcheck] table")
    data: Any = file.data["tool"]["linkcheck"]
    return Table(file, ("tool", "linkcheck"), data, name="[tool.linkcheck]", keys=TOP_KEYS, before=TOP_LISTS)


def _prefixes(top: Table, key: str, rule_codes: Sequence[str]) -> tuple[str, ...]:
    # An empty `select` could mean all or nothing; an empty `ignore` takes back that of an extended file.
    prefixes = top.texts(key, may_be_empty=key == "ignore")
    for entry, prefix in enumerate(prefixes):
        if fault := check_prefix(prefix, rule_codes):
            raise top.error(key, fault, entry=entry)
    return tuple(prefix.upper() for prefix in prefixes)  # as the command line takes them


def _read_state(table: Table) -> State:
    table.require("name", "owner", "symbols")
    return State(
        name=table.text("name"),
        owner=table.texts("owner"),
        symbols=_symbols(table, "symbols"),
        thread_local=table.flag("thread-local"),
        only_with_owner=table.flag("only-with-owner"),
        exported_only=table.flag("exported-only"),
        consequence=table.text("consequence"),
        cmake_target=table.text("cmake-target"),
        link_flag=table.text("link-flag"),
    )


def _read_role(table: Table) -> Role:
    if not any(table.has(key) for key in ROLE_DEMANDS):
        raise table.error(None, f"{table.name} demands nothing; give at least one of {', '.join(ROLE_DEMANDS)}")
    return Role(
        name=table.text("name", f"role {int(table.address[-1]) + 1} of {table.file.path}"),
        files=table.texts("files") or ("*",),
        kind=table.choice("kind", ROLE_KINDS, "any"),
        when_need=table.texts("when-need"),
        when_import=_symbols(table, "when-import"),
        need=table.texts("need"),
        forbid_need=table.texts("forbid-need"),
        import_=_symbols(table, "import"),
        forbid_import=_symbols(table, "forbid-import"),
        export=_symbols(table, "export"),
        forbid_export=_symbols(table, "forbid-export"),
    )


def _read_dlopen(table: Table) -> DlopenEdge:
    table.require("from", "path")
    path = table.text("path")
    if not path.startswith(("$ORIGIN/", "${ORIGIN}/")):  # which ld.so takes for the place of who opens it
        path = os.path.join(os.path.dirname(table.file.path), path)
    return DlopenEdge(
        from_=table.text("from"),
        path=path,
        mode=table.choice("mode", DLOPEN_MODES, "local"),  # as dlopen(3): RTLD_LOCAL is the default
        deepbind=table.flag("deepbind"),
    )


def _read_waivers(top: Table, rule_codes: Sequence[str]) -> tuple[Waiver, ...]:
    tables = top.tables("waiver", WAIVER_KEYS)
    if not tables:
        return ()
    lines = top.file.map_lines()
    waivers: list[Waiver] = []
    for table in tables:
        table.require(*WAIVER_REQUIRED_KEYS)
        code = table.text("code")
        if fault := check_prefix(code, rule_codes):
            raise table.error("code", fault)
        if len(code) < _SHORTEST_WAIVER_CODE:
            raise table.error("code", f"{show(code)} would accept findings of every rule; give at least LC and a digit")
        waivers.append(
            Waiver(
                code=code.upper(),
                path=table.text("path"),
                reason=table.text("reason"),
                owner=table.text("owner"),
                expires=table.day("expires"),
                symbol=table.text("symbol") or None,
                source=top.file.path,
                line=lines.find(table.address) or 0,
            )
        )
    return tuple(waivers)


def _read_mangled_names(table: Table) -> dict[str, tuple[str, ...]]:
    return {name: table.texts(name) for name in table.keys()}  # noqa: SIM118


def _symbols(table: Table, key: str) -> tuple[SymbolSpec, ...]:
    texts = table.texts(key)
    for entry, text in enumerate(texts):
        if fault := find_fault(text):
            raise table.error(key, fault, entry=entry)
    return tuple(map(SymbolSpec, texts))


Named = TypeVar("Named", State, Role)


def _unique(top: Table, key: str, values: Iterable[Named], tables: Sequence[Table]) -> tuple[Named, ...]:
    """The `values` of the array `[[key]]`, after a check that no two have the same name."""
    first: dict[str, int] = {}
    result = tuple(values)
    for entry, value in enumerate(result):
        if (other := first.setdefault(value.name, entry)) != entry:
            line = top.file.map_lines().find(tables[other].address)
            raise tables[entry].error("name", f"[[{key}]] {show(value.name)} is already defined on line {line}")
    return result
