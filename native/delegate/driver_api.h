// The driver functions that the delegate calls: those about contexts, which the CUDA runtime has no
// names for, and those of every execute, which cost about half of the runtime's. Looked up when an
// engine is loaded, never in execute; nothing links libcuda.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "failure.h"

namespace linkcheck::trt {

struct DriverApi {
  CUresult (*get_device)(CUdevice*, int) = nullptr;
  CUresult (*retain_primary)(CUcontext*, CUdevice) = nullptr;
  CUresult (*release_primary)(CUdevice) = nullptr;
  CUresult (*get_current)(CUcontext*) = nullptr;
  CUresult (*set_current)(CUcontext) = nullptr;
  CUresult (*push_current)(CUcontext) = nullptr;
  CUresult (*pop_current)(CUcontext*) = nullptr;
  // A stream's context, that of its green context if it has one. A default stream's is the current
  // one.
  CUresult (*get_stream_context)(CUstream, CUcontext*) = nullptr;
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*get_pointer_attributes)(unsigned int, CUpointer_attribute*, void**,
                                     CUdeviceptr) = nullptr;
  CUresult (*record_event)(CUevent, CUstream) = nullptr;
  CUresult (*query_event)(CUevent) = nullptr;
#if CUDA_VERSION >= 12050
  // As get_stream_context, with the green context told apart; CUDA_ERROR_INVALID_HANDLE for the
  // per-thread default stream while a green context is current. Null when the driver is older.
  CUresult (*get_stream_contexts)(CUstream, CUcontext*, CUgreenCtx*) = nullptr;
#endif

  // Fails with NotFound, naming the function, when there is no driver or it lacks one.
  static Outcome<DriverApi> load();
};

// As cuda_status(), for the driver's results: its numbers are the runtime's.
Status driver_status(CUresult result, const char* what);

// The context that the runtime works in on a GPU where it is in use already.
Outcome<CUcontext> find_primary_context(const DriverApi& driver, int device);

}  // namespace linkcheck::trt
