"""What a user may name, judged by `verify`: the same files give the same verdicts, however they are packed."""

from __future__ import annotations

import fcntl
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from linkcheck.api import verify
from linkcheck.inputs import spool as spool_module
from linkcheck.inputs.extension_module import is_extension_module
from linkcheck.inputs.sources import open_inputs
from linkcheck.model import Outcome
from linkcheck.policy.settings import Settings
from tests.inputs.pack import ELF, make_deb, make_tar, make_zip, member
from tests.loader.workshop import Workshop, needs_compiler
from tests.unit.rules.worlds import image

if TYPE_CHECKING:
    from linkcheck.report.report import Report

SETTINGS = Settings("test", select=("LC1", "LC2"), external=("libc.so.6",))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Workshop(tmp_path / "tree")


def make_package(shop: Workshop) -> Path:
    """A package with a program, a plug-in that misses a library, a wrong kind of file, and links."""
    shop.base.mkdir()
    shop.library("pkg/lib/liba.so.1.2", soname="liba.so.1", needs=("libb.so",), runpath="$ORIGIN")
    (shop.base / "pkg/lib/liba.so.1").symlink_to("liba.so.1.2")
    shop.library("pkg/lib/libb.so", soname="libb.so")
    shop.executable("pkg/bin/main", needs=("liba.so.1",), runpath="$ORIGIN/../lib")
    shop.library("pkg/plug.so", needs=("libgone.so.3", "libb.so"), runpath="$ORIGIN/nowhere")
    (shop.base / "pkg/lib/libtext.so").write_text("no library\n")
    (shop.base / "pkg/readme.txt").write_text("x" * 100)
    return shop.base / "pkg"


def pack(tree: Path, path: Path) -> str:
    """The files of `tree` as the archive at `path`, by its ending."""
    name = path.name
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(tree.rglob("*")):
                info = zipfile.ZipInfo(str(file.relative_to(tree)))
                if file.is_symlink():
                    info.external_attr = 0o120777 << 16
                    archive.writestr(info, os.readlink(file))
                elif file.is_file():
                    archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)
        return str(path)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        tar.add(tree, arcname=".")
    data = compress(raw.getvalue(), name.rpartition(".")[2] if not name.endswith(".deb") else "zst")
    if name.endswith(".deb"):
        make_deb(path, data, "data.tar.zst")
    else:
        path.write_bytes(data)
    return str(path)


def compress(data: bytes, how: str) -> bytes:
    if how == "zst":
        zstandard = pytest.importorskip("zstandard", reason="needs the zstd extra")
        return cast("bytes", zstandard.ZstdCompressor().compress(data))
    module = {"gz": "gzip", "xz": "lzma", "bz2": "bz2"}.get(how)
    return data if module is None else cast("bytes", __import__(module).compress(data))


def facts(report: Report, prefix: str) -> set[tuple[str, ...]]:
    """Everything the report says, without the `prefix` that is the place where the files are."""
    found: set[tuple[str, ...]] = {(c.code, c.subject, c.outcome.value, c.reason) for c in report.checks}
    for reported in report.findings:
        f = reported.finding
        remedy, _, _ = f.remedy.partition(
            "\nor append "
        )  # no process looks into an archive, whatever LD_LIBRARY_PATH says
        found.add((f.code, f.primary.path, str(f.primary.symbol), f.message, remedy, str(f.evidence), str(f.related)))
    return {tuple(part.replace(prefix, "<place>") for part in fact) for fact in found}


@needs_compiler[0]
@needs_compiler[1]
@needs_compiler[2]
class TestPacked:
    @pytest.mark.parametrize(
        "name", ["a-1-py3-none-any.whl", "a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2", "a.tar.zst"]
    )
    def test_an_archive_is_judged_as_the_directory_it_was_made_of(self, shop: Workshop, name: str) -> None:
        make_package(shop)
        archive = pack(shop.base, Path(name))
        packed = verify([archive], settings=SETTINGS)
        loose = verify([str(shop.base)], settings=SETTINGS)
        assert facts(packed, f"{name}!") == facts(loose, str(shop.base))
        (unreachable,) = (f.finding for f in packed.findings if f.finding.code == "LC203")
        assert "LD_LIBRARY_PATH" not in unreachable.remedy
        assert {f.finding.code for f in packed.findings} == {"LC101", "LC202", "LC203"}
        assert spool_module._PREFIX not in repr(packed)

    def test_a_package_of_the_system_is_judged_as_installed(self, shop: Workshop) -> None:
        shop.base.mkdir()
        shop.library("usr/lib/x86_64-linux-gnu/libmine.so.1.5", soname="libmine.so.1")
        (shop.base / "usr/lib/x86_64-linux-gnu/libmine.so.1").symlink_to("libmine.so.1.5")
        shop.library("usr/lib/mine/libplug.so", soname="libplug.so", needs=("libc.so.6",))
        shop.executable("usr/bin/mine", needs=("libmine.so.1", "libplug.so"), runpath="/usr/lib/mine")
        shutil.rmtree(shop.base / ".stubs")
        deb = pack(shop.base, Path("mine.deb"))
        report = verify([deb], settings=SETTINGS)
        assert not report.findings
        assert {c.subject for c in report.checks if c.outcome is Outcome.PASS and c.code == "LC202"} == {
            f"{deb}!/usr/bin/mine"
        }
        # Not being layered over the machine, a zip of the same files lacks both.
        unlayered = verify([pack(shop.base, Path("mine.zip"))], settings=SETTINGS)
        assert {f.finding.code for f in unlayered.findings} <= {"LC202", "LC203"}
        assert len(unlayered.findings) == 2

    def test_wheels_are_installed_side_by_side(self, shop: Workshop) -> None:
        shop.base.mkdir()
        shop.library("one/pkg/_C.so", needs=("liba.so",), runpath="$ORIGIN/../other/lib", source="void PyInit__C() {}")
        shop.library("two/other-1.data/platlib/other/lib/liba.so", soname="liba.so")
        one = pack(shop.base / "one", Path("one-1-py3-none-any.whl"))
        two = pack(shop.base / "two", Path("two-1-py3-none-any.whl"))
        alone = verify([one], settings=SETTINGS)
        assert [f.finding.code for f in alone.findings] == ["LC202"]
        assert f"{one}!/other/lib" in alone.findings[0].finding.message
        both = verify([one, two], settings=SETTINGS)
        assert not both.findings
        # Two versions of one wheel cannot be installed into one place.
        again = shutil.copy(two, "two-2-py3-none-any.whl")
        report = verify([one, two, str(again)], settings=SETTINGS)
        assert f"{again}!/other-1.data/platlib/other/lib/liba.so" in {c.subject for c in report.checks}

    def test_what_lies_above_an_archive_is_not_this_machine(self, shop: Workshop) -> None:
        shop.base.mkdir()
        up = "$ORIGIN" + "/.." * 6
        shop.library("a.so", needs=("liba.so",), runpath=f"{up}/lib:{up}")
        name = pack(shop.base, Path("a.zip"))
        (found,) = verify([name], settings=SETTINGS).findings
        assert found.finding.code == "LC202"
        assert f"    {name}!/../../../../../../lib\n" in found.finding.message

    def test_a_sysroot_and_an_archive_go_together(self, shop: Workshop) -> None:
        shop.library("sys/usr/lib/libsys.so", soname="libsys.so")
        shop.library("a/pkg/liba.so", soname="liba.so", needs=("libsys.so",))
        shop.executable("a/pkg/main", needs=("liba.so",), runpath="$ORIGIN")
        sysroot = str(shop.base / "sys")
        (shop.base / "sys/lib64").mkdir()
        shutil.copy("/lib64/ld-linux-x86-64.so.2", shop.base / "sys/lib64")  # what the kernel starts
        for name in ("a.tar.gz", "a.deb"):
            archive = pack(shop.base / "a", Path(name))
            report = verify([archive], settings=SETTINGS, sysroot=sysroot)
            assert not report.findings
            assert [f.finding.code for f in verify([archive], settings=SETTINGS).findings] == ["LC202"]

    def test_options_may_name_a_member(self, shop: Workshop) -> None:
        make_package(shop)
        name = pack(shop.base, Path("a.zip"))
        report = verify([name], settings=SETTINGS, dlopen=[f"{name}!/pkg/plug.so"], library_path=[f"{name}!/pkg/lib"])
        codes = {(f.finding.code, f.finding.primary.symbol) for f in report.findings}
        assert codes == {("LC202", "libgone.so.3"), ("LC101", None)}

    def test_an_extension_module_is_a_root_though_another_needs_it(self, shop: Workshop) -> None:
        shop.base.mkdir()
        shop.library("_a.cpython-311-x86_64-linux-gnu.so", soname="_a.so", source="void PyInit__a() {}")
        shop.library("plain.so")
        shop.library("libuser.so", needs=("_a.cpython-311-x86_64-linux-gnu.so", "plain.so"), runpath="$ORIGIN")
        shutil.rmtree(shop.base / ".stubs")
        report = verify([str(shop.base)], settings=SETTINGS)
        roots = {Path(c.subject).name for c in report.checks if c.code == "LC202"}
        assert roots == {"_a.cpython-311-x86_64-linux-gnu.so", "libuser.so"}

    def test_the_order_of_names_makes_no_library_a_root(self, shop: Workshop) -> None:
        shop.base.mkdir()
        shop.library("a.so", needs=("libc_only_by_reuse.so",))
        shop.library("libc_only_by_reuse.so", soname="libc_only_by_reuse.so")
        shop.library("z.so", needs=("a.so", "libc_only_by_reuse.so"), runpath="$ORIGIN")
        assert not verify([str(shop.base)], settings=SETTINGS).findings
        # As a root of its own it does not find what it needs.
        assert verify([str(shop.base / "a.so")], settings=SETTINGS).findings


def test_extension_modules_are_known_by_what_they_export() -> None:
    assert is_extension_module(image("/x/_C.cpython-311.so", exports=("PyInit__C",)))
    assert is_extension_module(image("/x/ü.so", exports=("PyInitU_tda",)))
    assert not is_extension_module(image("/x/_D.so", exports=("PyInit__C",)))
    assert not is_extension_module(image("/x/_C.so", imports=("PyInit__C",)))


# ---------------------------------------------------------------- installed


def make_distribution(site: Path, record: str | None) -> None:
    info = site / "my_pkg-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-pkg\nVersion: 1\n")
    if record is not None:
        (info / "RECORD").write_text(record)


def test_an_installed_distribution_stands_for_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_distribution(tmp_path, "my/a.so,,\nmy/b,,\nmy/c.py,,\nmy/gone.so,,\n../bin/tool,,\n")
    for name in ("my/a.so", "my/b", "other.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(ELF)
    (tmp_path / "my/c.py").write_text("pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with open_inputs(["dist:my-pkg"]) as inputs:
        assert inputs.errors == []
        assert [file.path for file in inputs.files] == [str(tmp_path / "my/a.so"), str(tmp_path / "my/b")]
        assert not any(file.named for file in inputs.files)


@pytest.mark.parametrize(
    ("record", "named", "says"),
    [
        (None, "dist:my-pkg", "no record of its files"),
        ("my/c.py,,\n", "dist:my-pkg", "no ELF file"),
        ("", "dist:", "dist: names no distribution; write dist:NAME"),
        ("", "dist:nobody-has-this", "no distribution of that name"),
    ],
)
def test_a_distribution_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str | None, named: str, says: str
) -> None:
    make_distribution(tmp_path, record)
    monkeypatch.syspath_prepend(tmp_path)
    with open_inputs([named]) as inputs:
        ((name, error),) = inputs.errors
        assert name == named
        assert says in str(error)
    report = verify([named], settings=SETTINGS)
    assert [(c.subject, c.outcome) for c in report.checks] == [(named, Outcome.UNKNOWN)]


def test_a_virtual_environment_is_a_directory(tmp_path: Path) -> None:
    site = tmp_path / "venv/lib/python3.11/site-packages/pkg"
    site.mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to(sys.executable)
    shutil.copy(os.path.realpath(sys.executable), site / "tool")
    with open_inputs([str(tmp_path / "venv")]) as inputs:
        # The link leads to an interpreter of the system: it is not part of the environment.
        assert [file.path for file in inputs.files] == [str(site / "tool")]


# ---------------------------------------------------------------- the spool


def test_without_zstd_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("this Python reads zstd itself")
    raw = make_tar(tmp_path / "a.tar", [(member("a.so", ELF), ELF)]).read_bytes()
    (tmp_path / "a.tar.zst").write_bytes(compress(raw, "zst"))
    make_deb(tmp_path / "a.deb", compress(raw, "zst"), "data.tar.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for name in ("a.tar.zst", "a.deb"):
        with open_inputs([str(tmp_path / name)]) as inputs:
            ((_, error),) = inputs.errors
            assert "pip install 'linkcheck-elf[zstd]'" in str(error)


def test_one_bad_archive_does_not_hide_the_others(tmp_path: Path) -> None:
    good = make_zip(tmp_path / "good.zip", [("a.so", ELF)])
    bad = make_zip(tmp_path / "bad.zip", [("../a.so", ELF)])
    with open_inputs([str(bad), str(good)]) as inputs:
        assert [inputs.show(file.path) for file in inputs.files] == [f"{good}!/a.so"]
        assert [name for name, _ in inputs.errors] == [str(bad)]


def test_an_archive_that_cannot_be_opened_is_an_input_that_cannot_be_checked(tmp_path: Path) -> None:
    report = verify([str(tmp_path / "gone.whl")], settings=SETTINGS)
    assert [c.outcome for c in report.checks] == [Outcome.UNKNOWN]


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(descriptor: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with open_inputs([str(make_zip(tmp_path / "a.zip", [("a.so", ELF)]))]) as inputs:
        ((_, error),) = inputs.errors
    assert re.search(r"no space is left for the member a\.so below /\S+; TMPDIR names another place$", str(error))


def test_large_archives_go_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_available_memory", lambda: 1 << 20)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    with spool_module.Spool(1 << 20) as spool:
        assert os.path.dirname(spool.path) == os.path.realpath(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_choose_parent", lambda _: str(tmp_path))
    killed, living, other = (tmp_path / f"{spool_module._PREFIX}{n}" for n in ("k", "l", "o"))
    for directory in (killed, living):
        (directory / "deep").mkdir(parents=True)
    other.write_text("a file")
    lock = os.open(living, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with spool_module.Spool() as spool:
            assert {p.name for p in tmp_path.iterdir()} == {living.name, other.name, os.path.basename(spool.path)}
    finally:
        os.close(lock)


def test_what_another_process_takes_for_left_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making the directory and locking it nobody can tell it from what a killed process left."""
    monkeypatch.setattr(spool_module, "_choose_parent", lambda _: str(tmp_path))
    make, made = tempfile.mkdtemp, []

    def make_and_lose(**arguments: str) -> str:
        made.append(make(**arguments))
        if len(made) == 1:
            spool_module._remove_stale(str(tmp_path))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose)
    with spool_module.Spool() as spool:
        assert [os.path.isdir(path) for path in made] == [False, True]
        spool_module._remove_stale(str(tmp_path))
        assert os.path.isdir(spool.path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["judging", "removing"])
def test_a_signal_leaves_nothing_and_ends_the_process(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    program = (
        "import os, shutil, sys\n"
        "from linkcheck.inputs.sources import open_inputs\n"
        "archive, number, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]\n"
        "remove = shutil.rmtree\n"
        "def remove_interrupted(path, **options):\n"
        "    os.kill(os.getpid(), number)\n"
        "    remove(path, **options)\n"
        "with open_inputs([archive]) as inputs:\n"
        "    print(inputs.spool.path, os.path.isdir(inputs.spool.path), flush=True)\n"
        "    if moment == 'judging':\n"
        "        os.kill(os.getpid(), number)\n"
        "    shutil.rmtree = remove_interrupted\n"
        "print('goes on')\n"
    )
    archive = make_zip(tmp_path / "a.zip", [("a.so", ELF)])
    command = [sys.executable, "-c", program, str(archive), str(int(number)), moment]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    path, there = ended.stdout.split()
    assert (there, ended.returncode) == ("True", -number)
    assert not os.path.exists(path)


def test_signals_mean_afterwards_what_they_meant_before(tmp_path: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with open_inputs([str(make_zip(tmp_path / "a.zip", [("a.so", ELF)]))]):
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before


def test_nothing_is_left_when_the_command_is_interrupted(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from linkcheck.inputs.sources import open_inputs\n"
        "with open_inputs(sys.argv[1:]) as inputs:\n"
        "    print(inputs.spool.path, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    archive = make_zip(tmp_path / "a.zip", [("a.so", ELF)])
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(archive)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    path = process.stdout.readline().strip()
    assert os.path.isdir(path)
    process.send_signal(2)
    process.communicate()
    assert not os.path.exists(path)
