"""The files of the tests about file kinds: an owner library made once by the compiler, and what becomes of it.

Every tool runs with an empty LD_LIBRARY_PATH. A tool that is not there skips the test and says so.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: GNU linkers that this machine has; newer binutils come without gold.
LINKERS = tuple(name for name in ("bfd", "gold") if shutil.which(f"ld.{name}") is not None)

ACCESSOR = "_ZN10executorch9extension4cuda15getCallerStreamEv"
CONSTRUCTORS = tuple(f"_ZN10executorch9extension4cuda17CallerStreamGuardC{i}EP11CUstream_st" for i in (1, 2))
DESTRUCTORS = tuple(f"_ZN10executorch9extension4cuda17CallerStreamGuardD{i}Ev" for i in (1, 2))
SONAME = "libextension_cuda.so"

OWNER_SOURCE = """
struct CUstream_st;
namespace executorch::extension::cuda {
namespace { thread_local CUstream_st* current = nullptr; }
CUstream_st* getCallerStream();
class CallerStreamGuard {
 public:
  explicit CallerStreamGuard(CUstream_st* stream);
  ~CallerStreamGuard();
 private:
  CUstream_st* previous_;
};
CUstream_st* getCallerStream() { return current; }
CallerStreamGuard::CallerStreamGuard(CUstream_st* stream) : previous_(current) { current = stream; }
CallerStreamGuard::~CallerStreamGuard() { current = previous_; }
}
"""
USER_SOURCE = f"""
extern "C" void* {ACCESSOR}(void);
int main() {{ return {ACCESSOR}() != nullptr; }}
"""


def run_tool(*command: str | Path, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, whatever comes of it; skip the test when there is no such tool."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"needs {command[0]}")
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    environment["LC_ALL"] = "C"
    return subprocess.run(
        [str(part) for part in command], cwd=directory, env=environment, capture_output=True, text=True, timeout=60
    )


def make(*command: str | Path, directory: Path | None = None) -> None:
    """Run a tool that has to succeed."""
    done = run_tool(*command, directory=directory)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Workshop:
    """`base` holds what is made once, `here` what one test makes."""

    base: Path
    here: Path

    @property
    def source(self) -> Path:
        return self.base / "owner.cpp"

    @property
    def object(self) -> Path:
        return self.base / "owner.o"

    @property
    def good(self) -> Path:
        return self.base / SONAME

    @property
    def size(self) -> int:
        return self.good.stat().st_size

    def target(self) -> Path:
        """Where a test puts the file that claims to be the owner library."""
        return self.here / SONAME

    def library(self, *flags: str, soname: str | None = SONAME, source: Path | None = None) -> Path:
        """The owner's source, or another, as a shared library."""
        naming = [] if soname is None else [f"-Wl,-soname,{soname}"]
        make("g++", "-shared", "-fPIC", "-nostdlib", source or self.source, *naming, *flags, "-o", self.target())
        return self.target()

    def written(self, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        self.target().write_bytes(data)
        return self.target()

    def cut(self, size: int) -> Path:
        """The first `size` bytes of the good library."""
        return self.written(self.good.read_bytes()[:size])

    def patched(self, offset: int, data: bytes) -> Path:
        """The good library with other bytes at `offset`."""
        content = bytearray(self.good.read_bytes())
        content[offset : offset + len(data)] = data
        return self.written(bytes(content))

    def segment(self, kind: int) -> tuple[int, tuple[int, ...]]:
        """The file offset and the fields of the good library's first program header of a kind (64-bit, little)."""
        content = self.good.read_bytes()
        start = int.from_bytes(content[32:40], "little")
        for index in range(int.from_bytes(content[56:58], "little")):
            fields = struct.unpack_from("<IIQQQQQQ", content, start + 56 * index)
            if fields[0] == kind:
                return start + 56 * index, fields
        raise AssertionError(f"no segment of type {kind}")

    def link_program(self, library: Path, *flags: str, linker: str = "bfd") -> subprocess.CompletedProcess[str]:
        """Link a program that asks for the state against `library`, as a build would: by its path."""
        user = self.here / "user.cpp"
        user.write_text(USER_SOURCE)
        return run_tool("g++", f"-fuse-ld={linker}", user, library, *flags, "-o", self.here / "program")

    def program_imports_the_state(self) -> bool:
        """Whether the linked program leaves the accessor to a shared library; readelf is the judge."""
        done = run_tool("readelf", "--dyn-syms", "-W", self.here / "program")
        return any(ACCESSOR in line and " UND " in line for line in done.stdout.splitlines())


def load(library: Path) -> subprocess.CompletedProcess[str]:
    """Let the real ld.so load `library` in a process of its own and ask it for the state; 0 when both work."""
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1])[sys.argv[2]]"
    return run_tool(sys.executable, "-c", program, library, ACCESSOR)


def make_workshop(base: Path) -> None:
    """Make what all tests share: the object and the good library."""
    (base / "owner.cpp").write_text(OWNER_SOURCE)
    make("g++", "-g", "-c", "-fPIC", base / "owner.cpp", "-o", base / "owner.o")
    flags = ("-shared", "-nostdlib", f"-Wl,-soname,{SONAME}", "-Wl,--build-id")
    make("g++", *flags, base / "owner.o", "-o", base / SONAME)
