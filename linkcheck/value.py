"""The base of linkcheck's frozen values: dataclasses in use, but cheap to define. It holds no value of its own.

`dataclasses` writes and compiles the methods of every class, 0.6 ms each: 35 ms for the sixty classes that a `verify`
meets, more than all the rest of its work (docs/performance.md). Here the classes share the methods of one base.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field, replace
    from typing import ClassVar

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        """Of use to type checkers only; `typing` has it from Python 3.11 on."""
        return lambda cls: cls

    def replace(value, /, **changes):
        """As dataclasses.replace, for a Value: a copy of it with `changes`. dataclasses is not imported for it."""
        type_, *fields = type(value)._read_all(value)
        copy = type_.__new__(type_)
        for set_field, field in zip(type_._in_order, fields):  # noqa: B905 - one for each; `strict` takes time
            set_field(copy, field)
        copy._set_by_name(changes)
        return copy


__all__ = ["Value", "replace"]


@dataclass_transform(eq_default=True, frozen_default=True)
class _ValueType(type):
    """Makes slots of the annotated names of a class, and defaults of the values that the class gives them."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _ValueType:
        fields = tuple(namespace.get("__annotations__", ())) if bases else ()
        namespace["_defaults"] = {field: namespace.pop(field) for field in fields if field in namespace}
        namespace["__match_args__"] = fields
        namespace["__slots__"] = fields
        return super().__new__(mcs, name, bases, namespace)

    def __getattr__(cls, name: str) -> Any:
        """What is only made for a class that has values: a check meets twice as many classes."""
        if name not in ("_setters", "_in_order", "_read_all"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        # Setting a slot through its descriptor takes half the time of object.__setattr__.
        cls._setters = {field: cls.__dict__[field].__set__ for field in cls.__match_args__}
        cls._in_order = tuple(cls._setters.values())
        cls._read_all = attrgetter("__class__", *cls.__match_args__)
        return cls.__dict__[name]

    if TYPE_CHECKING:
        __match_args__: tuple[str, ...]
        _defaults: dict[str, Any]
        _setters: dict[str, Callable[[Value, Any], None]]
        _in_order: tuple[Callable[[Value, Any], None], ...]
        _read_all: Callable[[object], tuple[Any, ...]]


class _DataclassFields:
    """`__dataclass_fields__`, made when dataclasses.replace, fields or asdict ask for it."""

    def __get__(self, value: object, type_: type[Value]) -> dict[str, Field[Any]]:
        from dataclasses import fields, make_dataclass

        double = make_dataclass(type_.__name__, type_.__annotations__.items())
        return {field.name: field for field in fields(double)}


class Value(metaclass=_ValueType):
    """A frozen value with slots. A subclass annotates its fields, as a dataclass does; it has no subclasses itself.

    Values of one class are equal when their fields are, and hashable when these are. A default is shared by all
    values, so it must be immutable. A type checker sees a frozen dataclass, and dataclasses.replace, asdict and fields
    work, though the fields know no defaults.
    """

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _DataclassFields()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        setters = type(self)._in_order
        for set_field, value in zip(setters, args):  # noqa: B905 - _fill_in finds too many; `strict` takes time
            set_field(self, value)
        if kwargs or len(args) != len(setters):
            if kwargs:
                self._set_by_name(kwargs)
            if args or len(kwargs) != len(setters):
                self._fill_in(len(args), kwargs)

    def _set_by_name(self, fields: dict[str, Any]) -> None:
        setters = type(self)._setters
        try:
            for name, value in fields.items():
                setters[name](self, value)
        except KeyError as error:
            raise TypeError(f"{type(self).__name__} has no field {error.args[0]}") from None

    def _fill_in(self, count: int, kwargs: dict[str, Any]) -> None:
        """Give the fields behind the first `count` and not in `kwargs` their defaults. Raises TypeError as usual."""
        type_ = type(self)
        names = type_.__match_args__
        if count > len(names):
            raise TypeError(f"{type_.__name__} takes {len(names)} values, and {count} were given")
        for name in names[:count] if kwargs else ():
            if name in kwargs:
                raise TypeError(f"{type_.__name__} was given two values for {name}")
        setters, defaults = type_._setters, type_._defaults
        for name in names[count:]:
            if name not in kwargs:
                if name not in defaults:
                    raise TypeError(f"{type_.__name__} was given no value for {name}")
                setters[name](self, defaults[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; make another one with replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        read_all = type(self)._read_all
        return read_all(self) == read_all(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self) -> int:
        return hash(type(self)._read_all(self))

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({', '.join(fields)})"

    def __reduce__(self) -> tuple[type[Value], tuple[Any, ...]]:
        """How copy and pickle make it again: through __init__, because nothing can be set afterwards."""
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])
