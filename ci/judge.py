"""The gate for one runner and its delegate: linkcheck judges the files, then the runner runs a model.

`python -m ci.judge RUNNER DELEGATE MODEL` ends with 0 when both are as they have to be, with 1 when one is not, and
with 2 when linkcheck could not check. It builds nothing and reads no ELF file itself.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

PROFILE = "executorch-caller-stream"
ACCESSOR = "executorch::extension::cuda::getCallerStream()"
#: What the runner has to print, line by line: the model adds one to an input of ones, on the stream that a
#: CallerStreamGuard selected.
LINES = (
    "  input[0] shape=[2,3,4,4] numel=96",
    "caller stream: ordinary stream",
    "output[0] shape=[2,3,4,4] numel=96 dtype=6",
    "  first 8 values: 2.0000 2.0000 2.0000 2.0000 2.0000 2.0000 2.0000 2.0000",
)
#: How the lines begin that count; ExecuTorch's log comes between them.
BEGINNINGS = ("  input[", "caller stream:", "output[", "  first ")


def main(arguments: list[str], linkcheck: str) -> int:
    """Ask both questions, whatever the first answer is: that a wrong runner computes the right values is the point."""
    if len(arguments) != 3:
        print("usage: python -m ci.judge RUNNER DELEGATE MODEL", file=sys.stderr)
        return 2
    runner, delegate, model = arguments
    linked, ran = verify(linkcheck, runner, delegate), infer(runner, model)
    return linked or ran


def verify(linkcheck: str, runner: str, delegate: str) -> int:
    """Linkcheck's exit status for both files. The delegate must import the accessor, whatever role it plays."""
    done = show([linkcheck, "verify", "--profile", PROFILE, "--require-import", ACCESSOR, "--", runner, delegate])
    return 2 if done is None else done.returncode


def infer(runner: str, model: str) -> int:
    """0 when the runner ends well and prints exactly LINES; from another directory and with an empty environment."""
    done = show([str(Path(runner).absolute()), f"--model_path={Path(model).absolute()}"], cwd="/", env={})
    if done is None:
        return 1
    printed = [line for line in done.stdout.splitlines() if line.startswith(BEGINNINGS)]
    if done.returncode == 0 and printed == list(LINES):
        return 0
    wanted = "\n".join(LINES)
    print(f"judge: the runner ended with status {done.returncode}; 0 is wanted, and these lines:\n{wanted}", flush=True)
    return 1


def show(
    command: list[str], cwd: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Run `command` and print it and what it says; None when it cannot be run."""
    print(f"$ {shlex.join(command)}", flush=True)
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"judge: {problem}", flush=True)
        return None
    print(done.stdout.rstrip(), flush=True)
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], str(Path(sys.executable).with_name("linkcheck"))))
