#include "cuda_call.h"

#include <executorch/runtime/platform/log.h>

#include <string>

namespace linkcheck::trt {
namespace {

Error code_for(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return Error::MemoryAllocationFailed;
    case cudaErrorInvalidDevice:
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      return Error::NotFound;
    case cudaErrorInvalidResourceHandle:
      return Error::InvalidArgument;
    case cudaErrorNotSupported:
      return Error::NotSupported;
    default:
      return Error::Internal;
  }
}

}  // namespace

Status cuda_status(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return {};
  cudaGetLastError();
  return Failure{code_for(result), std::string(what) + " failed: " + cudaGetErrorName(result) +
                                       " (" + cudaGetErrorString(result) + ")"};
}

bool cuda_succeeded(cudaError_t result, const char* what) noexcept {
  if (result == cudaSuccess) return true;
  cudaGetLastError();
  ET_LOG(Error, "TensorRTBackend: %s failed: %s", what, cudaGetErrorName(result));
  return false;
}

}  // namespace linkcheck::trt
