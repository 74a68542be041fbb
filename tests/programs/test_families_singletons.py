"""Registries and singletons that a static archive or a header doubles: what the program does, what linkcheck says.

Reported by users of protobuf (#863, #15194), pytorch (#80865), tensorrt_demos (#431), gflags (#338), glog (#673),
pocl (#474), spdlog (#3003) and seastar (#1494), each on GitHub.
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.loader.workshop import needs_compiler
from tests.programs.yard import Opening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler

#: A registry that ends the process when a name comes twice.
REGISTRY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *names[8]; static int count;
void registry_add(const char *name) {
  for (int i = 0; i < count; i++) if (!strcmp(names[i], name)) { fprintf(stderr, "twice: %s", name); abort(); }
  names[count++] = name;
}
int registry_size(void) { return count; }
"""
REGISTRAR = """
void registry_add(const char *);
__attribute__((constructor)) static void add(void) { registry_add("op"); }
int descriptor_table_op = 1;
"""
SIZE = "int registry_size(void); int of_%s; int probe(void) { return registry_size(); }"
WHOLE = ("-Wl,--whole-archive", "-Wl,--no-whole-archive")


@pytest.mark.parametrize("stripped", [False, True])
def test_the_same_registrar_in_two_plug_ins(yard: Yard, stripped: bool) -> None:
    """Only the import of the registry is sure to be left in each, so that is what the policy forbids."""
    registry = yard.library("lib/libregistry.so", REGISTRY)
    # Hidden, as generated code is in a library that exports little: its constructor still runs.
    archive = yard.archive("build/libops.a", REGISTRAR, "-fvisibility=hidden")
    path = "-Wl,-rpath,$ORIGIN/../lib"
    plug_ins = [
        yard.library(f"plugins/{name}.so", SIZE % name, WHOLE[0], archive, WHOLE[1], registry, path, soname="")
        for name in ("one", "two")
    ]
    if stripped:
        for plug_in in plug_ins:
            subprocess.run(["strip", "-s", str(plug_in)], check=True)
    ran = yard.open(*plug_ins)
    assert (ran.status, ran.errors) == (-signal.SIGABRT, "twice: op")
    policy = '[[role]]\nname = "plug-in"\nfiles = ["plugins/*.so"]\nforbid-import = ["registry_add"]\n'
    verdict = yard.judge(*plug_ins, policy=policy)
    assert verdict.status == 1
    assert [(f["code"], f["primary"]) for f in verdict.errors] == [
        ("LC204", {"path": str(path), "symbol": "registry_add"}) for path in plug_ins
    ]

    operators = yard.library("lib/libops.so", REGISTRAR, registry, "-Wl,-rpath,$ORIGIN")
    plug_ins = [
        yard.library(f"plugins/{name}.so", SIZE % name, "-Wl,--no-as-needed", operators, registry, path, soname="")
        for name in ("one", "two")
    ]
    assert yard.open(*plug_ins).output == "1 1"
    verdict = yard.judge(*plug_ins, policy=policy, profile="default")
    assert (verdict.status, verdict.findings) == (0, [])


MESSAGES = '[[state]]\nname = "messages"\nowner = ["libmessages.so"]\nsymbols = ["descriptor_table_*"]\n'
MAIN = """
#include <dlfcn.h>
#include <stdio.h>
int registry_size(void);
int main(int count, char **names) {
  if (!dlopen(names[1], RTLD_NOW | RTLD_LOCAL)) puts(dlerror());
  printf("%d", registry_size()); return 0;
}
"""


@pytest.mark.parametrize("exported", [False, True])
def test_generated_code_in_the_program_and_in_a_plug_in(yard: Yard, exported: bool) -> None:
    """With -rdynamic the plug-in's uses are led to the program's table, and both constructors run all the same."""
    registry = yard.library("libregistry.so", REGISTRY)
    flags: list[str | Path] = ["-Wl,-rpath,$ORIGIN", "-ldl", registry, *(["-rdynamic"] if exported else [])]
    program = yard.program("app", MAIN + REGISTRAR, *flags)
    plug_in = yard.library("plug.so", REGISTRAR + "int *use(void) { return &descriptor_table_op; }", soname="")
    ran = yard.run(program, str(plug_in))
    assert (ran.status, ran.errors) == (-signal.SIGABRT, "twice: op")
    role = '[[role]]\nname = "users of messages"\nfiles = ["app", "plug.so"]\nforbid-export = ["descriptor_table_*"]\n'
    policy = yard.policy(MESSAGES + role)
    verdict = yard.verify(program, "--dlopen", plug_in, "--policy", policy)
    assert verdict.status == 1
    found = {(f["code"], f["primary"]["path"]) for f in verdict.errors}
    assert ("LC302", str(plug_in)) in found
    assert (("LC302", str(program)) in found) is exported
    assert (("LC401", str(program)) in found) is not exported
    assert {one["primary"]["symbol"] for one in verdict.errors} <= {"descriptor_table_op", "messages"}

    messages = yard.library("libmessages.so", REGISTRAR, registry)
    program = yard.program("app", MAIN, "-Wl,--no-as-needed", messages, *flags)
    use = "extern int descriptor_table_op; int *use(void) { return &descriptor_table_op; }"
    plug_in = yard.library("plug.so", use, messages, "-Wl,-rpath,$ORIGIN", soname="")
    assert yard.run(program, str(plug_in)).output == "1"
    verdict = yard.verify(program, "--dlopen", plug_in, "--policy", policy)
    assert (verdict.status, verdict.findings) == (0, [])


def test_one_schema_compiled_into_two_packages(yard: Yard) -> None:
    """No root here loads both, so it is information; in one process they would be one too many."""
    policy = yard.policy(MESSAGES)
    table = "int descriptor_table_onnx = 1; int *%s(void) { return &descriptor_table_onnx; }"
    paths = [yard.library(f"{name}/lib{name}.so", table % name) for name in ("torch", "onnx")]
    document = yard.ask("scan", yard.base / "torch", yard.base / "onnx", "--policy", policy)
    assert document["outcome"] == "pass"
    found = [f for f in document["findings"] if f["code"] == "LC401"]
    assert [f["severity"] for f in found] == ["info"]
    assert all(str(path) in found[0]["message"] for path in paths)

    messages = yard.library("messages/libmessages.so", "int descriptor_table_onnx = 1;")
    for name in ("torch", "onnx"):
        use = f"extern int descriptor_table_onnx; int *{name}(void) {{ return &descriptor_table_onnx; }}"
        yard.library(f"{name}/lib{name}.so", use, messages, "-Wl,-rpath,$ORIGIN/../messages")
    document = yard.ask("scan", *(yard.base / name for name in ("torch", "onnx", "messages")), "--policy", policy)
    assert document["findings"] == []


FLAVOURS = '[[state]]\nname = "option registry"\nowner = ["libopt.so"]\nsymbols = ["registry_add", "registry_size"]\n'
OPTIONS = REGISTRY + REGISTRAR
ADDS = 'void registry_add(const char *); void library_adds(void) { registry_add("more"); }'
#: A program with an option of its own, and a library that adds one.
PROGRAM = """
#include <stdio.h>
int registry_size(void); void library_adds(void);
int main(void) { library_adds(); printf("%d", registry_size()); return 0; }
"""


@pytest.mark.parametrize("exported", [False, True])
def test_the_static_and_the_shared_flavour_in_one_program(yard: Yard, exported: bool) -> None:
    """Exported, the program's registry serves both and gets every option twice; else each has its own."""
    shared = yard.library("libopt.so", OPTIONS)
    user = yard.library("libuser.so", ADDS, shared, "-Wl,-rpath,$ORIGIN")
    archive = yard.archive("build/libopt.a", OPTIONS)
    hide = [] if exported else ["-Wl,--exclude-libs,ALL"]
    program = yard.program("app", PROGRAM, WHOLE[0], archive, WHOLE[1], user, "-Wl,-rpath,$ORIGIN", *hide)
    ran = yard.run(program)
    expected = (-signal.SIGABRT, "", "twice: op") if exported else (0, "1", "")
    assert (ran.status, ran.output, ran.errors) == expected
    policy = yard.policy(FLAVOURS)
    verdict = yard.verify(program, "--policy", policy)
    assert verdict.status == 1
    (finding,) = (f for f in verdict.errors if f["code"] == "LC401")
    assert finding["primary"] == {"path": str(program), "symbol": "option registry"}
    assert sorted(finding["evidence"]["copies"]) == sorted([str(program), str(shared)])

    program = yard.program("app", PROGRAM, user, shared, "-Wl,-rpath,$ORIGIN")
    assert yard.run(program).output == "2"
    verdict = yard.verify(program, "--policy", policy)
    assert (verdict.status, verdict.findings) == (0, [])


LOGGING = '[[state]]\nname = "logging"\nowner = ["libglog.so*"]\nsymbols = ["log_start", "log_started"]\n'
LOG = "static int n; void log_start(void) { n++; } int log_started(void) { return n; }"
STARTS = "void log_start(void); __attribute__((constructor)) static void start(void) { log_start(); }"
ASKS = "int log_started(void); int probe(void) { return log_started(); }"


def test_a_static_singleton_in_two_libraries(yard: Yard) -> None:
    archive = yard.archive("build/libglog.a", LOG)
    one = yard.library("one.so", STARTS, archive, soname="")
    two = yard.library("two.so", ASKS, archive, soname="")
    assert yard.open(one, two).output == "0"
    verdict = yard.judge(one, two, policy=LOGGING)
    assert verdict.status == 1
    (finding,) = verdict.errors
    assert (finding["code"], finding["evidence"]["verdict"]) == ("LC401", "split-unless-global")
    assert finding["evidence"]["copies"] == [str(one), str(two)]
    # The same two files are right where the first is opened for all: no error then, only word of the second copy.
    shared = [Opening(one, shared=True), Opening(two)]
    assert yard.open(*shared).output == "1"
    verdict = yard.judge(*shared, policy=LOGGING)
    assert (verdict.status, {f["severity"] for f in verdict.findings}) == (0, {"info"})

    owner = yard.library("libglog.so.1", LOG)
    one = yard.library("one.so", STARTS, owner, "-Wl,-rpath,$ORIGIN", soname="")
    two = yard.library("two.so", ASKS, owner, "-Wl,-rpath,$ORIGIN", soname="")
    assert yard.open(one, two).output == "1"
    verdict = yard.judge(one, two, policy=LOGGING)
    assert (verdict.status, verdict.findings) == (0, [])


INLINE = """#c++
namespace log { inline int &instance() { static int s_instance; return s_instance; } }
extern "C" __attribute__((visibility("default"))) int probe() { return ++log::instance(); }
int of_%s;
"""
#: The function that users call, and the variable in it, which is all that is left where the function is inlined.
INLINE_POLICY = """
[[state]]
name = "logger"
owner = ["liblog.so"]
symbols = ["log::instance()"%s]
[mangled]
"log::instance()" = ["_ZN3log8instanceEv"]
"""
VARIABLE = ', "_ZZN3log8instanceEvE10s_instance"'


@pytest.mark.parametrize("named", ["", VARIABLE], ids=["function", "variable-too"])
@pytest.mark.parametrize(
    ("flags", "output", "verdict"),
    [
        (("-fno-inline",), "1 2", "one"),
        (("-fno-inline", "-Wl,-Bsymbolic-functions"), "1 2", "one"),
        (("-fno-inline", "-Wl,-Bsymbolic"), "1 2", "one"),
        (("-fno-inline", "-fno-gnu-unique"), "1 1", "split-unless-global"),
        (("-fno-inline", "-fvisibility=hidden"), "1 1", "split"),
    ],
    ids=["unique", "symbolic-functions", "symbolic", "weak", "hidden"],
)
def test_an_inline_singleton_in_two_libraries(
    yard: Yard, flags: tuple[str, ...], output: str, verdict: str, named: str
) -> None:
    """ld.so merges a STB_GNU_UNIQUE variable also where each file calls its own copy of the function around it."""
    paths = [yard.library(f"{name}.so", INLINE % name, *flags, soname="") for name in ("one", "two")]
    assert yard.open(*paths).output == output
    answer = yard.judge(*paths, policy=INLINE_POLICY % named)
    found = [f for f in answer.findings if f["code"] == "LC401"]
    assert [f["evidence"]["verdict"] for f in found] == [verdict]
    assert [f["severity"] for f in found] == ["info" if verdict == "one" else "error"]
    assert answer.status == (0 if verdict == "one" else 1)
    assert found[0]["evidence"]["copies"] == [str(path) for path in paths]


def test_a_hidden_inline_function_around_a_variable_that_ld_so_merges(yard: Yard) -> None:
    flags = ("-fno-inline", "-fvisibility-inlines-hidden")
    paths = [yard.library(f"{name}.so", INLINE % name, *flags, soname="") for name in ("one", "two")]
    assert yard.open(*paths).output == "1 2"
    answer = yard.judge(*paths, policy=INLINE_POLICY % "")
    assert (answer.status, answer.errors) == (0, [])
    assert ("LC401", f"the only copy in sight of the logger: {paths[0]}") in answer.reasons("pass")


def test_a_singleton_that_is_defined_once(yard: Yard) -> None:
    owner = yard.library("liblog.so", "#c++\nnamespace log { int &instance() { static int i; return i; } }")
    source = '#c++\nnamespace log { int &instance(); } extern "C" int probe() { return ++log::instance(); } int of_%s;'
    paths = [yard.library(f"{n}.so", source % n, owner, "-Wl,-rpath,$ORIGIN", soname="") for n in ("one", "two")]
    assert yard.open(*paths).output == "1 2"
    answer = yard.judge(*paths, policy=INLINE_POLICY % "")
    assert (answer.status, answer.findings) == (0, [])


SHARD = "#c++\ninline unsigned &shard_id() { static thread_local unsigned id; return id; }\n"
SETS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
  shard_id() = 3;
  void *plug = dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
  printf("%u", plug ? ((unsigned (*)())dlsym(plug, "shard"))() : 99); return 0;
}
"""
READS = 'extern "C" __attribute__((visibility("default"))) unsigned shard() { return shard_id(); }'
SHARD_POLICY = """
[[state]]
name = "shard number"
owner = ["libshard.so"]
symbols = ["shard_id()", "_ZZ8shard_idvE2id"]
thread-local = true
[mangled]
"shard_id()" = ["_Z8shard_idv"]
"""


@pytest.mark.parametrize("exported", [False, True])
def test_a_thread_local_in_a_header(yard: Yard, exported: bool) -> None:
    policy = yard.policy(SHARD_POLICY)
    flags = ["-rdynamic"] if exported else []
    program = yard.program("app", SHARD + SETS, "-fno-inline", "-ldl", *flags)
    plug_in = yard.library("plug.so", SHARD + READS, "-fno-inline", soname="")
    assert yard.run(program, str(plug_in)).output == ("3" if exported else "0")
    verdict = yard.verify(program, "--dlopen", plug_in, "--policy", policy)
    assert verdict.status == (0 if exported else 1)
    found = [f for f in verdict.findings if f["code"] == "LC401"]
    assert [f["evidence"]["verdict"] for f in found] == ["one" if exported else "split"]
    assert {f["code"] for f in verdict.errors} == (set() if exported else {"LC401"})
    assert str(program) in found[0]["message"]
    assert str(plug_in) in found[0]["message"]

    outside = "#c++\nunsigned &shard_id();\n"
    owner = yard.library("libshard.so", SHARD.replace("inline ", ""))
    program = yard.program("app", outside + SETS, owner, "-Wl,-rpath,$ORIGIN", "-ldl", *flags)
    plug_in = yard.library("plug.so", outside + READS, owner, "-Wl,-rpath,$ORIGIN", soname="")
    assert yard.run(program, str(plug_in)).output == "3"
    verdict = yard.verify(program, "--dlopen", plug_in, "--policy", policy)
    assert (verdict.status, verdict.findings) == (0, [])
