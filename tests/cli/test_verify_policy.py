"""Every key of a policy is honoured by some rule, on compiled files: what it asks for is found, and without it not."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from tests.cli.verify_command import Verdict, verify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile


class Shop:
    """The working directory: files made by the compiler, and a policy that is found there."""

    def __init__(self, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.here = here
        self.capfd = capfd

    def library(self, path: str, source: str = "", *links: str, soname: str | None = None) -> str:
        name = soname or path.rpartition("/")[2]
        return self._link(path, source or "int unused;", "-shared", f"-Wl,-soname,{name}", *links)

    def program(self, path: str, source: str = "", *links: str) -> str:
        return self._link(path, f"{source}\nint main(void) {{ return 0; }}", *links)

    def _link(self, path: str, source: str, *flags: str) -> str:
        (self.here / path).parent.mkdir(parents=True, exist_ok=True)
        command = ["gcc", "-fPIC", "-w", "-xc", "-", "-xnone", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN/../lib"]
        command += ["-Wl,--allow-shlib-undefined", *flags, "-o", path]
        subprocess.run(command, input=source, text=True, check=True, cwd=self.here)
        return path

    def judge(self, policy: str, *arguments: str) -> Verdict:
        (self.here / "linkcheck.toml").write_text(policy)
        return verify(self.capfd, *arguments)

    def shown(self, path: str) -> str:
        """How a report shows a file that was loaded, not named."""
        return str(self.here / path)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shop:
    monkeypatch.chdir(tmp_path)
    return Shop(tmp_path, capfd)


def test_what_is_said_of_a_policy_that_nobody_has_is_true_beside_other_files(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pyproject.toml that says nothing to linkcheck is no policy, nor is what lies above the repository."""
    (shop.here / "linkcheck.toml").write_text('external = ["libupper.so"]')
    repository = shop.here / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "pyproject.toml").write_text('[project]\nname = "x"\n')
    shop.library("repository/liba.so")
    monkeypatch.chdir(repository)
    assert run(["verify", "liba.so"]) == 0
    said = "No policy (linkcheck.toml, or [tool.linkcheck] in pyproject.toml) was found: judged by the built-in profile"
    assert f"\n{said} executorch-caller-stream; --profile default is for any program.\n" in shop.capfd.readouterr().out


DEFINES = "int table_get(void) { return 1; }"
DEFINES_AND_CALLS = f"{DEFINES} int copy_call(void) {{ return table_get(); }}"
USES = "extern int table_get(void); int use(void) { return table_get(); }"
TABLE = '[[state]]\nname = "table"\nowner = ["libtable.so*"]\nsymbols = ["table_get"]\n'
#: What some keys of a state look like in messages.
WORDS = {
    "consequence": ("entries are lost", "Entries are lost."),
    "cmake-target": ("acme::table", "target_link_libraries(<target> PRIVATE acme::table)"),
    "link-flag": ("-ltable", "c++ <objects> -L<directory> -ltable"),
    "name": ("symbol table", "the symbol table"),
}

# ---------------------------------------------------------------- roles


@pytest.mark.parametrize(
    ("demand", "code", "symbol"),
    [
        ('need = ["libtable.so*"]', "LC201", "libtable.so*"),
        ('forbid-need = ["libother.so"]', "LC204", "libother.so"),
        ('import = ["table_get"]', "LC301", "table_get"),
        ('forbid-import = ["other_*"]', "LC204", "other_call"),
        ('export = ["plugin_init"]', "LC306", "plugin_init"),
        ('forbid-export = ["plug*"]', "LC302", "plugin_run"),
    ],
)
def test_every_demand_of_a_role_is_made(shop: Shop, demand: str, code: str, symbol: str) -> None:
    other = shop.library("lib/libother.so", "int other_call(void) { return 1; }")
    plugin = shop.library(
        "lib/plugin.so", "extern int other_call(void); int plugin_run(void) { return other_call(); }", other
    )
    verdict = shop.judge(f'[[role]]\nname = "plug-in"\nfiles = ["plugin.so"]\n{demand}\n', plugin)
    assert (verdict.status, verdict.codes) == (1, {code})
    (finding,) = verdict.about(plugin)
    assert finding["primary"]["symbol"] == symbol
    assert "plug-in" in finding["message"]
    elsewhere = f'[[role]]\nname = "plug-in"\nfiles = ["other/*"]\n{demand}\n'
    assert shop.judge(elsewhere, plugin).status == 0


@pytest.mark.parametrize(
    ("condition", "applies"),
    [
        ('kind = "library"', True),
        ('kind = "any"', True),
        ('kind = "executable"', False),
        ('when-need = ["libother*"]', True),
        ('when-need = ["libtable*"]', False),
        ('when-import = ["other_call"]', True),
        ('when-import = ["table_get"]', False),
        ('when-need = ["libother*"]\nwhen-import = ["table_get"]', False),
        ('files = ["lib/*.so"]', True),
        ('files = ["bin/*"]', False),
        ('files = ["libplug-in.so.*"]', True),  # the SONAME
    ],
)
def test_every_condition_of_a_role_decides(shop: Shop, condition: str, applies: bool) -> None:
    other = shop.library("lib/libother.so", "int other_call(void) { return 1; }")
    source = "extern int other_call(void); int plugin_run(void) { return other_call(); }"
    plugin = shop.library("lib/plugin.so", source, other, soname="libplug-in.so.2")
    verdict = shop.judge(f'[[role]]\n{condition}\nexport = ["plugin_init"]\n', plugin)
    assert bool(verdict.about(plugin)) is applies


# ---------------------------------------------------------------- states


def test_the_owner_and_the_symbols_of_a_state_decide(shop: Shop) -> None:
    shop.library("lib/libtable.so", DEFINES)
    shop.library("lib/libcopy.so", DEFINES_AND_CALLS)
    program = shop.program("bin/a", USES, "lib/libtable.so", "lib/libcopy.so")
    verdict = shop.judge(TABLE, program)
    assert {f["code"] for f in verdict.findings} == {"LC302", "LC401"}  # an interposed copy: information
    assert verdict.status == 0
    other = TABLE.replace("libtable.so*", "lib*.so")
    two_owners = shop.judge(other, program)
    assert (two_owners.status, two_owners.codes) == (1, {"LC401"})
    nothing = TABLE.replace("table_get", "table_put")
    assert [f["code"] for f in shop.judge(nothing, program).findings] == ["LC903"]


def test_the_program_may_own_a_state(shop: Shop) -> None:
    plugin = shop.library("lib/plugin.so", DEFINES)
    program = shop.program("bin/a", DEFINES, "-rdynamic")
    mine = TABLE.replace("libtable.so*", "<root>")
    split = shop.judge(mine, program, "--dlopen", plugin)
    assert [f["primary"]["path"] for f in split.findings if f["code"] == "LC302"] == [plugin]
    assert "the table belongs to the program itself alone" in split.about(plugin)[0]["message"]
    user = shop.library("lib/user.so", USES)
    assert shop.judge(mine, program, "--dlopen", user).findings == []


def test_the_program_or_a_library_may_own_a_state(shop: Shop) -> None:
    either = TABLE.replace('"libtable.so*"', '"libtable.so*", "<root>"')
    shop.library("lib/libtable.so", DEFINES)
    user = shop.library("lib/user.so", USES, "lib/libtable.so")
    # It leaves the state to the library, whether it uses it or not, and exports nothing.
    for source in (USES, ""):
        program = shop.program("bin/a", source, "lib/libtable.so")
        verdict = shop.judge(either, program, "--dlopen", user)
        assert (verdict.status, verdict.findings) == (0, [])
    # Without the library it has to.
    plugin = shop.library("lib/plugin.so", USES)
    hides, shares = shop.program("bin/hides", DEFINES), shop.program("bin/shares", DEFINES, "-rdynamic")
    assert "LC306" in shop.judge(either, hides, "--dlopen", plugin).codes
    assert shop.judge(either, shares, "--dlopen", plugin).findings == []
    # And two owners are one too many.
    assert shop.judge(either, shares, "--dlopen", user).codes == {"LC401"}


def test_thread_local_makes_a_segment_evidence(shop: Shop) -> None:
    plugin = shop.library("lib/plugin.so", "static __thread int mine; int run(void) { return ++mine; }")
    program = shop.program("bin/a")
    assert shop.judge(TABLE, program, "--dlopen", plugin).about(plugin) == []
    verdict = shop.judge(f"{TABLE}thread-local = true\n", program, "--dlopen", plugin)
    assert [f["code"] for f in verdict.about(plugin)] == ["LC404"]
    alone = f"{TABLE}thread-local = true\nonly-with-owner = true\n"
    assert shop.judge(alone, program, "--dlopen", plugin).about(plugin) == []


def test_only_with_owner_waits_for_the_owner(shop: Shop) -> None:
    shop.library("lib/libtable.so", DEFINES)
    copy = shop.library("lib/libcopy.so", DEFINES)
    alone, beside = shop.program("bin/alone", "", copy), shop.program("bin/beside", "", "lib/libtable.so", copy)
    policy = f"{TABLE}only-with-owner = true\n"
    assert [f["code"] for f in shop.judge(policy, alone).findings] == ["LC903"]
    assert "LC302" in {f["code"] for f in shop.judge(policy, beside).findings}
    assert "LC302" in {f["code"] for f in shop.judge(TABLE, alone).findings}


@pytest.mark.parametrize("key", WORDS)
def test_the_words_of_a_state_are_in_its_messages(shop: Shop, key: str) -> None:
    value, shown = WORDS[key]
    plugin = shop.library("lib/plugin.so", DEFINES)
    base = "\n".join(line for line in TABLE.splitlines() if not line.startswith(f"{key} "))
    role = '[[role]]\nfiles = ["plugin.so"]\nimport = ["table_get"]\n'
    verdict = shop.judge(f'{base}\n{key} = "{value}"\n{role}', plugin)
    assert shown in json.dumps(verdict.findings).replace('\\"', '"')


# ---------------------------------------------------------------- dlopen


def test_a_declared_dlopen_is_made_with_its_mode(shop: Shop) -> None:
    program = shop.program("bin/a")
    for name in ("one", "two"):
        shop.library(f"lib/{name}.so", DEFINES_AND_CALLS)

    def edges(mode: str) -> str:
        return TABLE + "".join(
            f'[[dlopen]]\nfrom = "bin/*"\npath = "lib/{name}.so"\n{mode}\n' for name in ("one", "two")
        )

    def state_verdict(policy: str) -> set[str]:
        return {f["evidence"]["verdict"] for f in shop.judge(policy, program).findings if f["code"] == "LC401"}

    assert state_verdict(edges("")) == {"split-unless-global"}
    assert state_verdict(edges('mode = "local"')) == {"split-unless-global"}
    assert state_verdict(edges('mode = "global"')) == {"one"}
    assert state_verdict(TABLE) == set()


@pytest.mark.parametrize(
    ("start", "applies"),
    [
        ("bin/a", True),
        ("a", True),
        ("*/a", True),
        ("libhost.so.1", True),
        ("lib/libhost.so.1", True),
        ("bin/b", False),
        ("lib/*.so.1", True),
    ],
)
def test_a_declared_dlopen_starts_at_any_file_of_the_process(shop: Shop, start: str, applies: bool) -> None:
    host = shop.library("lib/host.so", soname="libhost.so.1")
    program = shop.program("bin/a", "", host)
    (shop.here / "lib/libhost.so.1").symlink_to("host.so")
    shop.library("lib/bad.so", DEFINES)
    policy = (
        f'[[dlopen]]\nfrom = "{start}"\npath = "lib/bad.so"\n[[role]]\nfiles = ["bad.so"]\nneed = ["libtable.so"]\n'
    )
    verdict = shop.judge(policy, program)
    assert (verdict.codes == {"LC201"}) is applies


def test_what_is_opened_may_itself_open_more(shop: Shop) -> None:
    program = shop.program("bin/a")
    for name in ("first", "second", "third"):
        shop.library(f"lib/{name}.so")
    edges = [("second.so", "third.so"), ("first.so", "second.so"), ("bin/a", "first.so")]  # in the worst order
    policy = "".join(f'[[dlopen]]\nfrom = "{start}"\npath = "lib/{end}"\n' for start, end in edges)
    verdict = shop.judge(f'{policy}[[role]]\nfiles = ["third.so"]\nneed = ["libtable.so"]\n', program)
    assert verdict.codes == {"LC201"}


def test_a_declared_dlopen_is_relative_to_its_policy(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.program("bin/a")
    shop.library("plugin.so")
    (shop.here / "linkcheck.toml").write_text(
        '[[dlopen]]\nfrom = "a"\npath = "plugin.so"\n[[role]]\nfiles = ["plugin.so"]\nneed = ["libtable.so"]\n'
    )
    for directory, options in ((".", ()), ("bin", ()), (".", ("--policy", "linkcheck.toml"))):
        monkeypatch.chdir(shop.here / directory)
        verdict = verify(shop.capfd, str(shop.here / "bin/a"), *options)
        assert verdict.codes == {"LC201"}, directory


def test_a_declared_dlopen_of_what_is_not_there_is_no_pass(shop: Shop) -> None:
    program = shop.program("bin/a")
    assert shop.judge('[[dlopen]]\nfrom = "a"\npath = "lib/gone.so"\n', program).status == 2


# ---------------------------------------------------------------- the rest


def test_external_libraries_are_nobodys_fault(shop: Shop) -> None:
    shop.library("lib/libgone.so.7")
    program = shop.program("bin/a", "", "lib/libgone.so.7")
    (shop.here / "lib/libgone.so.7").unlink()
    assert shop.judge("", program).codes == {"LC202"}
    assert shop.judge('external = ["libgone*"]', program).status == 0
    assert shop.judge("", program, "--external", "libgone.so.?").status == 0


def test_select_and_ignore_decide_what_runs(shop: Shop) -> None:
    program = shop.program("bin/a")
    demands = '[[role]]\nkind = "executable"\nneed = ["libtable.so"]\nimport = ["table_get"]\n'
    assert shop.judge(demands, program).codes == {"LC201", "LC301"}
    assert shop.judge(f'select = ["LC3"]\n{demands}', program).codes == {"LC301"}
    assert shop.judge(f'ignore = ["LC30"]\n{demands}', program).codes == {"LC201"}
    assert shop.judge(demands, program, "--select", "LC201").codes == {"LC201"}
    nothing = shop.judge(demands, program, "--ignore", "LC1,LC2,LC301,LC304,LC305,LC403")
    assert (nothing.status, nothing.findings) == (2, [])  # none of the rules that are left has anything to look at
    ((code, reason),) = nothing.reasons("unknown")
    assert (code, reason.endswith("none applies to what is here")) == ("LC302", True)


def test_extends_and_profile_bring_roles_in(shop: Shop) -> None:
    program = shop.program("bin/a")
    assert shop.judge("", program).status == 0  # a policy starts from nothing
    assert "LC301" in shop.judge('extends = ["executorch-caller-stream"]', program).codes
    (shop.here / "base.toml").write_text('[[role]]\nneed = ["libtable.so"]\n')
    assert shop.judge('extends = ["base.toml"]', program).codes == {"LC201"}


def test_mangled_names_are_what_a_name_stands_for(shop: Shop) -> None:
    plugin = shop.library("lib/plugin.so", "extern int odd_name(void); int run(void) { return odd_name(); }")
    role = '[[role]]\nfiles = ["plugin.so"]\nimport = ["acme::table(int)"]\n'
    assert shop.judge(role, plugin).codes == {"LC301"}
    assert shop.judge(f'{role}[mangled]\n"acme::table(int)" = ["odd_name"]\n', plugin).status == 0


WAIVER = """
[[role]]
kind = "executable"
import = ["table_get", "table_put"]
[[waiver]]
code = "LC301"
path = "{path}"
symbol = "{symbol}"
reason = "until the rewrite"
owner = "the team"
expires = {expires}
"""


@pytest.mark.parametrize(
    ("path", "symbol", "expires", "status", "codes"),
    [
        ("bin/*", "table_*", "2999-12-31", 0, {"LC301"}),
        ("bin/*", "table_get", "2999-12-31", 1, {"LC301", "LC901"}),  # table_put is missing too
        ("b*", "table_*", "2999-12-31", 1, {"LC301", "LC901"}),  # bin is not the file's name
        ("a", "table_*", "2999-12-31", 0, {"LC301"}),
        ("lib/*", "table_get", "2999-12-31", 1, {"LC301", "LC901"}),
        ("bin/*", "other", "2999-12-31", 1, {"LC301", "LC901"}),
        ("bin/*", "table_get", "2020-01-31", 1, {"LC301", "LC902"}),
    ],
)
def test_a_waiver_accepts_by_path_and_symbol_until_its_day(
    shop: Shop, path: str, symbol: str, expires: str, status: int, codes: set[str]
) -> None:
    program = shop.program("bin/a")
    verdict = shop.judge(WAIVER.format(path=path, symbol=symbol, expires=expires), program)
    assert (verdict.status, {f["code"] for f in verdict.findings}) == (status, codes)
    for finding in verdict.findings:
        waived = finding["waiver"]
        assert (waived is None) is (status == 1)
        if waived is not None:
            assert (waived["reason"], waived["owner"], waived["symbol"]) == ("until the rewrite", "the team", symbol)


@pytest.mark.parametrize(
    ("ignored", "expires", "status", "codes"),
    [
        ("LC902", "2020-01-31", 1, {"LC301"}),  # it says nothing of the waiver, and revives nothing
        ("LC901", "2020-01-31", 1, {"LC301", "LC902"}),
        ("LC301", "2999-12-31", 2, set()),  # whether it is still needed was not asked
    ],
)
def test_what_is_said_of_waivers_can_be_ignored(
    shop: Shop, ignored: str, expires: str, status: int, codes: set[str]
) -> None:
    policy = f'ignore = ["{ignored}"]\n' + WAIVER.format(path="bin/*", symbol="table_*", expires=expires)
    verdict = shop.judge(f'select = ["LC301", "LC9"]\n{policy}', shop.program("bin/a"))
    assert (verdict.status, {f["code"] for f in verdict.findings}) == (status, codes)


# ---------------------------------------------------------------- entries that are about nothing


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ('[[role]]\nname = "app"\nfiles = ["bin/b"]\nneed = ["libc.so*"]\n', "`files` = bin/b means none of"),
        (TABLE.replace("table_get", "tabel_get"), "none imports or defines tabel_get"),
        ('[[dlopen]]\nfrom = "bin/b"\npath = "lib/x.so"\n', "the [[dlopen]] “bin/b” is made by no file of this run"),
    ],
)
def test_an_entry_with_a_typing_error_is_a_warning_and_changes_no_status(shop: Shop, policy: str, words: str) -> None:
    shop.library("lib/libtable.so", DEFINES)
    program = shop.program("bin/a", USES, "lib/libtable.so")
    verdict = shop.judge(f'extends = ["executorch-caller-stream"]\nignore = ["LC201", "LC301"]\n{policy}', program)
    (finding,) = verdict.findings  # nothing is said of the profile's own roles and states, which fit nothing here
    assert (verdict.status, finding["code"], finding["severity"]) == (0, "LC903", "warning")
    assert words in finding["message"]
    assert finding["primary"]["path"] == "linkcheck.toml"
    right = policy.replace("bin/b", "bin/a").replace("tabel_get", "table_get")
    shop.library("lib/x.so")
    assert shop.judge(right, program).findings == []
    assert shop.judge(policy, program, "--ignore", "LC903").findings == []


def test_an_idle_entry_does_not_make_a_pass_of_a_run_without_checks(shop: Shop) -> None:
    program = shop.program("bin/a")
    verdict = shop.judge(f'select = ["LC401", "LC9"]\n{TABLE}', program)
    assert [f["code"] for f in verdict.findings] == ["LC903"]
    assert (verdict.status, verdict.document["outcome"]) == (2, "could-not-check")


def test_a_dlopen_by_a_library_that_is_loaded_is_made(shop: Shop) -> None:
    host = shop.library("lib/libhost.so", "int host(void) { return 0; }")
    shop.library("lib/x.so")
    program = shop.program("bin/a", "extern int host(void); int call(void) { return host(); }", host)
    policy = '[[dlopen]]\nfrom = "libhost.so"\npath = "lib/x.so"\n'
    assert shop.judge(policy, program).findings == []


CXX_TABLE = '[[state]]\nname = "session"\nowner = ["libsession.so*"]\nsymbols = ["acme::session()"]\n'
CXX_COPY = 'int session(void) __asm__("_ZN4acme7sessionEv"); int session(void) { return 1; }'


def test_a_hidden_copy_of_a_state_with_a_cxx_name_counts(shop: Shop) -> None:
    """Without [mangled]: .symtab is searched for the words of the name, and what is found there is demangled."""
    shop.library("lib/libsession.so", CXX_COPY)
    uses = CXX_COPY.partition(";")[0] + "; int use(void) { return session(); }"
    copy = shop.library("lib/libcopy.so", f"{CXX_COPY} int copy(void) {{ return session(); }}", "-fvisibility=hidden")
    user = shop.library("lib/libuser.so", uses, "lib/libsession.so")
    program = shop.program("bin/a", "", copy, user)
    verdict = shop.judge(CXX_TABLE, program)
    assert {"LC401", "LC903"} & {f["code"] for f in verdict.findings} == {"LC401"}
    assert any("_ZN4acme7sessionEv" in json.dumps(f) and "libcopy.so" in json.dumps(f) for f in verdict.findings)
    right = shop.program("bin/b", "", user)
    assert shop.judge(CXX_TABLE, right).codes == set()


def test_a_pattern_does_not_count_hidden_inline_functions(shop: Shop) -> None:
    shop.library("lib/libsession.so", CXX_COPY)
    uses = 'int session(void) __asm__("_ZN4acme7sessionEv"); int use(void) { return session(); }'
    inline = 'int helper(void) __asm__("_ZN4acme6helperEv"); int helper(void) { return use(); }'
    user = shop.library("lib/libuser.so", f'{uses} __attribute__((visibility("hidden"))) {inline}', "lib/libsession.so")
    program = shop.program("bin/a", "", user)
    verdict = shop.judge(CXX_TABLE.replace("acme::session()", "acme::*"), program)
    assert verdict.codes == set()
