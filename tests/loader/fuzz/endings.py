"""How a start or a dlopen ends: as the loader's message tells it, and as the loader package foresees it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from linkcheck.loader.lookup import bindings
from linkcheck.loader.versions import compare_versions
from linkcheck.model import Libc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.model import LoadSet, Unresolved

MISSING_FILE = "missing file"
MISSING_VERSION = "missing version"
UNDEFINED = "undefined symbol"
ABORTED = "ld.so aborted"
CRASHED = "crashed"

#: An ending: what kind of fault, and the name of the file, version or symbol ("" where the message has none).
Fault = tuple[str, str]

_MESSAGES = {
    Libc.GLIBC: (
        (MISSING_FILE, r"(?m)(?:^|: )([^:\n]+): cannot open shared object file"),
        (MISSING_VERSION, r"version `(\w+)' not found"),
        (UNDEFINED, r"undefined symbol: (\w+)"),
        (ABORTED, r"check_match: Assertion `version->filename == NULL ()"),
        (CRASHED, r"(?m)^killed by signal 11()$"),
    ),
    Libc.MUSL: (
        (MISSING_FILE, r"(?m)^Error loading shared library ([^:\n]+): "),
        (UNDEFINED, r"(?m)^Error relocating [^:\n]+: (\w+): symbol not found"),
        (CRASHED, r"(?m)^killed by signal 11()$"),
    ),
}


def read_faults(message: str, libc: Libc) -> set[Fault]:
    """The faults that a message of the loader names."""
    # A file that cannot be preloaded is passed over with a message.
    lines = [line for line in message.splitlines() if "from LD_PRELOAD cannot be preloaded" not in line]
    text = "\n".join(lines)
    return {(kind, name) for kind, pattern in _MESSAGES[libc] for name in re.findall(pattern, text)}


def foresee(load_set: LoadSet, preload: Sequence[str]) -> set[Fault]:
    """The faults that stop the process of `load_set`; glibc reports one of them, musl at the start all."""
    missing = {(MISSING_FILE, unresolved.needed) for unresolved in without_preloads(load_set, preload)}
    found = bindings(load_set, ["acc", "var"])
    unbound = {(UNDEFINED, b.symbol) for b in found if b.provider is None and not b.weak}
    crash = {(CRASHED, "") for b in found if b.slot}
    if load_set.libc is Libc.MUSL:
        return (missing | unbound) or crash
    versions = {(MISSING_VERSION, name) for fault in compare_versions(load_set).refused for name in fault.versions}
    if _asserts_versions():
        unbound |= {(ABORTED, "") for b in found if b.unversioned}
    return missing or versions or unbound or crash


def without_preloads(load_set: LoadSet, preload: Sequence[str]) -> tuple[Unresolved, ...]:
    """What is unresolved but for preloads: one that is not there is passed over. They are asked for first."""
    unresolved = load_set.unresolved
    for name in preload:
        if unresolved and unresolved[0].needed == name:
            unresolved = unresolved[1:]
    return unresolved


def _asserts_versions() -> bool:
    """Whether this machine's glibc is older than 2.41."""
    _, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0.0").partition(" ")
    return tuple(map(int, version.split("."))) < (2, 41)
