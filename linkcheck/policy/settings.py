"""The settings a run is judged by, as frozen values, and which rules they select; of these it knows the codes only.

Reading TOML into them is policy/load.py's job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.value import Value

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable, Mapping

    from linkcheck.model import Json

#: In `owner` lists: the executable that starts the process.
ROOT_OWNER = "<root>"

#: `files` of a role that names none: it is played by kind, not by name.
EVERY_FILE = ("*",)


class SymbolSpec(Value):
    """One entry of a `symbols`, `import` or `export` list.

    `text` is what the policy says and what messages show: a mangled name, a demangled one, or a pattern with *.
    `mangled` are the exact names of the dynamic symbol table that `text` stands for (a constructor has two, C1 and
    C2; any one counts), or empty when `text` has to be matched against demangled names.
    """

    text: str
    mangled: tuple[str, ...] = ()


class State(Value):
    """A piece of process-wide state that must exist exactly once in every load set that touches it."""

    name: str
    #: SONAME patterns (fnmatch) of the libraries that may define it, or ROOT_OWNER.
    owner: tuple[str, ...]
    symbols: tuple[SymbolSpec, ...]
    #: The state is a thread_local of its owner, so a private copy shows as a PT_TLS segment (LC404).
    thread_local: bool = False
    #: Judge it only in load sets that hold an owner (a program may link everything into itself, and then no file
    #: called like the owner is there).
    only_with_owner: bool = False
    #: Hidden copies do not count: one serves its own file alone, and no other file meets what it keeps.
    exported_only: bool = False
    #: One sentence for messages: what goes wrong when there are two copies.
    consequence: str = ""
    #: The CMake target and linker flag that bring the owner in, for remedies.
    cmake_target: str = ""
    link_flag: str = ""
    #: The policy file it stands in; "" for a built-in profile and for an option (LC903).
    source: str = ""


class Role(Value):
    """What certain files must and must not do. Lists are patterns; an absent list asks nothing."""

    name: str
    #: Patterns: with a slash on the path (or its end), without one on the file name and the SONAME.
    files: tuple[str, ...] = EVERY_FILE
    #: "executable", "library" or "any".
    kind: str = "any"
    #: Apply only to files with a DT_NEEDED that matches one of these; empty: no such condition.
    when_need: tuple[str, ...] = ()
    #: Apply only to files that import one of these; empty: no such condition. Both conditions must hold.
    when_import: tuple[SymbolSpec, ...] = ()
    #: SONAME patterns; the file must have a DT_NEEDED for at least one of them (alternatives of one library).
    need: tuple[str, ...] = ()
    #: SONAME patterns no file of the load set may have; reported with the chain that brings it in.
    forbid_need: tuple[str, ...] = ()
    import_: tuple[SymbolSpec, ...] = ()
    forbid_import: tuple[SymbolSpec, ...] = ()
    export: tuple[SymbolSpec, ...] = ()
    forbid_export: tuple[SymbolSpec, ...] = ()
    #: Apply only to what a process starts from and what somebody dlopens, not to what those need (one-off options).
    roots_only: bool = False
    #: The policy file it stands in; "" for a built-in profile and for an option (LC903).
    source: str = ""


class DlopenEdge(Value):
    """A dlopen that no ELF tag shows. `from_` is a pattern, as in a role's `files`.

    `path` is relative to the working directory, or absolute, or begins with $ORIGIN; the policy file has it relative to
    its own directory.
    """

    from_: str
    path: str
    mode: str  # "local" or "global"
    #: The policy file it stands in; "" for a built-in profile and for an option (LC903).
    source: str = ""
    deepbind: bool = False  # RTLD_DEEPBIND


class Waiver(Value):
    """Findings of `code` on files matching `path` are accepted, by somebody, for a reason, until a day."""

    code: str
    path: str
    reason: str
    owner: str
    expires: datetime.date
    symbol: str | None = None
    #: The policy file it stands in, whose directory `path` may be relative to, and the line (LC901, LC902).
    source: str = ""
    line: int = 0

    @property
    def terms(self) -> dict[str, Json]:
        """What is accepted, and why, by whom and until when, as JSON has it; not where that is written."""
        return {
            "code": self.code,
            "path": self.path,
            "symbol": self.symbol,
            "reason": self.reason,
            "owner": self.owner,
            "expires": self.expires.isoformat(),
        }


class Settings(Value):
    """Everything a run is judged by. `profile` is the name shown in reports."""

    profile: str
    states: tuple[State, ...] = ()
    roles: tuple[Role, ...] = ()
    dlopen: tuple[DlopenEdge, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    #: Code prefixes; a rule runs when the longest matching prefix is in `select` (empty: all) and not in `ignore`.
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    #: SONAME patterns of libraries that the target machine provides: not found here is not a finding (LC202), and
    #: they are taken not to hold any of the states.
    external: tuple[str, ...] = ()
    #: Patterns of symbols that a plug-in takes from the program that opens it, where that program is not known (LC304);
    #: None: those of the well-known hosts (policy/hosts.py).
    host_symbols: tuple[str, ...] | None = None
    #: The policy file; None when only a built-in profile is in force.
    source: str | None = None
    #: Nobody chose it: there is no policy file, and no profile was named.
    by_default: bool = False
    #: Demangled name -> the mangled names it stands for, from the profiles in force.
    mangled_names: Mapping[str, tuple[str, ...]] = {}


def select_codes(
    codes: Iterable[str],
    *,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    command_line_select: tuple[str, ...] = (),
    command_line_ignore: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Those of `codes` that run, in their order.

    The longest matching prefix decides between `select` (empty: everything) and `ignore`; of two equally long ones
    `ignore` wins. The command line wins over the policy: its `select` takes the place of both of the policy's lists,
    and what only its `ignore` names does not run, however long the policy's prefixes are.
    """
    if command_line_select:
        return tuple(code for code in codes if _runs(code, command_line_select, command_line_ignore))
    return tuple(
        code for code in codes if _runs(code, select, ignore) and _longest_prefix(code, command_line_ignore) < 0
    )


def _runs(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    return _longest_prefix(code, select or ("",)) > _longest_prefix(code, ignore)


def _longest_prefix(code: str, prefixes: tuple[str, ...]) -> int:
    """The length of the longest of `prefixes` that `code` starts with; -1 when there is none."""
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=-1)
