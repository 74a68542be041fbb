"""Processes that are hard to read: files that are gone, other roots and mounts, other users, and no process at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from linkcheck.cli.run import run
from linkcheck.errors import ProcessError
from linkcheck.inputs.live import load_live
from linkcheck.inputs.proc import check_unchanged, parse_environment, parse_maps, read_process
from linkcheck.model import Libc
from linkcheck.report import FORMATS
from linkcheck.value import replace
from tests.live.workshop import NOBODY, STATE, USER
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.inputs.proc import ProcessFacts
    from tests.live.conftest import Ask
    from tests.live.workshop import LiveShop

pytestmark = needs_compiler


def _can_mount() -> bool:
    """Whether a mount namespace can be made here; not so in a chroot whose root directory is no mount point."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


needs_mounts = pytest.mark.skipif(not _can_mount(), reason="needs a mount namespace: unshare -m fails here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to be another user")
PROJECT = Path(__file__).resolve().parents[2]

#: Runs the command as another user. It runs once before, because that user may not be able to read the modules.
AS_NOBODY = f"""
import os, sys
from linkcheck.cli.run import run
pid, policy = sys.argv[1:]
arguments = ["live", pid, "--policy", policy, "--format", "json"]
run([*arguments, "--output", os.devnull])
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
sys.exit(run(["live", pid, "--policy", policy]))
"""


def ask_as_nobody(pid: int, policy: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AS_NOBODY, str(pid), str(policy)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60)


def refused(capfd: pytest.CaptureFixture[str], pid: int | str) -> str:
    """The one line with which `live` gives up on `pid`."""
    assert run(["live", str(pid)]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line.removeprefix(f"linkcheck: error: process {pid}: ")


@pytest.fixture
def pair(shop: LiveShop) -> tuple[Path, Path, Path]:
    """A program and a plug-in that share a state, and its owner."""
    owner = shop.library("libstate.so", STATE)
    return shop.host("host", "-DUSES_STATE", owner), shop.library("plugin.so", USER, owner), owner


# ---------------------------------------------------------------- files that are gone


def needs_map_files(pid: int) -> None:
    """Skip where the kernel does not let us follow /proc/PID/map_files, which takes a capability."""
    place = f"/proc/{pid}/map_files"
    try:
        with open(f"{place}/{os.listdir(place)[0]}", "rb"):
            pass
    except OSError as error:
        pytest.skip(f"{place}: {error.strerror}; it takes CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN")


def test_deleted_files_are_read_all_the_same(shop: LiveShop, ask: Ask, pair: tuple[Path, Path, Path]) -> None:
    host, plugin, owner = pair
    with shop.running(host, f"l:{plugin}") as told:
        needs_map_files(told.pid)
        for path in pair:
            path.unlink()
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 0
    assert ("LC401", f"one copy of the counter: {owner} (deleted)") in answer.reasons("pass")
    assert f"{host} (deleted)" in {check["subject"] for check in answer.document["checks"]}


def test_what_replaced_a_file_since_is_not_taken_for_it(shop: LiveShop, ask: Ask) -> None:
    """The process has two copies; what lies on disk now has one."""
    owner = shop.library("libstate.so", STATE)
    plugin = shop.library("plugin.so", STATE + USER, "-Wl,-Bsymbolic")
    right = shop.library("right.so", USER, owner)
    with shop.running(shop.host("host", "-DUSES_STATE", owner), f"l:{plugin}") as told:
        needs_map_files(told.pid)
        assert len(told.states) == 2
        right.replace(plugin)
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 1
    assert f"{plugin} (deleted)" in answer.errors[0]["message"]


def test_a_needed_file_that_was_replaced_is_the_one_that_is_mapped(
    shop: LiveShop, pair: tuple[Path, Path, Path]
) -> None:
    host, plugin, owner = pair
    with shop.running(host, f"l:{plugin}") as told:
        needs_map_files(told.pid)
        newer = shop.library("newer.so", STATE + "int newer;", soname="libstate.so")
        newer.replace(owner)
        load_set = load_live(read_process(told.pid)).load_set
    assert load_set.unresolved == ()
    (mapped,) = [module.image for module in load_set.modules if module.image.soname == "libstate.so"]
    assert mapped.path == f"{owner} (deleted)"
    assert load_set.modules[load_set.modules[0].dependencies[0] or 0].image is mapped


@needs_root
def test_without_the_capability_a_deleted_library_is_unknown(shop: LiveShop, pair: tuple[Path, Path, Path]) -> None:
    host, plugin, owner = pair
    with shop.running(host, f"l:{plugin}", user=NOBODY) as told:
        before = ask_as_nobody(told.pid, shop.policy)
        owner.unlink()
        after = ask_as_nobody(told.pid, shop.policy)
    assert (before.returncode, before.stderr) == (0, "")
    assert f"one copy of the counter: {owner}\n" in before.stdout
    assert (after.returncode, after.stderr) == (2, "")
    assert f"{owner} (deleted)\n  it was deleted since the process mapped it, and only root" in after.stdout
    assert "COULD NOT CHECK: 0 errors, 0 warnings" in after.stdout


@needs_root
def test_without_the_capability_a_deleted_program_is_read_by_its_own_link(
    shop: LiveShop, pair: tuple[Path, Path, Path]
) -> None:
    host, plugin, _ = pair
    with shop.running(host, f"l:{plugin}", user=NOBODY) as told:
        host.unlink()
        done = ask_as_nobody(told.pid, shop.policy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{host} (deleted): one copy of the counter" in done.stdout


# ---------------------------------------------------------------- other roots and mounts


#: ld.so knows $ORIGIN of a program from /proc, which the container does not have.
WITHOUT_PROC = {"LD_LIBRARY_PATH": "/opt"}


@pytest.fixture
def container(shop: LiveShop, pair: tuple[Path, Path, Path]) -> Path:
    """A directory with all that the program needs, to be a root directory."""
    root = shop.base / "container"
    host, plugin, _ = pair
    told = subprocess.run(["ldd", str(host)], capture_output=True, text=True, check=True).stdout
    system = {word for word in told.split() if word.startswith(("/lib", "/usr/lib"))}
    for path in map(Path, system):
        place = root / str(path).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (root / "opt").mkdir()
    for path in (host, plugin, shop.base / "libstate.so"):
        path.rename(root / "opt" / path.name)
    (root / "opt" / "libstate.so").rename(root / "opt" / "libreal.so")
    # An absolute link, which leads elsewhere when it is followed outside of the container.
    (root / "opt" / "libstate.so").symlink_to("/opt/libreal.so")
    return root


@needs_root
def test_a_process_with_another_root_directory(shop: LiveShop, ask: Ask, container: Path) -> None:
    prefix = ["chroot", str(container)]
    with shop.running("/opt/host", "l:/opt/plugin.so", prefix=prefix, env=WITHOUT_PROC) as told:
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 0
    assert ("LC401", f"one copy of the counter: {container}/opt/libreal.so") in answer.reasons("pass")


@needs_mounts
def test_a_file_under_a_mount_is_not_confused_with_one_that_bears_its_number(
    shop: LiveShop, pair: tuple[Path, Path, Path]
) -> None:
    """Two fresh tmpfs give their files the same numbers: what is at the path now is not what is mapped."""
    made = shop.base / "made"
    made.mkdir()
    host, plugin, owner = pair
    command = f"mount -t tmpfs none {made} && cp {owner} {made}/ && cp {plugin} {host} {made}/"
    other = f"mount -t tmpfs none {made} && cp {plugin} {made}/libstate.so"
    script = f"set -e; ({command}); exec {made}/host l:{made}/plugin.so"
    with shop.running("-c", script, prefix=["unshare", "-m", "sh"]) as told:
        needs_map_files(told.pid)
        enter = ["nsenter", "-t", str(told.pid), "-m"]
        number = subprocess.run([*enter, "stat", "-c%i", f"{made}/libstate.so"], capture_output=True, check=True).stdout
        subprocess.run([*enter, "sh", "-c", other], check=True)
        assert (
            number
            == subprocess.run([*enter, "stat", "-c%i", f"{made}/libstate.so"], capture_output=True, check=True).stdout
        )
        load_set = load_live(read_process(told.pid)).load_set
    (mapped,) = [m.image for m in load_set.modules if m.image.path == f"{made}/libstate.so"]
    assert mapped.soname == "libstate.so"


def test_what_only_begins_like_the_program_is_no_reason(shop: LiveShop, pair: tuple[Path, Path, Path]) -> None:
    with shop.running(pair[0]) as told:
        facts = read_process(told.pid)
        code = next(mapping for mapping in facts.mappings if mapping.is_code)
        for name, explains in (("app2", False), ("app", True)):
            gone = replace(code, path=f"/nowhere/{name}", inode=1, start=1, end=2, marked_deleted=True)
            changed = replace(facts, program="/nowhere/app", program_file=(0, 0), mappings=(gone,))
            with pytest.raises(ProcessError, match="its program, /nowhere/app, is no ELF") as met:
                load_live(changed)
            assert ("it was deleted" in str(met.value)) is explains


@needs_mounts
@pytest.mark.parametrize("deleted", [False, True], ids=["as it was", "deleted"])
def test_a_process_in_a_container(shop: LiveShop, ask: Ask, container: Path, deleted: bool) -> None:
    """Its files are in a mount namespace of its own: nothing is at their paths out here."""
    made = shop.base / "mounted"
    made.mkdir()
    script = (
        f"mount -t tmpfs none {made} && cp -a {container}/. {made}/ && exec chroot {made} /opt/host l:/opt/plugin.so"
    )
    with shop.running("-c", script, prefix=["unshare", "-m", "sh"], env=WITHOUT_PROC) as told:
        assert list(made.iterdir()) == []
        if deleted:
            needs_map_files(told.pid)
            Path(f"/proc/{told.pid}/root/opt/libreal.so").unlink()
        load_set = load_live(read_process(told.pid)).load_set
        answer = ask(told.pid, "--policy", shop.policy)
    assert load_set.unresolved == ()
    assert answer.status == 0
    (one,) = [reason for code, reason in answer.reasons("pass") if code == "LC401"]
    assert one.endswith("/opt/libreal.so (deleted)" if deleted else "/opt/libreal.so")


# ---------------------------------------------------------------- no permission, no process


@needs_root
def test_a_process_of_another_user_is_one_line(shop: LiveShop, pair: tuple[Path, Path, Path]) -> None:
    with shop.running(pair[0]) as told:
        done = ask_as_nobody(told.pid, shop.policy)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"linkcheck: error: process {told.pid}: its memory map may not be read: it belongs to another"
    )


def test_there_is_no_such_process(capfd: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert refused(capfd, process.pid) == "there is no such process, or /proc hides it"


def test_a_zombie(capfd: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert refused(capfd, process.pid).startswith("has ended (a zombie")


def wait_for_zombie(pid: int) -> None:
    """Until the kernel shows the first thread of `pid` as ended, which is a moment after others know it."""
    for _ in range(500):
        if Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"the first thread of {pid} never ended")


@pytest.mark.parametrize("deleted", [False, True], ids=["as it was", "deleted"])
def test_a_process_that_outlives_its_first_thread(shop: LiveShop, ask: Ask, deleted: bool) -> None:
    owner = shop.library("libstate.so", STATE)
    host = shop.host("host", "-DUSES_STATE", "-DOUTLIVED", "-pthread", owner)
    plugin = shop.library("plugin.so", USER, shop.library("libbad.so", STATE))
    with shop.running(host, f"l:{plugin}") as told:
        wait_for_zombie(told.pid)
        assert Path(f"/proc/{told.pid}/maps").read_text() == ""
        if deleted:
            needs_map_files(int(max(os.listdir(f"/proc/{told.pid}/task"), key=int)))
            for path in (host, plugin, owner):
                path.unlink()
        answer = ask(told.pid, "--policy", shop.policy)
    assert len(told.states) == 1  # the host's copy comes first for the plug-in, too
    (finding,) = [finding for finding in answer.findings if finding["code"] == "LC401"]
    mark = " (deleted)" if deleted else ""
    assert finding["evidence"]["copies"] == [f"{owner}{mark}", f"{shop.base}/libbad.so"]


def test_a_process_is_unchanged_as_long_as_a_thread_of_it_lives(shop: LiveShop) -> None:
    host = shop.host("host", "-DOUTLIVED", "-pthread")
    with shop.running(host) as told:
        wait_for_zombie(told.pid)
        facts = read_process(told.pid)
        assert facts.place.startswith(f"/proc/{told.pid}/task/")
        check_unchanged(facts)
        # It was read while its first thread lived.
        check_unchanged(replace(facts, place=f"/proc/{told.pid}"))
    with pytest.raises(ProcessError, match=f"process {told.pid}: ended while it was read"):
        check_unchanged(facts)


def test_a_zombie_that_had_several_threads(shop: LiveShop, capfd: pytest.CaptureFixture[str]) -> None:
    host = shop.host("host", "-DOUTLIVED", "-pthread")
    with subprocess.Popen([host], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert refused(capfd, process.pid).startswith("has ended (a zombie")


def threads_of_the_kernel() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            status = Path(f"/proc/{name}/status").read_text(encoding="utf-8", errors="replace")
            if "\nKthread:\t1" in status:
                yield int(name)


def test_a_thread_of_the_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    pid = next(threads_of_the_kernel(), None)
    if pid is None:
        pytest.skip(
            "/proc shows no thread of the kernel (a PID namespace), or Linux before 6.7, which does not name them"
        )
    assert refused(capfd, pid) == "is a thread of the kernel, which maps no files"


def test_a_process_that_ends_meanwhile(shop: LiveShop, pair: tuple[Path, Path, Path]) -> None:
    with shop.running(pair[0]) as told:
        facts = read_process(told.pid)
        check_unchanged(facts)
    with pytest.raises(ProcessError, match=f"process {told.pid}: ended while it was read"):
        check_unchanged(facts)


def test_a_process_that_becomes_another_program_meanwhile() -> None:
    with subprocess.Popen(["sh", "-c", "read line; exec cat"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            facts = wait_for_program(process.pid, os.path.realpath("/bin/sh"))
            process.stdin.write(b"\n")
            process.stdin.flush()
            wait_for_program(process.pid, os.path.realpath(shutil.which("cat") or ""))
            with pytest.raises(ProcessError, match="started another program"):
                check_unchanged(facts)
        finally:
            process.kill()


def wait_for_program(pid: int, path: str) -> ProcessFacts:
    """The facts of the process as soon as it runs `path`."""
    for _ in range(500):
        # While a program is being started it has a name already, and nothing mapped.
        with suppress(ProcessError):
            facts = read_process(pid)
            if facts.program == path:
                return facts
        time.sleep(0.01)
    raise AssertionError(f"{pid} never ran {path}")


@pytest.mark.parametrize("pid", ["0", "-1", "one", "", "9" * 5000])
def test_a_number_that_no_process_has_is_refused(capfd: pytest.CaptureFixture[str], pid: str) -> None:
    assert run(["live", "--", pid]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert f"'PID': {pid!r} is not a process ID" in line


# ---------------------------------------------------------------- other kinds of programs


def test_a_program_that_was_started_by_ld_so(shop: LiveShop, ask: Ask, pair: tuple[Path, Path, Path]) -> None:
    host, plugin, _ = pair
    with shop.running(host, f"l:{plugin}", prefix=["/lib64/ld-linux-x86-64.so.2"]) as told:
        assert "ld-linux" in os.readlink(f"/proc/{told.pid}/exe")
        answer = ask(told.pid, "--policy", shop.policy)
    assert answer.status == 0
    assert ("LC402", "every import of the counter finds a definition") in answer.reasons("pass")
    assert str(host) in {check["subject"] for check in answer.document["checks"]}


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="needs musl-gcc (Debian package musl-tools)")
def test_a_program_of_musl(shop: LiveShop, ask: Ask) -> None:
    owner = shop.library("libstate.so", STATE, compiler="musl-gcc")
    plugin = shop.library("plugin.so", USER, owner, compiler="musl-gcc")
    host = shop.host("host", "-DUSES_STATE", owner, compiler="musl-gcc")
    with shop.running(host, f"l:{plugin}") as told:
        load_set = load_live(read_process(told.pid)).load_set
        answer = ask(told.pid, "--policy", shop.policy)
    assert load_set.libc is Libc.MUSL
    assert load_set.unresolved == ()
    assert told.files <= {os.path.realpath(module.image.path) for module in load_set.modules}
    assert answer.status == 0
    assert ("LC401", f"one copy of the counter: {owner}") in answer.reasons("pass")


@pytest.mark.parametrize("more", ["", "-m32"], ids=["64-bit", "32-bit"])
def test_a_static_program(shop: LiveShop, ask: Ask, more: str) -> None:
    call = 'int $0x80" :: "a"(29)' if more else 'syscall" :: "a"(34)'
    source = f'void *state_get(void) {{ return 0; }}\nvoid _start(void) {{ for (;;) __asm__ volatile("{call}); }}'
    path = shop.base / "static"
    command = ["gcc", *filter(None, [more]), "-static", "-nostdlib", "-w", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True)
    try:
        process = subprocess.Popen([path])
    except OSError as error:
        pytest.skip(f"the kernel runs no 32-bit programs: {error.strerror}")
    with process:
        try:
            wait_for_program(process.pid, str(path))
            answer = ask(process.pid, "--policy", shop.policy)
        finally:
            process.kill()
    assert answer.status == 0
    assert ("LC403", "1 file, no library twice") in answer.reasons("pass")


def test_a_python_process_and_its_extension_modules(shop: LiveShop, ask: Ask) -> None:
    """The interpreter plays no role of a program; what it opens is judged as ever."""
    accessor = "_ZN10executorch9extension4cuda15getCallerStreamEv"
    owner = shop.library("libextension_cuda.so", f"void *{accessor}(void) {{ return 0; }}")
    good = shop.library("good.so", f"void *{accessor}(void); void *use(void) {{ return {accessor}(); }}", owner)
    bad = shop.library("bad.so", f"void *{accessor}(void) {{ return 0; }} void *use(void) {{ return {accessor}(); }}")
    code = "import ctypes, sys, ssl, sqlite3; [ctypes.CDLL(name) for name in sys.argv[1:]]; print('ready', flush=True);"
    code += "sys.stdin.read()"
    for opened, status in ([good], 0), ([good, bad], 1):
        with shop.running("-c", code, *map(str, opened), prefix=[sys.executable]) as told:
            answer = ask(told.pid, "--profile", "executorch-caller-stream")
            mapped = {m.path for m in read_process(told.pid).mappings if ".so" in m.path}
            load_set = load_live(read_process(told.pid)).load_set
        assert answer.status == status, answer.document
        found = {module.image.path for module in load_set.modules[1:]}
        assert mapped == found
        assert load_set.unresolved == ()


# ---------------------------------------------------------------- what /proc writes, and what we do


def test_lines_of_maps() -> None:
    text = (
        b"7f0000000000-7f0000001000 r-xp 00002000 fe:1f 42                         /a b/line\\012feed (deleted)\n"
        b"7f0000001000-7f0000002000 rw-s 00000000 00:01 7 /memfd:x (deleted)\n"
        b"7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n"
        b"7ffe00000000-7ffe00001000 r-xp 00000000 00:00 0                          [vdso]\n"
    )
    first, second = parse_maps(text)
    assert (first.path, first.marked_deleted) == ("/a b/line\nfeed", True)
    assert (first.start, first.end, first.offset) == (0x7F0000000000, 0x7F0000001000, 0x2000)
    assert (first.device, first.inode, first.is_code, first.is_private) == ((0xFE, 0x1F), 42, True, True)
    assert (second.path, second.is_code, second.is_private) == ("/memfd:x", False, False)


def test_of_two_variables_with_one_name_the_first_counts() -> None:
    assert parse_environment(b"A=1\0B\0A=2\0C=x=y\0") == {"A": "1", "C": "x=y"}


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format(shop: LiveShop, pair: tuple[Path, Path, Path], tmp_path: Path, format_: str) -> None:
    output = tmp_path / "report"
    with shop.running(pair[0]) as told:
        arguments = ["live", str(told.pid), "--policy", str(shop.policy), "--format", format_, "--output", str(output)]
        assert run(arguments) == 0
        again = run(["live", str(told.pid), "--policy", str(shop.policy), "--output", str(pair[0])])
    assert output.read_text(encoding="utf-8") or format_ == "github"
    assert again == 2, "a report must not overwrite a program"
