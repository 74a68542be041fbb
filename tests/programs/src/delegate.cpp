// A delegate as far as the link is concerned: it reads the caller's stream, and does no work.
#include "delegate.h"

#include <cstdint>

namespace {
// CUDA's cudaStreamPerThread: what a delegate uses when nobody selected a stream.
const auto kStreamPerThread = reinterpret_cast<cudaStream_t>(std::uintptr_t{2});
} // namespace

cudaStream_t demo_delegate_stream() {
  return executorch::extension::cuda::getCallerStream().value_or(kStreamPerThread);
}
