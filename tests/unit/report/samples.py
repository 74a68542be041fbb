"""Reports made from plain values, for the renderers' tests."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity
from linkcheck.policy.settings import Waiver
from linkcheck.report.report import Report, ReportedFinding

WORK = "/srv/project"


@dataclass(frozen=True)
class Card:
    code: str
    name: str
    summary: str
    severity: Severity


@dataclass(frozen=True)
class Described:
    meta: Card
    page: str


RULES = (
    Described(
        Card("LC202", "unresolved-needed", "A needed library is found nowhere.", Severity.ERROR),
        "# LC202\n\nA needed library is found nowhere.\n",
    ),
    Described(
        Card("LC204", "forbidden-needed", "A file depends on what the policy forbids.", Severity.ERROR),
        "# LC204\n\nA file depends on what the policy forbids.\n",
    ),
    Described(
        Card("LC301", "missing-import", "A consumer does not import the shared state.", Severity.ERROR),
        "# LC301\n\n## What it checks\n\nThat the consumer imports it.\n",
    ),
    Described(
        Card("LC302", "private-definition", "A consumer defines the state itself.", Severity.ERROR),
        "# LC302\n\nSee `nm -D`.\n",
    ),
    Described(Card("LC901", "unused-waiver", "A waiver accepts nothing.", Severity.WARNING), "# LC901\n"),
)

MISSING_IMPORT = Finding(
    code="LC301",
    name="missing-import",
    severity=Severity.ERROR,
    confidence=Confidence.HIGH,
    message=(
        "The executable does not import executorch::extension::cuda::getCallerStream(), so it has a private copy of "
        "the caller stream or never sets it.\n"
        "Kernels then run on a stream that nobody chose, and nothing crashes."
    ),
    remedy=(
        "Link the shared library instead of the archive:\n"
        "    target_link_libraries(runner PRIVATE executorch::extension_cuda)"
    ),
    primary=Location("build/bin/runner", "_ZN10executorch9extension4cuda15getCallerStreamEv"),
    related=(Location("build/lib/libextension_cuda.so", "_ZN10executorch9extension4cuda15getCallerStreamEv"),),
    evidence={"needed": ["libstdc++.so.6", "libc.so.6"], "tls_bytes": 8, "stripped": True, "archive": None},
)
UNRESOLVED = Finding(
    code="LC202",
    name="unresolved-needed",
    severity=Severity.WARNING,
    confidence=Confidence.HIGH,
    message="libnvinfer.so.11 is needed and found in none of the directories searched.",
    remedy="Install TensorRT, or name its directory:\n    linkcheck verify --library-path DIR build/bin/runner",
    primary=Location("build/bin/runner", "libnvinfer.so.11"),
    evidence={"searched": ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"]},
)
DUPLICATE = Finding(
    code="LC403",
    name="duplicate-library",
    severity=Severity.ERROR,
    confidence=Confidence.MEDIUM,
    message="Two files have the SONAME libgomp.so.1.",
    remedy="Ship one of them.",
    primary=Location("/opt/torch/lib/libgomp.so.1"),
)
WAIVER = Waiver(
    code="LC403",
    path="*/libgomp*",
    reason="never loaded together",
    owner="build team",
    expires=datetime.date(2027, 1, 31),
    source="linkcheck.toml",
    line=12,
)
CHECKS = (
    Check("LC301", "build/lib/libdelegate.so", Outcome.PASS),
    Check("LC204", "build/lib/libdelegate.so", Outcome.NOT_APPLICABLE, "the profile forbids nothing for libraries"),
    Check("LC302", "build/lib/libodd.so", Outcome.UNKNOWN, "its symbol table lies beyond the end of the file"),
)
FULL = Report(
    command="verify",
    profile="executorch-caller-stream",
    inputs=("build/bin/runner",),
    checks=CHECKS,
    findings=(
        ReportedFinding(DUPLICATE, WAIVER),
        ReportedFinding(UNRESOLVED),
        ReportedFinding(MISSING_IMPORT),
    ),
)
#: The report that docs/formats.md shows in every format.
DOCUMENTED = Report(
    "verify", "executorch-caller-stream", ("build/bin/runner",), CHECKS, (ReportedFinding(MISSING_IMPORT),)
)
CLEAN = Report("verify", "default", ("build/bin/runner",), CHECKS[:2], ())
UNKNOWN = Report("verify", "default", ("build/bin/runner",), CHECKS, ())
NOTHING = Report("verify", "default", ("empty",), (), ())


def report_of(*findings: Finding, waiver: Waiver | None = None, checks: tuple[Check, ...] = ()) -> Report:
    return Report("verify", "default", ("x",), checks, tuple(ReportedFinding(f, waiver) for f in findings))
