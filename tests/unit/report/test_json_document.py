from __future__ import annotations

import gc
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.report.json_document import Entries, dump_json, render_json
from linkcheck.report.printable import encodable
from tests.unit.report import hostile
from tests.unit.report.samples import CLEAN, FULL, NOTHING, UNKNOWN

if TYPE_CHECKING:
    from linkcheck.report.report import Report

SCHEMA = json.loads(resources.files("linkcheck").joinpath("report/schemas/report-1.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def forbid(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def parse(report: Report) -> Any:
    return json.loads(render_json(report), parse_constant=forbid)


def test_the_schema_is_valid_strict_and_names_no_host() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:linkcheck:schema:report:1"
    for part in [SCHEMA, *SCHEMA["$defs"].values()]:
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert sorted(part["required"]) == sorted(part["properties"])


@pytest.mark.parametrize("report", [FULL, CLEAN, UNKNOWN, NOTHING])
def test_the_document_fits_its_schema(report: Report) -> None:
    VALIDATOR.validate(parse(report))


def test_the_contract_in_full() -> None:
    document = parse(FULL)
    assert list(document) == ["schema", "profile", "outcome", "inputs", "checks", "findings", "summary"]
    assert document["schema"] == "linkcheck/report/1"
    assert document["profile"] == "executorch-caller-stream"
    assert document["outcome"] == "fail"
    assert document["inputs"] == ["build/bin/runner"]
    assert document["checks"][2] == {
        "code": "LC302",
        "subject": "build/lib/libodd.so",
        "outcome": "unknown",
        "reason": "its symbol table lies beyond the end of the file",
    }
    waived, _, finding = document["findings"]
    assert list(finding) == [
        *("code", "name", "severity", "confidence", "message"),
        *("remedy", "primary", "related", "evidence", "waiver"),
    ]
    symbol = "_ZN10executorch9extension4cuda15getCallerStreamEv"
    assert finding["primary"] == {"path": "build/bin/runner", "symbol": symbol}
    assert finding["related"] == [{"path": "build/lib/libextension_cuda.so", "symbol": symbol}]
    assert finding["evidence"]["archive"] is None
    assert finding["waiver"] is None
    assert waived["waiver"] == {
        "code": "LC403",
        "path": "*/libgomp*",
        "symbol": None,
        "reason": "never loaded together",
        "owner": "build team",
        "expires": "2027-01-31",
        "source": "linkcheck.toml",
        "line": 12,
    }
    assert document["summary"] == {
        "errors": 1,
        "warnings": 1,
        "infos": 0,
        "waived": 1,
        "passed": 1,
        "not_applicable": 1,
        "unknown": 1,
    }


def test_an_unknown_key_or_value_does_not_fit_the_schema() -> None:
    changes: list[dict[str, object]] = [
        {"extra": 1},
        {"outcome": "maybe"},
        {"schema": "linkcheck/report/2"},
        {"summary": {}},
    ]
    for change in changes:
        assert not VALIDATOR.is_valid({**parse(FULL), **change})


@given(hostile.reports)
def test_any_report_is_valid_ascii_json_without_lone_surrogates(report: Report) -> None:
    document = render_json(report)
    assert document.isascii()
    values = json.loads(document, parse_constant=forbid)
    json.dumps(values, ensure_ascii=False).encode("utf-8")
    VALIDATOR.validate(values)


@given(hostile.reports)
def test_text_that_utf_8_can_hold_is_kept_exactly(report: Report) -> None:
    values = json.loads(render_json(report))
    for reported, value in zip(report.findings, values["findings"], strict=True):
        path = reported.finding.primary.path
        if not any("\ud800" <= character <= "\udfff" for character in path):
            assert value["primary"]["path"] == path


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["##[x]", "\ud800", "a\nb"]),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_what_is_written_is_indented_as_json_does(document: dict[str, object]) -> None:
    text = json.dumps(encodable(document), indent=2)
    assert dump_json(document) == text.replace("##", "#\\u0023") + "\n"


def test_a_long_list_has_an_entry_a_line_and_the_same_values() -> None:
    few, many = [
        dump_json({"a": Entries(range(count), lambda n: {"n": n, "b": Entries("xy", lambda c: [c, 1])}), "z": []})
        for count in (1000, 1001)
    ]
    assert json.loads(many) == {"a": [{"n": n, "b": [["x", 1], ["y", 1]]} for n in range(1001)], "z": []}
    assert json.loads(many)["a"][:1000] == json.loads(few)["a"]
    assert len(few.splitlines()) > 10_000
    assert len(many.splitlines()) == 1001 + 5
    assert len(dump_json({"a": [*range(1001)]}).splitlines()) == 1001 + 4
    assert len(dump_json({"a": [[*range(1001)]]}).splitlines()) == 1001 + 6
    assert few == json.dumps(json.loads(few), indent=2) + "\n"


def test_nothing_of_a_document_waits_for_the_search_for_cycles() -> None:
    def count_left(entries: int) -> int:
        gc.collect()
        dump_json({"a": Entries(range(entries), lambda n: {"n": [n, {"m": n}]})})
        return gc.collect()

    gc.disable()
    try:
        count_left(1)  # what the first call leaves of its imports
        few, many = count_left(100), count_left(1000)
    finally:
        gc.enable()
    assert (many - few) / 900 < 0.1  # for each entry; json's own indent would leave 33
