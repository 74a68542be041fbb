"""From files, profiles and options to one Settings: what is found, what extends what, and what an error says."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.errors import LinkcheckError, PolicyError, UsageProblemError
from linkcheck.policy.load import DEFAULT_PROFILE, load_settings, profile_names
from linkcheck.policy.schema import DLOPEN_KEYS, ROLE_KEYS, STATE_KEYS, TOP_KEYS, WAIVER_KEYS, read_policy
from linkcheck.policy.settings import DlopenEdge, Role, Settings, State, SymbolSpec, Waiver
from linkcheck.policy.toml_file import parse_toml
from linkcheck.value import replace

CODES = ("LC101", "LC301", "LC302", "LC401", "LC901", "LC902")

EVERY_KEY = """\
extends = ["executorch-caller-stream"]
select = ["LC3", "LC4", "LC9"]
ignore = ["LC302"]
external = ["libcuda.so*"]

[[state]]
name = "counter"
owner = ["libcounter.so*", "<root>"]
symbols = ["counter_value", "ns::counter()"]
thread-local = true
only-with-owner = true
exported-only = true
consequence = "two counters disagree"
cmake-target = "counter::counter"
link-flag = "-lcounter"

[[role]]
name = "tool"
files = ["bin/*"]
kind = "executable"
when-need = ["libc.so*"]
when-import = ["main_loop"]
need = ["libcounter.so*"]
forbid-need = ["libbad*"]
import = ["ns::counter()"]
forbid-import = ["gets"]
export = ["plugin_*"]
forbid-export = ["_ZN7private*"]

[[dlopen]]
from = "bin/tool"
path = "lib/libplugin.so"
mode = "global"

[[waiver]]
code = "LC4"
path = "lib/*"
symbol = "counter_value"
reason = "known"
owner = "me"
expires = 2027-01-31

[mangled]
"ns::counter( )" = ["_ZN2ns7counterEv"]
"""


def write(directory: Path, name: str, text: str | bytes) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load(path: Path | None = None, **options: Any) -> Settings:
    return load_settings(rule_codes=CODES, policy=None if path is None else str(path), **options)


def refused(text: str | bytes, directory: Path, name: str = "linkcheck.toml") -> tuple[int | None, str]:
    """The line and reason of the error that a policy with this text gives."""
    path = write(directory, name, text)
    with pytest.raises(PolicyError) as caught:
        load(path)
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)
    return caught.value.line, caught.value.reason


# ---------------------------------------------------------------- a good policy


def test_every_key_reaches_the_settings(tmp_path: Path) -> None:
    path = write(tmp_path, "linkcheck.toml", EVERY_KEY)
    settings = load(path)
    counter = SymbolSpec("ns::counter()", ("_ZN2ns7counterEv",))
    assert settings.source == str(path)
    assert settings.profile == f"{DEFAULT_PROFILE} + {path}"
    assert settings.select == ("LC3", "LC4", "LC9")
    assert settings.ignore == ("LC302",)
    assert settings.external == ("libcuda.so*",)
    assert settings.states[-1] == State(
        name="counter",
        owner=("libcounter.so*", "<root>"),
        symbols=(SymbolSpec("counter_value", ("counter_value",)), counter),
        thread_local=True,
        only_with_owner=True,
        exported_only=True,
        consequence="two counters disagree",
        cmake_target="counter::counter",
        link_flag="-lcounter",
        source=str(path),
    )
    assert settings.roles[-1] == Role(
        name="tool",
        files=("bin/*",),
        kind="executable",
        when_need=("libc.so*",),
        when_import=(SymbolSpec("main_loop", ("main_loop",)),),
        need=("libcounter.so*",),
        forbid_need=("libbad*",),
        import_=(counter,),
        forbid_import=(SymbolSpec("gets", ("gets",)),),
        export=(SymbolSpec("plugin_*"),),
        forbid_export=(SymbolSpec("_ZN7private*"),),
        source=str(path),
    )
    plugin = str(tmp_path / "lib/libplugin.so")
    assert settings.dlopen == (DlopenEdge("bin/tool", plugin, "global", source=str(path)),)
    # What comes from a built-in profile is not the user's own.
    assert {entry.source for entry in settings.states[:-1]} == {entry.source for entry in settings.roles[:-1]} == {""}
    assert settings.waivers == (
        Waiver(
            code="LC4",
            path="lib/*",
            reason="known",
            owner="me",
            expires=datetime.date(2027, 1, 31),
            symbol="counter_value",
            source=str(path),
            line=EVERY_KEY[: EVERY_KEY.index("[[waiver]]")].count("\n") + 1,
        ),
    )


def test_pyproject_has_the_same_schema_under_tool_linkcheck(tmp_path: Path) -> None:
    in_pyproject = EVERY_KEY.replace("[[", "[[tool.linkcheck.").replace("[mangled]", "[tool.linkcheck.mangled]")
    path = write(tmp_path, "pyproject.toml", f'[project]\nname = "x"\n[tool.linkcheck]\n{in_pyproject}')
    same = load(write(tmp_path, "linkcheck.toml", EVERY_KEY))
    settings = load(path)
    for entries in (settings.states, settings.roles, settings.dlopen):
        assert {entry.source for entry in entries} <= {"", str(path)}
    assert settings.states == tuple(replace(state, source=state.source and str(path)) for state in same.states)
    assert settings.roles == tuple(replace(role, source=role.source and str(path)) for role in same.roles)
    assert settings.dlopen == tuple(replace(edge, source=str(path)) for edge in same.dlopen)
    assert settings.waivers[0].line == same.waivers[0].line + 3


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf" + EVERY_KEY.encode(), EVERY_KEY.replace("\n", "\r\n").encode()])
def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path, content: bytes) -> None:
    expected = load(write(tmp_path, "linkcheck.toml", EVERY_KEY))
    assert load(write(tmp_path, "linkcheck.toml", content)) == expected


def test_an_unnamed_role_is_called_by_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "linkcheck.toml", '[[role]]\nneed = ["a"]\n[[role]]\nneed = ["b"]\n')
    assert [role.name for role in load(path).roles] == [f"role 1 of {path}", f"role 2 of {path}"]


def test_dlopen_is_local_unless_said_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path, "linkcheck.toml", '[[dlopen]]\nfrom = "a"\npath = "/abs/b.so"\n')
    assert load(path).dlopen == (DlopenEdge("a", "/abs/b.so", "local", source=str(path)),)


def test_the_manuals_examples_are_good_policies(tmp_path: Path) -> None:
    manual = (Path(__file__).parents[2] / "docs/policy.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", manual, re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        codes = (*CODES, "LC204", "LC205")
        load_settings(rule_codes=codes, policy=str(write(tmp_path, "linkcheck.toml", example)))


def test_the_manual_names_every_key() -> None:
    manual = (Path(__file__).parents[2] / "docs/policy.md").read_text(encoding="utf-8")
    for key in (*TOP_KEYS, *STATE_KEYS, *ROLE_KEYS, *DLOPEN_KEYS, *WAIVER_KEYS):
        assert re.search(rf"^(\| .*`{key}`.* \||### `\[+{key}\]+`)", manual, re.MULTILINE), key


# ---------------------------------------------------------------- which file holds


def test_without_anything_the_default_profile_holds(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    settings = load(start_directory=str(tmp_path))
    assert settings.profile == DEFAULT_PROFILE
    assert settings.source is None
    assert settings.states[0].name == "caller stream"


def test_only_what_nobody_chose_holds_by_default(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    here = str(tmp_path)
    assert load(start_directory=here).by_default
    assert load(start_directory=here, require_import=("f",), select=("LC3",)).by_default
    assert not load(start_directory=here, profile=DEFAULT_PROFILE).by_default
    path = write(tmp_path, "linkcheck.toml", 'extends = ["executorch-caller-stream"]')
    assert not load(start_directory=here).by_default
    assert not load(path, discover=False).by_default


def test_the_nearest_policy_above_holds(tmp_path: Path) -> None:
    write(tmp_path, "linkcheck.toml", 'external = ["far"]')
    write(tmp_path, "a/linkcheck.toml", 'external = ["near"]')
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert load(start_directory=str(tmp_path / "a/b/c")).external == ("near",)
    assert load(start_directory=str(tmp_path)).external == ("far",)


def test_the_working_directory_is_where_the_search_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "linkcheck.toml", 'external = ["here"]')
    monkeypatch.chdir(tmp_path)
    settings = load()
    assert settings.external == ("here",)
    assert settings.source == "linkcheck.toml"


def test_the_search_ends_at_the_repository(tmp_path: Path) -> None:
    write(tmp_path, "linkcheck.toml", 'external = ["outside"]')
    (tmp_path / "checkout/src").mkdir(parents=True)
    (tmp_path / "checkout/.git").write_text("gitdir: elsewhere")  # a work tree or a submodule has a file
    assert load(start_directory=str(tmp_path / "checkout/src")).source is None


def test_linkcheck_toml_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "linkcheck.toml", 'external = ["own"]')
    write(tmp_path, "pyproject.toml", '[tool.linkcheck]\nexternal = ["shared"]')
    assert load(start_directory=str(tmp_path)).external == ("own",)


@pytest.mark.parametrize("foreign", ['[project]\nname = "x"', "this is no TOML", '[tool.black]\nnote = "linkcheck"'])
def test_a_found_pyproject_without_the_table_is_passed_over(tmp_path: Path, foreign: str) -> None:
    write(tmp_path, "pyproject.toml", '[tool.linkcheck]\nexternal = ["upper"]')
    write(tmp_path, "a/pyproject.toml", foreign)
    assert load(start_directory=str(tmp_path / "a")).external == ("upper",)


def test_a_named_pyproject_without_the_table_is_an_error(tmp_path: Path) -> None:
    line, reason = refused('[project]\nname = "x"\n', tmp_path, "pyproject.toml")
    assert (line, reason) == (None, "has no [tool.linkcheck] table")


def test_a_found_policy_that_is_broken_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "[tool.linkcheck]\nexternal = [")
    with pytest.raises(PolicyError, match=r"pyproject\.toml:2: is not valid TOML"):
        load(start_directory=str(tmp_path))


def test_a_found_dangling_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "linkcheck.toml").symlink_to(tmp_path / "gone")
    with pytest.raises(PolicyError, match=r"linkcheck\.toml: no such file"):
        load(start_directory=str(tmp_path))


def test_a_found_pipe_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "linkcheck.toml")
    with pytest.raises(PolicyError, match="is not a regular file"):
        load(start_directory=str(tmp_path))


def test_discovery_can_be_switched_off(tmp_path: Path) -> None:
    write(tmp_path, "linkcheck.toml", 'external = ["here"]')
    assert load(start_directory=str(tmp_path), discover=False).profile == DEFAULT_PROFILE


def test_a_removed_working_directory_has_no_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load().source is None


# ---------------------------------------------------------------- files that cannot be used


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "nowhere.toml")
    assert str(caught.value) == f"{tmp_path}/nowhere.toml: no such file"


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is a directory, not a policy file"):
        load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path, "linkcheck.toml", "")
    path.chmod(0)
    with pytest.raises(PolicyError, match="cannot be read: Permission denied"):
        load(path)


def test_a_path_through_a_file(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: Not a directory"):
        load(write(tmp_path, "file", "") / "linkcheck.toml")


def test_a_device_that_never_ends() -> None:
    with pytest.raises(PolicyError, match="/dev/zero: is larger than 1 MiB"):
        load(Path("/dev/zero"))


def test_an_empty_policy_path() -> None:
    with pytest.raises(UsageProblemError, match="--policy"):
        load_settings(rule_codes=CODES, policy="")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"# " + b"x" * (1 << 20), None, "is larger than 1 MiB"),
        (b'a = 1\nb = "\xe9"\n', 2, "is not UTF-8: byte 0xe9"),
        ("extends = []\n".encode("utf-16"), 1, "is encoded as UTF-16"),
        (b"select = [\n'LC1'\nignore = 3\n", 3, "is not valid TOML"),
        (b"select = [\n\n", 1, "is not valid TOML"),  # the last line with anything on it
        (b"external = ['a']\nexternal = ['b']\n", 2, "is not valid TOML"),
        (b"x = " + b"[" * 5000, None, "nested too deeply"),
        (b"x = " + b"9" * 5000, None, "is not valid TOML"),
        (b"[[waiver]]\nexpires = 2027-02-30\n", 2, "is not valid TOML: invalid date"),
    ],
)
def test_content_that_is_no_toml(tmp_path: Path, content: bytes, line: int | None, reason: str) -> None:
    found_line, found_reason = refused(content, tmp_path)
    assert found_line == line
    assert reason in found_reason


# ---------------------------------------------------------------- the schema

WAIVER = '[[waiver]]\ncode = "LC4"\npath = "*"\nreason = "r"\nowner = "o"\nexpires = 2027-01-31\n'
STATE = '[[state]]\nname = "s"\nowner = ["o"]\nsymbols = ["f"]\n'


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("\nextnds = []", 2, 'unknown key "extnds" in the policy; did you mean "extends"? allowed: extends, select,'),
        (f'{STATE}ownr = ["x"]', 5, 'unknown key "ownr" in [[state]]; did you mean "owner"? allowed: name, owner,'),
        ('[[role]]\nforbid_need = ["x"]', 2, 'did you mean "forbid-need"?'),
        ('[[role]]\nzzz = ["x"]', 2, 'unknown key "zzz" in [[role]]; allowed: name, files, kind,'),
        (
            '[[role]]\nneed = ["x"]\nexternal = ["y"]',
            3,
            "forbid-export; external is a key of the top of the file and goes before the first [[...]]",
        ),
        (f'{STATE}select = ["LC1"]', 5, "; select is a key of the top of the file and goes before the first [[...]]"),
        ('[[role]]\n"a\\nb" = 1', 2, 'unknown key "a\\nb" in [[role]]'),
        ("[state]\nname = 's'", 1, "write [[state]], with two brackets"),
        ("state = [1]", 1, "[[state]] must be a table, not an integer"),
        ("state = 1.5", 1, "write [[state]]"),
        ('[[state]]\nname = "s"\n', 1, "[[state]] lacks owner and symbols; it must have name, owner, symbols"),
        (STATE.replace('["o"]', '"o"'), 3, "owner must be a list of strings, not a string"),
        (STATE.replace('["o"]', "[]"), 3, "owner must not be an empty list"),
        (STATE.replace('["f"]', '[\n"f",\n1979-05-27]'), 6, "symbols must hold strings only, not a date"),
        (STATE.replace('["f"]', '["f", ""]'), 4, "symbols must not hold an empty string"),
        (STATE.replace('["f"]', '["f@@V_1"]'), 4, "write the symbol without its version: f"),
        (STATE.replace('"s"', '" "'), 2, "name must not be empty"),
        (STATE.replace('"s"', "true"), 2, "name must be a string, not a boolean"),
        (f"{STATE}thread-local = 1", 5, "thread-local must be true or false, not an integer"),
        (f"{STATE}{STATE}", 6, '[[state]] "s" is already defined on line 1'),
        ('[[role]]\nfiles = ["x"]', 1, "[[role]] demands nothing; give at least one of need, forbid-need, import,"),
        (
            '[[role]]\nneed = ["x"]\nkind = "libary"',
            3,
            'unknown kind "libary"; did you mean "library"? allowed: executable, library, any',
        ),
        (
            '[[dlopen]]\nfrom = "a"\npath = "b"\nmode = "lazy"',
            4,
            'unknown mode "lazy"; allowed: local, global',
        ),
        ('[[dlopen]]\npath = "b"', 1, "[[dlopen]] lacks from; it must have from, path"),
        (WAIVER.replace('reason = "r"\n', ""), 1, "[[waiver]] lacks reason; it must have code, path, reason, owner"),
        (WAIVER.replace('owner = "o"\nexpires = 2027-01-31\n', ""), 1, "[[waiver]] lacks owner and expires"),
        (WAIVER.replace('"r"', '""'), 4, "reason must not be empty"),
        (
            WAIVER.replace("2027-01-31", '"2027-01-31"'),
            6,
            "expires must be a date such as 2027-01-31, without quotes",
        ),
        (WAIVER.replace("2027-01-31", "2027-01-31T10:00:00Z"), 6, "not a date with a time"),
        (WAIVER.replace("2027-01-31", "10:00:00"), 6, "not a time"),
        (WAIVER.replace('"LC4"', '"LC7"'), 2, 'unknown rule code "LC7"'),
        (WAIVER.replace('"LC4"', '"L"'), 2, '"L" would accept findings of every rule; give at least LC and a digit'),
        (WAIVER.replace('"LC4"', '"LC"'), 2, '"LC" would accept findings of every rule'),
        (WAIVER.replace('"LC4"', '"LC-401"'), 2, 'did you mean "LC401"? allowed: LC101, LC301,'),
        (WAIVER.replace('"LC4"', '"LC499"'), 2, 'unknown rule code "LC499"; allowed: LC101, LC301,'),
        ('select = [\n"LC4",\n"LC9x"]', 3, 'unknown rule code "LC9x"'),
        ('ignore = ["split-state"]', 1, 'code "split-state"; rules are selected by code, not by name'),
        ('ignore = ["private-definition"]', 1, 'code "private-definition"; rules are selected by code, not by name'),
        (
            WAIVER.replace('"LC4"', '"wrong-provider"'),
            2,
            'unknown rule code "wrong-provider"; rules are selected by code, not by name',
        ),
        ("select = []", 1, "select must not be an empty list"),
        ("ignore = 'LC4'", 1, "ignore must be a list of strings, not a string"),
        ("mangled = []", 1, "[mangled] must be a table, not a list"),
        ('[mangled]\n"f()" = []', 2, "f() must not be an empty list"),
        ('[mangled]\n"f()" = "_Z1fv"', 2, "f() must be a list of strings"),
        ('\nextends = ["executorch"]', 2, 'unknown profile "executorch"; did you mean "executorch-caller-stream"?'),
        ('extends = [\n"./other.toml"]', 2, 'extends "./other.toml", but there is no such file'),
        ('extends = ["a\\u0000.toml"]', 1, "but there is no such file"),
        ('extends = ["linkcheck.toml"]', 1, "which extends this file in turn"),
    ],
)
def test_what_the_schema_refuses(tmp_path: Path, text: str, line: int, reason: str) -> None:
    found_line, found_reason = refused(text, tmp_path)
    assert reason in found_reason
    assert found_line == line


def test_lines_in_pyproject(tmp_path: Path) -> None:
    line, reason = refused('[tool.linkcheck]\n\n[[tool.linkcheck.role]]\nneeds = ["x"]', tmp_path, "pyproject.toml")
    assert line == 4
    assert 'did you mean "need"' in reason
    line, reason = refused("[tool]\nlinkcheck = 3", tmp_path, "pyproject.toml")
    assert (line, reason) == (2, "[tool.linkcheck] must be a table, not an integer")


# ---------------------------------------------------------------- extends and profiles


def test_a_policy_without_extends_extends_nothing(tmp_path: Path) -> None:
    settings = load(write(tmp_path, "linkcheck.toml", STATE))
    assert [state.name for state in settings.states] == ["s"]
    assert settings.roles == ()


def test_a_profile_named_with_a_policy_is_added(tmp_path: Path) -> None:
    path = write(tmp_path, "linkcheck.toml", STATE)
    settings = load(path, profile=DEFAULT_PROFILE)
    assert settings.profile == f"{DEFAULT_PROFILE} + {path}"
    assert [state.name for state in settings.states][:1] == ["caller stream"]
    assert [state.name for state in settings.states][-1:] == ["s"]
    extending = write(tmp_path, "extending.toml", f'extends = ["{DEFAULT_PROFILE}"]\n{STATE}')
    extended = load(extending, profile=DEFAULT_PROFILE).states
    assert extended == (*settings.states[:-1], replace(settings.states[-1], source=str(extending)))


def test_an_unknown_profile_names_the_nearest_and_all() -> None:
    with pytest.raises(UsageProblemError) as caught:
        load(profile="executorch-caller-steam", discover=False)
    assert str(caught.value) == (
        'unknown profile "executorch-caller-steam"; did you mean "executorch-caller-stream"? '
        f"allowed: {', '.join(profile_names())}"
    )


@pytest.mark.parametrize("name", ["", "../profiles/executorch-caller-stream", "-", "a\0b", "EXECUTORCH\n"])
def test_a_profile_name_is_no_path(name: str) -> None:
    with pytest.raises(UsageProblemError) as caught:
        load(profile=name, discover=False)
    assert "\n" not in str(caught.value)


def test_later_entries_replace_those_with_their_name(tmp_path: Path) -> None:
    own = STATE.replace('"s"', '"caller stream"') + '[[role]]\nname = "runner"\nexport = ["main"]\n'
    settings = load(write(tmp_path, "linkcheck.toml", f'extends = ["{DEFAULT_PROFILE}"]\n{own}'))
    profile = load(discover=False)
    assert [state.name for state in settings.states] == [state.name for state in profile.states]
    assert settings.states[0].owner == ("o",)
    assert settings.states[1:] == profile.states[1:]
    assert settings.roles[0] == Role("runner", export=(SymbolSpec("main", ("main",)),), source=settings.source or "")
    assert settings.roles[1:] == profile.roles[1:]


def test_files_extend_each_other_relative_to_themselves(tmp_path: Path) -> None:
    write(tmp_path, "base/base.toml", f'external = ["b"]\nignore = ["LC3"]\nselect = ["LC3", "LC9"]\n{WAIVER}')
    write(tmp_path, "base/edge.toml", '[[dlopen]]\nfrom = "x"\npath = "p.so"\n')
    write(tmp_path, "base/both.toml", 'extends = ["base.toml", "edge.toml"]\nexternal = ["both"]')
    top = write(tmp_path, "linkcheck.toml", 'extends = ["base/both.toml", "base/base.toml"]\nignore = []\n')
    settings = load(top)
    assert settings.external == ("b", "both")
    assert settings.select == ("LC3", "LC9")
    assert settings.ignore == ()
    assert settings.dlopen == (
        DlopenEdge("x", str(tmp_path / "base/p.so"), "local", source=str(tmp_path / "base/edge.toml")),
    )
    assert [waiver.source for waiver in settings.waivers] == [str(tmp_path / "base/base.toml")]  # once, not twice


def test_a_circle_is_refused_where_it_closes(tmp_path: Path) -> None:
    write(tmp_path, "a.toml", 'extends = ["b.toml"]')
    b = write(tmp_path, "b.toml", '\nextends = ["./a.toml"]')
    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "a.toml")
    assert str(caught.value) == f'{b}:2: extends "./a.toml", which extends this file in turn'


def test_a_long_chain_is_refused(tmp_path: Path) -> None:
    for number in range(40):
        write(tmp_path, f"{number}.toml", f'extends = ["{number + 1}.toml"]')
    with pytest.raises(PolicyError, match="files deep"):
        load(tmp_path / "0.toml")


def test_an_extended_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(PolicyError, match="is not a regular file"):
        load(write(tmp_path, "linkcheck.toml", 'extends = ["pipe.toml"]'))


# ---------------------------------------------------------------- the command line


def test_one_off_demands_are_roles_for_the_roots() -> None:
    settings = load(
        discover=False,
        require_needed=("liba.so", "libb.so"),
        require_import=("executorch::extension::cuda::getCallerStream( )",),
        forbid_needed=("libtorch*",),
    )
    mangled = ("_ZN10executorch9extension4cuda15getCallerStreamEv",)
    assert settings.roles[-4:] == (
        Role("--require-needed liba.so", need=("liba.so",), roots_only=True),
        Role("--require-needed libb.so", need=("libb.so",), roots_only=True),
        Role(
            "--require-import executorch::extension::cuda::getCallerStream( )",
            import_=(SymbolSpec("executorch::extension::cuda::getCallerStream( )", mangled),),
            roots_only=True,
        ),
        Role("--forbid-needed libtorch*", forbid_need=("libtorch*",), roots_only=True),
    )
    assert not any(role.roots_only for role in settings.roles[:-4])


@pytest.mark.parametrize(
    "options",
    [{"require_needed": ("",)}, {"require_import": (" ",)}, {"require_import": ("f@V",)}, {"forbid_needed": ("",)}],
)
def test_a_demand_that_can_match_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageProblemError, match=r"^--(require-needed|require-import|forbid-needed)"):
        load(discover=False, **options)


def test_select_and_ignore_of_the_command_line_win(tmp_path: Path) -> None:
    path = write(tmp_path, "linkcheck.toml", 'select = ["LC3", "LC9"]\nignore = ["LC302"]')
    assert load(path).select == ("LC3", "LC9")
    assert load(path, select=("LC3",)).select == ("LC301", "LC302")
    assert load(path, ignore=("LC9",)).select == ("LC301",)
    assert load(path, ignore=("LC9",)).ignore == ()


def test_codes_may_be_written_in_lower_case_anywhere(tmp_path: Path) -> None:
    text = 'select = ["lc3", "lc9"]\nignore = ["lc302"]\n' + WAIVER.replace('"LC4"', '"lc401"')
    path = write(tmp_path, "linkcheck.toml", text)
    assert (load(path).select, load(path).ignore) == (("LC3", "LC9"), ("LC302",))
    assert [waiver.code for waiver in load(path).waivers] == ["LC401"]
    assert load(path, select=("lc3",)).select == ("LC301", "LC302")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": ("LC8",)}, '--select: unknown rule code "LC8"'),
        ({"select": ("LC8",)}, '"LC8"; allowed: '),
        ({"select": ("LC3O1",)}, 'did you mean "LC301"'),
        ({"select": ("401",)}, 'did you mean "LC401"'),
        (
            {"ignore": ("missing-import",)},
            '--ignore: unknown rule code "missing-import"; rules are selected by code, not by name',
        ),
        ({"select": ("",)}, "--select: an empty code"),
        ({"ignore": ("LC",)}, "leave no rule to run"),
    ],
)
def test_codes_that_leave_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageProblemError, match=message):
        load(discover=False, **options)


# ---------------------------------------------------------------- any input

VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-5, 5),
        st.sampled_from(['"LC4"', '"x"', '""', '"global"', "2027-01-31", "1.5", "'*'", "'<root>'", '"f@V"']),
    ).map(lambda value: str(value).lower() if isinstance(value, bool) else str(value)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"k{i} = {v}" for i, v in enumerate(items)) + "}"
        ),
    ),
    max_leaves=4,
)
KEYS = st.sampled_from((*TOP_KEYS, *STATE_KEYS, *ROLE_KEYS, *DLOPEN_KEYS, *WAIVER_KEYS, "tool", "linkcheck"))
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    st.sampled_from(["[[state]]", "[[role]]", "[[dlopen]]", "[[waiver]]", "[mangled]", "[state.x]", "# x", ""]),
    st.text(max_size=10),
)


def judge(content: bytes) -> None:
    """Either settings, or one line that names the file; nothing else may happen."""
    try:
        read_policy(parse_toml("linkcheck.toml", content), CODES)
    except PolicyError as error:
        assert str(error).startswith("linkcheck.toml")
        assert len(str(error).splitlines()) == 1
        assert error.line is None or 1 <= error.line <= content.count(b"\n") + 1


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_any_policy_is_settings_or_one_clear_error(text: str) -> None:
    judge(text.encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=200))
def test_any_bytes_are_settings_or_one_clear_error(content: bytes) -> None:
    judge(content)


@given(st.lists(LINES, max_size=6).map("\n".join))
def test_any_pyproject_through_the_whole_loader(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    directory = tmp_path_factory.mktemp("any")
    path = write(directory, "linkcheck.toml", text.encode("utf-8", "surrogatepass"))
    try:
        assert isinstance(load(path), Settings)
    except LinkcheckError as error:
        assert isinstance(error, PolicyError)
        assert len(str(error).splitlines()) == 1
