// Which stream one execute uses, and whether the caller chose it.
#pragma once

#include <cuda_runtime_api.h>

#include "failure.h"

namespace linkcheck::trt {

struct StreamSelection {
  cudaStream_t stream = nullptr;
  // True under a CallerStreamGuard, even one with a null stream: then the caller orders what
  // follows and execute may return with work in flight.
  bool chosen_by_caller = false;
};

// Reads the caller's stream once. Without one: cudaStreamPerThread.
StreamSelection select_stream();

// Fails with InvalidArgument, naming both devices, when a chosen stream belongs to another GPU than
// `device`, which must be the current one.
Status check_stream(const StreamSelection& selection, int device);

}  // namespace linkcheck::trt
