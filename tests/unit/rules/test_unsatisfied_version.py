"""LC305 unsatisfied-version, on plain values."""

from __future__ import annotations

from dataclasses import replace

from linkcheck.model import FileKind, Image, Libc, Outcome, Severity, SymbolVersion, VersionNeed
from linkcheck.rules.unsatisfied_version import check
from tests.unit.rules.worlds import checks, image, load_set, only_finding, outcomes, small_policy

POLICY = small_policy()


def app(*versions: str, weak: bool = False, needed: str = "libtable.so") -> Image:
    program = image("bin/app", kind=FileKind.PIE, needed=(needed,))
    wanted = tuple(SymbolVersion(name, library="libtable.so", weak=weak) for name in versions)
    return replace(program, version_needs=(VersionNeed("libtable.so", wanted),))


def table(*versions: str, soname: str = "libtable.so") -> Image:
    library = image("lib/libtable.so", soname=soname)
    base = (SymbolVersion(soname, base=True),) if versions else ()
    return replace(library, version_definitions=(*base, *map(SymbolVersion, versions)))


def test_finds_a_version_that_the_library_lacks() -> None:
    finding = only_finding(check(load_set(app("T_1", "T_2"), table("T_1")), POLICY))
    assert (finding.code, finding.severity) == ("LC305", Severity.ERROR)
    assert (finding.primary.path, finding.primary.symbol) == ("bin/app", "T_2")
    assert finding.evidence["missing"] == ["T_2"]
    assert "bin/app -> lib/libtable.so" in finding.message


def test_passes_what_the_library_has() -> None:
    reason = "every library has the versions that are needed of it"
    world = load_set(app("T_2"), table("T_1", "T_2"))
    assert checks(check(world, POLICY)) == [("bin/app", Outcome.PASS, reason)]


def test_warns_of_a_library_without_versions_and_only_mentions_one_that_needs_some() -> None:
    """ld.so keeps the versions of a file that needs some, and takes a definition without one from it."""
    finding = only_finding(check(load_set(app("T_1", "T_2"), table()), POLICY))
    assert (finding.severity, finding.evidence["missing"]) == (Severity.WARNING, ["T_1", "T_2"])
    assert "glibc 2.41" in finding.message
    needs = replace(table(), version_needs=(VersionNeed("libc.so.6", (SymbolVersion("GLIBC_2.2.5"),)),))
    finding = only_finding(
        check(load_set(app("T_2"), needs, missing=("libc.so.6",)), small_policy(external=("libc*",)))
    )
    assert finding.severity is Severity.INFO
    assert "no version information available" in finding.message


def test_finds_a_library_that_nothing_is_loaded_as() -> None:
    finding = only_finding(check(load_set(app("T_1", needed="libother.so"), image("lib/libother.so")), POLICY))
    assert (finding.severity, finding.evidence["library"]) == (Severity.ERROR, "libtable.so")


def test_a_file_with_packed_relocations_has_to_say_so() -> None:
    """glibc refuses it otherwise; one that is too old for them leaves its addresses as they are."""

    def judge(*wanted: str, offered: tuple[str, ...], libc: Libc = Libc.GLIBC) -> list[Outcome]:
        needs = (VersionNeed("libc.so.6", tuple(map(SymbolVersion, wanted))),) if wanted else ()
        program = image("bin/app", kind=FileKind.PIE, needed=("libc.so.6",))
        program = replace(program, version_needs=needs, packed_relocations=True)
        library = image("lib/libc.so.6", soname="libc.so.6")
        library = replace(library, version_definitions=tuple(map(SymbolVersion, offered)))
        return outcomes(check(replace(load_set(program, library), libc=libc), POLICY))

    new, old = ("GLIBC_2.2.5", "GLIBC_ABI_DT_RELR"), ("GLIBC_2.2.5",)
    assert judge("GLIBC_2.2.5", offered=new) == [Outcome.FINDING]
    assert judge("GLIBC_2.2.5", "GLIBC_ABI_DT_RELR", offered=new) == [Outcome.PASS]
    assert judge(offered=new) == [Outcome.NOT_APPLICABLE]  # ld.so asks only where versions are named
    assert judge("GLIBC_2.2.5", offered=old) == [Outcome.UNKNOWN]
    assert judge("GLIBC_ABI_DT_RELR", offered=old) == [Outcome.FINDING]  # as any version that is not there
    assert judge("GLIBC_2.2.5", offered=new, libc=Libc.MUSL) == [Outcome.NOT_APPLICABLE]


def test_asks_nothing_for_musl() -> None:
    world = replace(load_set(app("T_2"), table("T_1")), libc=Libc.MUSL)
    reason = "musl's loader compares no versions"
    assert checks(check(world, POLICY)) == [("bin/app", Outcome.NOT_APPLICABLE, reason)]


def test_passes_a_weak_need() -> None:
    assert [outcome for _, outcome, _ in checks(check(load_set(app("T_2", weak=True), table("T_1")), POLICY))] == [
        Outcome.PASS
    ]


def test_asks_nothing_of_files_that_need_no_version() -> None:
    world = load_set(image("bin/app", kind=FileKind.PIE, needed=("libtable.so",)), table("T_1"))
    assert [outcome for _, outcome, _ in checks(check(world, POLICY))] == [Outcome.NOT_APPLICABLE]


def test_cannot_see_the_versions_of_a_missing_library() -> None:
    world = load_set(app("T_2", needed="libother.so"), missing=("libtable.so",))
    assert checks(check(world, POLICY)) == [
        ("bin/app", Outcome.UNKNOWN, "libtable.so not found, so its versions cannot be compared")
    ]
    external = small_policy(external=("libtable.so",))
    assert [outcome for _, outcome, _ in checks(check(world, external))] == [Outcome.NOT_APPLICABLE]
