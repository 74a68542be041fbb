"""What the rules say: checks and findings. Neither waived nor rendered yet; that is report/'s business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import Choice
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping


class Severity(Choice):
    """How bad a finding is. Only an ERROR that is not waived makes a run fail (see Report.outcome)."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Confidence(Choice):
    """How directly the evidence shows the fault: HIGH is read from the file, LOW is inferred."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Outcome(Choice):
    """What one check of one subject came to. What could not be seen is UNKNOWN, never PASS."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FINDING = "finding"
    NOT_APPLICABLE = "not-applicable"
    UNKNOWN = "unknown"


class Location(Value):
    """A file, and the symbol in it, when there is one."""

    path: str
    symbol: str | None = None


#: What evidence may hold: the values JSON has.
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Check(Value):
    """One rule applied to one subject, without a finding. `reason` is empty for a plain pass."""

    code: str
    subject: str
    outcome: Outcome
    reason: str = ""


class Finding(Value):
    """One fault: what was read and why it matters (`message`), and the change to make (`remedy`).

    Both may have several lines. A line indented by four spaces is a command or a line of a build file: it is shown as
    it is, so that it can be copied, and as a code block where the format has one.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    remedy: str
    primary: Location
    related: tuple[Location, ...] = ()
    evidence: Mapping[str, Json] = {}


#: What a rule yields.
RuleResult = Check | Finding
