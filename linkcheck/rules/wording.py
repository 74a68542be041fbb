"""Phrases that several rules' messages share: owners, lists, chains of loads, link and search-path lines, waivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import UndemangledNameError
from linkcheck.loader.interpreter import named_libc
from linkcheck.model import FoundBy
from linkcheck.policy.settings import ROOT_OWNER
from linkcheck.policy.symbols import display, matches_name
from linkcheck.text import one_line, unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.model import Image, Json, LoadSet, Unresolved
    from linkcheck.policy.settings import Role, Settings, State, SymbolSpec, Waiver

#: What a person reads of a list, and what a program is given of it.
MOST_SHOWN = 20
MOST_IN_EVIDENCE = 200
#: What nobody has seen of a process that runs (LoadSet.observed).
SCOPE_OF_OPENED = (
    "whether a file was opened with RTLD_GLOBAL, which cannot be seen from outside of the process that has opened it"
)


def chain_text(load_set: LoadSet, index: int) -> str:
    """`bin/runner -> liba.so -> libb.so`: who brings module `index` in, from the root down."""
    return " -> ".join(load_set.modules[i].image.path for i in load_set.chain(index))


def loaded_text(load_set: LoadSet, index: int) -> str:
    """` (loaded as bin/runner -> liba.so)` for a module that another one needs, or nothing."""
    return f" (loaded as {chain_text(load_set, index)})" if len(load_set.chain(index)) > 1 else ""


def asks_for(load_set: LoadSet, unresolved: Unresolved) -> str:
    """`a/b needs libc.so`, `a/b opens …` or `LD_PRELOAD of a/b names …`: who asks for what was not found, and how."""
    image = load_set.modules[unresolved.module].image
    if unresolved.special is FoundBy.PRELOAD:
        return f"LD_PRELOAD of {image.path} names {unresolved.needed}"
    return f"{image.path} {'needs' if unresolved.needed in image.needed else 'opens'} {unresolved.needed}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def not_found(names: Sequence[str]) -> str:
    """`liba.so not found, and it`, `liba.so and libb.so not found, and one of them`: before `may define …`."""
    return f"{listed(names)} not found, and {'it' if len(names) == 1 else 'one of them'}"


def shorten(names: Sequence[str]) -> tuple[str, ...]:
    """The first MOST_SHOWN of `names`, and `N more` in place of the others."""
    more = len(names) - MOST_SHOWN
    return tuple(names) if more <= 0 else (*names[:MOST_SHOWN], f"{more} more")


def as_lines(names: Sequence[str]) -> str:
    """Each of `names` on an indented line of its own, with a line feed before it; at last `and N more`."""
    lines = "".join(f"\n    {name}" for name in names[:MOST_SHOWN])
    more = len(names) - MOST_SHOWN
    return lines if more <= 0 else f"{lines}\n    and {more} more"


def as_evidence(names: Sequence[str]) -> list[Json]:
    """The first MOST_IN_EVIDENCE of `names`."""
    return list(names[:MOST_IN_EVIDENCE])


def owner_libraries(state: State) -> tuple[str, ...]:
    """The SONAME patterns of the libraries that may own `state`; empty when only the executable may."""
    return tuple(pattern for pattern in state.owner if pattern != ROOT_OWNER)


def owner_names(state: State) -> tuple[str, ...]:
    """The SONAMEs of the owner to show."""
    return names_of(owner_libraries(state))


def names_of(patterns: Sequence[str]) -> tuple[str, ...]:
    """What to show of SONAME patterns: those without wildcards, or, when each has one, what stands before it."""
    plain = tuple(pattern for pattern in patterns if not _has_wildcard(pattern))
    return plain or unique(_before_wildcard(pattern) for pattern in patterns)


def _has_wildcard(pattern: str) -> bool:
    return any(c in pattern for c in "*?[")


def _before_wildcard(pattern: str) -> str:
    """`libfoo.so` for `libfoo.so*` and `libfoo.so.[0-9]*`; the pattern itself when nothing useful stands before."""
    end = min(pattern.index(c) for c in "*?[" if c in pattern)
    return pattern[:end].rstrip(".") or pattern


def owner_text(state: State) -> str:
    """The owners of `state`: `liba.so or libb.so`, `the program itself`, or both."""
    return listed((*owner_names(state), *(("the program itself",) if ROOT_OWNER in state.owner else ())), "or")


def consequence(state: State | None) -> str:
    """What goes wrong with two copies of `state`, as a sentence with a space before it, or nothing."""
    if state is None or not state.consequence:
        return ""
    text = state.consequence
    return f" {text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def counted(count: int, noun: str, nouns: str = "") -> str:
    """`1 file`, `2 files`; `nouns` is the plural where adding an s does not make it."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def name_symbol(symbol: SymbolSpec | str, settings: Settings) -> str:
    """What messages call a symbol of the policy, everywhere: a mangled name by its C++ name, as far as there is one.

    Commands, evidence and places have the name of the symbol table, for programs that look it up.
    """
    return one_line(display(symbol, settings.mangled_names))


def name_any_symbol(name: str, settings: Settings) -> str:
    """What messages call any symbol: one of the policy as `name_symbol`, every other as the symbol table does."""
    specs = [spec for state in settings.states for spec in state.symbols]
    for role in settings.roles:
        specs += (*role.import_, *role.export, *role.forbid_import, *role.forbid_export)
    try:
        is_known = any(matches_name(spec, name) for spec in specs)
    except UndemangledNameError:
        is_known = False
    return name_symbol(name, settings) if is_known else one_line(name)


def shown(names: Sequence[str], settings: Settings) -> str:
    """The first of the symbols `names` as people write it, and how many more there are."""
    texts = unique(name_symbol(name, settings) for name in names)
    return texts[0] if len(texts) == 1 else f"{texts[0]} and {counted(len(texts) - 1, 'more symbol')}"


def owner_keys(state: State, settings: Settings) -> str:
    """The keys of the policy that a new name of the owner of `state` has to be added to, each with its entry.

    A role that asks for the owner has a list of names of its own (`need`, `when-need`).
    """
    owners = set(state.owner) - {ROOT_OWNER}
    asking = [f"“{role.name}”" for role in settings.roles if owners & set(role.need)]
    telling = [f"“{role.name}”" for role in settings.roles if owners & set(role.when_need)]
    keys = [f"`owner` of the state “{state.name}”"]
    for key, names in (("need", asking), ("when-need", telling)):
        if names:
            keys.append(f"`{key}` of the role{'s' if len(names) > 1 else ''} {listed(names)}")
    return keys[0] if len(keys) == 1 else f"{', to '.join(keys[:-1])} and to {keys[-1]}"


def link_remedy(state: State | None) -> str:
    """How to link the shared owner of `state` instead of a copy of it, as a CMake line and a linker flag."""
    if state is None:
        return "Link the shared library that owns the symbol, and no archive that contains it."
    if not owner_names(state):
        return (
            f"Take every archive and object with a copy of the {state.name} off the link line, so that its symbols "
            "stay undefined here, and let the program export its own:\n    c++ <objects> -rdynamic -o <program>"
        )
    owner = listed(owner_names(state), "or")
    ways = []
    if state.cmake_target:
        ways.append(f"    target_link_libraries(<target> PRIVATE {state.cmake_target})")
    if state.link_flag:
        ways.append(f"    c++ <objects> -L<directory> {state.link_flag}")
    end = ":" if ways else "."
    lines = [f"Link the shared library {owner}, and take every archive and object with a copy off the link line{end}"]
    lines += ways
    lines.append("`linkcheck prebuilt FILE` tells whether a file is fit for that.")
    return "\n".join(lines)


def demanded_by(role: Role) -> str:
    """`as a runner must`; `as --require-import f demands` for an option, and in that way for a role without a name."""
    if role.name.startswith(("--", "role ")):
        return f"as {role.name} demands"
    return f"as {with_article(role.name)} must"


def forbidden_by(role: Role) -> str:
    """`which the policy forbids for a runner`, or, as in `demanded_by`, `which --forbid-needed libtorch* forbids`."""
    if role.name.startswith(("--", "role ")):
        return f"which {role.name} forbids"
    return f"which the policy forbids for {with_article(role.name)}"


def with_article(noun: str) -> str:
    """`a runner`, `an app`, `a user`, `an uninstaller`."""
    word = noun.lower()
    return f"{'an' if word.startswith(_VOWELS) and not word.startswith(_LIKE_YOU) else 'a'} {noun}"


_VOWELS = tuple("aeiou")
#: Beginnings of words that sound as "you" does.
_LIKE_YOU = ("eu", "unic", "unif", "unio", "uniq", "unit", "univ", "unix", "usa", "usb", "use", "usu", "util")


def judged_otherwise(load_set: LoadSet) -> str:
    """What to do when --libc takes the root for a program of the C library that it is not linked for; "" otherwise."""
    root, own = load_set.root, named_libc(load_set.root)
    if own is None or own is load_set.libc:
        return ""
    taken = load_set.libc.value
    return (
        f"{root.path} is linked for {own.value} ({_tells_libc(root)}), and --libc {taken} has it judged as {taken}'s: "
        f"leave out the option, or build the file for {taken}."
    )


def _tells_libc(root: Image) -> str:
    if root.interpreter is not None:
        return f"its PT_INTERP is {root.interpreter}"
    return f"it needs {next((name for name in root.needed if name.startswith('libc.')), 'libraries of it')}"


def cache_line(unresolved: Unresolved) -> str:
    """A line, with a line feed before it, about an ld.so.cache that cannot be used; "" for any other."""
    if not unresolved.cache_fault:
        return ""
    return f"\nld.so.cache was of no use, and ld.so passes over it as well: {unresolved.cache_fault}."


def waiver_text(waiver: Waiver) -> str:
    """`the waiver of LC403 on lib/* (symbol), line 7,`: which one is meant."""
    symbol = "" if waiver.symbol is None else f" ({waiver.symbol})"
    return f"the waiver of {waiver.code} on {waiver.path}{symbol}, line {waiver.line},"


def waiver_evidence(waiver: Waiver) -> dict[str, Json]:
    """What the policy says in `waiver`."""
    return {"line": waiver.line, **waiver.terms}


def path_remedy(path: str, needed: str) -> str:
    """What to do about the DT_NEEDED `needed` of `path` that has a slash in it (man 8 ld.so): no search path helps.

    ld(1) records the name of its own link line for a library without a SONAME.
    """
    from linkcheck.loader.tokens import has_token  # only a finding needs it

    name = needed.rpartition("/")[2] or "<name>"
    place = "" if needed.startswith(("/", "$")) else " from the directory that the process runs in"
    how = "" if has_token(needed) else f" as it stands{place}"
    why = (
        f"{needed} has a slash in it: ld.so opens it{how}, and no search path helps. It was recorded because the "
        "library had no SONAME, or one with a slash. Give the library a SONAME without a slash:"
    )
    lines = (
        why,
        f"    c++ -shared <objects> -Wl,-soname,{name} -o {name}",
        "or link it by its name instead of its path:",
        f"    c++ <objects> -L<directory> -l{_link_name(name)}",
        f"and in both cases link {path} again, with a search path that leads to {name}:",
        "    -Wl,-rpath,'$ORIGIN/<directory seen from this file>'",
    )
    return "\n".join(lines)


def _link_name(name: str) -> str:
    """What -l takes for the file `name` (ld(1): a colon in front makes it the whole name)."""
    stem = name.partition(".so")[0]
    return stem.removeprefix("lib") if name.startswith("lib") and name == f"{stem}.so" else f":{name}"


def library_path_line(*directories: str) -> str:
    """The shell line that appends `directories` to LD_LIBRARY_PATH and keeps what is there, in front.

    A relative directory is one of the shell's working directory: ld.so would take it as one of the program's.
    """
    entries = [quoted if quoted.startswith("/") else _from_here(quoted) for quoted in map(_in_quotes, directories)]
    return f'export LD_LIBRARY_PATH="${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}{":".join(entries)}"'


def _from_here(directory: str) -> str:
    if directory.startswith("<"):  # a place that the reader has to fill in
        return directory
    return "$PWD" if directory == "." else f"$PWD/{directory}"


def _in_quotes(text: str) -> str:
    """`text` as it has to be written between double quotes of a shell."""
    return "".join(f"\\{character}" if character in '\\"$`' else character for character in text)
