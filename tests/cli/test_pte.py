"""`linkcheck pte` as users run it, on programs made here: one fault each, every format, every status."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from linkcheck.cli.run import run
from linkcheck.report import FORMATS
from tests.executorch.samples import ENGINE, KEY, OTHER_ENGINE, good_program
from tests.executorch.write_program import Delegate, Program, make_blob

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMAS = resources.files("linkcheck").joinpath("report/schemas")
SCHEMA = json.loads(SCHEMAS.joinpath("pte-1.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # so that no policy file of the checkout is found


@pytest.fixture
def pte(capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def pte(*arguments: str) -> Any:
        status = run(["pte", *arguments, "--format", "json"])
        document = json.loads(capfd.readouterr().out)
        VALIDATOR.validate(document)
        codes = sorted({finding["code"] for finding in document["findings"]})
        unknown = sorted({check["code"] for check in document["checks"] if check["outcome"] == "unknown"})
        return {**document, "status": status, "codes": codes, "unknown": unknown}

    return pte


def write(name: str, program: Program) -> str:
    Path(name).write_bytes(program.to_bytes())
    return name


def one(blob: bytes, **named: bytes) -> Program:
    """A program with one delegate."""
    return Program({"forward": [Delegate(blob)]}, dict(named))


def named(**changes: Any) -> Program:
    """A program with one engine in its named data, and `changes`."""
    return Program({"forward": [Delegate(make_blob(key=KEY))]}, {KEY: ENGINE}, **changes)


def test_a_good_program_passes(pte: Callable[..., Any]) -> None:
    document = pte(write("model.pte", good_program()))
    assert (document["status"], document["outcome"], document["codes"]) == (0, "pass", [])
    assert list(document)[:7] == ["schema", "profile", "outcome", "inputs", "checks", "findings", "summary"]
    assert document["schema"] == "linkcheck/pte/1"
    shared, inline = document["engines"]
    assert shared["keys"] == [KEY]
    assert shared["plan"] == "TensorRT 10.16.0.31 plan"
    assert shared["sha256"] == KEY.removeprefix("tensorrt_engine_")
    assert [(user["method"], user["delegate"]) for user in shared["used_by"]] == [("forward", 0), ("decode", 0)]
    assert inline["size"] == len(OTHER_ENGINE)
    blob = document["programs"][0]["delegates"][0]["blob"]
    assert blob["bindings"][0] == {
        "name": "x",
        "is_input": True,
        "dtype": "float16",
        "shape": [1, 4],
        "dynamic": True,
        "device": "cpu",
    }
    assert blob["aliases"] == [{"output": "y", "input": "cache", "kind": "user"}]


TWICE = Program({m: [Delegate(make_blob(ENGINE, inputs=(m,)))] for m in ("prefill", "decode")})


@pytest.mark.parametrize(
    ("program", "codes", "status"),
    [
        (TWICE, ["LC701"], 1),
        (one(make_blob(ENGINE, KEY), **{KEY: OTHER_ENGINE}), ["LC702", "LC707"], 1),
        (one(make_blob()), ["LC702"], 1),
        (one(make_blob(key=KEY)), ["LC703"], 1),
        (one(make_blob(key=KEY), **{KEY: b""}), ["LC703", "LC707"], 1),
        (named(shift=8), ["LC704"], 1),
        (one(b"TR03" + make_blob(ENGINE)[4:]), ["LC705"], 1),
        (one(make_blob(ENGINE)[:-1]), ["LC705"], 1),
        (one(make_blob(ENGINE), tensorrt_engine_1=OTHER_ENGINE), ["LC706"], 0),
    ],
    ids=["LC701", "LC702-both", "LC702-neither", "LC703", "LC703-empty", "LC704", "LC705", "LC705-cut", "LC706"],
)
def test_each_fault_is_found(pte: Callable[..., Any], program: Program, codes: list[str], status: int) -> None:
    document = pte(write("model.pte", program))
    assert (document["codes"], document["status"]) == (codes, status)


def test_damage_of_a_named_engine_is_found_by_its_hash_only(pte: Callable[..., Any]) -> None:
    content = named().to_bytes()
    Path("model.pte").write_bytes(content[:-1] + b"X")
    assert pte("model.pte")["codes"] == ["LC707"]
    document = pte("model.pte", "--no-hash")
    assert (document["status"], document["codes"]) == (0, [])
    assert document["engines"][0]["sha256"] is None


def test_an_engine_in_a_data_file_is_found_when_it_is_given(pte: Callable[..., Any]) -> None:
    program = write("model.pte", one(make_blob(key=KEY)))
    data = write("engines.ptd", Program(named={KEY: ENGINE}, is_data=True))
    assert pte(program)["codes"] == ["LC703"]
    assert pte(program, data)["status"] == 0
    assert pte(data)["status"] == 0


def test_a_file_that_cannot_be_read_makes_no_finding_of_what_it_may_hold(pte: Callable[..., Any]) -> None:
    program = write("model.pte", one(make_blob(key=KEY)))
    data = write("engines.ptd", Program(named={KEY: ENGINE}, is_data=True))
    Path("cut.ptd").write_bytes(Path(data).read_bytes()[:-1])
    document = pte(program, "cut.ptd")
    assert (document["status"], document["codes"], document["unknown"]) == (2, [], ["LC703", "LC705"])
    Path("cut.pte").write_bytes(Path(program).read_bytes()[:-1])
    document = pte(data, "cut.pte", write("inline.pte", one(make_blob(OTHER_ENGINE))))
    assert (document["status"], document["codes"], document["unknown"]) == (2, [], ["LC705", "LC706"])


def test_nothing_passes_about_a_delegate_whose_blob_cannot_be_read(pte: Callable[..., Any]) -> None:
    bad, fine = write("bad.pte", one(b"TR03" + make_blob(ENGINE)[4:])), write("fine.pte", one(make_blob(ENGINE)))
    document = pte(bad, fine, "--select", "LC701,LC702,LC703,LC704")
    assert (document["status"], document["unknown"]) == (2, ["LC701", "LC702", "LC703", "LC704"])


def test_rules_about_named_engines_say_that_there_is_none(pte: Callable[..., Any]) -> None:
    checks = pte(write("model.pte", one(make_blob(ENGINE))))["checks"]
    reasons = {check["code"]: check["reason"] for check in checks if check["outcome"] == "not-applicable"}
    assert reasons["LC706"] == reasons["LC707"] == "the file has no named engine"


def test_a_key_in_program_and_data_leads_to_the_engine_that_executorch_takes(pte: Callable[..., Any]) -> None:
    program, data = write("model.pte", named()), write("engines.ptd", Program(named={KEY: OTHER_ENGINE}, is_data=True))
    document = pte(program, data)
    assert document["codes"] == ["LC701", "LC707"]
    assert {e["path"]: len(e["used_by"]) for e in document["engines"]} == {program: 0, data: 1}


def test_what_is_no_program_could_not_be_checked(pte: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    Path("model.pte").write_bytes(good_program().to_bytes()[:-1])
    Path("notes.txt").write_text("a text, and no program")
    document = pte("model.pte", "notes.txt", "missing.pte")
    assert (document["status"], document["codes"], document["unknown"]) == (2, [], ["LC705"])
    assert document["programs"] == []
    assert run(["pte", "model.pte"]) == 2
    assert re.search(r"model\.pte: malformed ExecuTorch file: .*: it is cut off$", capfd.readouterr().out, re.MULTILINE)


def test_one_broken_file_hides_no_fault_of_another(pte: Callable[..., Any]) -> None:
    Path("broken.pte").write_bytes(b"\0\0\0\0ET12")
    document = pte("broken.pte", write("model.pte", TWICE))
    assert (document["status"], document["codes"], document["unknown"]) == (1, ["LC701"], ["LC705"])


def test_without_an_engine_nothing_was_checked(pte: Callable[..., Any]) -> None:
    program = Program({"forward": [Delegate(b"xnn", "XnnpackBackend")]}, {"weight": b"1234"})
    assert pte(write("model.pte", program))["outcome"] == "could-not-check"


def test_rules_may_be_chosen_and_findings_waived(pte: Callable[..., Any]) -> None:
    write("model.pte", TWICE)
    assert pte("model.pte", "--ignore", "LC701")["status"] == 0
    assert pte("model.pte", "--select", "LC703,LC704")["status"] == 0
    assert {c["code"] for c in pte("model.pte", "--select", "LC703,LC704")["checks"]} == {"LC703", "LC704"}
    waiver = '[[waiver]]\ncode = "{}"\npath = "*.pte"\nreason = "r"\nowner = "o"\nexpires = 2999-01-01\n'
    extends = 'extends = ["executorch-caller-stream"]\n'
    Path("linkcheck.toml").write_text(extends + waiver.format("LC701") + waiver.format("LC401"))
    document = pte("model.pte")
    assert document["status"] == 0
    assert document["findings"][0]["waiver"]["code"] == "LC701"
    assert document["codes"] == ["LC701"]  # and not LC901: the waiver for LC401 is none of this command's
    Path("linkcheck.toml").write_text(extends + '[[role]]\nname = "r"\nfiles = ["no-such"]\nneed = ["libx.so"]\n')
    assert pte("model.pte")["codes"] == ["LC701"]  # nor LC903: no role is played here
    Path("linkcheck.toml").write_text(extends + waiver.format("LC704"))
    assert pte("model.pte")["codes"] == ["LC701", "LC901"]


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_tells_of_the_finding_and_none_changes_the_status(
    format_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write("model.pte", TWICE)
    assert run(["pte", "model.pte", "--format", format_name]) == 1
    printed = capfd.readouterr().out
    assert "LC701" in printed
    assert "engine-stored-twice" in printed


def test_sarif_describes_the_rules_that_were_asked(capfd: pytest.CaptureFixture[str]) -> None:
    write("model.pte", good_program())
    for select, codes in (((), [f"LC70{n}" for n in range(1, 8)]), (("--select", "LC702"), ["LC702"])):
        run(["pte", "model.pte", "--format", "sarif", *select])
        driver = json.loads(capfd.readouterr().out)["runs"][0]["tool"]["driver"]
        assert [rule["id"] for rule in driver["rules"]] == codes


def test_the_text_shows_methods_tensors_and_engines(capfd: pytest.CaptureFixture[str]) -> None:
    write("model.pte", good_program())
    assert run(["pte", "model.pte"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert re.fullmatch(r"model\.pte: ExecuTorch program, \d+ bytes, methods forward, decode, embed", lines[0])
    assert "    in  x: float16[<=1, <=4]" in lines
    assert "    out y: float32[8] on cuda:0, is cache updated in place (user)" in lines
    assert KEY in lines
    assert any(
        re.match(r"  128 bytes at 0x\w+ of model\.pte, aligned to \d+, TensorRT 10\.16\.0\.31 plan,", x) for x in lines
    )


def test_the_page_shows_what_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pte.md").read_text("utf-8")
    program = good_program()
    del program.methods["embed"]
    write("model.pte", program)
    run(["pte", "model.pte"])
    shortened = re.sub(r"([0-9a-f]{4})[0-9a-f]{60}", r"\1…", capfd.readouterr().out)
    assert f"```text\n{shortened}```\n" in page


def test_markdown_has_a_table_of_the_engines(capfd: pytest.CaptureFixture[str]) -> None:
    write("model.pte", good_program())
    assert run(["pte", "model.pte", "--format", "markdown"]) == 0
    assert f"| `{KEY}` | `model.pte` |" in capfd.readouterr().out


def test_a_report_on_much_stays_short_and_json_has_it_all(
    capfd: pytest.CaptureFixture[str], pte: Callable[..., Any]
) -> None:
    engines = {f"tensorrt_engine_{number}": bytes([number % 256, number // 256]) for number in range(300)}
    program = Program({f"m{number}": [Delegate(make_blob(key=key))] for number, key in enumerate(engines)}, {**engines})
    write("model.pte", program)
    for format_name in ("text", "markdown"):
        run(["pte", "model.pte", "--format", format_name])
        printed = capfd.readouterr().out
        assert "… and 100 more engines, all of them in --format json" in printed
        assert "tensorrt_engine_199" in printed
        assert "tensorrt_engine_200" not in printed
        assert ("m18, m19, 280 more" in printed) is (format_name == "text")
        assert ("… and 100 more delegates" in printed) is (format_name == "text")
    document = pte("model.pte")
    assert len(document["engines"]) == len(document["programs"][0]["delegates"]) == 300


def test_a_fault_of_many_delegates_is_a_finding_of_each_up_to_a_thousand(pte: Callable[..., Any]) -> None:
    write("model.pte", Program({"f": [Delegate(make_blob())] * 1203}))
    document = pte("model.pte")
    assert document["status"] == 1
    findings = [finding for finding in document["findings"] if finding["code"] == "LC702"]
    assert len(findings) == 1001
    assert findings[-1]["message"].startswith("203 more findings of this rule")
    assert findings[-1]["primary"] == {"path": "model.pte", "symbol": None}
    assert [
        c["reason"] for c in document["checks"] if c["subject"] == "model.pte: 203 more" and c["code"] == "LC705"
    ] == ["such checks of this file, the first 1000 of them are listed"]
    waiver = '[[waiver]]\ncode = "LC702"\npath = "model.pte"\nreason = "r"\nowner = "o"\nexpires = 2999-01-01\n'
    Path("linkcheck.toml").write_text(waiver)
    document = pte("model.pte", "--policy", "linkcheck.toml")
    assert len(document["findings"]) == document["summary"]["waived"] == 1203


def test_names_from_files_are_escaped(capfd: pytest.CaptureFixture[str], pte: Callable[..., Any]) -> None:
    name = "a\n::error::b\x1b[2J"
    program = Program(
        {name: [Delegate(make_blob(ENGINE, f"tensorrt_engine_{name}"))]}, {f"tensorrt_engine_{name}": ENGINE}
    )
    write("model.pte", program)
    for format_name in FORMATS:
        run(["pte", "model.pte", "--format", format_name])
        printed = capfd.readouterr().out
        assert "\x1b" not in printed
        assert not re.search(r"^::error::b", printed, re.MULTILINE)


def test_the_report_takes_the_place_of_no_program(capfd: pytest.CaptureFixture[str]) -> None:
    content = named().to_bytes()
    Path("model.pte").write_bytes(content)
    assert run(["pte", "model.pte", "--output", "model.pte"]) == 2
    assert "would overwrite model.pte" in capfd.readouterr().err
    assert Path("model.pte").read_bytes() == content


# ---------------------------------------------------------------- the schema


def test_the_schema_is_valid_and_strict() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:linkcheck:schema:pte:1"
    for part in [SCHEMA, *SCHEMA["$defs"].values()]:
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert sorted(part["required"]) == sorted(part["properties"])


def test_a_report_is_the_same_in_both_schemas() -> None:
    report = json.loads(SCHEMAS.joinpath("report-1.json").read_text("utf-8"))
    assert {name: SCHEMA["$defs"][name] for name in report["$defs"]} == report["$defs"]
    own = {"schema", "programs", "engines"}
    assert {k: v for k, v in SCHEMA["properties"].items() if k not in own} == {
        k: v for k, v in report["properties"].items() if k not in own
    }
