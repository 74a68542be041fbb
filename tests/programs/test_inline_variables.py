"""Variables that C++ headers define, in every library that includes them: how many copies ld.so leaves, by its word.

Each library counts its own calls in the variable, so that a process tells by its numbers how many copies it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

PROBE = 'extern "C" __attribute__((visibility("default"))) int probe() { return ++%s; }\n'
#: What the header has, and how the policy names it.
HEADERS = {
    "inline variable": ("namespace n { inline int value; }", "n::value"),
    "static member of a template": (
        "template <class T> struct S { static int value; }; template <class T> int S<T>::value;",
        "S<int>::value",
    ),
    "static variable of an inline function": ("inline int &get() { static int value; return value; }", "get()::value"),
    "weak variable": ('extern "C" { __attribute__((weak)) int value; }', "value"),
    "thread_local": ("namespace n { inline thread_local int value; }", "n::value"),
}
#: How both libraries are built.
BUILDS = {
    "plain": (),
    "symbolic": ("-Wl,-Bsymbolic",),
    "hidden": ("-fvisibility=hidden",),
    "weak": ("-fno-gnu-unique",),
    "weak and symbolic": ("-fno-gnu-unique", "-Wl,-Bsymbolic"),
}
#: In which order and scope they are opened; liba.so is the owner.
ORDERS = {
    "owner first": (("liba.so", False), ("libb.so", False)),
    "owner last": (("libb.so", False), ("liba.so", False)),
    "global, owner first": (("liba.so", True), ("libb.so", True)),
    "global, owner last": (("libb.so", True), ("liba.so", True)),
}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("header", HEADERS)
def test_copies_of_what_a_header_defines(yard: Yard, header: str, build: str) -> None:
    text, name = HEADERS[header]
    used = name.replace("get()::value", "get()")
    for library in ("liba.so", "libb.so"):
        yard.library(library, f"#c++\n{text}\n{PROBE % used}", "-std=c++17", *BUILDS[build])
    state = f'[[state]]\nname = "header"\nowner = ["liba.so"]\nsymbols = ["{name}"]\n'
    for order, libraries in ORDERS.items():
        opened = [Opening(yard.base / library, shared) for library, shared in libraries]
        copies = {"1 2": 1, "1 1": 2}[yard.open(*opened).output]
        verdict = yard.judge(*opened, policy=state)
        (finding,) = [one for one in verdict.findings if one["code"] == "LC401"]
        assert (finding["severity"], verdict.status) == (("info", 0) if copies == 1 else ("error", 1)), order
        in_source = "define it in one source file of liba.so." in finding["remedy"]
        if copies == 1:
            for_good = "in every load order and scope" in finding["message"]
            # What STB_GNU_UNIQUE promises.
            assert for_good is (build in ("plain", "symbolic") and header != "weak variable"), order
            assert finding["remedy"] == "" if for_good else in_source
            (beside,) = [one for one in verdict.findings if one["code"] == "LC302"]
            assert beside["remedy"] == finding["remedy"]
            assert "libb.so exports its own definition of" in beside["message"]
            assert beside["message"].endswith("; so has every file that includes the header.")
        else:
            assert in_source is (build != "hidden")  # a local symbol does not tell


@pytest.mark.parametrize("build", BUILDS)
def test_two_owners_are_a_fault_whatever_becomes_of_a_header_of_theirs(yard: Yard, build: str) -> None:
    text, name = HEADERS["inline variable"]
    for library in ("liba.so", "libb.so"):
        yard.library(library, f"#c++\n{text}\n{PROBE % name}", "-std=c++17", *BUILDS[build])
    state = f'[[state]]\nname = "header"\nowner = ["lib[ab].so"]\nsymbols = ["{name}"]\n'
    for libraries in ORDERS.values():
        verdict = yard.judge(*(Opening(yard.base / library, shared) for library, shared in libraries), policy=state)
        (finding,) = verdict.errors
        assert (verdict.status, finding["code"]) == (1, "LC401")
        assert "are 2 owner libraries in one process" in finding["message"]
        assert finding["remedy"].startswith("Link the shared library lib")


#: An inline function around an inline variable: no symbol tells of the way from the one to the other.
AROUND = """#c++
namespace n { inline int value; inline int &get() { return value; } }
extern "C" int probe() { return ++n::get(); }
"""
#: A weak function of a source file, around a variable that no other file can see.
OF_ITS_OWN = """#c++
namespace n { static int value; __attribute__((weak)) int &get() { return value; } }
extern "C" int probe() { n::get()++; return n::value; }
"""


@pytest.mark.parametrize(("source", "output"), [(AROUND, "1 2"), (OF_ITS_OWN, "1 0")], ids=["header", "source file"])
@pytest.mark.parametrize("strip", [(), ("-s",)], ids=["", "stripped"])
def test_weak_cxx_functions_alone_do_not_tell_whether_a_header_has_them(
    yard: Yard, source: str, output: str, strip: tuple[str, ...]
) -> None:
    """One copy and two, and the same symbols: before the owner's that is unknown, and behind it information."""
    flags = ("-std=c++17", "-fno-inline", "-O0", *strip)
    owner, other = (Opening(yard.library(name, source, *flags), shared=True) for name in ("liba.so", "libb.so"))
    assert yard.open(other, owner).output == output
    state = '[[state]]\nname = "header"\nowner = ["liba.so"]\nsymbols = ["n::get()"%s]\n'
    verdict = yard.judge(other, owner, policy=state % "")
    assert (verdict.status, verdict.errors) == (2, [])
    (reason,) = [reason for code, reason in verdict.reasons("unknown") if code == "LC401"]
    assert reason.endswith("cannot be seen (name the variable in `symbols`)")
    verdict = yard.judge(owner, other, policy=state % "")
    assert (verdict.status, [f["severity"] for f in verdict.findings if f["code"] == "LC401"]) == (0, ["info"])
    if source == AROUND:
        verdict = yard.judge(other, owner, policy=state % ', "n::value"')
        assert (verdict.status, [f["severity"] for f in verdict.findings if f["code"] == "LC401"]) == (0, ["info"])
