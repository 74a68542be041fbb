"""Sources of the small runner and delegate that the CMake tests build."""

from __future__ import annotations

#: Chooses a stream and prints what it sees and what the delegate sees.
RUNNER = """
#include <executorch/extension/cuda/caller_stream.h>
#include <cstdio>

extern "C" void* observe();  // the delegate's: the caller's stream, or -1 for none

int main() {
  const executorch::extension::cuda::CallerStreamGuard guard{reinterpret_cast<cudaStream_t>(0x1234)};
  void* seen = *executorch::extension::cuda::getCallerStream();
  std::printf("runner %p delegate %p\\n", seen, observe());
}
"""
DELEGATE = """
#include <executorch/extension/cuda/caller_stream.h>

extern "C" void* observe() {
  return executorch::extension::cuda::getCallerStream().value_or(reinterpret_cast<cudaStream_t>(-1));
}
"""
SHARED_STREAM = "runner 0x1234 delegate 0x1234\n"
#: What a process with two copies prints.
SPLIT_STREAM = "runner 0x1234 delegate 0xffffffffffffffff\n"

#: Lines of CMake: a runner and a delegate that link what was selected.
CONSUMERS = """
add_library(delegate SHARED delegate.cpp)
target_link_libraries(delegate PRIVATE linkcheck::extension_cuda)
add_executable(runner runner.cpp)
target_link_libraries(runner PRIVATE delegate linkcheck::extension_cuda)
"""
#: Puts what was selected into the cache, where a test reads it.
REPORT_SELECTION = """
get_target_property(origin linkcheck::extension_cuda LINKCHECK_ORIGIN)
get_target_property(library linkcheck::extension_cuda LINKCHECK_LIBRARY_TARGET)
message(STATUS "selected: ${origin} as ${library}")
"""
