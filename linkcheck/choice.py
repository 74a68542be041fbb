"""The base of linkcheck's enumerations: `enum.Enum` in use, but cheap to define. It holds no enumeration of its own.

`enum` takes 10 to 30 us a member, 2 ms for the ninety that a `verify` meets (docs/performance.md), and a hash of a
member is a call of Python code. Here a member is an object like any other, set once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import Enum as Choice
    from enum import IntEnum as IntChoice
else:

    class _ChoiceType(type):
        """Makes a member of each name in capitals that a class gives a value."""

        def __new__(mcs, name, bases, namespace):
            values = {member: namespace.pop(member) for member in [*namespace] if member.isupper()}
            made = super().__new__(mcs, name, bases, namespace)
            by_value = {}
            make = int.__new__ if issubclass(made, int) else _make_plain
            for member, value in values.items():
                one = by_value[value] = make(made, value)
                one.__dict__.update(name=member, value=value)
                type.__setattr__(made, member, one)
            made._by_value = by_value
            return made

        def __call__(cls, value):
            """The member with `value`, or the member itself. Raises ValueError, as enum.Enum does."""
            if isinstance(value, cls):
                return value
            try:
                return cls._by_value[value]
            except KeyError:
                raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

        def __iter__(cls):
            return iter(cls._by_value.values())

        def __len__(cls):
            return len(cls._by_value)

        def __setattr__(cls, name, value):
            if name.isupper():
                raise AttributeError(f"{cls.__name__} cannot be given another {name}")
            super().__setattr__(name, value)

    def _make_plain(cls, _):
        return object.__new__(cls)

    class Choice(metaclass=_ChoiceType):
        """One of a few named values, each with a `name` and a `value`; there is one object for each."""

        def __setattr__(self, name, value):
            raise AttributeError(f"{self} cannot be changed")

        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __str__(self):
            return f"{type(self).__name__}.{self.name}"

        def __reduce__(self):
            """How copy and pickle find it again."""
            return type(self), (self.value,)

    class IntChoice(int, Choice):
        """A Choice that is a whole number, and equal to it."""

        __repr__ = Choice.__repr__
        __str__ = int.__repr__  # as enum.IntEnum's from Python 3.11 on


__all__ = ["Choice", "IntChoice"]
