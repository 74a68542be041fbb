"""Files that stand, or pretend to stand, for libextension_cuda.so: each made by the tool that makes such files."""

from __future__ import annotations

import shutil
from functools import cached_property
from typing import TYPE_CHECKING

from tests.cmake.project import CALLER_STREAM, run_command, write

if TYPE_CHECKING:
    from pathlib import Path

SONAME = "libextension_cuda.so"
#: e_machine of AArch64 (gABI, ELF header), at offset 18.
EM_AARCH64 = 183


class Libraries:
    """Made on demand, once a session, each in its own folder under the name that would fool a build."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _place(self, case: str, name: str = SONAME) -> Path:
        folder = self._folder / case
        folder.mkdir()
        return folder / name

    @cached_property
    def _object(self) -> Path:
        made = self._folder / "caller_stream.o"
        flags = ("-std=c++17", "-fPIC", "-O1", "-I", CALLER_STREAM / "include")
        run_command("g++", *flags, "-c", CALLER_STREAM / "caller_stream.cpp", "-o", made).must_succeed()
        return made

    @cached_property
    def _program_source(self) -> Path:
        return write(self._folder / "main.c", "int main(void) { return 0; }\n")

    def _link(self, case: str, soname: str, name: str = SONAME) -> Path:
        made = self._place(case, name)
        run_command("g++", "-shared", self._object, f"-Wl,-soname,{soname}", "-o", made).must_succeed()
        return made

    @cached_property
    def good(self) -> Path:
        return self._link("good", SONAME)

    @cached_property
    def without_extension(self) -> Path:
        """The library under a name that no linker or loader would search for."""
        return self._link("without_extension", SONAME, "caller-stream-build-7")

    @cached_property
    def executorch_name(self) -> Path:
        """As ExecuTorch's newer builds call it: a versioned file, and a link to it under the linker's name."""
        soname = "libexecutorch_extension_cuda.so.1"
        made = self._link("executorch_name", soname, f"{soname}.5.0")
        (made.parent / soname).symlink_to(made.name)
        link = made.parent / "libexecutorch_extension_cuda.so"
        link.symlink_to(soname)
        return link

    @cached_property
    def archive(self) -> Path:
        made = self._place("archive")
        run_command("ar", "rcs", made, self._object).must_succeed()
        return made

    @cached_property
    def thin_archive(self) -> Path:
        made = self._place("thin_archive")
        run_command("ar", "rcsT", made, self._object).must_succeed()
        return made

    @cached_property
    def linker_script(self) -> Path:
        return write(self._place("linker_script"), f"INPUT({self.archive})\n")

    @cached_property
    def object_file(self) -> Path:
        made = self._place("object_file")
        shutil.copy(self._object, made)
        return made

    @cached_property
    def pie(self) -> Path:
        made = self._place("pie")
        run_command("gcc", "-fPIE", "-pie", self._program_source, "-o", made).must_succeed()
        return made

    @cached_property
    def executable(self) -> Path:
        made = self._place("executable")
        run_command("gcc", "-no-pie", self._program_source, "-o", made).must_succeed()
        return made

    @cached_property
    def wrong_machine(self) -> Path:
        made = self._place("wrong_machine")
        data = bytearray(self.good.read_bytes())
        data[18:20] = EM_AARCH64.to_bytes(2, "little")
        made.write_bytes(data)
        return made

    @cached_property
    def without_symbols(self) -> Path:
        made = self._place("without_symbols")
        source = write(made.with_suffix(".c"), "int something_else(void) { return 7; }\n")
        run_command("gcc", "-shared", "-fPIC", source, f"-Wl,-soname,{SONAME}", "-o", made).must_succeed()
        return made
