// Streams that are only addresses: the library never looks behind one, and so needs no GPU to be
// tested.
#pragma once

#include <executorch/extension/cuda/caller_stream.h>

#include <cstdint>

namespace caller_stream_tests {

inline cudaStream_t stream(std::uintptr_t address) {
  return reinterpret_cast<cudaStream_t>(address);
}

/// cudaStreamPerThread, as CUDA's runtime headers define it.
inline cudaStream_t perThread() { return stream(0x2); }

}  // namespace caller_stream_tests
