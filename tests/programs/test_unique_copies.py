"""STB_GNU_UNIQUE definitions that ld.so does not merge, and inline functions around them, as real processes show.

Every file counts its calls in the variable that it reaches, so each variable says 1 once.
"""

from __future__ import annotations

import shutil
from itertools import permutations, product
from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import HOST, Opening

if TYPE_CHECKING:
    from tests.cli.verify_command import Verdict
    from tests.programs.yard import Yard

pytestmark = needs_compiler

PROBE = 'extern "C" __attribute__((visibility("default"))) int probe() { return ++%s; }\n'
HEADERS = {
    "variable": ("inline int value;", "value", "value"),
    "function": ("inline int &get() { static int value; return value; }", "get()", "get()::value"),
    "thread_local": ("inline thread_local int value;", "value", "value"),
}
#: How a library is built.
BUILDS = {"plain": (), "symbolic": ("-Wl,-Bsymbolic",), "protected": ("-fvisibility=protected",)}
LINKERS = [
    pytest.param(
        linker,
        marks=pytest.mark.skipif(
            shutil.which(f"ld.{linker}") is None, reason=f"needs ld.{linker} (Debian package {package})"
        ),
    )
    for linker, package in (("bfd", "binutils"), ("gold", "binutils"), ("lld", "lld"))
]
#: The host that opens libraries; one with a copy of its own, exported, counts first.
OWN_COUNT = '#include <stdio.h>\n%s\nextern "C" void first() { printf("%%d ", ++%s); }\n'
OWN_HOST = HOST.replace("int main(", 'extern "C" void first();\nint main(').replace("  for (", "  first();\n  for (", 1)


def count_copies(output: str) -> int:
    return output.split().count("1")


def find_split(verdict: Verdict) -> dict[str, str]:
    """Severity and message of what LC401 finds, which has to fit the exit status."""
    (finding,) = [one for one in verdict.findings if one["code"] == "LC401"]
    assert verdict.status == (1 if finding["severity"] == "error" else 0)
    return {"severity": finding["severity"], "message": finding["message"]}


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("header", HEADERS)
def test_copies_where_a_linker_or_a_visibility_keeps_uses_inside(yard: Yard, header: str, linker: str) -> None:
    text, used, name = HEADERS[header]
    libraries = {}
    for build, letter in product(BUILDS, "ab"):
        flags = ("-std=c++17", f"-fuse-ld={linker}", *BUILDS[build])
        source = f"#c++\n{text}\n{PROBE % used}"
        libraries[build, letter] = yard.library(f"{build}-{letter}/lib{letter}.so", source, *flags)
    own = OWN_COUNT % (text, used)
    program = yard.program("program", f"#c++\n{own}\n{OWN_HOST}", "-std=c++17", "-rdynamic", "-ldl")
    policy = yard.policy(f'[[state]]\nname = "header"\nowner = ["liba.so"]\nsymbols = ["{name}"]\n')
    promised: set[tuple[str, str]] = set()
    several: set[tuple[str, str]] = set()
    for one, other in product(BUILDS, BUILDS):
        for opened in permutations((libraries[one, "a"], libraries[other, "b"])):
            rpaths = [f"-Wl,-rpath,{path.parent}" for path in opened]
            needing = yard.program("needing", HOST, "-ldl", "-Wl,--no-as-needed", *opened, *rpaths)
            for host, arguments in (
                (yard.host(), [word for path in opened for word in ("--dlopen", path)]),
                (program, [word for path in opened for word in ("--dlopen", path)]),
                (needing, []),
            ):
                ran = yard.run(host, *map(str, opened))
                assert ran.status == 0
                found = find_split(yard.verify(host, *arguments, "--policy", policy))
                copies = count_copies(ran.output)
                assert found["severity"] == ("info" if copies == 1 else "error"), (one, other, host, opened)
                if copies > 1:
                    several.add((one, other))
                if "in every load order and scope" in found["message"]:
                    promised.add((one, other))
    # gold and lld leave thread-local variables to ld.so also with -Bsymbolic.
    bound = {"protected"} if linker == "bfd" or header == "thread_local" else {"protected", "symbolic"}
    assert promised == {pair for pair in product(BUILDS, BUILDS) if not bound.intersection(pair)}
    assert {pair for pair in product(BUILDS, BUILDS) if bound.intersection(pair)} <= several


FUNCTIONS = {
    "a number": ("", "static int state; return &state;", "info"),
    "a thread's number": ("", "static thread_local int state; return &state;", "info"),
    "a member": (
        "struct T { T(); ~T(); int state; }; inline T::T() : state(0) {} inline T::~T() { state = 7; }",
        "static T all; return &all.state;",
        "info",
    ),
    "beside": ("static int state;", "static int calls; ++calls; return &state;", "unknown"),
    "beside, a thread's": (
        "static thread_local int state;",
        "static thread_local int calls; ++calls; return &state;",
        "unknown",
    ),
    "of a hidden type": (
        'struct __attribute__((visibility("hidden"))) H { int state; };',
        "static H all; static int calls; ++calls; return &all.state;",
        "error",
    ),
    "beside, by a function": (
        "static int state; __attribute__((noinline)) static int *reach(int n) { return n ? &state : 0; }",
        "static int calls; return reach(++calls);",
        "unknown",
    ),
}


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("flags", [("-O0",), ("-O2", "-fno-inline", "-fno-plt")], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_with_a_variable_that_ld_so_merges(
    yard: Yard, function: str, flags: tuple[str, ...], linker: str
) -> None:
    before, body, said = FUNCTIONS[function]
    source = f"#c++\n{before}\ninline int *get() {{ {body} }}\n{PROBE % '*get()'}"
    paths = [yard.library(name, source, f"-fuse-ld={linker}", *flags) for name in ("liba.so", "libb.so")]
    opened = [Opening(path) for path in paths]
    policy = '[[state]]\nname = "header"\nowner = ["liba.so"]\nsymbols = ["get()"]\n'
    assert count_copies(yard.open(*opened).output) == (1 if said == "info" else 2)
    verdict = yard.judge(*opened, policy=policy)
    if said == "unknown":
        assert verdict.status == 2
        (reason,) = [reason for code, reason in verdict.reasons("unknown") if code == "LC401"]
        assert "reach data of its own file" in reason or "reaches data of its own file" in reason
    else:
        assert find_split(verdict)["severity"] == said
