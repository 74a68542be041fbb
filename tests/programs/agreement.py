"""`python -m tests.programs.agreement` compares linkcheck with the real ld.so on real programs, line by line.

Every file that ld.so loads, with every path that it tries for it, must be in what `tree` shows, and every binding that
it makes must be the one that `bindings` shows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from linkcheck.api import load_trees
from linkcheck.loader.lookup import bindings
from linkcheck.model import FoundBy
from tests.benchmarks.workplace import NotAvailableError, fetch_wheel
from tests.programs.judge import watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.model import Binding, LoadSet
    from tests.programs.judge import Account, RealBinding

TORCH_WHEEL = "torch==2.13.0"
TORCH_CLOSURE = "torch/lib/libtorch_python.so"
#: The interpreter of the system: one that is linked as a distribution does it.
PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Counts:
    """Lines of LD_DEBUG=bindings, of each kind."""

    lines: int
    compared: int
    #: Among those compared: the address of a function that ld.so took to be that of the program's PLT entry for it.
    by_stub: int
    #: Not compared: about a name that the file has no entry for, so dlsym asked and no relocation.
    by_dlsym: int


@dataclass(frozen=True)
class Comparison:
    """How far ld.so and linkcheck agree about one program."""

    program: str
    files: int
    tried: int
    counts: Counts
    disagreements: tuple[str, ...]


def compare(label: str, command: Sequence[str]) -> Comparison:
    """Run `command` and compare what ld.so did with what linkcheck says that it would do."""
    account = watch(command)
    (load_set,) = load_trees([command[0]], dlopen=account.dlopened)
    return compare_account(label, account, load_set)


def compare_account(label: str, account: Account, load_set: LoadSet) -> Comparison:
    """Compare the `account` of a run with the load set that linkcheck made of the same program and dlopens."""
    counts, wrong = _compare_bindings(account, load_set)
    expected, real = _loads_of(load_set), _loads_by(account)
    wrong += [f"load {number}: ld.so {ld_so}, linkcheck {ours}" for number, ld_so, ours in _differences(real, expected)]
    return Comparison(
        label,
        len(load_set.modules),
        sum(len(paths) for _, paths in real),
        counts,
        tuple(wrong),
    )


#: The name that was asked for, and every path that was tried, the last one for good.
_Load = tuple[str, tuple[str, ...]]


def _differences(real: list[_Load], ours: list[_Load]) -> list[tuple[int, _Load | None, _Load | None]]:
    pairs = enumerate(zip_longest(real, ours))
    return [(number, one, other) for number, (one, other) in pairs if one != other]


def _loads_of(load_set: LoadSet) -> list[_Load]:
    """Each file that had to be searched for, by the name that was asked for, and all paths up to it."""
    return [
        (module.requested_as, tuple(_normal(path) for path in (*(a.path for a in module.tried), module.image.path)))
        for module in load_set.modules
        if module.found_by not in (FoundBy.ROOT, FoundBy.INTERPRETER)
    ]


def _loads_by(account: Account) -> list[_Load]:
    # A directory that does not exist is no step of ours, nor are tls/ and x86_64/, which glibc 2.37 gave up.
    return [
        (name, tuple(_normal(path) for path in paths if os.path.isdir(os.path.dirname(path) or ".")))
        for name, paths in account.loaded
    ]


def _normal(path: str) -> str:
    return os.path.normpath(path)


def _compare_bindings(account: Account, load_set: LoadSet) -> tuple[Counts, list[str]]:
    """How many lines there are of each kind, and what is not the same."""
    places = {os.path.realpath(m.image.path): index for index, m in enumerate(load_set.modules)}
    names = {real.symbol for real in account.bindings}
    ours: dict[tuple[int, str, str | None], list[Binding]] = {}
    for binding in bindings(load_set, sorted(names), private=False):
        ours.setdefault((binding.module, binding.symbol, binding.version), []).append(binding)
    lines = compared = by_dlsym = by_stub = 0
    wrong = []
    for real, count in account.bindings.items():
        lines += count
        user, provider = places.get(os.path.realpath(real.user)), places.get(os.path.realpath(real.provider))
        if user is None or provider is None:
            wrong.append(f"{_text(real)}: linkcheck loads no such file")
            continue
        candidates = ours.get((user, real.symbol, real.version), [])
        if not candidates:
            if _has_entry(load_set, user, real.symbol):
                wrong.append(f"{_text(real)}: linkcheck knows no such use")
            by_dlsym += count
            continue
        compared += count
        accepted = {place for one in candidates for place in (one.provider, one.copy_of)}
        if provider == 0 and provider not in accepted and _is_stub(load_set, real.symbol):
            # An address is that of the program's own PLT entry, which goes on to what the program's import is bound to.
            by_stub += count
            provider = next(one.provider for one in ours[0, real.symbol, real.version])
        if provider not in accepted:
            found = [None if one.provider is None else load_set.modules[one.provider].image.path for one in candidates]
            wrong.append(f"{_text(real)}: linkcheck says {found}")
    return Counts(lines, compared, by_stub, by_dlsym), wrong


def _is_stub(load_set: LoadSet, name: str) -> bool:
    """Whether the program, linked at a fixed address, lends the address of its PLT entry to a function of others.

    Such an entry is undefined and has a value (x86-64 psABI, "Function Addresses"; glibc elf/dl-lookup.c check_match).
    """
    symbol = load_set.root.symbols.imported(name)
    return symbol is not None and symbol.value != 0


def _has_entry(load_set: LoadSet, index: int, name: str) -> bool:
    symbols = load_set.modules[index].image.symbols
    return symbols.imported(name) is not None or bool(symbols.exported(name))


def _text(real: RealBinding) -> str:
    version = f" [{real.version}]" if real.version else ""
    return f"ld.so binds {real.symbol}{version} of {real.user} to {real.provider}"


def list_programs() -> dict[str, list[str]]:
    """Label -> command, for those of the programs that this machine has."""
    wanted = {
        "python3": [PYTHON, "-c", "import ssl, sqlite3, decimal, lzma, ctypes"],
        "git": [shutil.which("git") or "/usr/bin/git", "version"],
        "cmake": [_system_cmake(), "--version"],
    }
    return {label: command for label, command in wanted.items() if os.access(command[0], os.X_OK)}


def _system_cmake() -> str:
    """cmake of the system: one from the package index is a script."""
    return "/usr/bin/cmake"


def torch_command(wheel: Path) -> list[str]:
    """A process that opens libtorch_python.so of the unpacked `wheel`, which needs what Python defines."""
    return [PYTHON, "-c", f"import ctypes; ctypes.CDLL({str(wheel / TORCH_CLOSURE)!r})"]


def main() -> int:
    """Compare, print the figures, and say with the status whether anything disagrees."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs.agreement", description=main.__doc__)
    parser.add_argument("--torch", type=Path, help=f"an unpacked {TORCH_WHEEL}, instead of fetching it")
    parser.add_argument("--no-torch", action="store_true", help="leave it out")
    options = parser.parse_args()
    print("| program | files | paths tried | binding lines | compared | by PLT entry | by dlsym | disagreements |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="linkcheck-agreement-") as directory:
        programs = list_programs()
        if not options.no_torch:
            try:
                wheel = (options.torch or fetch_wheel(TORCH_WHEEL, Path(directory))).resolve()
                programs["libtorch_python.so"] = torch_command(wheel)
            except NotAvailableError as error:
                print(f"not compared: {error}", file=sys.stderr)
        for label, command in programs.items():
            one = compare(label, command)
            counts = one.counts
            figures = [one.files, one.tried, counts.lines, counts.compared, counts.by_stub, counts.by_dlsym]
            figures.append(len(one.disagreements))
            print(f"| {label} | {' | '.join(f'{figure:,}' for figure in figures)} |", flush=True)
            wrong += one.disagreements
    print("\n".join(wrong[:50]), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
