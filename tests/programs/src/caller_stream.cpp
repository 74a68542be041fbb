// The shared state itself: one thread_local. Each file this object is linked into gets its own.
#include "caller_stream.h"

#include <utility>

namespace executorch::extension::cuda {
namespace {
thread_local std::optional<cudaStream_t> selected;
}

std::optional<cudaStream_t> getCallerStream() {
  return selected;
}

CallerStreamGuard::CallerStreamGuard(cudaStream_t stream) : previous_(std::exchange(selected, stream)) {}

CallerStreamGuard::~CallerStreamGuard() {
  selected = previous_;
}

} // namespace executorch::extension::cuda
