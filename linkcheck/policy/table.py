"""One table of a policy file, read key by key with its type checked. Knows no key's meaning."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkcheck.errors import PolicyError
    from linkcheck.policy.lines import Address
    from linkcheck.policy.toml_file import TomlFile


class Table:
    """A table at `address` of `file`, called `name` in messages. Reading raises PolicyError for a wrong value."""

    def __init__(
        self,
        file: TomlFile,
        address: Address,
        data: Any,
        *,
        name: str,
        keys: Sequence[str],
        before: Sequence[str] = (),
        above: Table | None = None,
    ) -> None:
        """Check that `data` is a table and that it has none but `keys`.

        `before` are those of them that go before the first `[[array]]` in it: what is written below one belongs to that
        one in TOML. `above` is the table whose array this one is of.
        """
        self.file = file
        self.address = address
        self.name = name
        self._before = before
        self._above = above
        if not isinstance(data, dict):
            raise file.error(address, f"{name} must be a table, not {type_name(data)}")
        self._data: dict[str, Any] = data
        for key in data:
            if key not in keys:
                raise self.unknown(key, keys)

    def unknown(self, key: str, keys: Sequence[str]) -> PolicyError:
        """The error for a key that the schema does not have."""
        from linkcheck.policy.nearest import suggest

        hint = ""
        if (above := self._above) is not None and key in above._before:
            where = above.name if above.address else "the top of the file"
            hint = f"; {key} is a key of {where} and goes before the first [[...]]"
        return self.error(key, f"unknown key {show(key)} in {self.name}; {suggest(key, keys)}{hint}")

    def error(self, key: str | None, reason: str, *, entry: int | None = None) -> PolicyError:
        """An error that blames the value of `key` (or its entry), or with None the table itself."""
        address = self.address if key is None else (*self.address, key)
        return self.file.error(address if entry is None else (*address, entry), reason)

    def has(self, key: str) -> bool:
        """Whether the table has `key`."""
        return key in self._data

    def require(self, *keys: str) -> None:
        """Check that all of `keys` are there; the error names every one that is not."""
        missing = [key for key in keys if key not in self._data]
        if missing:
            raise self.error(None, f"{self.name} lacks {' and '.join(missing)}; it must have {', '.join(keys)}")

    def text(self, key: str, default: str = "") -> str:
        """The string at `key`, which must not be blank."""
        if key not in self._data:
            return default
        value = self._data[key]
        if not isinstance(value, str):
            raise self.error(key, f"{_plain(key)} must be a string, not {type_name(value)}")
        if not value.strip():
            raise self.error(key, f"{_plain(key)} must not be empty")
        return value

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        """The string at `key`, which must be one of `allowed`."""
        value = self.text(key, default)
        if value not in allowed:
            from linkcheck.policy.nearest import suggest

            raise self.error(key, f"unknown {key} {show(value)}; {suggest(value, allowed)}")
        return value

    def flag(self, key: str) -> bool:
        """The boolean at `key`; false when it is absent."""
        value = self._data.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, f"{_plain(key)} must be true or false, not {type_name(value)}")
        return value

    def day(self, key: str) -> date:
        """The TOML date at `key`, which must be there: a date without time of day, and not a string."""
        value = self._data[key]
        if isinstance(value, datetime) or not isinstance(value, date):
            wanted = "a date such as 2027-01-31, without quotes and without a time"
            raise self.error(key, f"{_plain(key)} must be {wanted}, not {type_name(value)}")
        return value

    def texts(self, key: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """The list of strings at `key`, none of them blank; empty when it is absent."""
        if key not in self._data:
            return ()
        values = self._data[key]
        if not isinstance(values, list):
            raise self.error(key, f"{_plain(key)} must be a list of strings, not {type_name(values)}")
        if not values and not may_be_empty:
            raise self.error(key, f"{_plain(key)} must not be an empty list; leave it out instead")
        for entry, value in enumerate(values):
            if not isinstance(value, str):
                raise self.error(key, f"{_plain(key)} must hold strings only, not {type_name(value)}", entry=entry)
            if not value.strip():
                raise self.error(key, f"{_plain(key)} must not hold an empty string", entry=entry)
        return tuple(values)

    def tables(self, key: str, keys: Sequence[str]) -> tuple[Table, ...]:
        """The tables of the array `[[key]]`, each with none but `keys`."""
        values = self._data.get(key, [])
        if not isinstance(values, list):
            raise self.error(key, f"write [[{key}]], with two brackets: {key} must be a list of tables")
        return tuple(
            Table(self.file, (*self.address, key, entry), value, name=f"[[{key}]]", keys=keys, above=self)
            for entry, value in enumerate(values)
        )

    def dictionary(self, key: str) -> Table:
        """The table `[key]`, which may have any keys; an empty one when it is absent."""
        value = self._data.get(key, {})
        keys = tuple(value) if isinstance(value, dict) else ()
        return Table(self.file, (*self.address, key), value, name=f"[{key}]", keys=keys)

    def keys(self) -> tuple[str, ...]:
        """The keys of the table, in its order."""
        return tuple(self._data)


def type_name(value: object) -> str:
    """What a TOML user calls the type of `value`."""
    names = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a floating-point number"),
        (list, "a list"),
        (dict, "a table"),
        (datetime, "a date with a time"),
        (date, "a date"),
        (time, "a time"),
    )
    return next(name for type_, name in names if isinstance(value, type_))


def _plain(key: str) -> str:
    return key if key.isprintable() and len(key) <= 80 else show(key)


def show(text: str) -> str:
    """`text` in quotes for a one-line message: control characters escaped, shortened when it is long."""
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return f'"{printable if len(printable) <= 80 else printable[:77] + "..."}"'
