// Lets the thread do what a CUDA graph capture forbids by default (allocate, wait for other work)
// for a scope, as CUDA provides for libraries. It captures nothing itself.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda_call.h"
#include "failure.h"

namespace linkcheck::trt {

class CaptureScope {
 public:
  explicit CaptureScope(bool capturing) {
    if (!capturing) return;
    status_ = exchange();
    active_ = status_.ok();
  }
  ~CaptureScope() {
    if (active_) cuda_succeeded(cudaThreadExchangeStreamCaptureMode(&mode_), kCall);
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  // Not ok: what follows could break the caller's capture, and must not be done.
  Status& status() { return status_; }

 private:
  static constexpr const char* kCall = "cudaThreadExchangeStreamCaptureMode";

  Status exchange() { return cuda_status(cudaThreadExchangeStreamCaptureMode(&mode_), kCall); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  Status status_;
  bool active_ = false;
};

}  // namespace linkcheck::trt
