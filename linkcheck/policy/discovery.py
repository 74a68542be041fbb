"""Which policy file holds for a directory when none is named: the nearest one above it. Reads no key of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.policy.schema import PYPROJECT, has_policy
from linkcheck.policy.toml_file import parse_toml, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.policy.toml_file import TomlFile

POLICY_NAME = "linkcheck.toml"


def find_policy(start_directory: str | None) -> TomlFile | None:
    """The policy for `start_directory` (None: the working directory), or None when there is none.

    The nearest directory wins, from the start upwards to the root of the repository (the directory with `.git`), or
    to `/` outside of one. Within a directory `linkcheck.toml` wins over a pyproject.toml with `[tool.linkcheck]`.

    Raises PolicyError for a policy file that cannot be read: passing over it could turn a fault into a pass.
    """
    for directory in _directories_upwards(start_directory or ""):
        path = os.path.join(directory, POLICY_NAME)
        if os.path.lexists(path):
            return parse_toml(path, read_bytes(path, only_regular=True))
        path = os.path.join(directory, PYPROJECT)
        if os.path.isfile(path):
            content = read_bytes(path)
            # A project that does not use linkcheck must not suffer from it, even with a broken pyproject.toml; and
            # parsing a long one would take longer than the rest of a check.
            if b"linkcheck" in content and has_policy(file := parse_toml(path, content)):
                return file
        if os.path.lexists(os.path.join(directory, ".git")):
            return None
    return None


def _directories_upwards(start: str) -> Iterator[str]:
    yield start
    try:
        directory = os.path.abspath(start)
    except FileNotFoundError:  # the working directory was removed: nothing is above it
        return
    while (parent := os.path.dirname(directory)) != directory:
        yield parent
        directory = parent
