"""Names of machines, and the machine that runs the tests."""

from __future__ import annotations

import platform
import struct
import sys

import pytest

from linkcheck.elf.machine import ALIASES, MACHINES, detect_host, parse_machine
from linkcheck.errors import UsageProblemError
from linkcheck.model import MACHINE_NAMES, Target


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("x86-64", Target(62, 64, "little")),
        ("x86_64", Target(62, 64, "little")),
        ("AMD64", Target(62, 64, "little")),
        ("aarch64", Target(183, 64, "little")),
        ("arm64", Target(183, 64, "little")),
        ("i686", Target(3, 32, "little")),
        ("armv7l", Target(40, 32, "little")),
        ("riscv64", Target(243, 64, "little")),
        ("ppc64le", Target(21, 64, "little")),
        ("ppc64", Target(21, 64, "big")),
        ("s390x", Target(22, 64, "big")),
        (" x86-64 ", Target(62, 64, "little")),
    ],
)
def test_names_of_machines(name: str, target: Target) -> None:
    assert parse_machine(name) == target


def test_an_unknown_name_lists_every_known_one() -> None:
    with pytest.raises(UsageProblemError) as caught:
        parse_machine("vax")
    for name in MACHINES:
        assert name in str(caught.value)


def test_every_alias_leads_somewhere_and_every_machine_has_a_name_in_messages() -> None:
    assert set(ALIASES.values()) <= set(MACHINES)
    assert not set(ALIASES) & set(MACHINES)
    assert {target.machine for target in MACHINES.values()} <= set(MACHINE_NAMES)


def test_the_host_is_this_process() -> None:
    host = detect_host()
    assert host is not None
    assert host.bits == struct.calcsize("P") * 8
    assert host.byte_order == sys.byteorder
    if host.bits == 64:
        assert host == parse_machine(platform.machine())
