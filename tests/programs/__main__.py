"""`python -m tests.programs BUILD DIRECTORY` makes one of the builds by hand; it judges nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.programs.build import BUILDS, make_programs


def main(arguments: list[str]) -> int:
    """Make the build and say what it is; 2 when the arguments name none."""
    builds = {build.name: build for build in BUILDS}
    if len(arguments) != 2 or arguments[0] not in builds:
        print(f"usage: python -m tests.programs BUILD DIRECTORY\nBUILD is one of: {', '.join(builds)}", file=sys.stderr)
        return 2
    programs = make_programs(builds[arguments[0]], Path(arguments[1]))
    command = " ".join(map(str, (programs.runner, *programs.dlopen)))
    print(f"{command}: {'wrong' if programs.build.broken else 'right'}, ends with {programs.build.exit_status}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
