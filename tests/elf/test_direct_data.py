"""What the code of a function is seen to reach; the compiler made it, so the source is the judge."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from linkcheck.elf.reader import read_image
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

#: The source of `f`, and whether it reaches a variable of its file that ld.so does not look up.
FUNCTIONS = {
    "exported": ("int v = 1; int *f(void) { return &v; }", False),
    "imported": ("extern int v; int *f(void) { return &v; }", False),
    "constant": ("static const int v[2] = {1, 2}; const int *f(void) { return v; }", False),
    "constant with an address": ("extern int w; static int *const v = &w; int *const *f(void) { return &v; }", False),
    "exported, a thread's": ("__thread int v; int *f(void) { return &v; }", False),
    "static": ("static int v; int *f(void) { return &v; }", True),
    "static, set to a number": ("static int v; int *h(void) { return &v; } void f(void) { v = 7; }", True),
    "static, compared to a number": (
        "static int v; int *h(void) { return &v; } int f(void) { return v == 700; }",
        True,
    ),
    "hidden": ('__attribute__((visibility("hidden"))) int v; int *f(void) { return &v; }', True),
    "static, a thread's": ("static __thread int v; int *f(void) { return &v; }", True),
    "by a constant": ("static int v; static int *const c[] = {&v}; int *const *f(void) { return c; }", True),
    "calls an exported one": ("void g(void) {} int f(void) { g(); return 1; }", False),
    "calls a static one": (
        (
            "static int v; __attribute__((noinline)) static int *g(int n) { return n ? &v : 0; }"
            "int *f(int n) { return g(n + 1) + 1; }"
        ),
        None,
    ),
    "without a size": ('__asm__(".globl f\\n.type f, @function\\nf: ret\\n");', None),
}


def compile_shared(folder: Path, source: str, *flags: str) -> Path:
    target = folder / "lib.so"
    command = ["gcc", "-w", "-fPIC", "-shared", "-nostdlib", *flags, "-x", "c", "-", "-o", str(target)]
    subprocess.run(command, input=source, text=True, check=True)
    return target


@pytest.mark.parametrize(
    "flags", [("-O0",), ("-O2",), ("-O2", "-fno-plt", "-Wl,-z,now,-z,relro"), ("-O1", "-s")], ids=str
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_a_function_reaches(tmp_path: Path, function: str, flags: tuple[str, ...]) -> None:
    source, reaches = FUNCTIONS[function]
    symbols = read_image(str(compile_shared(tmp_path, source, *flags))).symbols
    assert symbols.reaches_own_data("f") is reaches


def test_a_hidden_function_is_found_in_symtab(tmp_path: Path) -> None:
    source = (
        'static int v; __attribute__((visibility("hidden"))) int *f(void) { return &v; } int *g(void) { return f(); }'
    )
    path = compile_shared(tmp_path, source, "-O1", "-fno-inline")
    assert read_image(str(path)).symbols.reaches_own_data("f") is True
    subprocess.run(["strip", path], check=True)
    assert read_image(str(path)).symbols.reaches_own_data("f") is None


def test_a_program_at_a_fixed_address_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "program"
    source = "static int v; int *f(void) { return &v; } int main(void) { return *f(); }"
    command = ["gcc", "-no-pie", "-fno-pic", "-rdynamic", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True)
    assert read_image(str(path)).symbols.reaches_own_data("f") is None
