"""Makes .venv with linkcheck and what one of ci/gate, ci/native and ci/test needs beside it; it checks nothing itself.

Standard library only: it runs on the machine's own Python before anything is there. Nothing is left outside the tree.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
#: Which interpreter and place the environment was made for (it does not survive a move).
MADE_FOR = VENV / "made-for"
#: What is installed in it: the digest of the sources, then a line for each requirement.
INSTALLED = VENV / "installed"

#: Commands -> the Debian package that brings them.
DEBIAN_PACKAGES = {
    "g++": "g++",
    "gcc": "gcc",
    "ar": "binutils",
    "readelf": "binutils",
    "strip": "binutils",
    "make": "make",
    "musl-gcc": "musl-tools",
}
#: Headers -> the Debian package that brings them.
DEBIAN_HEADERS = {
    "gmock/gmock.h": "libgmock-dev",
    "gtest/gtest.h": "libgtest-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
}
INCLUDE = Path("/usr/include")


@dataclass(frozen=True, slots=True)
class Need:
    """What one command wants from the machine and from .venv. The versions are in constraints.txt."""

    commands: tuple[str, ...]
    headers: tuple[str, ...]
    #: Of the package index; `linkcheck` is this tree, as a user would get it.
    requirements: tuple[str, ...]
    #: The same without their dependencies: of ExecuTorch its headers, libraries, CMake config and flatc are all that is
    #: used, and the dependencies would bring torch.
    alone: tuple[str, ...] = ("executorch",)


NEEDS = {
    "gate": Need(("g++",), ("nlohmann/json.hpp",), ("linkcheck", "cmake", "ninja")),
    "native": Need(("g++",), tuple(DEBIAN_HEADERS), ("linkcheck", "cmake", "ninja", "clang-format")),
    "test": Need(tuple(DEBIAN_PACKAGES), tuple(DEBIAN_HEADERS), ("linkcheck[test]", "clang-format")),
}


class NoEnvironmentError(Exception):
    """The environment could not be made; the text is one line that says what to do."""


def main(arguments: list[str]) -> int:
    """Make what is missing for the command that is named; 0 when everything is there, 2 when not."""
    if len(arguments) != 1 or arguments[0] not in NEEDS:
        print(f"usage: ci/environment.py {'|'.join(NEEDS)}", file=sys.stderr)
        return 2
    need = NEEDS[arguments[0]]
    try:
        if packages := missing_debian_packages(need):
            install_debian_packages(packages)
        make_venv()
        install_python_packages(need)
    except NoEnvironmentError as problem:
        print(f"ci: {problem}", file=sys.stderr)
        return 2
    return 0


def missing_debian_packages(need: Need) -> list[str]:
    """The Debian packages whose commands, headers, or part of Python this machine lacks."""
    missing = [DEBIAN_PACKAGES[command] for command in need.commands if shutil.which(command) is None]
    missing += [DEBIAN_HEADERS[header] for header in need.headers if not (INCLUDE / header).exists()]
    if importlib.util.find_spec("ensurepip") is None:  # Debian splits it off; venv cannot do without
        missing.append(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    return sorted(set(missing))


def install_debian_packages(packages: list[str]) -> None:
    """Install `packages` with apt-get; NoEnvironmentError when this user or this machine cannot."""
    wanted = " ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoEnvironmentError(f"missing here: as root, apt-get install {wanted}")
    say(f"installing the Debian packages {wanted}")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # dpkg refuses to work without
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": path}
    apt_get = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0"]
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run([*apt_get, *command], env=environment, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise NoEnvironmentError(f"apt-get {command[0]} failed, its message is above; needed: {wanted}")


def make_venv() -> None:
    """Make .venv unless this interpreter already made it at this place."""
    made_for = f"{sys.executable}\n{sys.version}\n{VENV}\n"
    if read_if_there(MADE_FOR) == made_for:
        return
    say(f"making .venv with Python {sys.version.split()[0]}")
    if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV]).returncode != 0:
        raise NoEnvironmentError(f"{VENV}: the virtual environment could not be made, Python's message is above")
    MADE_FOR.write_text(made_for, encoding="utf-8")


def install_python_packages(need: Need) -> None:
    """Install what `need` names into .venv, unless it was installed there from this very tree."""
    digest = digest_of_sources()
    made_from, *installed = (read_if_there(INSTALLED) or "").splitlines() or [""]
    if made_from != digest:
        installed = []
    for requirements, options in ((need.requirements, ()), (need.alone, ("--no-deps",))):
        if missing := [name for name in requirements if name not in installed]:
            install_with_pip(missing, options)
            # linkcheck[test] is linkcheck and more.
            installed += {*missing, *(name.partition("[")[0] for name in missing)}
            INSTALLED.write_text("\n".join([digest, *installed]), encoding="utf-8")


def install_with_pip(names: list[str], options: tuple[str, ...]) -> None:
    """Install `names` into .venv; NoEnvironmentError when pip cannot."""
    say(f"installing {' '.join(names)} into .venv")
    # setuptools builds in the tree and would pack modules that are gone from the sources since.
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    environment = {"PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **os.environ}
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "-qq", "install", "-c", f"{ROOT}/ci/constraints.txt", *options]
    wanted = [f"{ROOT}{name.removeprefix('linkcheck')}" if name.startswith("linkcheck") else name for name in names]
    if subprocess.run([*pip, *wanted], env=environment).returncode != 0:
        raise NoEnvironmentError(f"pip could not install {' '.join(names)}, its message is above")


def digest_of_sources() -> str:
    """SHA-256 of everything that decides what gets installed: names and contents."""
    # linkcheck/share holds links to the other two folders, and rglob follows none.
    folders = (ROOT / "linkcheck", ROOT / "cmake", ROOT / "native" / "caller_stream")
    sources = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    sources += (ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE", "ci/constraints.txt"))
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_if_there(path: Path) -> str | None:
    """The text of `path`, or None when there is no such file."""
    return path.read_text(encoding="utf-8") if path.is_file() else None


def say(line: str) -> None:
    """Print one line of progress at once."""
    print(f"ci: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
