"""What one run judges and keeps: roots, neighbours, what is said twice. The one rule answers what a test wants."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.inputs.process import named_dlopen
from linkcheck.inputs.sources import open_inputs
from linkcheck.loader.files import Files
from linkcheck.loader.system import System
from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity
from linkcheck.policy.settings import Settings
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.value import replace
from linkcheck.verification import Verification
from tests.elf.builder import Plan, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from linkcheck.model import LoadSet, RuleResult

META = RuleMeta("LC999", "said-twice", "a rule of these tests", Severity.ERROR, "0.1")
FOUND = Finding(
    META.code, META.name, META.severity, Confidence.HIGH, "the message", "the remedy", Location("lib/x.so", "f")
)
CHECKED = Check(META.code, "lib/x.so", Outcome.UNKNOWN, "the reason")


def write(path: Path, *, program: bool = False, **facts: object) -> str:
    """A library at `path`, or a program; `facts` are a Plan's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    usual = {"interpreter": "/lib/ld.so"} if program else {"soname": path.name}
    path.write_bytes(build(Plan(**{**usual, **facts})).data)  # type: ignore[arg-type]
    return str(path)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Verification]:
    """Judge paths by one rule, which yields `answer` of each load set."""

    def judge(
        answer: Callable[[LoadSet], Sequence[RuleResult]], *paths: str, dlopen: Sequence[str] = ()
    ) -> Verification:
        def check(load_set: LoadSet, _: Settings) -> Iterator[RuleResult]:
            yield from answer(load_set)

        monkeypatch.setattr("linkcheck.verification.LOAD_SET_RULES", (Rule(META, "", check_load_set=check),))
        with open_inputs(paths) as inputs:
            opened = tuple(named_dlopen(name, global_=False) for name in dlopen)
            run = Verification(Settings("p"), inputs, System(read_image, Files("/")), frozenset({META.code}), opened)
            run.judge_inputs()
        return run

    return judge


def root_names(run: Verification) -> list[str]:
    """The file name of each root, in the order in which they were judged."""
    return [one.root.path.rpartition("/")[2] for one in run.load_sets]


def loaded_names(run: Verification) -> list[list[str]]:
    return [[module.image.path.rpartition("/")[2] for module in one.modules] for one in run.load_sets]


# ---------------------------------------------------------------- what is said twice


@pytest.mark.parametrize("result", [FOUND, CHECKED], ids=["finding", "check"])
def test_what_several_roots_share_is_said_once(
    result: RuleResult, judge: Callable[..., Verification], tmp_path: Path
) -> None:
    roots = [write(tmp_path / name, program=True) for name in ("a", "b")]
    assert judge(lambda _: [result], *roots).results == [result]


@pytest.mark.parametrize(
    "other",
    [
        replace(FOUND, code="LC998"),
        replace(FOUND, message="another message"),
        replace(FOUND, primary=Location("lib/y.so", "f")),
        replace(FOUND, primary=Location("lib/x.so", "g")),
        replace(CHECKED, code="LC998"),
        replace(CHECKED, subject="lib/y.so"),
        replace(CHECKED, outcome=Outcome.NOT_APPLICABLE),
        replace(CHECKED, reason="another reason"),
    ],
)
def test_what_differs_in_one_thing_is_said_too(
    other: RuleResult, judge: Callable[..., Verification], tmp_path: Path
) -> None:
    first: RuleResult = FOUND if isinstance(other, Finding) else CHECKED
    program = write(tmp_path / "a", program=True)
    assert judge(lambda _: [first, other, first], program).results == [first, other]


def test_the_order_of_the_results_is_that_of_the_roots(judge: Callable[..., Verification], tmp_path: Path) -> None:
    roots = [write(tmp_path / name, program=True) for name in ("a", "b", "c")]
    run = judge(lambda one: [Check(META.code, one.root.path, Outcome.PASS)], *roots)
    assert [result.subject for result in run.results if isinstance(result, Check)] == roots


# ---------------------------------------------------------------- what is a root


def nothing(_: LoadSet) -> Sequence[RuleResult]:
    return ()


def test_a_library_that_a_program_of_the_directory_loads_is_no_root(
    judge: Callable[..., Verification], tmp_path: Path
) -> None:
    write(tmp_path / "a.so")  # sorts before the program
    write(tmp_path / "b.so")
    write(tmp_path / "main", program=True, needed=("a.so",), runpath="$ORIGIN")
    assert loaded_names(judge(nothing, str(tmp_path))) == [["main", "a.so"], ["b.so"]]
    # Named, it is judged as somebody's dlopen as well.
    assert root_names(judge(nothing, str(tmp_path / "a.so"), str(tmp_path))) == ["main", "a.so", "b.so"]


@pytest.mark.parametrize("names", list(itertools.permutations(("1.so", "2.so", "3.so"))))
def test_libraries_that_nobody_needs_are_judged_first(
    names: tuple[str, ...], judge: Callable[..., Verification], tmp_path: Path
) -> None:
    """In a chain of three only the first is a root, however they are called."""
    first, second, third = names
    write(tmp_path / first, needed=(second,), runpath="$ORIGIN")
    write(tmp_path / second, needed=(third,), runpath="$ORIGIN")
    write(tmp_path / third)
    assert loaded_names(judge(nothing, str(tmp_path))) == [[first, second, third]]


def test_a_library_that_is_needed_by_its_file_name_is_not_judged_first(
    judge: Callable[..., Verification], tmp_path: Path
) -> None:
    """A NEEDED without a SONAME behind it holds the path that the linker was given."""
    write(tmp_path / "a.so", soname=None)
    write(tmp_path / "b.so", needed=(f"{tmp_path}/a.so",))
    assert root_names(judge(nothing, str(tmp_path))) == ["b.so"]


def test_a_library_that_is_needed_by_its_soname_or_by_its_file_name_is_not_judged_first(
    judge: Callable[..., Verification], tmp_path: Path
) -> None:
    write(tmp_path / "by-soname/a.so.1", soname="z.so")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/z.so").symlink_to("../by-soname/a.so.1")
    write(tmp_path / "by-soname/b.so", needed=("z.so",), runpath="$ORIGIN/../links")
    assert root_names(judge(nothing, str(tmp_path / "by-soname"))) == ["b.so"]
    write(tmp_path / "by-file/a.so", soname="z.so")
    write(tmp_path / "by-file/b.so", needed=("a.so",), runpath="$ORIGIN")
    assert root_names(judge(nothing, str(tmp_path / "by-file"))) == ["b.so"]


def test_what_is_opened_is_opened_by_programs_and_by_libraries_only_without_one(
    judge: Callable[..., Verification], tmp_path: Path
) -> None:
    plugin = write(tmp_path / "plugins/plugin.so")
    library = write(tmp_path / "lib.so")
    program = write(tmp_path / "main", program=True)
    assert loaded_names(judge(nothing, library, dlopen=[plugin])) == [["lib.so", "plugin.so"]]
    assert loaded_names(judge(nothing, library, program, dlopen=[plugin])) == [["main", "plugin.so"], ["lib.so"]]


# ---------------------------------------------------------------- what lies beside


def test_every_load_set_knows_all_images_of_the_run(judge: Callable[..., Verification], tmp_path: Path) -> None:
    """Programs of a directory are let off only when no file beside them touches the state either."""
    roots = [write(tmp_path / name, program=name != "c.so") for name in ("a", "b", "c.so")]
    run = judge(nothing, *roots)
    assert [[image.path for image in one.beside] for one in run.load_sets] == [roots] * 3
    assert [image.path for image in run.images] == roots


def test_a_missing_library_is_looked_for_in_all_that_named_directories_hold(
    judge: Callable[..., Verification], tmp_path: Path
) -> None:
    program = write(tmp_path / "one/deep/main", program=True, needed=("x.so",))
    library = write(tmp_path / "two/deep/x.so")
    here = judge(nothing, str(tmp_path / "one"), str(tmp_path / "two")).load_sets[0].unresolved
    assert [missing.elsewhere for missing in here] == [(library,)]
    alone = judge(nothing, program).load_sets[0].unresolved
    assert [missing.elsewhere for missing in alone] == [()]


def test_only_what_the_user_named_counts_as_named(judge: Callable[..., Verification], tmp_path: Path) -> None:
    program = write(tmp_path / "bin/main", program=True)
    assert [one.named for one in judge(nothing, program).load_sets] == [True]
    assert [one.named for one in judge(nothing, str(tmp_path)).load_sets] == [False]


# ---------------------------------------------------------------- nothing to check


def test_a_run_without_results_says_so_of_every_path(judge: Callable[..., Verification], tmp_path: Path) -> None:
    program = write(tmp_path / "main", program=True)
    run = judge(nothing, program)
    run.note_nothing(["one", "two"])
    assert [(r.code, r.subject, r.outcome) for r in run.results if isinstance(r, Check)] == [
        (META.code, "one", Outcome.UNKNOWN),
        (META.code, "two", Outcome.UNKNOWN),
    ]
    judged = judge(lambda _: [CHECKED], program)
    judged.note_nothing(["one"])
    assert judged.results == [CHECKED]
