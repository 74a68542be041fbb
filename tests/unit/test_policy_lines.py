"""The line of a key or entry in a TOML text, whatever the text is made of."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.policy.lines import Address, LineMap

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCUMENT = '''\
# [[state]] in a comment is no table
extends = ["a", # "b" in a comment
  # ] neither
  "c",
]
text = """
[[state]]
name = "inside a string \\""" still inside
"""""
literal = \'\'\'
[[state]]\'\'\'
"quoted key" = 1
"esc\\u0061ped" = 2
'single [x]' = 3
dotted . "key" = { inline = "=", other.deep = [ [1, 2], [ # comment
  3 ] ] }
date = 2027-01-31 10:00:00
[[state]]
name = "first" # [[state]]
 [[ state ]]
name = "second"
symbols = [
  "one", "two",

  "three",
]
[state.sub]
x = 1
[[state.list]]
y = 1
[[state.list]]
y = 2
[mangled]
"f(int)" = ["_Z1fi"]
[tool.linkcheck]
[[tool.linkcheck.waiver]]
code = "LC4"
'''


@pytest.mark.parametrize(
    ("address", "line"),
    [
        (("extends",), 2),
        (("extends", 0), 2),
        (("extends", 1), 4),
        (("text",), 6),
        (("literal",), 10),
        (("quoted key",), 12),
        (("escaped",), 13),
        (("single [x]",), 14),
        (("dotted",), 15),
        (("dotted", "key", "inline"), 15),
        (("dotted", "key", "other", "deep", 0, 1), 15),
        (("dotted", "key", "other", "deep", 1), 15),
        (("dotted", "key", "other", "deep", 1, 0), 16),
        (("date",), 17),
        (("state",), 18),
        (("state", 0), 18),
        (("state", 0, "name"), 19),
        (("state", 1), 20),
        (("state", 1, "name"), 21),
        (("state", 1, "symbols", 1), 23),
        (("state", 1, "symbols", 2), 25),
        (("state", 1, "sub", "x"), 28),
        (("state", 1, "list", 1, "y"), 32),
        (("mangled", "f(int)", 0), 34),
        (("tool", "linkcheck"), 35),
        (("tool", "linkcheck", "waiver", 0, "code"), 37),
    ],
)
def test_each_kind_of_place(address: Address, line: int) -> None:
    assert tomllib.loads(DOCUMENT)  # the document must be TOML, or the lines mean nothing
    assert LineMap(DOCUMENT).find(address) == line


def test_a_missing_key_is_placed_at_its_table() -> None:
    assert LineMap(DOCUMENT).find(("state", 1, "owner")) == 20


def test_what_has_no_known_part_has_no_line() -> None:
    assert LineMap(DOCUMENT).find(("nothing",)) is None
    assert LineMap("").find(("state", 0)) is None


@pytest.mark.parametrize(
    "text", ["a = [", "a = {", "[[", "[a", '"', "a = '''", "a = }", "= 1", "a = [{b}]", "a", "\x00"]
)
def test_broken_text_is_no_error(text: str) -> None:
    LineMap(text).find(("a",))


@given(st.text(alphabet="ab[]{}=.,\"'#\\\n \t1"))
def test_any_text_gives_lines_inside_it(text: str) -> None:
    for address in (("a",), ("b", 0), ("a", "b"), ("a", 0, "b")):
        line = LineMap(text).find(address)
        assert line is None or 1 <= line <= text.count("\n") + 1


# A document made with its own places known: every value says which line it was written on.

KEYS = st.one_of(
    st.text(alphabet="abcxyz-_019", min_size=1, max_size=5),
    st.text(alphabet="ab [].=#'\t", max_size=5).map(lambda key: f"q{key}"),
)
NOISE = st.sampled_from(["", '# a comment ] } "\n', "\n", "  \n\t\n", "# [[x]]\n"])


def quote(key: str) -> str:
    return key if key.replace("-", "a").replace("_", "a").isalnum() else '"' + key.replace("\t", "\\t") + '"'


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A TOML text in which each integer is the number of the line it stands on."""
    text = ""

    def line() -> int:
        return text.count("\n") + 1

    def write_value(depth: int) -> None:
        nonlocal text
        kind = draw(st.sampled_from(["integer", "list", "table", "string"] if depth < 3 else ["integer"]))
        if kind == "integer":
            text += str(line())
        elif kind == "string":
            text += draw(st.sampled_from(['"# ] \\" ["', "'}] \\'", '"""\n[[x]]\n"""', "'''\na = 1\n''''", '""']))
        elif kind == "list":
            text += "["
            for _ in range(draw(st.integers(0, 3))):
                text += draw(NOISE)
                write_value(depth + 1)
                text += draw(NOISE) + ","
            text += draw(NOISE) + "]"
        else:
            text += "{ "
            for index, key in enumerate(draw(st.lists(KEYS, unique=True, max_size=3))):
                text += ", " if index else ""
                text += f"{quote(key)} = "
                write_value(depth + 1)
            text += " }"

    def write_keys() -> None:
        nonlocal text
        for key in draw(st.lists(KEYS, unique=True, max_size=4)):
            text += draw(NOISE) + f"{draw(st.sampled_from(['', '  ']))}{quote(key)} = "
            write_value(0)
            text += draw(st.sampled_from(["\n", " # comment [\n"]))

    write_keys()
    for name in draw(st.lists(st.sampled_from(["T", "U", "V"]), unique=True, max_size=3)):
        for _ in range(draw(st.integers(1, 3))):
            text += f"[[{name}]]\n"
            write_keys()
            if draw(st.booleans()):
                text += f"[{name}.SUB]\n"
                write_keys()
    return text


def integers_of(value: Any, address: Address = ()) -> list[tuple[Address, int]]:
    if isinstance(value, dict):
        return [place for key, item in value.items() for place in integers_of(item, (*address, key))]
    if isinstance(value, list):
        return [place for index, item in enumerate(value) for place in integers_of(item, (*address, index))]
    return [(address, value)] if isinstance(value, int) else []


@given(documents())
def test_every_list_entry_and_key_is_found_where_it_was_written(text: str) -> None:
    lines = LineMap(text)
    for address, line in integers_of(tomllib.loads(text)):
        # A key's place is where the key starts, an entry's where the value does: both on the line that was written.
        assert lines.find(address) == line
