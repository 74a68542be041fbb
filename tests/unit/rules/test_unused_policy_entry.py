"""LC903 unused-policy-entry, on plain values."""

from __future__ import annotations

import pytest

from linkcheck.model import Finding, LoadSet, Severity
from linkcheck.policy.settings import DlopenEdge, Role, Settings, State, SymbolSpec
from linkcheck.rules.rule import PolicyUse
from linkcheck.rules.unused_policy_entry import check_policy
from linkcheck.value import replace
from tests.unit.rules.worlds import image, load_set, owner, runner, spec

FILE = "linkcheck.toml"
PLUGIN = image(
    "lib/plugins/libauth.so",
    soname="libauth.so",
    needed=("libsession.so.1",),
    imports=("session_get",),
    exports=("plugin_init",),
)


def run(*entries: Role | State | DlopenEdge, unmade: bool = True, worlds: tuple[LoadSet, ...] = ()) -> list[Finding]:
    """What is said of `entries` after a run over a runner, its owner library and a plug-in."""
    settings = Settings(
        "p",
        states=tuple(entry for entry in entries if isinstance(entry, State)),
        roles=tuple(entry for entry in entries if isinstance(entry, Role)),
    )
    edges = tuple(entry for entry in entries if isinstance(entry, DlopenEdge)) if unmade else ()
    use = PolicyUse(load_sets=worlds or (load_set(runner(), owner()), load_set(PLUGIN)), unmade=edges)
    return list(check_policy(use, settings))


def role(**conditions: object) -> Role:
    return Role("plug-in", forbid_need=("libpython3*",), source=FILE, **conditions)  # type: ignore[arg-type]


def state(*symbols: str, owner: tuple[str, ...] = ("libsession.so*",), **more: object) -> State:
    return State("session", owner, tuple(SymbolSpec(s) if "*" in s else spec(s) for s in symbols), source=FILE, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ({"files": ("lib/plugin/*.so",)}, "`files` = lib/plugin/*.so means none of 3 files"),
        ({"files": ("libx.so", "liby.so")}, "`files` = libx.so or liby.so means none of 3 files"),
        (
            {"files": ("lib/plugins/*",), "kind": "executable"},
            "`files` means 1 file, and none is of the kind executable",
        ),
        ({"when_need": ("libsesion.so*",)}, "`files` means 3 files, and none needs libsesion.so* (when-need)"),
        (
            {"when_import": (spec("sesion_get"),)},
            "`files` means 3 files, and none imports sesion_get (when-import)",
        ),
        (
            {"when_need": ("libextension_cuda.so",), "when_import": (spec("session_get"),)},
            "`files` means 3 files, and none meets both of its conditions",
        ),
    ],
)
def test_finds_a_role_that_no_file_plays_and_says_which_condition(conditions: dict[str, object], why: str) -> None:
    (found,) = run(role(**conditions))
    assert (found.code, found.name, found.severity) == ("LC903", "unused-policy-entry", Severity.WARNING)
    assert found.message == f"the [[role]] “plug-in” applies to no file of this run: {why}"
    assert (found.primary.path, found.primary.symbol) == (FILE, None)
    assert found.evidence == {"table": "role", "entry": "plug-in"}
    assert "--ignore LC903" in found.remedy


def test_finds_a_state_whose_symbols_no_file_knows() -> None:
    (found,) = run(state("sesion_get", "sesion_put"))
    assert found.message == (
        "the [[state]] “session” is touched by no file of this run: none imports or defines sesion_get or sesion_put"
    )


def test_says_that_a_pattern_is_not_looked_for_in_symtab() -> None:
    (found,) = run(state("sesion_*"))
    assert found.message.endswith(
        "imports or defines sesion_* (a pattern is looked for in .dynsym only, not among the hidden symbols of .symtab)"
    )


def test_finds_a_state_whose_owner_is_nowhere() -> None:
    (found,) = run(state("session_get", owner=("libsesion.so*",), only_with_owner=True))
    assert found.message == (
        "the [[state]] “session” is judged only with its owner, and no file of this run is libsesion.so*"
    )


SESSION = image("lib/libsession.so.1", soname="libsession.so.1", exports=("session_get",))


def test_finds_a_state_whose_owner_is_misspelt_although_a_library_defines_it() -> None:
    misspelt = state("session_get", owner=("libsesion.so*",))
    (found,) = run(misspelt, worlds=(load_set(replace(PLUGIN, needed=()), SESSION),))
    assert found.message == (
        "the [[state]] “session” has an owner that no file of this run is or needs, libsesion.so*, and "
        "lib/libsession.so.1 defines session_get: is libsession.so.1 the owner?"
    )
    assert "Correct `owner`" in found.remedy
    assert "only-with-owner" in found.remedy


@pytest.mark.parametrize(
    ("entry", "world"),
    [
        (state("session_get"), load_set(PLUGIN, SESSION)),
        (state("session_get", owner=("libown.so",)), load_set(PLUGIN)),  # nobody defines it: LC402 speaks up
        (state("session_get", owner=("libown.so",)), load_set(replace(PLUGIN, needed=("libown.so",)), SESSION)),
        (state("session_get", owner=("libown.so",)), load_set(PLUGIN, SESSION, missing=("libown.so",))),
        (state("session_get", owner=("<root>",)), load_set(PLUGIN, SESSION)),  # the program is not known
        (state("session_get", owner=("libown.so",)), load_set(SESSION)),  # a copy that it linked for itself
        (state("session_get", owner=("libown.so",)), load_set(runner(exports=("session_get",)))),
    ],
    ids=["owner", "no definition", "needed", "missing", "root", "copy", "program"],
)
def test_passes_a_state_whose_owner_is_rightly_nowhere(entry: State, world: LoadSet) -> None:
    assert run(entry, worlds=(world,)) == []


def test_leaves_a_misspelt_owner_to_lc303_where_a_role_asks_for_the_symbol() -> None:
    asking = role(import_=(spec("session_get"),))
    assert run(state("session_get", owner=("libown.so",)), asking, worlds=(load_set(PLUGIN, SESSION),)) == []


def test_finds_a_dlopen_that_no_file_makes_once() -> None:
    edge = DlopenEdge("bin/server", "lib/libauth.so", "local", source=FILE)
    (found,) = run(edge, replace(edge, path="lib/libother.so"))
    assert found.message == "the [[dlopen]] “bin/server” is made by no file of this run: it means none of 3 files"
    assert run(edge, unmade=False) == []


@pytest.mark.parametrize(
    "entry",
    [
        role(files=("lib/plugins/*.so",)),
        role(files=("typo", "libauth.so")),  # one pattern that fits is enough
        role(kind="library"),
        role(when_need=("libsession.so*",)),
        role(when_import=(spec("session_get"),)),
        state("session_get"),
        state("typo", "plugin_init"),  # a definition is as good, and one symbol is enough
        state("session_*"),
    ],
)
def test_passes_an_entry_that_is_about_some_file(entry: Role | State) -> None:
    assert run(entry) == []


def test_passes_a_hidden_copy_as_something_the_state_is_about() -> None:
    """The verdict on it is LC302's; here it shows that the symbol is spelled as it is."""
    stripped_of_nothing = image("libcopy.so", private=("session_get",))
    assert run(state("session_get"), worlds=(load_set(stripped_of_nothing),)) == []


def test_passes_a_state_that_a_role_asks_for_because_then_another_rule_speaks_up() -> None:
    """A hidden and stripped copy leaves no symbol: LC301 is the finding, and the state is spelled right."""
    assert run(state("session_put"), role(import_=(spec("session_put"),))) == []
    (idle, _) = run(state("session_put"), role(files=("nothing",), import_=(spec("session_put"),)))[::-1]
    assert "[[state]]" in idle.message


def test_passes_what_is_not_the_user_s_own() -> None:
    """Entries of a built-in profile, and the roles of one-off options, have no source."""
    assert run(replace(role(files=("nothing",)), source=""), replace(state("nothing"), source="")) == []


def test_cannot_see_anything_when_no_process_was_judged() -> None:
    assert list(check_policy(PolicyUse(), Settings("p", roles=(role(files=("nothing",)),)))) == []


def test_cannot_see_whether_a_state_is_touched_by_a_file_that_hides_its_symbols() -> None:
    hidden = image("libhidden.so", unseen="no hash table")
    assert run(state("session_put"), worlds=(load_set(hidden),)) == []
    assert run(role(when_import=(spec("session_put"),)), worlds=(load_set(hidden),)) == []
