"""The sentences of docs/architecture.md, checked: the list of rules, and who may know whom. It judges no behaviour."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import linkcheck
from linkcheck.rules import ALL_CODES, LOAD_SET_RULES
from linkcheck.rules.link_rules import LINK_RULES
from linkcheck.rules.program_rules import ALL_RULES, PROGRAM_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.rules.rule import Rule

PACKAGE = Path(linkcheck.__file__).parent
RULE_TESTS = Path(__file__).parent / "rules"

HEADINGS = [
    "What it checks",
    "Why it matters",
    "Bad",
    "Good",
    "Causes and remedies",
    "Options",
    "What it cannot see",
]
#: A rule's name is the fault: "allow <name>" has to read as "allow this fault". Each begins or ends like one.
FAULTY_STARTS = ("not-", "wrong-", "missing-", "unresolved-", "unreachable-", "forbidden-", "unused-", "expired-")
FAULTY_WORDS = (
    *("malformed", "mismatch", "private", "split", "undefined", "unsatisfied", "absent", "duplicate"),
    *("missing", "misaligned", "stored-twice", "inline-and-named"),
)


@dataclass(frozen=True)
class Source:
    """One module of the package, parsed."""

    path: Path
    tree: ast.Module

    @property
    def name(self) -> str:
        """The dotted name, such as linkcheck.elf.reader; a package is named by its folder."""
        parts = self.path.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def part(self) -> str:
        """Its folder, or for a module at the top its own name."""
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _read(path: Path) -> Source:
    return Source(path, ast.parse(path.read_text(encoding="utf-8"), str(path)))


SOURCES = [_read(path) for path in sorted(PACKAGE.rglob("*.py"))]
MODULES = {source.name for source in SOURCES}
RULE_SOURCES = {source.path.stem: source for source in SOURCES if source.part == "rules"}


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(node: ast.AST, *, at_import: bool = False) -> Iterator[str]:
    """Every dotted module name that is imported below `node`, but not for types only.

    With `at_import` only what importing the module itself executes: nothing inside functions.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            module = child.module or ""
            names = [f"{module}.{alias.name}" for alias in child.names]
            yield from (name if name in MODULES else module for name in names)
        elif _is_for_types(child):
            yield from (name for part in child.orelse for name in imports_of(part, at_import=at_import))  # type: ignore[attr-defined]
        elif not (at_import and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))):
            yield from imports_of(child, at_import=at_import)


def type_imports_of(tree: ast.Module) -> set[str]:
    """Every module of ours that is imported anywhere, also for types only."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("linkcheck"):
            found.add(node.module or "")
    return found


def part_of(module: str) -> str:
    """`elf` for linkcheck.elf.reader, `linkcheck` for the package itself."""
    return module.split(".")[1] if "." in module else module


# ---------------------------------------------------------------- the registry


def test_the_list_of_rules_is_in_the_order_of_unique_codes() -> None:
    assert list(ALL_CODES) == sorted(set(ALL_CODES)) == [rule.meta.code for rule in ALL_RULES]
    assert all(re.fullmatch(r"LC\d{3}", code) for code in ALL_CODES)


def test_rule_names_are_unique_and_kebab_case() -> None:
    names = [rule.meta.name for rule in ALL_RULES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", name) for name in names)


def test_every_module_with_a_card_is_in_the_list_and_named_like_its_rule() -> None:
    with_card = {
        stem
        for stem, source in RULE_SOURCES.items()
        for node in source.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("META", "RULE")
    }
    assert with_card == {rule.meta.name.replace("-", "_") for rule in ALL_RULES}


def test_the_list_of_rules_is_written_by_hand() -> None:
    """Literal tuples, so that "go to definition" works: no scanning, no decorators."""
    lists = (
        ("__init__", "LOAD_SET_RULES", LOAD_SET_RULES),
        ("link_rules", "LINK_RULES", LINK_RULES),
        ("program_rules", "PROGRAM_RULES", PROGRAM_RULES),
    )
    for stem, name, rules in lists:
        (value,) = (
            node.value
            for node in RULE_SOURCES[stem].tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        )
        assert isinstance(value, ast.Tuple)
        assert [ast.unparse(element) for element in value.elts] == [
            f"{rule.meta.name.replace('-', '_')}.RULE" for rule in rules
        ]
        assert all((rule.check_programs is not None) is (rules is PROGRAM_RULES) for rule in rules)
    assert tuple(rule for rule in LINK_RULES if rule.check_load_set is not None) == LOAD_SET_RULES
    assert all(rule in LOAD_SET_RULES for rule in LINK_RULES if rule.check_bundle is not None)


each_rule = pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.meta.code)


@each_rule
def test_the_card_is_complete(rule: Rule) -> None:
    meta = rule.meta
    assert 20 <= len(meta.summary) <= 100
    assert not meta.summary.endswith(".")
    assert meta.summary[0].islower() or meta.summary.startswith("ELF")
    assert re.fullmatch(r"\d+\.\d+", meta.since)


@each_rule
def test_the_name_is_the_fault(rule: Rule) -> None:
    assert rule.meta.name.startswith(FAULTY_STARTS) or any(word in rule.meta.name for word in FAULTY_WORDS)


@each_rule
def test_the_page_names_the_rule_and_has_every_heading_once(rule: Rule) -> None:
    lines = rule.page.splitlines()
    assert lines[0].startswith(f"{rule.meta.code} {rule.meta.name}: ")
    assert lines[0].endswith(".")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == HEADINGS


@each_rule
def test_every_heading_of_the_page_is_followed_by_text(rule: Rule) -> None:
    sections = re.split(r"^## .*\n", rule.page, flags=re.MULTILINE)[1:]
    assert all(section.strip() for section in sections)
    assert rule.page.count("```") % 2 == 0


@each_rule
def test_the_bad_example_shows_the_command_that_makes_it(rule: Rule) -> None:
    bad = rule.page.partition("\n## Bad\n")[2].partition("\n## Good\n")[0]
    assert re.search(r"^\$ ", bad, flags=re.MULTILINE)


@each_rule
def test_each_rule_has_tests_of_what_it_finds_passes_and_cannot_see(rule: Rule) -> None:
    path = RULE_TESTS / f"test_{rule.meta.name.replace('-', '_')}.py"
    names = [node.name for node in ast.walk(_read_test(path)) if isinstance(node, ast.FunctionDef)]
    for kind in ("test_finds_", "test_passes_", "test_cannot_see_"):
        assert any(name.startswith(kind) for name in names), f"{path.name} has no {kind}*"


def _read_test(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@each_rule
def test_each_rule_looks_at_something(rule: Rule) -> None:
    checks_files = (rule.check_file, rule.check_load_set, rule.check_programs, rule.check_bundle)
    about_policy = rule.check_policy is not None
    about_files = any(check is not None for check in checks_files)
    assert (about_files, about_policy) == (not rule.meta.code.startswith("LC9"), rule.meta.code.startswith("LC9"))


def test_the_page_lists_the_modules_of_the_model() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    entry = re.search(r"^  model/ .*\n(?: {19}.*\n)*", page, re.MULTILINE)
    assert entry is not None
    modules = [s.path.name for s in SOURCES if s.part == "model" and s.path.name != "__init__.py"]
    assert sorted(re.findall(r"\w+\.py", entry[0])) == modules


# ---------------------------------------------------------------- who may know whom

each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)

#: Part -> the parts it may import, for types or not. What is not listed here is checked by its own test below.
MAY_KNOW: dict[str, frozenset[str]] = {
    "model": frozenset({"model"}),
    "errors": frozenset({"model"}),
    "value": frozenset(),
    "opened_file": frozenset({"errors"}),
    "choice": frozenset(),
    "text": frozenset(),
    "elf": frozenset({"elf", "errors", "model", "opened_file"}),
    "loader": frozenset({"loader", "elf", "errors", "model"}),
    "executorch": frozenset({"executorch", "errors", "model", "opened_file"}),
    "policy": frozenset({"policy", "errors", "model", "report"}),
    "report": frozenset({"linkcheck", "report", "errors", "executorch", "model", "policy"}),
    "rules": frozenset({"rules", "errors", "executorch", "loader", "model", "policy"}),
    "inputs": frozenset({"inputs", "elf", "errors", "loader", "model", "policy"}),
    "bundle": frozenset({"rules", "inputs", "elf", "errors", "executorch", "model"}),
    "verification": frozenset(
        {"bundle", "part_of_program", "rules", "inputs", "elf", "errors", "loader", "model", "policy"}
    ),
    "part_of_program": frozenset({"rules", "inputs", "model", "policy"}),
    "scanning": frozenset({"verification", "rules", "inputs", "errors", "model"}),
    "running": frozenset({"verification", "rules", "inputs", "elf", "errors", "loader", "model", "policy"}),
    "prebuilt": frozenset({"rules", "inputs", "elf", "errors", "model", "policy"}),
    "programs": frozenset({"folding", "rules", "errors", "executorch", "model", "policy"}),
    "folding": frozenset({"model", "policy"}),
    "library_path": frozenset({"inputs", "elf", "errors", "loader", "model"}),
    "reporting": frozenset({"rules", "model", "policy", "report"}),
    "api": frozenset(
        {
            *("scanning", "verification", "running", "prebuilt", "programs", "library_path", "reporting", "report"),
            *("rules", "inputs", "elf", "errors", "executorch", "loader", "model", "policy"),
        }
    ),
    "cli": frozenset({"linkcheck", "cli", "api", "policy", "report", "rules", "errors", "elf", "model"}),
    "__main__": frozenset({"cli"}),
    "__init__": frozenset(),
}


@each_source
def test_who_knows_whom(source: Source) -> None:
    known = {part_of(module) for module in type_imports_of(source.tree)}
    known |= {part_of(module) for module in imports_of(source.tree) if module.split(".")[0] == "linkcheck"}
    known -= {"value", "choice", "text"}  # the bases of frozen values and enumerations, and names: they know nothing
    assert known <= MAY_KNOW[source.part]


def test_the_report_knows_of_policies_only_what_a_waiver_is() -> None:
    known = {m for s in SOURCES if s.part == "report" for m in type_imports_of(s.tree) if part_of(m) == "policy"}
    assert known <= {"linkcheck.policy.settings"}


@pytest.mark.parametrize("part", ["report", "rules"])
def test_reports_and_rules_know_of_programs_only_what_was_read(part: str) -> None:
    known = {m for s in SOURCES if s.part == part for m in type_imports_of(s.tree) if part_of(m) == "executorch"}
    assert known <= {"linkcheck.executorch.facts", "linkcheck.executorch.blob"}


def test_policies_know_of_reports_only_what_a_finding_becomes() -> None:
    known = {m for s in SOURCES if s.part == "policy" for m in type_imports_of(s.tree) if part_of(m) == "report"}
    assert known <= {"linkcheck.report.report"}


def test_the_commands_know_of_elf_only_the_names_of_machines() -> None:
    known = {m for s in SOURCES if s.part == "cli" for m in type_imports_of(s.tree) if part_of(m) == "elf"}
    assert known <= {"linkcheck.elf.machine"}


#: Modules and builtins that reach a file, a process, the environment or the terminal.
_REACHES_OUT = {"os", "io", "sys", "pathlib", "subprocess", "shutil", "tempfile", "socket", "mmap", "glob", "logging"}
_BUILTINS_THAT_DO = {"open", "print", "input", "exec", "eval", "__import__"}


@pytest.mark.parametrize("source", [s for s in SOURCES if s.part in ("rules", "model")], ids=lambda s: s.name)
def test_rules_and_facts_read_nothing_and_print_nothing(source: Source) -> None:
    assert not {name.split(".")[0] for name in imports_of(source.tree)} & _REACHES_OUT
    called = {node.func.id for node in ast.walk(source.tree) if _calls_a_name(node)}  # type: ignore[attr-defined]
    assert not called & _BUILTINS_THAT_DO


@pytest.mark.parametrize("source", [s for s in SOURCES if s.part != "cli"], ids=lambda s: s.name)
def test_only_the_commands_print(source: Source) -> None:
    called = {node.func.id for node in ast.walk(source.tree) if _calls_a_name(node)}  # type: ignore[attr-defined]
    assert "print" not in called
    if source.name != "linkcheck.__main__":
        assert not re.search(r"\bsys\.(stdout|stderr|exit|argv)\b", ast.unparse(source.tree))


def _calls_a_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_a_reader_reaches_a_rule_in_three_hops() -> None:
    by_name = {source.name: source for source in SOURCES}
    assert "linkcheck.api" in set(imports_of(by_name["linkcheck.cli.verify"].tree))
    reached = set(imports_of(by_name["linkcheck.api"].tree))
    assert "linkcheck.rules" in reached or "linkcheck.verification" in reached
    assert "linkcheck.rules" in set(imports_of(by_name["linkcheck.verification"].tree))


_LIMITS = [source for source in SOURCES if source.path.stem == "limits"]


@pytest.mark.parametrize("source", _LIMITS, ids=lambda source: source.name)
def test_the_limits_name_the_modules_that_they_bound(source: Source) -> None:
    importers: dict[str, set[str]] = {}
    for other in SOURCES:
        for node in ast.walk(other.tree):
            if isinstance(node, ast.ImportFrom) and node.module == source.name:
                for alias in node.names:
                    importers.setdefault(alias.name, set()).add(other.path.name)
    for group in source.path.read_text(encoding="utf-8").split("\n\n"):
        names = re.findall(r"^([A-Z_]+) =", group, re.MULTILINE)
        assert all(name in importers for name in names), f"nobody imports one of {names}"
        words, _, bounded = group.replace("\n#:", "").partition(" Bounds ")
        if bounded:
            users = set().union(*(importers[name] for name in names))
            assert set(re.findall(r"\w+\.py", bounded)) == users, words


# ---------------------------------------------------------------- manners

#: Costly to import (measured: click 32 ms, elftools 47 ms, lief 380 ms), so only where they are used.
_HEAVY = {
    "lief",
    "elftools",
    "json",
    "hashlib",
    "ctypes",
    "difflib",
    "importlib.metadata",
    "argparse",
    "typing_extensions",
}
#: Modules that a command imports only when it has work for them; what they import costs nothing before.
_LATE = {
    "linkcheck.report.json_document": {"json"},
    "linkcheck.report.sarif": {"json"},
    "linkcheck.report.fingerprint": {"hashlib"},
}


@each_source
def test_nothing_heavy_is_imported_before_it_is_used(source: Source) -> None:
    roots = {name.split(".")[0] for name in imports_of(source.tree, at_import=True)}
    heavy = {name for name in roots if name in _HEAVY or (name == "click" and source.part != "cli")}
    assert heavy <= _LATE.get(source.name, set())


@pytest.mark.parametrize("late", sorted(_LATE))
def test_what_is_late_is_imported_inside_functions_or_by_what_is_late(late: str) -> None:
    early = {s.name for s in SOURCES if late in set(imports_of(s.tree, at_import=True))}
    assert early <= set(_LATE)


@each_source
def test_nothing_that_a_user_can_reach_is_an_assert(source: Source) -> None:
    assert not [node.lineno for node in ast.walk(source.tree) if isinstance(node, ast.Assert)]


@each_source
def test_only_the_one_place_catches_everything(source: Source) -> None:
    broad = [
        node.lineno
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and _names(node.type) & {"", "Exception", "BaseException"}
        if ast.unparse(node.body[-1]) != "raise"  # it tidies up and catches nothing
    ]
    assert len(broad) == (1 if source.name == "linkcheck.cli.run" else 0)


def _names(node: ast.expr | None) -> set[str]:
    if node is None:
        return {""}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


@each_source
def test_every_module_opens_with_what_it_is(source: Source) -> None:
    docstring = ast.get_docstring(source.tree)
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ";", ",")) or len(docstring.splitlines()[0]) > 60


@each_source
def test_no_name_says_nothing(source: Source) -> None:
    assert source.path.stem not in {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
