#include "stream_selection.h"

#include <executorch/extension/cuda/caller_stream.h>

#include <string>

#include "cuda_call.h"

namespace linkcheck::trt {

StreamSelection select_stream() {
  const auto chosen = executorch::extension::cuda::getCallerStream();
  return {chosen.value_or(cudaStreamPerThread), chosen.has_value()};
}

Status check_stream(const StreamSelection& selection, int device) {
  // The default streams are those of the current device, whatever it is.
  const bool is_default = selection.stream == nullptr || selection.stream == cudaStreamLegacy ||
                          selection.stream == cudaStreamPerThread;
  if (is_default) return {};
#if CUDART_VERSION >= 12080
  int stream_device = -1;
  Status status =
      cuda_status(cudaStreamGetDevice(selection.stream, &stream_device), "cudaStreamGetDevice");
  if (!status.ok()) return status;
  if (stream_device != device) {
    return Failure{Error::InvalidArgument, "the caller's stream is on device " +
                                               std::to_string(stream_device) +
                                               ", the engine on device " + std::to_string(device)};
  }
#else
  static_cast<void>(device);  // older runtimes cannot tell; TensorRT refuses the enqueue instead
#endif
  return {};
}

}  // namespace linkcheck::trt
