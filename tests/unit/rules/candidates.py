"""Candidate files made of plain values, for tests of the rules that look at one file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linkcheck.model import FileIdentity, FileKind
from linkcheck.policy.settings import Settings, State, SymbolSpec
from linkcheck.rules.rule import Candidate
from tests.unit.rules.worlds import ACCESSOR, GUARD, GUARD_BASE, OWNER, X86_64

if TYPE_CHECKING:
    from linkcheck.model import Image

SETTINGS = Settings(profile="test")
STATE = State(
    name="caller stream",
    owner=(OWNER, f"{OWNER}.[0-9]*", "libexecutorch_extension_cuda.so"),
    symbols=(SymbolSpec("accessor()", (ACCESSOR,)), SymbolSpec("Guard::Guard()", (GUARD, GUARD_BASE))),
    consequence="the work runs on the wrong stream",
    cmake_target="executorch::extension_cuda",
)
SHARED = FileIdentity("lib/x.so", FileKind.SHARED_OBJECT, target=X86_64)


def candidate(image: Image | None = None, *, kind: FileKind = FileKind.SHARED_OBJECT) -> Candidate:
    return Candidate(replace(SHARED, kind=kind), image, X86_64, STATE)
