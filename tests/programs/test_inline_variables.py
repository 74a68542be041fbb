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
        if copies == 1:
            for_good = "in every load order and scope" in finding["message"]
            assert for_good is (build in ("plain", "symbolic")), order  # what STB_GNU_UNIQUE promises
