// The driver functions about contexts, which the CUDA runtime has no names for. Looked up when an
// engine is loaded, never in execute; nothing links libcuda.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "failure.h"

namespace linkcheck::trt {

// A null function is one that the driver lacks; what it would have told is then taken for the
// ordinary case: everything is in the device's primary context.
struct DriverApi {
  CUresult (*get_current)(CUcontext*) = nullptr;
  CUresult (*set_current)(CUcontext) = nullptr;
  CUresult (*push_current)(CUcontext) = nullptr;
  CUresult (*pop_current)(CUcontext*) = nullptr;
  // A stream's context, that of its green context if it has one. A default stream's is the current
  // one.
  CUresult (*get_stream_context)(CUstream, CUcontext*) = nullptr;
#if CUDA_VERSION >= 12050
  // The same with the green context told apart; CUDA_ERROR_INVALID_HANDLE for the per-thread
  // default stream while a green context is current.
  CUresult (*get_stream_contexts)(CUstream, CUcontext*, CUgreenCtx*) = nullptr;
#endif

  static DriverApi load();
};

// As cuda_status(), for the driver's results: its numbers are the runtime's.
Status driver_status(CUresult result, const char* what);

}  // namespace linkcheck::trt
