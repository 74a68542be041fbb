"""Code prefixes of --select and --ignore, as they are written; which rules they mean is the policy's business."""

from __future__ import annotations

from linkcheck.errors import UsageProblemError


def split_codes(option: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The prefixes in `texts`, each a list with commas, for `option`.

    Raises UsageProblemError for a text without any: a variable that nothing set would select every rule.
    """
    found: list[str] = []
    for text in texts:
        codes = [code for code in text.split(",") if code.strip()]
        if not codes:
            raise UsageProblemError(f"{option}: an empty value names nothing")
        found += codes
    return tuple(found)
