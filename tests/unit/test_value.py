from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys

import pytest

from linkcheck.value import Value, replace


class Point(Value):
    """A value with two fields that must be given and two that need not."""

    x: int
    y: int
    name: str = "origin"
    tags: tuple[str, ...] = ()

    @property
    def distance(self) -> int:
        return abs(self.x) + abs(self.y)


class Place(Value):
    x: int
    y: int
    name: str = "origin"
    tags: tuple[str, ...] = ()


def test_fields_are_given_by_position_by_name_or_by_default() -> None:
    point = Point(1, y=-2, tags=("a",))
    assert (point.x, point.y, point.name, point.tags, point.distance) == (1, -2, "origin", ("a",), 3)


@pytest.mark.parametrize(
    ("args", "kwargs", "blamed"),
    [
        ((1,), {}, "y"),
        ((), {"y": 1, "name": "n", "tags": ()}, "x"),
        ((1, 2, "n", (), 5), {}, "5"),
        ((1, 2), {"x": 1}, "x"),
        ((1, 2, "n"), {"x": 1}, "x"),  # as many values as fields, and yet one is missing
    ],
)
def test_what_cannot_be_made_is_a_type_error(args: tuple[int, ...], kwargs: dict[str, object], blamed: str) -> None:
    with pytest.raises(TypeError, match=blamed):
        Point(*args, **kwargs)  # type: ignore[arg-type]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        Point(1, 2, colour="red")  # type: ignore[call-arg]


def test_nothing_can_be_changed_added_or_removed() -> None:
    point = Point(1, 2)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.colour = "red"
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_values_are_equal_within_their_class() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != Place(1, 2)
    assert Point(1, 2) != (1, 2, "origin", ())
    assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2


def test_a_value_shows_its_fields() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2, name='origin', tags=())"


def test_replace_makes_another_value() -> None:
    point = Point(1, 2, "here")
    assert replace(point, x=5) == Point(5, 2, "here")
    assert point.x == 1
    with pytest.raises(TypeError, match="z"):
        replace(point, z=1)  # type: ignore[call-arg]


def test_copies_and_pickles_are_equal() -> None:
    point = Point(1, 2, tags=("a",))
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point


def test_the_functions_of_dataclasses_work() -> None:
    point = Point(1, 2)
    assert dataclasses.is_dataclass(point)
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y", "name", "tags"]
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "name": "origin", "tags": ()}
    assert dataclasses.replace(point, y=7) == Point(1, 7)


def test_patterns_match_by_position() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_making_and_replacing_values_imports_no_dataclasses() -> None:
    code = """
import sys
from linkcheck.model import Location
from linkcheck.value import replace
assert replace(Location("a"), symbol="s") == Location("a", "s")
assert "dataclasses" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
