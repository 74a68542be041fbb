"""Libraries whose own functions are weak, so that a profiler can take their place: each keeps its data to itself.

ld.so binds every call to the first of two such libraries, and what the other has counted nobody sees: a process tells
by its numbers how many copies it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

#: NCCL declares each function so; MPI's are aliases of others that a profiler calls.
STYLES = {
    "strong": "static int calls; int comm_init(void) { return ++calls; }",
    "weak": "static int calls; __attribute__((weak)) int comm_init(void) { return ++calls; }",
    "weak alias": (
        "static int calls; int pcomm_init(void) { return ++calls; }"
        'int comm_init(void) __attribute__((weak, alias("pcomm_init")));'
    ),
}
#: A use inside the library, which ld.so leads elsewhere, and what the library itself knows of it.
INSIDE = " int probe(void) { comm_init(); return calls; }"
USER = "int comm_init(void); int probe(void) { return comm_init(); }"
STATE = '[[state]]\nname = "communicators"\nowner = ["libcomm*.so*"]\nsymbols = ["comm_init"]\nonly-with-owner = true\n'
#: The owner's file, and the other one's.
PAIRS = {
    "two owners": ("libcomm.so.2", "libcomm-8f2.so.2", "are 2 owner libraries in one process"),
    "owner last": ("libother.so", "libcomm.so.2", "The uses are bound to the copy in"),
}


@pytest.mark.parametrize("strip", [(), ("-s",)], ids=["", "stripped"])
@pytest.mark.parametrize("shared", [True, False], ids=["global", "local"])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("style", STYLES)
def test_two_libraries_with_data_of_their_own(
    yard: Yard, style: str, pair: str, shared: bool, strip: tuple[str, ...]
) -> None:
    *names, problem = PAIRS[pair]
    opened = [Opening(yard.library(name, STYLES[style] + INSIDE, *strip), shared) for name in names]
    assert yard.open(*opened).output == ("1 0" if shared else "1 1")
    verdict = yard.judge(*opened, policy=STATE)
    (finding,) = [one for one in verdict.errors if one["code"] == "LC401"]
    assert verdict.status == 1
    assert (problem in finding["message"]) is (shared or pair == "two owners")
    assert finding["remedy"].startswith("Link the shared library libcomm")


@pytest.mark.parametrize("style", STYLES)
def test_one_library_and_who_uses_it(yard: Yard, style: str) -> None:
    owner = yard.library("libcomm.so.2", STYLES[style] + INSIDE)
    one, two = (yard.library(name, USER, owner, "-Wl,-rpath,$ORIGIN") for name in ("one.so", "two.so"))
    assert yard.open(one, two).output == "1 2"
    verdict = yard.judge(one, two, policy=STATE)
    assert (verdict.status, verdict.findings) == (0, [])


@pytest.mark.parametrize("name", ["libnccl-8f2.so.2", "libnccl.so.2.19.3"])
def test_two_builds_of_nccl_as_it_is_shipped(yard: Yard, name: str) -> None:
    """The profile `default`, with the functions that it names."""
    nccl = (
        "static int ranks; __attribute__((weak)) int ncclGetUniqueId(void) { return ++ranks; }"
        "__attribute__((weak)) int ncclCommInitRank(void) { return ncclGetUniqueId(); }"
        "int probe(void) { ncclCommInitRank(); return ranks; }"
    )
    opened = [Opening(yard.library(one, nccl), shared=True) for one in ("libnccl.so.2", name)]
    assert yard.open(*opened).output == "1 0"
    verdict = yard.judge(*opened, profile="default")
    assert verdict.status == 1
    (finding,) = [one for one in verdict.errors if one["code"] == "LC401"]
    assert finding["evidence"]["state"] == "NCCL state"
