"""What the real ld.so says about a program that runs (LD_DEBUG, man 8 ld.so), read as it comes; it compares nothing.

LD_BIND_NOW makes ld.so bind at the start what it would bind at the first call, so every relocation shows.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BINDING = re.compile(r"binding file (.+) \[0\] to (.+) \[0\]: (?:normal|protected) symbol `(.*)'(?: \[(.*)\])?$")
_REQUEST = re.compile(r"file=(.+) \[0\];  (needed|dynamically loaded) by (.+) \[0\]$")
_VDSO = "linux-vdso.so.1"


@dataclass(frozen=True)
class RealBinding:
    """One line of LD_DEBUG=bindings; files by the names that ld.so has for them."""

    user: str
    symbol: str
    version: str | None
    provider: str


@dataclass
class Account:
    """All that ld.so said while the program ran."""

    #: Different bindings, and how many lines said so.
    bindings: dict[RealBinding, int] = field(default_factory=dict)
    #: What dlopen was asked for and loaded, in order.
    dlopened: list[str] = field(default_factory=list)
    #: Each file that was loaded for a request, in order: the name, and every path that was tried, the last one for
    #: good. The path is the name where it was no search.
    loaded: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """Lines about bindings."""
        return sum(self.bindings.values())


def watch(command: Sequence[str]) -> Account:
    """Run `command`, the program by its absolute path, with an empty environment, and listen to ld.so.

    Raises CalledProcessError when it does not end with 0. Only its first process is listened to.
    """
    environment = {"LD_BIND_NOW": "1", "LD_DEBUG": "bindings,files,libs", "LC_ALL": "C", "PATH": os.defpath}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="surrogateescape"
    ) as process:
        assert process.stderr is not None
        account = read_account(process.stderr, process.pid)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return account


def read_account(lines: Iterable[str], pid: int) -> Account:
    """The account in the `lines` of process `pid`."""
    account = Account()
    tried: list[str] = []
    for line in lines:
        number, _, rest = line.rstrip("\n").partition(":\t")
        if number.strip() != str(pid):
            continue
        text = rest.strip()
        if text.startswith("binding file "):
            found = _BINDING.match(text)
            assert found is not None, text
            user, provider, symbol, version = found.groups()
            if user != _VDSO:
                one = RealBinding(user, symbol, version, provider)
                account.bindings[one] = account.bindings.get(one, 0) + 1
        elif text.startswith("trying file="):
            tried.append(text.removeprefix("trying file="))
        elif (request := _REQUEST.match(text)) is not None:
            tried = []
            if request[2] != "needed":
                account.dlopened.append(request[1])
        elif text.startswith("file=") and text.endswith("[0];  generating link map"):
            name = text.removeprefix("file=").partition(" [0];")[0]
            account.loaded.append((name, tuple(tried) or (name,)))
    return account
