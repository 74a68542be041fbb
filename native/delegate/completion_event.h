// The event that says when the work left on a stream is over. Owner of the handle only: recording
// and waiting do not need the stream to live on.
#pragma once

#include <cuda_runtime_api.h>

#include "driver_api.h"
#include "failure.h"

namespace linkcheck::trt {

class CompletionEvent {
 public:
  explicit CompletionEvent(const DriverApi& driver) : driver_(driver) {}
  ~CompletionEvent();
  CompletionEvent(const CompletionEvent&) = delete;
  CompletionEvent& operator=(const CompletionEvent&) = delete;

  // Marks the work that is on `stream` now. An event and its stream must be of one context, so the
  // event is made in the stream's, `context`, and made anew when a stream of another one comes;
  // what it marked before must have been waited for.
  Status record(cudaStream_t stream, CUcontext context);
  Status wait() const;

 private:
  Status remake(CUcontext context);
  void destroy();

  const DriverApi driver_;
  cudaEvent_t event_ = nullptr;
  CUcontext context_ = nullptr;
};

}  // namespace linkcheck::trt
