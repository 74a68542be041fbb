// Which stream one execute uses, whether the caller chose it, and what state it is in.
#pragma once

#include <cuda_runtime_api.h>

#include "driver_api.h"
#include "failure.h"

namespace linkcheck::trt {

struct StreamSelection {
  cudaStream_t stream = nullptr;
  // True under a CallerStreamGuard, even one with a null stream: then the caller orders what
  // follows and execute may return with work in flight.
  bool chosen_by_caller = false;
  // What is enqueued becomes part of a CUDA graph and does not run now.
  bool capturing = false;
  // What the stream belongs to: the device's primary context, or a green context.
  CUcontext context = nullptr;
};

// Reads the caller's stream once. Without one: cudaStreamPerThread.
StreamSelection select_stream();

// Fails with InvalidArgument when the stream cannot be used on `device`, which must be the current
// one: a stream of another GPU (both are named), one that is gone as far as CUDA tells, or the
// per-thread default stream while a green context is current. `primary` is the device's primary
// context. Fills in the stream's context and whether it is captured. While it is captured CUDA does
// not tell a stream's GPU, so another one's is then for TensorRT to refuse.
Status check_stream(StreamSelection& selection, int device, CUcontext primary,
                    const DriverApi& driver);

}  // namespace linkcheck::trt
