"""linkcheck's main job on programs built on the spot, with the verdicts it must give; `ci/gate` runs this module.

It judges linkcheck's answers and reads no ELF file itself.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.programs.build import OWNER, build_named, make_archive, make_programs

PROFILE = "executorch-caller-stream"


@dataclass(frozen=True, slots=True)
class Step:
    """One command, and the answer it has to give."""

    title: str
    command: tuple[str, ...]
    status: int
    #: What the output has to mention. An exit status alone proves little: a crash ends in 1 as well.
    says: tuple[str, ...] = ()


def take(step: Step, directory: Path) -> bool:
    """Run `step` in `directory`, print what it said, and tell whether it answered as it has to."""
    print(f"\ngate: {step.title}\n$ {shlex.join(step.command)}", flush=True)
    try:
        done = subprocess.run(
            step.command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"gate: NOT as expected: {problem}")
        return False
    print(done.stdout.rstrip())
    faults = [f"the output does not mention {text}" for text in step.says if text not in done.stdout]
    if done.returncode != step.status:
        faults.append(f"exit status {step.status} expected")
    verdict = f"NOT as expected: {'; '.join(faults)}" if faults else "as expected"
    print(f"gate: exit status {done.returncode}, {verdict}", flush=True)
    return not faults


def steps(linkcheck: str, directory: Path) -> tuple[Step, ...]:
    """What the gate runs, on programs that this makes in `directory`; the commands name them relative to it."""
    good = make_programs(build_named("shared"), directory / "good")
    broken = make_programs(build_named("hidden-linked-stripped"), directory / "broken")
    renamed = f"renamed/{OWNER}"
    make_archive(directory / renamed)
    good_runner, broken_runner = (str(programs.runner.relative_to(directory)) for programs in (good, broken))
    verify = (linkcheck, "verify", "--profile", PROFILE)
    prebuilt = (linkcheck, "prebuilt")
    return (
        Step("the good program runs, and its delegate sees the selected stream", (good_runner,), 0),
        Step("linkcheck passes it", (*verify, good_runner), 0),
        Step(
            "the broken program runs, and its delegate sees another stream",
            (broken_runner,),
            broken.build.exit_status,
        ),
        Step("linkcheck fails it, from the files alone", (*verify, broken_runner), 1, ("LC301", broken_runner)),
        Step("the shared library may stand in for the owner", (*prebuilt, f"good/lib/{OWNER}"), 0),
        Step("a static archive of the same name may not", (*prebuilt, renamed), 1, ("LC101", renamed)),
    )


def main(linkcheck: str) -> int:
    """Build, run every step, and answer 0 only when all came out as they have to; 2 when nothing can be built."""
    with tempfile.TemporaryDirectory(prefix="linkcheck-gate-") as name:
        directory = Path(name)
        print("gate: building a good and a broken program from tests/programs/src", flush=True)
        try:
            planned = steps(linkcheck, directory)
        except subprocess.CalledProcessError as problem:
            print(f"gate: {problem.cmd[0]} could not build the programs, its message is above", file=sys.stderr)
            return 2
        answers = [take(step, directory) for step in planned]
    wrong = answers.count(False)
    print(f"\ngate: {f'FAILED: {wrong} steps not as expected' if wrong else 'passed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.executable).with_name("linkcheck"))))
