"""Whether a policy's file patterns mean an image: `files` of a role and `from` of a dlopen. Judges nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkcheck.policy.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkcheck.model import Image


def means_file(image: Image, patterns: Iterable[str]) -> bool:
    """Whether one of `patterns` (fnmatch, upper and lower case told apart) means `image`.

    With a slash it is compared with the path, or with the end of it that begins after a slash. Without one it is
    compared with the file name and the SONAME only: on a machine where everything lies below /home/runner, `*runner*`
    would otherwise mean every file.
    """
    file_name = image.path.rpartition("/")[2]
    for pattern in patterns:
        if "/" not in pattern:
            if matches(file_name, pattern) or matches(image.name, pattern):
                return True
        # `bin/*` means bin/runner also for somebody who works in bin and says `runner`.
        elif matches(image.path, pattern) or matches(os.path.abspath(image.path), f"*/{pattern.removeprefix('./')}"):
            return True
    return False
