"""Breaks the delegate on purpose, one line at a time, and expects a test to notice every time.

    mutation_test.py DELEGATE_DIR BUILD_DIR SCRATCH_DIR LINK_COMMAND...

Takes the delegate's objects and the test programs from BUILD_DIR, where they were built. For each fault it compiles the
files that have it, from copies in SCRATCH_DIR, links the shared delegate anew (LINK_COMMAND with the objects), and runs
the one test that must fail over that library. The same is done first without any fault, and then each of those tests
must pass. A fault that no longer fits the sources ends it before anything is compiled.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LIBRARY = "libexecutorch_trt_backend.so"
TEST_TIMEOUT_SECONDS = 60
#: Optimization shows nothing here and takes half of the time; a mutant may leave things unused.
COMPILER_OPTIONS = ("-O0", "-w")
INCLUDE = re.compile(r'^#include "(\w+\.h)"', re.MULTILINE)
PASSED = re.compile(r"^\[  PASSED  \] [1-9]\d* tests?\.", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] ", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One fault: in `file` of the delegate, `old` (there exactly once) becomes `new`."""

    fault: str
    file: str
    old: str
    new: str
    #: The test that must fail, as GoogleTest's filter has it, and its program.
    test: str
    program: str = "backend_test"


MUTANTS = (
    Mutant(
        "results are not waited for",
        "execution.cpp",
        'return cuda_status(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");',
        "return {};",
        "Seeds/BackendExecuteSeeds.HostTensorsAreReadyOnReturn/*",
    ),
    Mutant(
        "copies go to another stream",
        "execution.cpp",
        'bytes, kind, stream_), "cudaMemcpyAsync")',
        'bytes, kind, cudaStreamLegacy), "cudaMemcpyAsync")',
        "BackendExecute.HostTensorsAreReadyOnReturnUnderAGuardToo",
    ),
    Mutant(
        "the engine goes to another stream",
        "execution.cpp",
        "slot_.context().enqueue(stream_)",
        "slot_.context().enqueue(cudaStreamPerThread)",
        "BackendExecute.OneHostTensorIsEnoughToWait",
    ),
    Mutant(
        "an error does not drain",
        "execution.cpp",
        "if (enqueued_ && completion_ != Completion::kByGraph) slot_.drain(stream_);",
        "",
        "BackendFailures.EachCallOfAHostStagedExecute",
    ),
    Mutant(
        "the caller's stream is not asked for",
        "stream_selection.cpp",
        "chosen.value_or(cudaStreamPerThread)",
        "cudaStreamPerThread",
        "BackendExecute.DeviceTensorsUnderAGuardReturnEarly",
    ),
    Mutant(
        "a context is used again before its work is over",
        "execution.cpp",
        "if (status.ok()) status = slot_.settle();",
        "",
        "BackendExecute.WorkLeftInFlightIsWaitedForBeforeTheContextIsUsedAgain",
    ),
    Mutant(
        "early return although host memory waits",
        "execution.cpp",
        "if (completion_ == Completion::kEarly && !host_waits_)",
        "if (completion_ == Completion::kEarly)",
        "BackendExecute.HostTensorsAreReadyOnReturnUnderAGuardToo",
    ),
    Mutant(
        "early return without a guard",
        "loaded_engine.cpp",
        "selection.chosen_by_caller && parts_.options.async_return",
        "parts_.options.async_return",
        "BackendExecute.DeviceTensorsWithoutAGuardAreReadyOnReturn",
    ),
    Mutant(
        "the destructor does not wait",
        "context_slot.cpp",
        "if (settle().ok() || settle().ok()) return;",
        "return;",
        "BackendExecute.DestroyingWaitsForWorkInFlight",
    ),
    Mutant(
        "what could not be drained is taken for idle",
        "context_slot.cpp",
        "    return;\n  }\n  left_ = Left::kUnknown;\n}",
        "    return;\n  }\n}",
        "BackendFailures.WhenEveryWaitFailsTheNextCallWaitsAgain",
    ),
    Mutant(
        "the completion event is not recorded",
        "context_slot.cpp",
        "Status status = done_.record(stream, context);",
        "Status status;\n  static_cast<void>(stream);\n  static_cast<void>(context);",
        "BackendExecute.WorkLeftInFlightIsWaitedForBeforeTheContextIsUsedAgain",
    ),
    Mutant(
        "a wait that failed counts as done",
        "context_slot.cpp",
        "    left_ = Left::kUnknown;\n  }\n  return status;",
        "    left_ = Left::kNothing;\n  }\n  return status;",
        "BackendFailures.AFailingEventWaitIsNotTakenForDone",
    ),
    Mutant(
        "a stream of another device is taken",
        "stream_selection.cpp",
        "if (stream_device != device) {",
        "if (false) {",
        "BackendArguments.AStreamOfAnotherDevice",
    ),
    Mutant(
        "async_return is not looked at",
        "loaded_engine.cpp",
        "selection.chosen_by_caller && parts_.options.async_return",
        "selection.chosen_by_caller",
        "BackendExecute.TheOwnerCanForbidEarlyReturn",
    ),
    Mutant(
        "the device is not restored",
        "device_scope.cpp",
        "if (!switched_) return;",
        "return;",
        "BackendArguments.TheEnginesDeviceIsMadeCurrentAndRestored",
    ),
    Mutant(
        "a green context that was current is not current again",
        "device_scope.cpp",
        "if (former_context_ != nullptr &&",
        "if (false &&",
        "GreenContextTest.OneThatIsCurrentOnAnotherDeviceIsCurrentAgainAfterwards",
        "green_context_test",
    ),
    Mutant(
        "the event is made in the current context, not in the stream's",
        "completion_event.cpp",
        'Status status = driver_status(driver_.push_current(context), "cuCtxPushCurrent");',
        (
            "CUcontext current = nullptr;\n"
            "  driver_.get_current(&current);\n"
            '  Status status = driver_status(driver_.push_current(current), "cuCtxPushCurrent");'
        ),
        "GreenContextTest.EarlyReturnMarksItsWorkWithAnEventOfItsOwnContext",
        "green_context_test",
    ),
    Mutant(
        "an event serves streams of any context",
        "completion_event.cpp",
        "event_ != nullptr && context == context_",
        "event_ != nullptr",
        "GreenContextTest.EarlyReturnMarksItsWorkWithAnEventOfItsOwnContext",
        "green_context_test",
    ),
    Mutant(
        "a context that is in use is handed out again",
        "context_pool.cpp",
        "if (entry->in_use || entry->is_graphs) continue;\n    if (oldest",
        "if (entry->is_graphs) continue;\n    if (oldest",
        "BackendContexts.WhenAllAreInUseTheOptionSaysWaitOrError",
    ),
    Mutant(
        "streams take any idle context",
        "context_pool.cpp",
        "if (entry->last_use > 0 && entry->last_stream == key) return entry.get();",
        "if (entry->last_use > 0) return entry.get();",
        "BackendContexts.AStreamKeepsItsContext",
    ),
    Mutant(
        "all threads' default streams are one",
        "context_pool.h",
        "thread(handle == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id())",
        "thread(std::thread::id())",
        "BackendContexts.EveryThreadsDefaultStreamIsAStreamOfItsOwn",
    ),
    Mutant(
        "more contexts than max_contexts",
        "context_pool.cpp",
        "if (count() < limit_) {",
        "if (count() < limit_ + 1) {",
        "BackendContexts.OverTheLimitTheOneUsedLongestAgoIsTakenAfterItsEvent",
    ),
    Mutant(
        "a graph's context is used again",
        "context_pool.cpp",
        "entry_->is_graphs = true;",
        "",
        "BackendCapture.AGraphsContextIsNobodyElses",
    ),
    Mutant(
        "a refused capture keeps its context",
        "loaded_engine.cpp",
        "if (selection.capturing && !execution.enqueued()) lease.value().release_from_graph();",
        "",
        "BackendCapture.ARefusedCaptureCostsNoContext",
    ),
    Mutant(
        "the destructor does not wait for graphs",
        "context_slot.h",
        "void leave_to_graph() { left_ = Left::kUnknown; }",
        "void leave_to_graph() {}",
        "BackendCapture.DestructionWaitsForLaunches",
    ),
    Mutant(
        "host memory is captured",
        "execution.cpp",
        "if (status.ok() && completion_ == Completion::kByGraph) status = check_capturable();",
        "",
        "BackendCapture.HostTensorsAreRefusedAndTheCaptureGoesOn",
    ),
    Mutant(
        "what the context was told is believed after an error",
        "execution.cpp",
        "  slot_.forget_configuration();\n",
        "",
        "BackendFailures.AfterAnErrorTheContextIsToldEverythingAgain",
    ),
    Mutant(
        "the output's shape is not asked for again",
        "execution.cpp",
        "for (BoundArgument& bound : slot_.outputs()) bound.known_shape.reset();",
        "",
        "BackendExecute.DynamicShapesResizeTheOutput",
    ),
    Mutant(
        "an engine of another budget is shared",
        "engine_cache.cpp",
        "engine != nullptr && engine->has_budget(budget)",
        "engine != nullptr",
        "BackendSharing.TheEffectiveWeightBudgetDecides",
    ),
    Mutant(
        "an engine of another device is shared",
        "engine_cache.cpp",
        "entry_of({hash_content(data, size), size, device})",
        "entry_of({hash_content(data, size), size, 0 * device})",
        "BackendSharing.AnotherDeviceIsAnotherEngine",
    ),
    Mutant(
        "two loads at once make two engines",
        "engine_cache.cpp",
        "const std::lock_guard<std::mutex> lock(entry->loading);\n  for",
        "for",
        "BackendSharing.ALoadWaitsForTheSameEnginesLoadOnAnotherThread",
    ),
    Mutant(
        "the per-thread stream is not refused under a green context",
        "stream_selection.cpp",
        "if (result != CUDA_ERROR_INVALID_HANDLE) return driver_status",
        "if (result != CUDA_ERROR_INVALID_HANDLE || true) return driver_status",
        "GreenContextTest.ThePerThreadStreamIsRefusedWhileOneIsCurrentAndTheErrorSaysWhatToDo",
        "green_context_test",
    ),
    Mutant(
        "the last CUDA error is left behind",
        "cuda_call.cpp",
        "  if (result == cudaSuccess) return {};\n  cudaGetLastError();",
        "  if (result == cudaSuccess) return {};",
        "BackendFailures.EachCallOfADeviceResidentExecute",
    ),
    Mutant(
        "an execute allocates on the heap",
        "execution.cpp",
        "  try {\n    Status status = run_steps(arguments);",
        (
            "  try {\n"
            "    const std::string longer_than_strings_keep_inside(100, ' ');\n"
            "    Status status = run_steps(arguments);"
        ),
        "SteadyState.ADeviceResidentExecuteUnderAGuard",
        "steady_state_test",
    ),
    Mutant(
        "an execute that runs out of memory does not drain",
        "execution.cpp",
        "    clean_up();\n    throw;",
        "    throw;",
        "OutOfMemory.TheWordsOfAnErrorAfterWorkWasEnqueued",
        "steady_state_test",
    ),
    Mutant(
        "a context that is destroyed has no memory for the words of a failure",
        "context_slot.cpp",
        "} catch (const std::bad_alloc&) {",
        "} catch (const int&) {",
        "OutOfMemory.DestroyingWaitsWithoutWords",
        "steady_state_test",
    ),
    Mutant(
        "an engine that is destroyed has no memory for the words of a failure",
        "loaded_engine.cpp",
        "} catch (const std::bad_alloc&) {",
        "} catch (const int&) {",
        "OutOfMemory.DestroyingWaitsWithoutWords",
        "steady_state_test",
    ),
    Mutant(
        "an execute tells the context everything again",
        "execution.cpp",
        "if (bound.known_address == bound.address) return {};",
        "",
        "SteadyState.ADeviceResidentExecuteUnderAGuard",
        "steady_state_test",
    ),
    Mutant(
        "a named engine stays on the host while contexts are made",
        "engine_loader.cpp",
        "  named_engine.Free();\n",
        "",
        "BackendSharing.TheHostCopyIsGoneWhileTheFirstContextIsMade",
    ),
    Mutant(
        "an inline engine stays on the host while contexts are made",
        "engine_loader.cpp",
        "  processed.Free();\n",
        "",
        "BackendSharing.TheHostCopyIsGoneWhileTheFirstContextIsMade",
    ),
)


class Library:
    """The shared delegate in a folder of its own, linked of the objects as built, or of some with a fault in them."""

    def __init__(self, delegate: Path, build: Path, scratch: Path, link: list[str]) -> None:
        self._delegate = delegate
        self._build = build
        self._sources = scratch / "delegate"
        self._folder = scratch / "lib"
        self._link = link
        self._commands = read_commands(delegate, build)
        self._objects = {name: str(output) for name, (_, _, output) in self._commands.items()}

    def copy_sources(self) -> None:
        shutil.rmtree(self._sources, ignore_errors=True)
        shutil.copytree(self._delegate, self._sources)
        self._folder.mkdir(parents=True, exist_ok=True)

    def make(self, file: str, old: str = "", new: str = "") -> None:
        """The shared library with all objects that `file` is in compiled anew, with `new` for `old` in it."""
        path = self._sources / file
        text = path.read_text()
        path.write_text(text.replace(old, new, 1))
        try:
            compiled = {name: self._compile(name) for name in including(self._sources, file)}
        finally:
            path.write_text(text)
        run(
            *self._link,
            f"-Wl,-soname,{LIBRARY}",
            "-o",
            str(self._folder / LIBRARY),
            *(self._objects | compiled).values(),
        )

    def _compile(self, name: str) -> str:
        command, directory, _ = self._commands[name]
        out = str(self._folder / f"{name}.o")
        run(*command, *COMPILER_OPTIONS, "-o", out, "-c", str(self._sources / name), cwd=directory)
        return out

    def passes(self, program: str, test: str) -> bool:
        """Whether `test` passes over this library. Raises SystemExit when it says neither that nor the contrary."""
        path = self._build / "tests" / program
        before = os.environ.get("LD_LIBRARY_PATH")
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{self._folder}:{before}" if before else str(self._folder)}
        trace = run(str(path), environment={**environment, "LD_TRACE_LOADED_OBJECTS": "1"})
        if f"{LIBRARY} => {self._folder / LIBRARY} " not in trace:
            raise SystemExit(f"{path} does not load the library that it is to be tested with:\n{trace}")
        command = [str(path), f"--gtest_filter={test}"]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=TEST_TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False  # a fault may show as a wait without end
        if done.returncode == 0 and PASSED.search(done.stdout):
            return True
        # A negative status is a crash: also a way to notice.
        if done.returncode < 0 or (done.returncode == 1 and FAILED.search(done.stdout)):
            return False
        raise SystemExit(f"{' '.join(command)} did not test anything:\n{done.stdout}{done.stderr}")


def run(*command: str, cwd: str | None = None, environment: dict[str, str] | None = None) -> str:
    """What it prints. Raises SystemExit with the command's output when it fails."""
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def read_commands(delegate: Path, build: Path) -> dict[str, tuple[list[str], str, Path]]:
    """Of each file of the delegate: the command that compiles it, without its file and output; where; the object."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["directory"], entry["file"])
        if source.parent != delegate:
            continue
        words = shlex.split(entry["command"])
        out = words.index("-o")
        commands[source.name] = (
            [*words[:out], *(word for word in words[out + 2 :] if word not in ("-c", entry["file"]))],
            entry["directory"],
            Path(entry["directory"], words[out + 1]),
        )
    if not commands:
        raise SystemExit(f"{build}/compile_commands.json has no command for a file of {delegate}")
    return commands


def including(sources: Path, file: str) -> list[str]:
    """The .cpp files of `sources` that `file` is part of: itself, or those that include it, also by way of others."""
    texts = {path.name: path.read_text() for path in (*sources.glob("*.cpp"), *sources.glob("*.h"))}
    found = {file}
    while more := {name for name, text in texts.items() if found & set(INCLUDE.findall(text))} - found:
        found |= more
    return sorted(name for name in found if name.endswith(".cpp"))


def check_mutants(sources: Path) -> None:
    """Raises SystemExit for faults that no longer fit the sources."""
    lost = [mutant for mutant in MUTANTS if (sources / mutant.file).read_text().count(mutant.old) != 1]
    if lost:
        raise SystemExit("\n".join(f"{mutant.file} does not hold the line of: {mutant.fault}" for mutant in lost))


def main(arguments: list[str]) -> int:
    delegate, build, scratch = map(Path, arguments[:3])
    check_mutants(delegate)
    library = Library(delegate, build, scratch, arguments[3:])
    library.copy_sources()
    library.make("execution.cpp")
    for program, test in sorted({(mutant.program, mutant.test) for mutant in MUTANTS}):
        if not library.passes(program, test):
            raise SystemExit(f"{program}: {test} fails without any fault")
    survivors = 0
    for mutant in MUTANTS:
        library.make(mutant.file, mutant.old, mutant.new)
        survived = library.passes(mutant.program, mutant.test)
        survivors += survived
        print(f"{'SURVIVED' if survived else 'noticed'}: {mutant.fault} ({mutant.test})", flush=True)
    print(f"{len(MUTANTS) - survivors} of {len(MUTANTS)} faults noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
