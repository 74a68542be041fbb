"""Undefined entries that are hidden, and libraries for other systems: what the real ld.so makes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from linkcheck.elf.reader import read_image
from linkcheck.loader.load import load
from linkcheck.loader.system import System
from tests.loader.workshop import Workshop, compile_c, needs_compiler

pytestmark = needs_compiler


def run(program: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    return subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)


def hide(path: Path, name: str, visibility: int) -> None:
    with path.open("r+b") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        (index,) = [i for i, symbol in enumerate(table.iter_symbols()) if symbol.name == name]
        file.seek(table["sh_offset"] + index * 24 + 5)
        file.write(bytes([visibility]))


def exit_with(condition: str) -> str:
    return f'{condition}\nvoid _start(void) {{ __asm__ volatile("syscall" :: "a"(60), "D"(check())); }}'


@pytest.mark.parametrize(("visibility", "bound"), [(0, True), (1, False), (2, False), (3, False)])
def test_an_undefined_entry_of_the_file_itself_is_looked_up_nowhere(
    tmp_path: Path, visibility: int, bound: bool
) -> None:
    shop = Workshop(tmp_path)
    source = "int state = 7; int *owned(void) { return &state; }"
    owner = shop.library("libowner.so", soname="libowner.so", source=source)
    source = "extern int state; int *used(void) { return &state; }"
    user = shop.library("libuser.so", soname="libuser.so", source=source)
    source = exit_with("int *owned(void); int *used(void); static int check(void) { return owned() != used(); }")
    main = tmp_path / "main"
    start = "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2"
    compile_c(source, main, "-pie", start, "-Wl,-z,now", "-Wl,-rpath,$ORIGIN", str(user), str(owner))
    hide(user, "state", visibility)
    assert (run(main).returncode == 0) is bound
    table = read_image(str(user)).symbols
    assert (table.imported("state") is not None) is bound
    assert [symbol.name for symbol in table.imports()] == (["state"] if bound else [])
    assert table.count_imports() == int(bound)


@pytest.mark.parametrize(
    ("os_abi", "version", "says"),
    [
        (0, 0, None),
        (3, 0, None),
        (3, 3, None),
        (9, 0, "ELF file OS ABI invalid"),
        (97, 0, "ELF file OS ABI invalid"),
        (0, 1, "ELF file ABI version invalid"),
        (3, 4, "ELF file ABI version invalid"),
    ],
)
def test_a_library_for_another_system_is_refused(tmp_path: Path, os_abi: int, version: int, says: str | None) -> None:
    shop = Workshop(tmp_path)
    library = shop.library("libx.so", soname="libx.so")
    data = bytearray(library.read_bytes())
    data[7:9] = bytes([os_abi, version])
    library.write_bytes(data)
    main = shop.executable("main", needs=("libx.so",), runpath="$ORIGIN")
    real = run(main)
    load_set = load(read_image(str(main)), System(read_image))
    command = [sys.executable, "-m", "linkcheck", "verify", "--select=LC102", str(library)]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=60)
    command[3:5] = ["prebuilt"]
    prebuilt = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if says is None:
        assert real.returncode == 0
        assert not load_set.unresolved
        assert "error LC102" not in verified.stdout
        assert "error LC102" not in prebuilt.stdout
    else:
        assert says in real.stderr
        (missing,) = load_set.unresolved
        assert missing.rejected[0].reason.startswith(says)
        assert verified.returncode == 1
        assert f"error LC102 wrong-machine: {library}" in verified.stdout
        assert f"error LC102 wrong-machine: {library}" in prebuilt.stdout


def test_a_program_marked_for_another_system_starts_and_is_not_blamed(tmp_path: Path) -> None:
    main = Workshop(tmp_path).executable("main")
    data = bytearray(main.read_bytes())
    data[7:9] = bytes([9, 1])
    main.write_bytes(data)
    assert run(main).returncode == 0
    command = [sys.executable, "-m", "linkcheck", "verify", "--select=LC102,LC202", str(main)]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (verified.returncode, "LC102" in verified.stdout) == (0, False)


@pytest.mark.parametrize("command", ["verify", "prebuilt", "tree"])
@pytest.mark.parametrize("format_", [(), ("--format=json",)])
def test_a_working_directory_that_was_removed_is_no_hindrance(
    tmp_path: Path, command: str, format_: tuple[str, ...]
) -> None:
    library = Workshop(tmp_path).library("libx.so", soname="libx.so")
    gone = tmp_path / "gone"
    gone.mkdir()
    # Removed by the program itself: the interpreter has its own things to say about such a start.
    script = "import os, sys; os.rmdir(os.getcwd()); from linkcheck.cli.run import run; sys.exit(run(sys.argv[1:]))"
    arguments = [sys.executable, "-c", script, command, *format_, str(library)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
    done = subprocess.run(arguments, cwd=gone, env=environment, capture_output=True, text=True, timeout=60)
    assert "error" not in done.stderr
    assert str(library) in done.stdout
