from __future__ import annotations

import copy
import enum
import pickle

import pytest

from linkcheck.choice import Choice, IntChoice


class Colour(Choice):
    RED = "a warm one"
    BLUE = "a cold one"

    @property
    def is_warm(self) -> bool:
        return self is Colour.RED


class Level(IntChoice):
    LOW = 1
    HIGH = 10


class RealColour(enum.Enum):
    RED = "a warm one"
    BLUE = "a cold one"


class RealLevel(enum.IntEnum):
    LOW = 1
    HIGH = 10


def test_members_are_single_objects_with_a_name_and_a_value() -> None:
    assert (Colour.RED.name, Colour.RED.value) == ("RED", "a warm one")
    assert str(Colour.RED) == str(RealColour.RED).removeprefix("Real") == "Colour.RED"
    assert Colour.RED.is_warm
    assert not Colour.BLUE.is_warm
    assert len({Colour.RED, Colour.BLUE, Colour.RED}) == 2


@pytest.mark.parametrize(("ours", "real"), [(Colour, RealColour), (Level, RealLevel)])
def test_a_class_is_used_as_an_enum(ours: type[enum.Enum], real: type[enum.Enum]) -> None:
    assert [member.name for member in ours] == [member.name for member in real]
    assert len(ours) == len(real)
    for member, twin in zip(ours, real, strict=True):
        assert ours(member.value) is ours(member) is member
        assert isinstance(member, ours)
        assert repr(member) == repr(twin).replace("Real", "")


def test_a_value_that_no_member_has_is_refused() -> None:
    with pytest.raises(ValueError, match="'green' is not a valid Colour"):
        Colour("green")
    with pytest.raises(ValueError, match="5 is not a valid Level"):
        Level(5)


def test_numbers_are_numbers() -> None:
    assert str(Level.HIGH) == f"{Level.HIGH}" == "10"
    assert Level.LOW < Level.HIGH
    assert {10: "x"}[Level.HIGH] == "x"
    assert Level.HIGH >> 1 == 5


def test_nothing_can_be_changed() -> None:
    with pytest.raises(AttributeError):
        Colour.RED.value = "another"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Colour.RED = Colour.BLUE  # type: ignore[misc,assignment]
    assert Colour.RED.value == "a warm one"


def test_copies_and_pickles_are_the_member_itself() -> None:
    for member in (Colour.RED, Level.HIGH):
        assert copy.deepcopy(member) is copy.copy(member) is pickle.loads(pickle.dumps(member)) is member
