// Lets the thread do what a CUDA graph capture forbids by default (allocate, wait for other work)
// for a scope, as CUDA provides for libraries. It captures nothing itself.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda_call.h"

namespace linkcheck::trt {

class CaptureScope {
 public:
  explicit CaptureScope(bool capturing) : active_(capturing && exchange()) {}
  ~CaptureScope() {
    if (active_) exchange();
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  bool exchange() {
    return cuda_succeeded(cudaThreadExchangeStreamCaptureMode(&mode_),
                          "cudaThreadExchangeStreamCaptureMode");
  }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  const bool active_;
};

}  // namespace linkcheck::trt
