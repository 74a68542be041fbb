"""The documentation is up to date, leads somewhere, and shows what the commands really print. Judges no wording."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ci.docs import ROOT, documents, stale_pages, with_help_texts
from linkcheck.policy.load import load_settings
from linkcheck.rules import ALL_CODES
from linkcheck.rules.program_rules import ALL_RULES
from tests.console import run_blocks, sections
from tests.programs.build import build_named, make_programs

if TYPE_CHECKING:
    from pathlib import Path

    from linkcheck.rules.rule import Rule

README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
HEADINGS = (
    "What it checks",
    "Why it matters",
    "Bad",
    "Good",
    "Causes and remedies",
    "Options",
    "What it cannot see",
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def without_code(text: str) -> str:
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


# ---------------------------------------------------------------- generated


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_generated_is_up_to_date(path: Path) -> None:
    written = path.read_text(encoding="utf-8") if path.exists() else None
    assert written == documents()[path], "run: .venv/bin/python -m ci.docs"


def test_no_page_is_left_of_a_rule_that_is_gone() -> None:
    assert stale_pages(documents()) == []


def test_the_readme_shows_every_commands_help() -> None:
    shown = set(re.findall(r"<!-- begin: (.*?) -->", README.read_text(encoding="utf-8")))
    assert {"linkcheck --help", "linkcheck verify --help", "linkcheck prebuilt --help"} <= shown


@pytest.mark.parametrize("name", ["verify", "scan", "live"])
def test_the_help_says_which_policy_comes_first(name: str) -> None:
    text = with_help_texts(f"<!-- begin: linkcheck {name} --help -->\n<!-- end -->\n")
    said = " ".join(text.split()).replace("- ", "-")
    assert "and by the nearest linkcheck.toml; without either by executorch-caller-stream." in said
    assert "Judge by this linkcheck.toml or pyproject.toml; else by the nearest one." in said


def test_a_help_text_that_is_out_of_date_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "before\n<!-- begin: linkcheck rules --help -->\nold\n<!-- end -->\nafter\n"
    texts = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        texts.append(with_help_texts(page))
    assert texts[0] == texts[1] == with_help_texts(texts[0])
    assert "old" not in texts[0]
    assert "Usage: linkcheck rules [OPTIONS]" in texts[0]


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.meta.code)
def test_a_rules_page_has_every_heading_and_something_below_it(rule: Rule) -> None:
    found = sections(rule.page)
    assert tuple(found) == HEADINGS
    assert all(text.strip() for text in found.values())
    assert rule.page.startswith(f"{rule.meta.code} {rule.meta.name}: ")


# ---------------------------------------------------------------- links


@each_page
def test_no_link_is_dead(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)\)", index)}
    assert {page for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"} <= linked


# ---------------------------------------------------------------- examples


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "policy.md"], ids=lambda page: page.name)
def test_the_policy_that_a_page_shows_can_be_used(page: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(extends.*?)^```$", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    policy = tmp_path / "linkcheck.toml"
    policy.write_text(example, encoding="utf-8")
    settings = load_settings(rule_codes=ALL_CODES, policy=str(policy))
    assert settings.dlopen
    assert settings.roles


@pytest.mark.compile
def test_the_readme_shows_what_the_commands_print(tmp_path: Path) -> None:
    text = sections(README.read_text(encoding="utf-8"))["A 60-second start"]
    above, _, _ = text.partition("```console")
    builds = re.findall(r"^python3 -m tests\.programs (\S+) (\S+)$", above, flags=re.MULTILINE)
    assert len(builds) == 3, "a reader needs the programs before the commands"
    for name, folder in builds:
        make_programs(build_named(name), tmp_path / folder)
    ran = run_blocks(text, tmp_path)
    assert len(ran) == 4
    for one in ran:
        # The README says that it shortens these paths.
        assert on_any_machine(one.output.replace(f"{tmp_path}/", "")) == on_any_machine(one.shown), one.command


def on_any_machine(output: str) -> str:
    """`output` without what the compiler and C library of the machine decide: what a program needs, and how much.

    The counts of checks stay: they are no matter of the machine.
    """
    output = re.sub(r"it needs [^\n]*?\. Without", "it needs …. Without", output)
    return re.sub(r"\b\d+ (files|bytes|other imports)\b", r"N \1", output)
