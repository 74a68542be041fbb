// Turns a CUDA result into a Status: the one place that knows how CUDA errors map to ExecuTorch's.
// It calls nothing but the error functions themselves.
#pragma once

#include <cuda_runtime_api.h>

#include "failure.h"

namespace linkcheck::trt {

// `what` names the call and finishes "... failed". On failure the thread's last error is cleared,
// so that nobody else's check trips over it.
Status cuda_status(cudaError_t result, const char* what);

// For destructors and error paths: logs a failure, and answers whether the call succeeded.
bool cuda_succeeded(cudaError_t result, const char* what) noexcept;

}  // namespace linkcheck::trt
