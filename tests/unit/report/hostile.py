"""Hypothesis strategies: reports with any text in any field, with a liking for what breaks formats."""

from __future__ import annotations

from hypothesis import strategies as st

from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity
from linkcheck.policy.settings import Waiver
from linkcheck.report.report import Report, ReportedFinding

#: Every one of these has broken some tool's report: escapes, commands, markup, lone surrogates, controls, bidi.
NASTY = (
    "\x1b[31mred\x1b[0m",
    "a\r\n::error::forged",
    "::set-output name=x::y",
    "##[error]forged",
    "##vso[task.setvariable variable=x]y",
    "lib\udcff\udc80.so",
    "\ud800",
    "\u202egnp.exe",
    "\x00\x07\x08\x7f\x9b\ufffe\uffff\u2028\u2029\ufeff",
    "]]>&<script>alert(1)</script>\"'",
    "a|b\\|c`d``e",
    "![x](http://h/i.png) [a](1) {0} ${ORIGIN} @team #12 www.h.org",
    "```\n</details>\n# head\n- x\n1. y\n    code\n~~~",
    "100%25%0A,a=b:c",
    "名前 é 😀",
    "    indented",
    "a: b/../../c//d",
    "//host/share",
)

text = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=()), max_size=12),
    st.lists(st.sampled_from(NASTY), max_size=3).map("".join),
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
_locations = st.builds(Location, path=text, symbol=st.none() | text)
_findings = st.builds(
    Finding,
    code=text,
    name=text,
    severity=st.sampled_from(tuple(Severity)),
    confidence=st.sampled_from(tuple(Confidence)),
    message=text,
    remedy=text,
    primary=_locations,
    related=st.lists(_locations, max_size=3).map(tuple),
    evidence=st.dictionaries(text, _json, max_size=3),
)
_waivers = st.builds(
    Waiver,
    code=text,
    path=text,
    reason=text,
    owner=text,
    expires=st.dates(),
    symbol=st.none() | text,
    source=text,
    line=st.integers(min_value=0, max_value=10**6),
)
_checks = st.builds(
    Check,
    code=text,
    subject=text,
    outcome=st.sampled_from([Outcome.PASS, Outcome.NOT_APPLICABLE, Outcome.UNKNOWN]),
    reason=text,
)
reports = st.builds(
    Report,
    command=text,
    profile=text,
    inputs=st.lists(text, max_size=2).map(tuple),
    checks=st.lists(_checks, max_size=3).map(tuple),
    findings=st.lists(st.builds(ReportedFinding, finding=_findings, waiver=st.none() | _waivers), max_size=3).map(
        tuple
    ),
)


def is_clean(document: str) -> bool:
    """No character but line feeds and what Python calls printable (so no control, bidi mark or lone surrogate)."""
    return all(c == "\n" or c.isprintable() for c in document)
