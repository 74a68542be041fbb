#include "stream_selection.h"

#include <executorch/extension/cuda/caller_stream.h>

#include <string>

#include "cuda_call.h"

namespace linkcheck::trt {
namespace {

// CUDA refuses that stream under a green context, with an error that does not say so.
Status check_per_thread_stream(const DriverApi& driver) {
#if CUDA_VERSION >= 12050
  if (driver.get_stream_contexts == nullptr) return {};
  CUcontext context = nullptr;
  CUgreenCtx green_context = nullptr;
  const CUresult result = driver.get_stream_contexts(cudaStreamPerThread, &context, &green_context);
  // No context yet: the first call of the runtime makes the primary one current.
  if (result == CUDA_ERROR_INVALID_CONTEXT) return {};
  if (result != CUDA_ERROR_INVALID_HANDLE) return driver_status(result, "cuStreamGetCtx");
  return Failure{Error::InvalidArgument,
                 "a green context is current, and the per-thread default stream does not work "
                 "there: choose a stream of the green context with CallerStreamGuard, or make the "
                 "primary context current with cudaSetDevice()"};
#else
  static_cast<void>(driver);
  return {};
#endif
}

Status check_device(cudaStream_t stream, int device) {
#if CUDART_VERSION >= 12080
  int stream_device = -1;
  Status status = cuda_status(cudaStreamGetDevice(stream, &stream_device), "cudaStreamGetDevice");
  if (!status.ok()) return status;
  if (stream_device != device) {
    return Failure{Error::InvalidArgument, "the caller's stream is on device " +
                                               std::to_string(stream_device) +
                                               ", the engine on device " + std::to_string(device)};
  }
#else
  static_cast<void>(stream);  // older runtimes cannot tell; TensorRT refuses the enqueue instead
  static_cast<void>(device);
#endif
  return {};
}

}  // namespace

StreamSelection select_stream() {
  const auto chosen = executorch::extension::cuda::getCallerStream();
  return {chosen.value_or(cudaStreamPerThread), chosen.has_value()};
}

Status check_stream(StreamSelection& selection, int device, CUcontext primary,
                    const DriverApi& driver) {
  const cudaStream_t stream = selection.stream;
  if (stream == cudaStreamPerThread) {
    Status status = check_per_thread_stream(driver);
    if (!status.ok()) return status;
  }
  Status status =
      driver_status(driver.get_stream_context(stream, &selection.context), "cuStreamGetCtx");
  if (!status.ok()) return status;
  // The legacy stream is the current device's, whatever that is, and cannot be captured.
  if (stream == nullptr || stream == cudaStreamLegacy) return {};
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  status = driver_status(driver.is_capturing(stream, &capture), "cuStreamIsCapturing");
  if (!status.ok()) return status;
  if (capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    return Failure{Error::InvalidArgument, "the caller's stream is in a capture that has failed"};
  }
  selection.capturing = capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  // Most streams are the primary context's, and then the GPU is the right one.
  if (selection.context == primary || stream == cudaStreamPerThread || selection.capturing) {
    return {};
  }
  return check_device(stream, device);
}

}  // namespace linkcheck::trt
