"""Archives made to harm: nothing leaves the private tree, nothing fills the machine, and the error names the cause."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import subprocess
import tarfile
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkcheck.inputs.budget as budget_module
from linkcheck.errors import ArchiveError, LinkcheckError
from linkcheck.inputs import tar_archive, zip_archive
from linkcheck.inputs.limits import MAX_DECODER_MEMORY
from linkcheck.inputs.sources import Inputs, open_inputs
from linkcheck.inputs.spool import Spool
from tests.inputs.pack import ELF, make_deb, make_tar, make_zip, member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def refuse(path: Path) -> str:
    """Why nothing of the archive is judged."""
    with open_inputs([str(path)]) as inputs:
        assert inputs.files == ()
        ((named, error),) = inputs.errors
    assert named == str(path)
    assert isinstance(error, LinkcheckError)
    text = str(error)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


@contextmanager
def accepted(path: Path) -> Iterator[Inputs]:
    with open_inputs([str(path)]) as inputs:
        assert inputs.errors == []
        assert inputs.spool is not None
        yield inputs
        (tree,) = inputs.spool.trees
        for parent, directories, names in os.walk(tree.root):
            for name in (*directories, *names):
                where = os.path.realpath(os.path.join(parent, name))
                assert where == tree.root or where.startswith(f"{tree.root}/")
    assert not os.path.exists(inputs.spool.path)


def shown(inputs: Inputs) -> list[str]:
    return [inputs.show(file.path).partition("!/")[2] for file in inputs.files]


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("/tmp/evil.so", "/tmp/evil.so has an absolute path"),
        ("../evil.so", "../evil.so leads through .."),
        ("a/../../evil.so", "leads through .."),
        ("a/" * 3000 + "x.so", "characters; the limit is 4,096"),
        ("n" * 300 + ".so", "File name too long"),
    ],
)
@pytest.mark.parametrize("kind", ["zip", "tar", "deb"])
def test_a_name_that_leads_out_refuses_the_archive(tmp_path: Path, kind: str, name: str, says: str) -> None:
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", [("good.so", ELF), (name, ELF)])
    else:
        path = make_tar(tmp_path / "a.tar", [(member("good.so", ELF), ELF), (member(name, ELF), ELF)])
        if kind == "deb":
            path = make_deb(tmp_path / "a.deb", path.read_bytes())
    assert says in refuse(path)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == sorted({".zip"} if kind == "zip" else {".tar", f".{kind}"})


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_member_a_thousand_directories_deep_refuses_the_archive(tmp_path: Path, kind: str) -> None:
    name = f"{'d/' * 1500}x.so"
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", [(name, ELF)])
    else:
        path = make_tar(tmp_path / "a.tar", [(member(name, ELF), ELF)])
    assert refuse(path) == "cannot be unpacked: a member lies 1,501 directories deep; the limit is 256"


def test_a_file_that_is_also_a_directory_refuses_the_archive(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", [("x.so", ELF), ("x.so/y.so", ELF)])
    assert "x.so/y.so is a file and a directory at once" in refuse(path)


# ---------------------------------------------------------------- links


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    members = [
        (member("d", kind=tarfile.SYMTYPE, target=str(outside)), b""),
        (member("d/evil.so", ELF), ELF),
        (member("e", kind=tarfile.SYMTYPE, target="../" * 40 + str(outside)[1:]), b""),
        (member("e/evil.so", ELF), ELF),
    ]
    with accepted(make_tar(tmp_path / "a.tar", members)) as inputs:
        assert shown(inputs) == ["d/evil.so", "e/evil.so"]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc/passwd", "../" * 60 + "etc/passwd", "d/../../../x"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_link_that_leads_out_leads_nowhere(tmp_path: Path, kind: str, target: str) -> None:
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", [("a.so", ELF)], [("lib/l.so", target)])
    else:
        link = member("lib/l.so", kind=tarfile.SYMTYPE, target=target)
        path = make_tar(tmp_path / "a.tar", [(member("a.so", ELF), ELF), (link, b"")])
    with accepted(path) as inputs:
        assert not os.path.exists(inputs.find(f"{path}!/lib/l.so"))


def test_links_that_only_together_lead_out_lead_nowhere(tmp_path: Path) -> None:
    members = [
        (member("a.so", ELF), ELF),
        (member("d", kind=tarfile.SYMTYPE, target="."), b""),
        (member("up", kind=tarfile.SYMTYPE, target="d/.."), b""),
        (member("upper", kind=tarfile.SYMTYPE, target="up/.."), b""),
    ]
    with accepted(make_tar(tmp_path / "a.tar", members)) as inputs:
        assert os.path.isdir(inputs.find(f"{tmp_path}/a.tar!/d"))
        assert not os.path.lexists(inputs.find(f"{tmp_path}/a.tar!/up"))


def test_a_hard_link_to_another_file_of_the_machine_is_not_made(tmp_path: Path) -> None:
    secret = tmp_path / "secret.so"
    secret.write_bytes(ELF)
    good = (member("a.so", ELF), ELF)
    for target, says in ((str(secret), "has an absolute path"), ("../secret.so", "leads through ..")):
        link = member("l.so", kind=tarfile.LNKTYPE, target=target)
        assert says in refuse(make_tar(tmp_path / "a.tar", [good, (link, b"")]))
    link = member("l.so", kind=tarfile.LNKTYPE, target="nobody.so")
    with accepted(make_tar(tmp_path / "a.tar", [good, (link, b"")])) as inputs:
        assert shown(inputs) == ["a.so"]


def test_links_are_kept(tmp_path: Path) -> None:
    members = [
        (member("lib/liba.so.1.2", ELF), ELF),
        (member("lib/hard.so", kind=tarfile.LNKTYPE, target="./lib/liba.so.1.2"), b""),
        (member("lib/liba.so.1", kind=tarfile.SYMTYPE, target="liba.so.1.2"), b""),
        (member("lib64", kind=tarfile.SYMTYPE, target="/lib"), b""),
        (member("loop", kind=tarfile.SYMTYPE, target="loop"), b""),
    ]
    path = make_tar(tmp_path / "a.tar", members)
    with accepted(path) as inputs:
        first, second = (os.stat(file.path) for file in inputs.files)
        assert first.st_ino == second.st_ino
        for name in ("lib/liba.so.1", "lib64/liba.so.1"):
            assert os.path.samefile(inputs.find(f"{path}!/{name}"), inputs.files[0].path)
        assert shown(inputs) == ["lib/hard.so", "lib/liba.so.1.2"]


def test_devices_and_fifos_are_not_made(tmp_path: Path) -> None:
    odd = [member(f"{kind.decode()}.so", kind=kind) for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)]
    path = make_tar(tmp_path / "a.tar", [(member("a.so", ELF), ELF), *((info, b"") for info in odd)])
    with accepted(path) as inputs:
        assert shown(inputs) == ["a.so"]
        assert len(os.listdir(os.path.dirname(inputs.files[0].path))) == 1


_NAMES = st.lists(st.sampled_from(["a", "b", "c.so", ".", "..", ""]), min_size=1, max_size=4).map("/".join)
_TARGETS = st.lists(st.sampled_from(["a", "b", "c.so", ".", "..", "", "tmp"]), max_size=6).map("/".join)
_MEMBERS = st.lists(st.tuples(_NAMES, st.sampled_from("flh"), _TARGETS), max_size=12)


@settings(max_examples=150, deadline=None)
@given(_MEMBERS)
def test_whatever_the_members_are_called_everything_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, str, str]]
) -> None:
    base = tmp_path_factory.mktemp("any")
    kinds = {"l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE}
    packed = [
        (member(name, ELF), ELF) if kind == "f" else (member(name, kind=kinds[kind], target=target), b"")
        for name, kind, target in members
    ]
    path = make_tar(base / "a.tar", packed)
    with Spool() as spool:
        tree = spool.add_tree("a.tar!")
        try:
            tar_archive.unpack_tar(str(path), tree)
        except ArchiveError:
            return
        tree.finish()
        for parent, directories, names in os.walk(tree.root):
            for name in (*directories, *names):
                where = os.path.realpath(os.path.join(parent, name))
                assert where == tree.root or where.startswith(f"{tree.root}/")
        assert all(os.path.isfile(file) and not os.path.islink(file) for file in tree.files)


# ---------------------------------------------------------------- bombs


def test_a_zip_of_zeros_is_stopped_by_its_ratio(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", [("a.so", ELF + bytes(80 << 20))])
    assert refuse(path) == (
        "cannot be unpacked: it inflates to more than 67,108,864 bytes; the limit is 200 times its own size"
    )


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_a_tar_of_zeros_is_stopped_also_in_what_is_not_kept(tmp_path: Path, mode: str) -> None:
    zeros = bytes(80 << 20)
    path = make_tar(tmp_path / f"a.tar.{mode[2:]}", [(member("zeros.txt", zeros), zeros)], mode)
    assert "the limit is 200 times its own size" in refuse(path)


def test_the_holes_of_a_sparse_file_count(tmp_path: Path) -> None:
    # GNU tar 1.0 sparse file in pax headers: a map of no data at all, and a terabyte of real size.
    data = b"1\n1099511627776\n0\n".ljust(512, b"\0")
    info = member("big.so", data)
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "big.so",
        "GNU.sparse.realsize": str(1 << 40),
    }
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(data))
    assert "inflates to more than" in refuse(tmp_path / "a.tar")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "MAX_MEMBERS", 10)
    names = [(f"{n}.so", ELF) for n in range(11)]
    says = "more than 10 members, the limit"
    assert says in refuse(make_zip(tmp_path / "a.zip", names))
    assert says in refuse(make_tar(tmp_path / "a.tar", [(member(n, c), c) for n, c in names]))


def test_a_directory_too_large_to_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "MAX_ZIP_DIRECTORY", 40)
    assert "the limit is 40" in refuse(make_zip(tmp_path / "a.zip", [("a.so", ELF)]))


def test_members_that_share_their_data_are_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", [("a.so", ELF * 100), ("b.so", ELF * 100)])
    raw = bytearray(path.read_bytes())
    second = raw.rindex(b"PK\1\2")
    raw[second + 42 : second + 46] = struct.pack("<I", 0)  # its local header is the first one's
    path.write_bytes(raw)
    assert "overlap" in refuse(path)


def test_a_name_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    info = member("././@LongLink", kind=tarfile.GNUTYPE_LONGNAME)
    info.size = 1 << 30
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    assert "an extended header of 1,073,741,824 bytes; the limit is 1,048,576" in refuse(path)


def test_a_stream_that_wants_too_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2 * MAX_DECODER_MEMORY}]
    raw = make_tar(tmp_path / "a.tar", [(member("a.so", ELF), ELF)]).read_bytes()
    path = tmp_path / "b.tar.xz"
    path.write_bytes(lzma.compress(raw, filters=filters))
    assert "emory" in refuse(path)


# ---------------------------------------------------------------- broken


def test_a_lying_member_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", [("a.so", ELF)])
    good = path.read_bytes()
    central = good.index(b"PK\1\2")
    for at, says in ((16, "its checksum is wrong"), (24, "it has not the ")):
        raw = bytearray(good)
        raw[central + at] ^= 1
        path.write_bytes(raw)
        assert says in refuse(path)


def forge_size(path: Path, field: bytes) -> None:
    """Write `field` as the size of the first header, with the checksum that it then has."""
    raw = bytearray(path.read_bytes())
    raw[124:136] = field
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    path.write_bytes(raw)


@pytest.mark.parametrize("how", ["base-256", "pax"])
def test_a_member_of_less_than_nothing_breaks_the_archive(tmp_path: Path, how: str) -> None:
    info = member("a.so", ELF)
    if how == "pax":
        info.pax_headers = {"size": "-5"}
    path = make_tar(tmp_path / "a.tar", [(info, ELF)])
    if how == "base-256":
        forge_size(path, (-5).to_bytes(12, "big", signed=True))
    words = ("a member of -5 bytes", "invalid offset")  # ours, and those of a Python that looks for it itself
    assert refuse(path) in [f"cannot be unpacked: it is broken: {said}" for said in words]


@pytest.mark.parametrize("damage", ["checksum", "cut"])
def test_a_broken_header_does_not_end_the_archive(tmp_path: Path, damage: str) -> None:
    whole = make_tar(tmp_path / "whole.tar", [(member("a.txt", b"text"), b"text"), (member("b.so", ELF), ELF)])
    raw = bytearray(whole.read_bytes())
    second = 1024  # behind a header and a block of text
    assert raw[second : second + 4] == b"b.so"
    if damage == "checksum":
        raw[second + 148] ^= 1
    else:
        del raw[second + 100 :]
    path = tmp_path / "broken.tar"
    path.write_bytes(raw)
    says = refuse(path)
    assert says.startswith("cannot be unpacked: it is broken: ")
    if damage == "checksum":  # GNU tar goes on behind it, and fails in the end
        assert subprocess.run(["tar", "-tf", path], capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize("map_", ["1,x", "x"])
def test_a_sparse_map_that_is_none_breaks_the_archive(tmp_path: Path, map_: str) -> None:
    info = member("a.so", ELF)
    info.pax_headers = {"GNU.sparse.map": map_, "GNU.sparse.size": "9", "GNU.sparse.name": "a.so"}
    says = refuse(make_tar(tmp_path / "a.tar", [(info, ELF)]))
    assert says.startswith("cannot be unpacked: it is broken: ")
    assert "unpack (" not in says and "literal" not in says


def test_a_sparse_file_without_its_map_breaks_the_archive(tmp_path: Path) -> None:
    info = member("a.so", ELF)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.so"}
    says = refuse(make_tar(tmp_path / "a.tar", [(info, ELF)]))
    assert says == "cannot be unpacked: it is broken: a header cannot be read"


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", [("a.so", ELF)])
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)
    assert "a.so is encrypted" in refuse(path)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_archive_is_an_error_and_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("damaged")
    kind = data.draw(st.sampled_from(["zip", "tar", "tar.gz", "tar.xz", "deb"]))
    if kind == "zip":
        path = make_zip(base / "a.zip", [("a.so", ELF * 9), ("b/c.txt", b"text" * 50)], [("l.so", "a.so")])
    else:
        tar = [(member("a.so", ELF), ELF), (member("l.so", kind=tarfile.SYMTYPE, target="a.so"), b"")]
        mode = "w:" + kind.partition(".")[2] if "." in kind else "w"
        path = make_tar(base / f"a.{'tar' if kind == 'deb' else kind}", tar, mode)
        if kind == "deb":
            path = make_deb(base / "a.deb", path.read_bytes())
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with open_inputs([str(path)]) as inputs:
        assert inputs.files or inputs.errors


@pytest.mark.parametrize("name", ["a.whl", "a.zip", "a.deb", "a.tar", "a.tar.gz", "a.tgz", "a.tar.zst"])
def test_what_is_only_named_like_an_archive_is_said_to_be_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"<html>Not Found</html>")
    assert refuse(path) == "cannot be unpacked: it is named like an archive, but its content is none"


def test_an_archive_named_like_a_library_is_a_file_to_judge(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "libextension_cuda.so", [("a.so", ELF)])
    with open_inputs([str(path)]) as inputs:
        assert [(file.path, file.named) for file in inputs.files] == [(str(path), True)]
        assert inputs.spool is None


def test_compressed_data_that_is_no_tar_is_a_file_to_judge(tmp_path: Path) -> None:
    path = tmp_path / "libx.so.gz"
    path.write_bytes(gzip.compress(ELF * 20))
    with open_inputs([str(path)]) as inputs:
        assert [file.path for file in inputs.files] == [str(path)]


def test_an_archive_without_elf_files_has_nothing_to_check(tmp_path: Path) -> None:
    assert "no ELF file in this archive" in refuse(make_zip(tmp_path / "a.zip", [("readme.txt", b"text" * 9)]))


@pytest.mark.parametrize("name", ["a.zip", "a.whl"])
def test_an_archive_without_members_has_nothing_to_check(tmp_path: Path, name: str) -> None:
    assert "no ELF file in this archive" in refuse(make_zip(tmp_path / name, []))


def test_other_compressions_of_zip_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, kind in (("s", zipfile.ZIP_STORED), ("b", zipfile.ZIP_BZIP2), ("l", zipfile.ZIP_LZMA)):
            archive.writestr(f"{name}", ELF * 30000, kind)
            archive.writestr(f"{name}.txt", b"text" * 30, kind)
    with accepted(path) as inputs:
        assert shown(inputs) == ["b", "l", "s"]
        assert all(os.path.getsize(file.path) == len(ELF) * 30000 for file in inputs.files)
