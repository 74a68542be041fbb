"""What stops or disturbs `linkcheck verify`: bad inputs, policies, outputs and signals. Never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.process import COMMAND, Ended, environment, linkcheck_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


#: Root reads everything; without these two capabilities the modes of its own files hold for it, too.
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


@pytest.fixture
def prefix(here: Path) -> tuple[str, ...]:
    """What a command is run by, so that a file of mode 0 is unreadable for it."""
    if os.geteuid() != 0:
        return ()
    probe = here / "probe"
    probe.touch(mode=0)
    if shutil.which("setpriv") is None or subprocess.run([*WITHOUT_OVERRIDE, "true"], check=False).returncode:
        pytest.skip("root reads every file, and there is no setpriv that may take this away")
    assert subprocess.run([*WITHOUT_OVERRIDE, "test", "-r", str(probe)], check=False).returncode == 1
    return WITHOUT_OVERRIDE


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
    "ignore-all": (("verify", GOOD, "--ignore", "LC"), ("leave no rule to run",)),
    "root": (("verify", GOOD, "--root", "nowhere"), ("nowhere", "--root")),
    "root-file": (("verify", GOOD, "--root", GOOD), (GOOD, "--root")),
    "require-import": (("verify", GOOD, "--require-import", "f@V1"), ("--require-import", "without its version")),
    "require-needed": (("verify", GOOD, "--require-needed", ""), ("--require-needed", "empty")),
    "dlopen": (("verify", GOOD, "--dlopen", ""), ("--dlopen", "empty")),
    "library-path": (("verify", GOOD, "--library-path", ""), ("--library-path", "empty")),
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


@pytest.mark.parametrize("arguments", [("verify", GOOD), ("rules",), ("explain", "LC301")], ids=" ".join)
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


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("after", [0.6, 1.2])
def test_ctrl_c_ends_it_by_the_signal_and_without_a_word(here: Path, after: float) -> None:
    content = (here / GOOD).read_bytes()
    for number in range(5000):
        (here / f"lib{number}.so").write_bytes(content)
    process = subprocess.Popen(
        [*COMMAND, "verify", "."], cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(after)
    assert process.poll() is None, "it has to be at work when the signal comes"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert (out, err.strip()) == (b"", b"")  # click ends the line on which the terminal shows ^C
