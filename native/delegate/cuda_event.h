// Owns one CUDA event without timing. Owner of the handle only: recording and waiting do not need
// the stream to live on.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "failure.h"

namespace linkcheck::trt {

class CudaEvent {
 public:
  static Outcome<CudaEvent> create();
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  Status record(cudaStream_t stream);
  Status wait() const;

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  cudaEvent_t event_ = nullptr;
};

}  // namespace linkcheck::trt
