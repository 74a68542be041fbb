"""What the reader says about files that gcc and ld make, one flag at a time, judged by pyelftools, LIEF and ld.so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from linkcheck.elf.reader import read_image
from linkcheck.errors import NotAnImageError
from linkcheck.model import FileKind, SymbolBinding, SymbolType, SymbolVersion, Visibility
from tests.elf.agreement import compare

pytestmark = pytest.mark.compile

_LIBRARY = """
extern void taken(void);
extern void maybe(void) __attribute__((weak));
void given(void) { taken(); if (maybe) maybe(); }
int data = 3;
int zeroed[100];
static __attribute__((used)) int quiet(void) { return 7; }
__attribute__((visibility("hidden"), used)) int inner(void) { return 8; }
__attribute__((visibility("protected"))) int guarded(void) { return 9; }
__attribute__((weak)) int lenient(void) { return 10; }
"""
_PROGRAM = '#include <stdio.h>\nint main(void) { return puts("x") < 0; }\n'


def _compile(folder: Path, name: str, source: str, *flags: str) -> str:
    code = folder / f"{name}.c"
    code.write_text(source)
    path = folder / name
    subprocess.run(["gcc", str(code), "-o", str(path), *flags], check=True, capture_output=True)
    return str(path)


def _library(folder: Path, *flags: str, source: str = _LIBRARY) -> str:
    return _compile(folder, "lib.so", source, "-shared", "-fPIC", "-nostdlib", *flags)


def _drop_section_headers(path: str) -> None:
    """Zero e_shoff, e_shnum and e_shstrndx."""
    data = bytearray(Path(path).read_bytes())
    wide = data[4] == 2
    places = ((40, 8), (60, 4)) if wide else ((32, 4), (48, 4))
    for at, size in places:
        data[at : at + size] = bytes(size)
    Path(path).write_bytes(data)


@pytest.mark.parametrize("bits", ["-m64", "-m32"])
@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_hash_style_and_section_headers_change_no_symbol(tmp_path: Path, style: str, bits: str) -> None:
    path = _library(tmp_path, f"-Wl,--hash-style={style}", bits)
    assert compare(path).differences == ()
    before = list(read_image(path).symbols)
    _drop_section_headers(path)
    assert "no sections" in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    table = read_image(path).symbols
    assert list(table) == before
    assert table.unseen is None
    assert {symbol.name for symbol in table.exports()} == {"given", "data", "zeroed", "guarded", "lenient"}
    assert {symbol.name for symbol in table.imports()} == {"taken", "maybe"}
    assert compare(path).differences == ()


def test_strip_changes_no_dynamic_symbol_and_hides_the_private_ones(tmp_path: Path) -> None:
    path = _library(tmp_path)
    names = ["quiet", "inner", "given", "taken", "nothing"]
    assert read_image(path).symbols.private(names) == ("inner", "quiet")
    before = list(read_image(path).symbols)
    subprocess.run(["strip", "-s", path], check=True)
    assert list(read_image(path).symbols) == before
    assert read_image(path).symbols.private(names) == ()


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (("-pie", "-fPIE"), FileKind.PIE),
        (("-no-pie", "-fno-pie"), FileKind.EXECUTABLE),
        (("-static", "-no-pie"), FileKind.EXECUTABLE),
        (("-static-pie", "-fPIE"), FileKind.STATIC_PIE),
        (("-pie", "-fPIE", "-Wl,-soname,odd"), FileKind.PIE),
        (("-shared", "-fPIC"), FileKind.SHARED_OBJECT),
        (("-shared", "-fPIC", "-Wl,-dynamic-linker,/lib64/ld.so", "-Wl,-soname,libx.so"), FileKind.SHARED_OBJECT),
    ],
)
def test_each_way_to_link_a_program_has_its_kind(tmp_path: Path, flags: tuple[str, ...], kind: FileKind) -> None:
    path = _compile(tmp_path, "program", _PROGRAM, *flags)
    image = read_image(path)
    assert image.kind is kind
    assert image.needed == (() if "static" in flags[0] else ("libc.so.6",))
    assert compare(path).differences == ()
    assert (image.interpreter is not None) == (kind in (FileKind.PIE, FileKind.EXECUTABLE) and bool(image.needed))


def test_a_program_without_exports_and_section_headers_still_shows_its_imports(tmp_path: Path) -> None:
    path = _compile(tmp_path, "program", _PROGRAM, "-pie", "-fPIE")
    before = list(read_image(path).symbols.imports())
    assert "puts" in {symbol.name for symbol in before}
    _drop_section_headers(path)
    table = read_image(path).symbols
    assert table.unseen is None
    assert list(table.imports()) == before


def test_an_address_taken_in_a_fixed_program_leaves_an_import_with_a_value(tmp_path: Path) -> None:
    library = _compile(tmp_path, "libput.so", "int put(void) { return 0; }\n", "-shared", "-fPIC", "-nostdlib")
    source = "extern int put(void);\nint main(void) { int (*volatile pointer)(void) = put; return pointer(); }\n"
    path = _compile(tmp_path, "program", source, "-no-pie", "-fno-pie", library)
    table = read_image(path).symbols
    found = table.imported("put")
    assert found is not None
    assert (found.defined, found.value > 0) == (False, True)
    assert table.exported("put") == ()
    assert compare(path).differences == ()


@pytest.mark.parametrize(("flag", "executable"), [("execstack", True), ("noexecstack", False)])
def test_the_stack_flag(tmp_path: Path, flag: str, executable: bool) -> None:
    assert read_image(_library(tmp_path, f"-Wl,-z,{flag}")).executable_stack is executable


@pytest.mark.parametrize(
    ("flags", "rpath", "runpath"),
    [
        (("-Wl,-rpath,$ORIGIN/a:/b", "-Wl,--enable-new-dtags"), None, "$ORIGIN/a:/b"),
        (("-Wl,-rpath,$ORIGIN/a:/b", "-Wl,--disable-new-dtags"), "$ORIGIN/a:/b", None),
        (("-Wl,-rpath,", "-Wl,--enable-new-dtags"), None, ""),
    ],
)
def test_search_paths(tmp_path: Path, flags: tuple[str, ...], rpath: str | None, runpath: str | None) -> None:
    path = _library(tmp_path, *flags)
    assert (read_image(path).rpath, read_image(path).runpath) == (rpath, runpath)
    assert compare(path).differences == ()


@pytest.mark.parametrize(
    ("flags", "bits", "bits_1"),
    [
        (("-Wl,-z,now",), 0x8, 0x1),
        (("-Wl,-z,nodelete",), 0, 0x8),
        (("-Wl,-z,nodefaultlib",), 0, 0x800),
        (("-Wl,-Bsymbolic",), 0x2, 0),
        (("-Wl,-z,origin",), 0x1, 0x80),
    ],
)
def test_flags(tmp_path: Path, flags: tuple[str, ...], bits: int, bits_1: int) -> None:
    image = read_image(_library(tmp_path, "-Wl,-z,lazy", *flags))
    assert (image.flags, image.flags_1) == (bits, bits_1)
    assert image.symbolic == ("-Wl,-Bsymbolic" in flags)


def test_text_relocations_are_a_flag(tmp_path: Path) -> None:
    source = 'extern int far; __asm__(".text\\n.globl f\\nf: .quad far\\n");'
    path = _library(tmp_path, "-Wl,-z,notext", source=source)
    assert read_image(path).flags & 0x4
    assert compare(path).differences == ()


def test_soname_build_id_and_needed(tmp_path: Path) -> None:
    other = _compile(
        tmp_path, "libother.so", "void taken(void) {}", "-shared", "-nostdlib", "-Wl,-soname,libother.so.3"
    )
    path = _library(tmp_path, other, "-Wl,-soname,libx.so.1", "-Wl,--build-id=0x0123456789abcdef")
    image = read_image(path)
    assert (image.soname, image.needed, image.build_id) == ("libx.so.1", ("libother.so.3",), "0123456789abcdef")


def test_bindings_types_and_visibilities(tmp_path: Path) -> None:
    source = """
    __thread int per_thread;
    static int pick(void) { return 1; }
    static void *resolve(void) { return pick; }
    int picked(void) __attribute__((ifunc("resolve")));
    __asm__(".type unique, %gnu_unique_object\\n.globl unique\\n.data\\nunique: .long 1\\n.size unique, 4\\n.text");
    __asm__(".globl constant\\nconstant = 77\\n.globl nothing\\nnothing = 0");
    """
    path = _library(tmp_path, source=source + _LIBRARY)
    image = read_image(path)
    by_name = {symbol.name: symbol for symbol in image.symbols}
    assert image.tls is not None
    assert image.tls.memory_size == 4
    assert by_name["per_thread"].type is SymbolType.TLS
    assert by_name["picked"].type is SymbolType.GNU_IFUNC
    assert by_name["unique"].binding is SymbolBinding.GNU_UNIQUE
    assert by_name["guarded"].visibility is Visibility.PROTECTED
    assert by_name["lenient"].weak
    assert by_name["maybe"].weak
    assert image.symbols.exported("nothing")
    assert compare(path).differences == ()


def test_versions_default_and_hidden(tmp_path: Path) -> None:
    script = tmp_path / "versions"
    script.write_text("V1 { global: f; }; V2 { global: f; g; local: *; } V1;")
    source = """
    __asm__(".symver f_old,f@V1"); __asm__(".symver f_new,f@@V2");
    int f_old(void) { return 1; } int f_new(void) { return 2; } int g(void) { return 3; }
    """
    path = _library(tmp_path, f"-Wl,--version-script={script}", "-Wl,-soname,libv.so", source=source)
    image = read_image(path)
    assert image.version_definitions == (
        SymbolVersion("libv.so", base=True),
        SymbolVersion("V1"),
        SymbolVersion("V2"),
    )
    assert {(symbol.version, symbol.size > 0) for symbol in image.symbols.exported("f")} == {
        (SymbolVersion("V1", hidden=True), True),
        (SymbolVersion("V2"), True),
    }
    assert [symbol.version for symbol in image.symbols.exported("g")] == [SymbolVersion("V2")]
    user = _compile(tmp_path, "user.so", "int f(void); int h(void) { return f(); }", "-shared", "-nostdlib", path)
    (need,) = read_image(user).version_needs
    assert (need.library, need.versions) == ("libv.so", (SymbolVersion("V2", library="libv.so"),))
    imported = read_image(user).symbols.imported("f")
    assert imported is not None
    assert imported.version == SymbolVersion("V2", library="libv.so")
    assert compare(path).differences == compare(user).differences == ()


def test_a_copied_variable_has_the_version_of_its_library(tmp_path: Path) -> None:
    source = "#include <stdio.h>\nint main(void) { return stdout == 0; }\n"
    path = _compile(tmp_path, "program", source, "-no-pie", "-fno-pie")
    (symbol,) = read_image(path).symbols.exported("stdout")
    assert symbol.version is not None
    assert (symbol.version.name, symbol.version.library) == ("GLIBC_2.2.5", "libc.so.6")
    assert compare(path).differences == ()


def test_a_debug_only_companion_is_no_malformed_library(tmp_path: Path) -> None:
    plans = {
        "library": ("-shared", "-fPIC", "-nostdlib"),
        "program": ("-pie", "-fPIE"),
        "fixed": ("-no-pie", "-fno-pie"),
        "static": ("-static",),
    }
    for name, flags in plans.items():
        source = _LIBRARY if name == "library" else _PROGRAM
        path = _compile(tmp_path, name, source, "-g", *flags)
        assert read_image(path)
        debug = f"{path}.debug"
        subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
        with pytest.raises(NotAnImageError) as caught:
            read_image(debug)
        assert caught.value.kind is FileKind.DEBUG_ONLY


def test_an_object_file_is_relocatable(tmp_path: Path) -> None:
    path = _compile(tmp_path, "object.o", _LIBRARY, "-c")
    with pytest.raises(NotAnImageError) as caught:
        read_image(path)
    assert caught.value.kind is FileKind.RELOCATABLE


# ---------------------------------------------------------------- judged by the real ld.so

_ASK_LD_SO = """
import ctypes, json, sys
handle = ctypes.c_void_p(ctypes.CDLL(sys.argv[1])._handle)
libc = ctypes.CDLL(None)
libc.dlerror.restype = libc.dlsym.restype = ctypes.c_void_p
found = {}
for name in json.loads(sys.argv[2]):
    libc.dlerror()
    libc.dlsym(handle, name.encode())  # may be a null pointer for an absolute symbol: dlerror tells
    found[name] = libc.dlerror() is None
print(json.dumps(found))
"""


def _ask_ld_so(path: str, names: list[str]) -> dict[str, bool]:
    command = [sys.executable, "-c", _ASK_LD_SO, path, json.dumps(names)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env={})
    found: dict[str, bool] = json.loads(answer.stdout)
    return found


@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_exported_finds_what_dlsym_finds(tmp_path: Path, style: str) -> None:
    many = "".join(f"int number_{number}(void) {{ return {number}; }}\n" for number in range(200))
    source = _LIBRARY.replace("extern void taken(void);", "extern void taken(void) __attribute__((weak));") + many
    source += '__thread int per_thread; __asm__(".globl nothing\\nnothing = 0\\n.globl constant\\nconstant = 5");'
    path = _library(tmp_path, f"-Wl,--hash-style={style}", source=source)
    names = [f"number_{number}" for number in range(220)]
    names += [
        "given",
        "taken",
        "maybe",
        "data",
        "zeroed",
        "quiet",
        "inner",
        "guarded",
        "lenient",
        "per_thread",
        "nope",
    ]
    names += ["constant", "nothing"]
    table = read_image(path).symbols
    said = {name: bool(table.exported(name)) for name in names}
    assert said == _ask_ld_so(path, names)
    assert sum(said.values()) == 208


def test_a_definition_given_value_0_vanishes_for_ld_so_too(tmp_path: Path) -> None:
    path = _library(tmp_path, source="int data = 1; int other = 2;")
    data = bytearray(Path(path).read_bytes())
    (symbol,) = read_image(path).symbols.exported("data")
    entry = symbol.value.to_bytes(8, "little") + symbol.size.to_bytes(8, "little")
    at = data.index(entry)
    data[at : at + 8] = bytes(8)
    Path(path).write_bytes(data)
    table = read_image(path).symbols
    said = {name: bool(table.exported(name)) for name in ("data", "other")}
    assert said == _ask_ld_so(path, ["data", "other"]) == {"data": False, "other": True}
