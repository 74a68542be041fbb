"""The command line of the fuzzer; the work is done by `tests.loader.fuzz.fuzz`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from linkcheck.model import Libc
from tests.loader.fuzz import fuzz


def main() -> int:
    """Run the graphs of the seeds asked for; 1 when there was a disagreement."""
    parser = argparse.ArgumentParser(description="Compare the loader package with the real loader on random graphs.")
    parser.add_argument("--graphs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--libc", choices=[libc.value for libc in Libc], default=Libc.GLIBC.value)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "linkcheck-graphs")
    options = parser.parse_args()
    tally = fuzz(range(options.seed, options.seed + options.graphs), Libc(options.libc), options.keep)
    print(
        f"{tally.compared} graphs compared, {tally.unbuildable} not buildable, {len(tally.disagreeing)} disagreements"
    )
    print(*(f"{count} {ending}" for ending, count in tally.endings.most_common()), sep=", ")
    return 1 if tally.disagreeing else 0


if __name__ == "__main__":
    sys.exit(main())
