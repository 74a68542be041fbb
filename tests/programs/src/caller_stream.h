// The caller-stream interface, with the names and the ABI of ExecuTorch's extension/cuda. Declarations only; the one
// piece of state behind them is in caller_stream.cpp.
#pragma once

#include <optional>

struct CUstream_st;
using cudaStream_t = CUstream_st*;

namespace executorch::extension::cuda {

// The stream this thread selected, or nothing. A null stream that was selected is a selection.
std::optional<cudaStream_t> getCallerStream();

// Selects a stream for this thread; the destructor brings back what was selected before. Not owning.
class CallerStreamGuard {
 public:
  explicit CallerStreamGuard(cudaStream_t stream);
  ~CallerStreamGuard();
  CallerStreamGuard(const CallerStreamGuard&) = delete;
  CallerStreamGuard& operator=(const CallerStreamGuard&) = delete;

 private:
  std::optional<cudaStream_t> previous_;
};

} // namespace executorch::extension::cuda
