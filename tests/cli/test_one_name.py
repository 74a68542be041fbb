"""A file has one name in a report, the one that the user wrote, whatever way the loader comes to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.verify_command import Verdict, verify
from tests.loader.workshop import Workshop, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

POLICY = '[[state]]\nname = "table"\nowner = ["libown.so"]\nsymbols = ["table"]\n'
COPY = "int table(void) { return 1; } int use(void) { return table(); }"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A program, a library that it needs and a plug-in, which has a copy of the library's state and a false SONAME."""
    monkeypatch.chdir(tmp_path)
    shop = Workshop(tmp_path)
    (tmp_path / "linkcheck.toml").write_text(POLICY)
    shop.library("lib/libown.so", soname="libown.so", source=COPY)
    shop.library("lib/plugin.so", soname="libother.so", source=COPY, flags=("-Wl,-Bsymbolic",))
    shop.executable("bin/main", needs=("libown.so",), runpath="$ORIGIN/../lib")
    return shop


def names_of(verdict: Verdict, shop: Workshop, file: str) -> set[str]:
    """The ways in which a report writes the path of `file`."""
    text = json.dumps(verdict.document["findings"]) + json.dumps(verdict.document["checks"])
    whole = str(shop.base / file)
    return {name for name in (whole, file) if name in text.replace(whole, "" if name == file else whole)}


@pytest.mark.parametrize(
    "arguments",
    [
        ("bin/main", "--dlopen", "lib/plugin.so"),
        ("bin/main", "--preload", "lib/plugin.so"),
        ("bin/main", "lib/plugin.so", "--dlopen", "lib/plugin.so"),
        ("bin", "lib", "--dlopen", "lib/plugin.so"),
    ],
)
def test_what_the_user_names_has_that_name(
    shop: Workshop, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    verdict = verify(capfd, *arguments)
    assert "lib/plugin.so" in {finding["primary"]["path"] for finding in verdict.findings}
    assert names_of(verdict, shop, "lib/plugin.so") == {"lib/plugin.so"}
    private = [f for f in verdict.findings if f["code"] == "LC302" and f["primary"]["path"].endswith("plugin.so")]
    assert len(private) == 1


def test_what_is_named_by_its_whole_path_and_what_is_only_loaded_have_that(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = verify(capfd, "bin/main", "--dlopen", shop.base / "lib/plugin.so")
    for file in ("lib/plugin.so", "lib/libown.so"):
        assert names_of(verdict, shop, file) == {str(shop.base / file)}


def test_a_directory_names_what_is_loaded_from_it(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    verdict = verify(capfd, "bin/main", "lib", "--dlopen", "lib/plugin.so")
    assert names_of(verdict, shop, "lib/libown.so") == {"lib/libown.so"}


def test_what_cannot_be_loaded_is_found_once(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    (shop.base / "lib/libtext.so").write_text("no library\n")
    shop.executable("bin/main", needs=("libown.so", "libtext.so"), runpath="$ORIGIN/../lib")
    verdict = verify(capfd, "bin/main", "--dlopen", "lib/libtext.so")
    assert [f["primary"]["path"] for f in verdict.findings if f["code"] == "LC101"] == ["lib/libtext.so"]


@pytest.mark.parametrize("named", ["lib", "lib/libneeded.so"])
def test_what_no_search_path_reaches_is_there_once(
    shop: Workshop, capfd: pytest.CaptureFixture[str], named: str
) -> None:
    shop.library("lib/libneeded.so", soname="libneeded.so")
    shop.library("lib/libown.so", soname="libown.so", source=COPY, needs=("libneeded.so",))
    verdict = verify(capfd, "bin/main", named)
    (finding,) = (f for f in verdict.findings if f["code"] == "LC203")
    assert finding["evidence"]["exists"] == ["lib/libneeded.so"]


def test_a_link_of_another_name_keeps_it(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """libown.so.1 is what the program loads, and what a policy may name."""
    (shop.base / "lib/libown.so").rename(shop.base / "lib/libown.so.1.2")
    (shop.base / "lib/libown.so").symlink_to("libown.so.1.2")
    verdict = verify(capfd, "bin/main", "lib", "--dlopen", "lib/plugin.so")
    assert any(str(shop.base / "lib/libown.so") in finding["message"] for finding in verdict.findings)


@pytest.mark.parametrize("path", ["lib/plugin.so", "{base}/lib/plugin.so", "plugin.so", "{base}/lib/*"])
def test_a_policy_may_write_either(shop: Workshop, capfd: pytest.CaptureFixture[str], path: str) -> None:
    path = path.format(base=shop.base)
    waiver = f'[[waiver]]\ncode = "LC302"\npath = "{path}"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
    role = f'[[role]]\nname = "plug-in"\nfiles = ["{path}"]\nkind = "library"\nneed = ["libwanted.so"]\n'
    (shop.base / "linkcheck.toml").write_text(POLICY + waiver + role)
    verdict = verify(capfd, "bin/main", "--dlopen", "lib/plugin.so")
    found = {(f["code"], f["waiver"] is not None) for f in verdict.about("lib/plugin.so")}
    assert {("LC201", False), ("LC302", True)} <= found


ROLE = '[[role]]\nname = "plug-in"\nfiles = ["{path}"]\nkind = "library"\nneed = ["libwanted.so"]\n'


def needs_of_role(verdict: Verdict) -> list[str]:
    """The files that lack what the role demands, as the report names them."""
    return [f["primary"]["path"] for f in verdict.errors if f["code"] == "LC201"]


def test_a_hard_link_is_another_file_to_a_policy(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """Package managers install one file into many environments this way; a policy may speak of one of them."""
    for path in ("bin/main", "lib/libown.so"):
        (shop.base / "other" / path).parent.mkdir(parents=True)
        (shop.base / "other" / path).hardlink_to(shop.base / path)
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path="other/lib/*"))
    verdict = verify(capfd, "bin", "lib", "other")
    assert needs_of_role(verdict) == ["other/lib/libown.so"]
    (chain,) = (f["message"] for f in verdict.errors if f["code"] == "LC201")
    assert str(shop.base / "lib") not in chain


@pytest.mark.parametrize("pattern", ["releases/1/lib/*", "{base}/releases/1/lib/*", "*/1/lib/libown.so"])
def test_a_linked_directory_hides_no_file_from_a_policy(
    shop: Workshop, capfd: pytest.CaptureFixture[str], pattern: str
) -> None:
    (shop.base / "releases/1").mkdir(parents=True)
    for name in ("bin", "lib"):
        (shop.base / name).rename(shop.base / "releases/1" / name)
    (shop.base / "current").symlink_to("releases/1")
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path=pattern.format(base=shop.base)))
    verdict = verify(capfd, "current/bin/main", "releases/1/bin/main", "current/lib/libown.so")
    assert needs_of_role(verdict) == ["current/lib/libown.so"]


def test_a_named_link_and_its_target_keep_their_names(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    (shop.base / "lib/libown.so").rename(shop.base / "lib/libown.so.1.2")
    (shop.base / "lib/libown.so").symlink_to("libown.so.1.2")
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path="lib/*"))
    for files in (("lib/libown.so.1.2", "lib/libown.so"), ("lib/libown.so", "lib/libown.so.1.2")):
        verdict = verify(capfd, "bin/main", *files)
        assert set(needs_of_role(verdict)) <= set(files)
        assert "lib/libown.so" in needs_of_role(verdict)


def test_what_two_dots_mean_after_a_link_is_not_guessed(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """link/../lib/libown.so is elsewhere/lib/libown.so, and not lib/libown.so, which the program loads."""
    (shop.base / "elsewhere/deep").mkdir(parents=True)
    (shop.base / "link").symlink_to("elsewhere/deep")
    shop.library("elsewhere/lib/libown.so", soname="libown.so", source=COPY)
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path=f"{shop.base}/lib/*"))
    verdict = verify(capfd, "bin/main", "link/../lib/libown.so")
    assert str(shop.base / "lib/libown.so") in needs_of_role(verdict)


@pytest.mark.parametrize("pattern", ["*/lib/plugin.so", "*lib/plugin.so"])
def test_a_waiver_for_any_place_means_it_however_it_is_named(
    shop: Workshop, capfd: pytest.CaptureFixture[str], pattern: str
) -> None:
    waiver = f'[[waiver]]\ncode = "LC302"\npath = "{pattern}"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
    (shop.base / "linkcheck.toml").write_text(POLICY + waiver)
    for name in ("lib/plugin.so", str(shop.base / "lib/plugin.so")):
        verdict = verify(capfd, "bin/main", "--dlopen", name)
        assert [f["waiver"] is not None for f in verdict.findings if f["code"] == "LC302"] == [True]


@pytest.mark.parametrize("pattern", ["current/lib/libown.so", "{base}/current/lib/libown*", "releases/1/lib/libown.so"])
@pytest.mark.parametrize("inputs", [("current",), ("current/bin/main", "current/lib"), ("current/bin/main",)])
def test_a_file_below_a_linked_directory_has_both_its_paths(
    shop: Workshop, capfd: pytest.CaptureFixture[str], pattern: str, inputs: tuple[str, ...]
) -> None:
    (shop.base / "releases/1").mkdir(parents=True)
    for name in ("bin", "lib"):
        (shop.base / name).rename(shop.base / "releases/1" / name)
    (shop.base / "lib").mkdir()
    (shop.base / "current").symlink_to("releases/1")
    pattern = pattern.format(base=shop.base)
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path=pattern))
    if inputs == ("current/bin/main",) and "current" in pattern:
        inputs = (*inputs, "current/lib/libown.so")  # that it is meant has to be said somewhere
    named = [path for path in inputs if path != "current/bin/main"]
    expected = "current/lib/libown.so" if named else str(shop.base / "releases/1/lib/libown.so")
    assert needs_of_role(verify(capfd, *inputs)) == [expected]
    waiver = f'[[waiver]]\ncode = "LC201"\npath = "{pattern}"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path=pattern) + waiver)
    assert needs_of_role(verify(capfd, *inputs)) == []


def test_two_dots_after_a_directory_are_the_same_path(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    (shop.base / "linkcheck.toml").write_text(ROLE.format(path="lib/*"))
    assert needs_of_role(verify(capfd, "bin/main", "bin/../lib/libown.so")) == ["bin/../lib/libown.so"]


def test_a_waiver_means_no_directory_above_the_policy(
    tmp_path: Path, shop: Workshop, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "plugins/project"
    checkout.mkdir(parents=True)
    for name in ("bin", "lib"):
        (shop.base / name).rename(checkout / name)
    monkeypatch.chdir(checkout)
    waiver = '[[waiver]]\ncode = "LC302"\npath = "*/plugins/*"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
    (checkout / "linkcheck.toml").write_text(POLICY + waiver)
    for name in ("lib/plugin.so", str(checkout / "lib/plugin.so")):
        found = verify(capfd, "bin/main", "--dlopen", name).findings
        assert [f["waiver"] is not None for f in found if f["code"] == "LC302"] == [name.startswith("/")]
