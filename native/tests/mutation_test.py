"""Breaks the delegate on purpose, one line at a time, and expects its tests to notice every time.

    mutation_test.py NATIVE_DIR BUILD_DIR CMAKE_ARGUMENT...

Works on a copy of the sources below BUILD_DIR, so nothing of the checkout changes. Takes a full build of the delegate
and its tests, then seconds for each mutant.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TEST_TIMEOUT_SECONDS = 60
PROGRAMS = ("backend_test", "green_context_test", "steady_state_test")


@dataclass(frozen=True)
class Mutant:
    """One fault: in `file` of the delegate, `old` (there exactly once) becomes `new`."""

    fault: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "results are not waited for",
        "execution.cpp",
        'return cuda_status(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");',
        "return {};",
    ),
    Mutant(
        "copies go to another stream",
        "execution.cpp",
        'bytes, kind, stream_), "cudaMemcpyAsync")',
        'bytes, kind, cudaStreamLegacy), "cudaMemcpyAsync")',
    ),
    Mutant(
        "the engine goes to another stream",
        "execution.cpp",
        "slot_.context().enqueue(stream_)",
        "slot_.context().enqueue(cudaStreamPerThread)",
    ),
    Mutant(
        "an error does not drain",
        "execution.cpp",
        "if (enqueued_ && completion_ != Completion::kByGraph) slot_.drain(stream_);",
        "",
    ),
    Mutant(
        "a context is used again before its work is over",
        "execution.cpp",
        "if (status.ok()) status = slot_.settle();",
        "",
    ),
    Mutant(
        "early return although host memory waits",
        "execution.cpp",
        "if (completion_ == Completion::kEarly && !host_waits_)",
        "if (completion_ == Completion::kEarly)",
    ),
    Mutant(
        "early return without a guard",
        "loaded_engine.cpp",
        "selection.chosen_by_caller && parts_.options.async_return",
        "parts_.options.async_return",
    ),
    Mutant(
        "the destructor does not wait",
        "context_slot.cpp",
        "if (settle().ok() || settle().ok()) return;",
        "return;",
    ),
    Mutant(
        "the completion event is not recorded",
        "context_slot.cpp",
        "Status status = done_.record(stream, context);",
        "Status status;\n  static_cast<void>(stream);\n  static_cast<void>(context);",
    ),
    Mutant(
        "a wait that failed counts as done",
        "context_slot.cpp",
        "    left_ = Left::kUnknown;\n  }\n  return status;",
        "    left_ = Left::kNothing;\n  }\n  return status;",
    ),
    Mutant("the device is not restored", "device_scope.cpp", "if (!switched_) return;", "return;"),
    Mutant(
        "a green context that was current is not current again",
        "device_scope.cpp",
        "if (former_context_ != nullptr &&",
        "if (false &&",
    ),
    Mutant(
        "the event is made in the current context, not in the stream's",
        "completion_event.cpp",
        'Status status = driver_status(driver_.push_current(context), "cuCtxPushCurrent");',
        "CUcontext current = nullptr;\n  driver_.get_current(&current);\n"
        '  Status status = driver_status(driver_.push_current(current), "cuCtxPushCurrent");',
    ),
    Mutant(
        "an event serves streams of any context",
        "completion_event.cpp",
        "event_ != nullptr && context == context_",
        "event_ != nullptr",
    ),
    Mutant(
        "a context that is in use is handed out again",
        "context_pool.cpp",
        "if (entry->in_use || entry->is_graphs) continue;\n    if (oldest",
        "if (entry->is_graphs) continue;\n    if (oldest",
    ),
    Mutant(
        "streams take any idle context",
        "context_pool.cpp",
        "if (entry->last_use > 0 && entry->last_stream == key) return entry.get();",
        "if (entry->last_use > 0) return entry.get();",
    ),
    Mutant(
        "all threads' default streams are one",
        "context_pool.h",
        "thread(handle == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id())",
        "thread(std::thread::id())",
    ),
    Mutant(
        "more contexts than max_contexts",
        "context_pool.cpp",
        "if (count() < limit_) {",
        "if (count() < limit_ + 1) {",
    ),
    Mutant("a graph's context is used again", "context_pool.cpp", "entry_->is_graphs = true;", ""),
    Mutant(
        "the destructor does not wait for graphs",
        "context_slot.h",
        "void leave_to_graph() { left_ = Left::kUnknown; }",
        "void leave_to_graph() {}",
    ),
    Mutant(
        "host memory is captured",
        "execution.cpp",
        "if (status.ok() && completion_ == Completion::kByGraph) status = check_capturable();",
        "",
    ),
    Mutant(
        "what the context was told is believed after an error",
        "execution.cpp",
        "  slot_.forget_configuration();\n",
        "",
    ),
    Mutant(
        "the output's shape is not asked for again",
        "execution.cpp",
        "for (BoundArgument& bound : slot_.outputs()) bound.known_shape.reset();",
        "",
    ),
    Mutant(
        "an engine of another budget is shared",
        "engine_cache.cpp",
        "engine != nullptr && engine->has_budget(budget)",
        "engine != nullptr",
    ),
    Mutant(
        "an engine of another device is shared",
        "engine_cache.cpp",
        "entry_of({hash_content(data, size), size, device})",
        "entry_of({hash_content(data, size), size, 0 * device})",
    ),
    Mutant(
        "two loads at once make two engines",
        "engine_cache.cpp",
        "const std::lock_guard<std::mutex> lock(entry->loading);\n  for",
        "for",
    ),
    Mutant(
        "the per-thread stream is not refused under a green context",
        "stream_selection.cpp",
        "if (result != CUDA_ERROR_INVALID_HANDLE) return driver_status",
        "if (result != CUDA_ERROR_INVALID_HANDLE || true) return driver_status",
    ),
    Mutant(
        "the last CUDA error is left behind",
        "cuda_call.cpp",
        "  if (result == cudaSuccess) return {};\n  cudaGetLastError();",
        "  if (result == cudaSuccess) return {};",
    ),
)


def run(*command: str | Path) -> None:
    """Raises SystemExit with the command's output when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


class Workshop:
    """A copy of the sources, built once and rebuilt for each mutant."""

    def __init__(self, native: Path, scratch: Path, cmake_arguments: list[str]) -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        self._source = scratch / "native"
        self._build = scratch / "build"
        shutil.copytree(native, self._source)
        shutil.copytree(native.parent / "cmake", scratch / "cmake")
        run("cmake", "-S", self._source, "-B", self._build, "-G", "Ninja", *cmake_arguments)

    def tests_pass(self) -> bool:
        run("cmake", "--build", self._build, "--target", "executorch_trt_backend", *PROGRAMS)
        return all(self.passes(program) for program in PROGRAMS)

    def passes(self, program: str) -> bool:
        path = self._build / "tests" / program
        try:
            result = subprocess.run([path], capture_output=True, timeout=TEST_TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False  # a fault may show as a wait without end
        return result.returncode == 0

    def survives(self, mutant: Mutant) -> bool:
        path = self._source / "delegate" / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.file} no longer holds the line of: {mutant.fault}")
        path.write_text(text.replace(mutant.old, mutant.new))
        try:
            return self.tests_pass()
        finally:
            path.write_text(text)


def main(arguments: list[str]) -> int:
    workshop = Workshop(Path(arguments[0]), Path(arguments[1]) / "mutants", arguments[2:])
    if not workshop.tests_pass():
        raise SystemExit("the tests fail without any mutant")
    survivors = 0
    for mutant in MUTANTS:
        survived = workshop.survives(mutant)
        survivors += survived
        print(f"{'SURVIVED' if survived else 'noticed'}: {mutant.fault}", flush=True)
    print(f"{len(MUTANTS) - survivors} of {len(MUTANTS)} faults noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
