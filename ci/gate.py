"""linkcheck's main job on native/, with the verdicts it must give; `ci/gate` runs this module.

It builds the runner and the delegate, installs them, and builds a runner with a private copy of the caller stream. Then
ci/judge.py, the gate itself, has to pass the first two and to fail the third. It judges verdicts and reads no ELF file.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.build import NATIVE, ROOT, TOOLS, NoBuildError, build, call, configure, executorch_folder
from ci.judge import LINES, PROFILE

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "build" / "gate"
JUDGE = (sys.executable, "-m", "ci.judge")
RUNNER = "executorch_runner"
DELEGATE = "libexecutorch_trt_backend.so"
STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Subjects:
    """What is judged."""

    runner: Path
    delegate: Path
    #: The installed tree.
    package: Path
    #: The runner that has a caller stream of its own.
    private_copy: Path
    model: Path


@dataclass(frozen=True, slots=True)
class Step:
    """One command, and the answer it has to give."""

    title: str
    command: tuple[str, ...]
    status: int
    #: What the output has to mention. An exit status alone proves little: a crash ends in 1 as well.
    says: tuple[str, ...] = ()
    #: The whole output; None when it may be anything else beside `says`.
    prints: str | None = None


def say(line: str) -> None:
    """Print one line of progress at once, with the seconds since the start."""
    print(f"gate: {time.monotonic() - STARTED:3.0f} s: {line}", flush=True)


def make_subjects(folder: Path) -> Subjects:
    """Build and install native/ in `folder`. Raises NoBuildError."""
    say("configuring native/, preset embedded")
    tree, package = folder / "native", folder / "package"
    tests_off = ("-DLINKCHECK_NATIVE_TESTS=OFF", "-DLINKCHECK_CALLER_STREAM_TESTS=OFF")
    configure("embedded", tree, *tests_off, "-DLINKCHECK_PRIVATE_COPY_RUNNER=ON")
    say("building the runner and the delegate")
    build(tree)
    say("installing them")
    # What an earlier run left there must not count.
    shutil.rmtree(package, ignore_errors=True)
    call(TOOLS / "cmake", "--install", tree, "--prefix", package)
    say("building the runner again, with a private copy of the caller stream")
    build(tree, "private_copy_runner")
    say("writing the model")
    return Subjects(
        tree / "runner" / RUNNER,
        tree / "delegate" / DELEGATE,
        package,
        tree / "tests" / "private_copy" / RUNNER,
        make_model(folder, executorch_folder()),
    )


def make_model(folder: Path, executorch: Path) -> Path:
    """The program of the native tests that adds one to a float tensor, as a .pte file. Raises NoBuildError.

    The flatc that writes it is the one in `executorch`, the installed package's folder.
    """
    tests = NATIVE / "tests"
    spec = json.loads((tests / "programs" / "model.json").read_text(encoding="utf-8"))
    spec["methods"] = [method for method in spec["methods"] if method["name"] == "forward"]
    (folder / "model.json").write_text(json.dumps(spec), encoding="utf-8")
    for method in spec["methods"]:
        source = (tests / "plans" / method["plan"]).with_suffix(".json")
        call(sys.executable, NATIVE / "gpusim" / "make_plan.py", source, folder / method["plan"])
    model = folder / "model.pte"
    call(sys.executable, tests / "make_pte.py", executorch, folder / "model.json", model, "--plans", folder)
    return model


def steps(subjects: Subjects, judge: tuple[str, ...], linkcheck: str) -> tuple[Step, ...]:
    """What the gate asks about `subjects`."""
    runner, delegate, package, private_copy, model = (
        str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
        for path in (subjects.runner, subjects.delegate, subjects.package, subjects.private_copy, subjects.model)
    )
    packaged = (f"{package}/bin/{RUNNER}", f"{package}/lib/{DELEGATE}")
    owners = ("find", package, "-name", "*extension_cuda*")
    whole = (linkcheck, "verify", "--profile", PROFILE, package)
    return (
        Step("runner and delegate pass where they were built", (*judge, runner, delegate, model), 0, LINES),
        Step("the package holds one caller-stream library", owners, 0, prints=f"{package}/lib/libextension_cuda.so\n"),
        Step("runner and delegate pass where they were installed", (*judge, *packaged, model), 0, LINES),
        Step("and so does the package as a whole", whole, 0),
        Step(
            "a runner with a private copy fails, although it prints the right values",
            (*judge, private_copy, delegate, model),
            1,
            ("LC301", private_copy, *LINES),
        ),
    )


def take(step: Step) -> bool:
    """Run `step` in the project's root, print what it said, and tell whether it answered as it has to."""
    print(flush=True)
    say(step.title)
    print(f"$ {shlex.join(step.command)}", flush=True)
    try:
        done = subprocess.run(
            step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"gate: NOT as expected: {problem}", flush=True)
        return False
    print(done.stdout.rstrip(), flush=True)
    faults = [f"the output does not mention {text}" for text in step.says if text not in done.stdout]
    if step.prints is not None and done.stdout != step.prints:
        faults.append(f"the output is not {step.prints.rstrip()}")
    if done.returncode != step.status:
        faults.append(f"exit status {step.status} expected")
    verdict = f"NOT as expected: {'; '.join(faults)}" if faults else "as expected"
    print(f"gate: exit status {done.returncode}, {verdict}", flush=True)
    return not faults


def check(planned: tuple[Step, ...]) -> int:
    """Take every step; 0 only when all came out as they have to."""
    wrong = [take(step) for step in planned].count(False)
    print(flush=True)
    say(f"FAILED: {wrong} of {len(planned)} steps not as expected" if wrong else "passed")
    return 1 if wrong else 0


def main() -> int:
    """Build, run every step, and answer 0 only when all came out as they have to; 2 when nothing can be built."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        subjects = make_subjects(FOLDER)
    except NoBuildError as problem:
        print(f"gate: {problem}", file=sys.stderr)
        return 2
    return check(steps(subjects, JUDGE, str(TOOLS / "linkcheck")))


if __name__ == "__main__":
    sys.exit(main())
